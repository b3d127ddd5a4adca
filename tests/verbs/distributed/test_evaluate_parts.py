"""``evaluate --devices``: several processes embed, and the scores are those of one."""

from __future__ import annotations

import json
import multiprocessing
import shutil

import pytest
import torch

import interlingua
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, TaskError
from interlingua.runtime.progress import SILENT
from interlingua.verbs.evaluate import EvaluateOptions, run_evaluate
from interlingua.verbs.parts import evaluate_parts
from tests.cli.verbs.test_evaluate import model as model
from tests.progress_records import Recorded


@pytest.fixture
def passages(tmp_path):
    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    rows = [{"_id": f"p{n}", "text": f"de{n} de{n + 1} de{n + 2}"} for n in range(9)]
    questions = [{"_id": f"q{n}", "text": f"de{n} de{n + 2}"} for n in range(4)]
    for name, lines in (("corpus", rows), ("queries", questions)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "qrels" / "test.tsv").write_text("".join(f"q{n}\tp{n}\t1\n" for n in range(4)))
    return folder


def test_two_processes_score_as_one_and_leave_nothing_to_embed(model, passages, tmp_path):
    how = {"data": passages, "output": None, "languages": "de", "device": "cpu"}
    [alone] = interlingua.evaluate(model, "beir", **how)
    seen = Recorded()
    options = EvaluateOptions(
        model=model, suite="beir", devices=2, cache=tmp_path / "cache", check=False, **how
    )
    [together] = run_evaluate(options, seen)
    assert [subset.scores for subset in together.subsets] == [
        subset.scores for subset in alone.subsets
    ]
    assert alone.provenance["encoded_texts"] == 13
    assert together.provenance["encoded_texts"] == 4  # only the questions
    assert seen.states
    assert multiprocessing.active_children() == []


def test_error_of_a_process_is_one_line(model, passages, tmp_path):
    how = {"data": passages, "cache": tmp_path / "cache", "device": "cpu", "output": None}
    options = EvaluateOptions(model=model, suite="beir", devices=1, languages="de", **how)
    shutil.rmtree(model)
    with pytest.raises(TaskError, match="model"):
        evaluate_parts.embed_parts(options, run_evaluate, SILENT)
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shard": "1/2"}, "shard"),
        ({"budget": "1m"}, "budget"),
        ({"device": "cuda:1"}, "cuda:1"),
        ({"cache": None}, "--cache"),
        ({"suite": "tatoeba"}, "tatoeba"),
    ],
)
def test_what_does_not_go_with_devices_is_refused(model, passages, tmp_path, options, message):
    given = {"suite": "beir", "data": passages, "cache": tmp_path, "devices": 2, **options}
    with pytest.raises(ConfigError, match=message):
        interlingua.evaluate(model, **given)


def test_loaded_model_can_not_travel(model, passages, tmp_path):
    with pytest.raises(ConfigError, match="model directory"):
        interlingua.evaluate(Encoder.load(model), "beir", passages, devices=2, cache=tmp_path)


def test_more_processes_than_gpus_are_refused(model, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(ConfigError, match="has 2 GPUs"):
        evaluate_parts.check_devices(EvaluateOptions(model=model, devices=8))
    evaluate_parts.check_devices(EvaluateOptions(model=model, devices=8, device="cpu"))
