"""Parts of the passages embedded one by one, and joined by the run that scores."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from interlingua.encoder.model_info import ModelInfo
from interlingua.errors import ConfigError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.suite import checked_shard, evaluate_suite
from interlingua.evaluation.tasks.retrieval import passages
from interlingua.evaluation.tasks.retrieval.retrieval import Beir
from tests.evaluation.files import write_rows
from tests.progress_records import Recorded

INFO = ModelInfo(name="numbers", library="own", digest="1")


@pytest.fixture
def folder(tmp_path):
    """Two languages with passages of one number each."""
    made = tmp_path / "beir"
    for code, count in (("sw", 7), ("te", 4)):
        (made / code / "qrels").mkdir(parents=True)
        rows = [
            {"_id": f"p{n}", "title": f"{code} title", "text": f"{code} {n}"} for n in range(count)
        ]
        questions = [{"_id": f"q{n}", "text": f"which {code} {n}"} for n in range(3)]
        for name, lines in (("corpus", rows), ("queries", questions)):
            (made / code / f"{name}.jsonl").write_text(
                "".join(json.dumps(line) + "\n" for line in lines)
            )
        write_rows(made / code / "qrels" / "test.tsv", (f"q{n}\tp{n}\t1" for n in range(3)))
    return made


@pytest.fixture(autouse=True)
def portions_of_2(monkeypatch):
    monkeypatch.setattr(passages, "STREAM_PORTION_TEXTS", 2)


def passages_read(encoder):
    return [text for text in encoder.texts if "title" in text]


@pytest.mark.parametrize("count", [1, 2, 3, 9])
def test_shards_join_to_the_result_of_one_run(folder, tmp_path, number_encoder, count):
    (whole,) = evaluate_suite(number_encoder, [Beir()], folder, model=INFO)
    texts = sorted(passages_read(number_encoder))
    shares = []
    for number in range(1, count + 1):
        number_encoder.texts.clear()
        how = {"model": INFO, "cache": tmp_path / "c", "shard": f"{number}/{count}"}
        assert evaluate_suite(number_encoder, [Beir()], folder, **how) == []
        shares.append(passages_read(number_encoder))
    assert sorted(itertools.chain(*shares)) == texts
    assert max(map(len, shares)) - min(map(len, shares)) <= 4
    number_encoder.texts.clear()
    (joined,) = evaluate_suite(number_encoder, [Beir()], folder, model=INFO, cache=tmp_path / "c")
    assert passages_read(number_encoder) == []
    assert joined.subsets == whole.subsets


def test_a_shard_that_was_stopped_goes_on(folder, tmp_path, number_encoder):
    how = {"model": INFO, "cache": tmp_path / "c", "shard": "1/1"}
    real, calls = number_encoder.encode, []

    def stops(texts, **options):
        calls.append(texts)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(texts, **options)

    number_encoder.encode = stops
    with pytest.raises(KeyboardInterrupt):
        evaluate_suite(number_encoder, [Beir()], folder, **how)
    first = list(number_encoder.texts)
    evaluate_suite(number_encoder, [Beir()], folder, **how)
    assert len(first) == 4
    assert len(number_encoder.texts) == len(set(number_encoder.texts)) == 11


def test_progress_ends_at_the_last_passage(folder, tmp_path, number_encoder):
    seen = Recorded()
    how = {"model": INFO, "cache": tmp_path, "shard": "2/2"}
    evaluate_suite(number_encoder, [Beir()], folder, progress=seen, **how)
    assert seen.counts[-1] == (11, 11)
    assert np.all(np.diff([done for _, done, _ in seen.states]) > 0)


@pytest.mark.parametrize(
    ("shard", "suite", "cache", "message"),
    [
        ("3/2", "beir", "c", "3/2"),
        ("1/2", "beir", None, "--cache"),
        ("1/2", "beir,tatoeba", "c", "tatoeba"),
    ],
)
def test_senseless_shards_are_refused(shard, suite, cache, message):
    with pytest.raises(ConfigError, match=message):
        checked_shard(shard, build_tasks(suite), cache)
