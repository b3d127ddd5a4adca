"""docs/how-to/fine-tune.md: its files are written and its commands run, on a tiny model and
corpus."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.training.config import load_train_config
from tests.conftest import pairs
from tests.docs.markdown import follow
from tests.tiny import tiny_encoder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "fine-tune.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("fine-tune")
    encoder = tiny_encoder(word_vocabulary)
    encoder.settings = dataclasses.replace(
        encoder.settings, prompts={"query": "en1: ", "passage": "en2: "}
    )
    encoder.save(folder / "model")
    rows = pairs("deu_Latn", 700, seed=0)
    (folder / "bitext.de-en.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    """Command -> output."""
    return follow(PAGE, workplace, instead={"hf:intfloat/multilingual-e5-small": "model"})


def test_every_command_ends_well(done):
    assert len(done) == 5


def test_the_start_is_evaluated_and_the_rate_is_a_fine_tunings(done, workplace):
    lines = (
        (workplace / "runs" / "finetuned" / "metrics.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    )
    evaluations = [record for record in map(json.loads, lines) if record["kind"] == "evaluation"]
    assert evaluations[0]["step"] == 0
    assert evaluations[0]["best"]
    assert (
        load_train_config(workplace / "runs" / "finetuned" / "config.toml").optimizer.learning_rate
        == 5e-5
    )


def test_the_model_puts_the_prompt_of_its_training_before_texts(done, workplace):
    trained = Encoder.load(workplace / "runs" / "finetuned")
    assert trained.settings.default_prompt == "query"
    vectors = trained.encode(["de1 de2"])
    assert np.array_equal(vectors, trained.encode(["de1 de2"], prompt="en1: "))
    assert not np.array_equal(vectors, trained.encode(["de1 de2"], prompt=""))
