"""A run that starts from a trained encoder: evaluated before its first step, used with the prompt
of its corpus."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.cli.verbs.train import _summary
from interlingua.encoder.backends.foreign import check_vectors
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import TaskError
from interlingua.training.build import with_default_prompt
from interlingua.training.config import train_config_from
from interlingua.training.log import NotFiniteError
from interlingua.training.loop import run_training
from tests.training.runs import records


@pytest.fixture
def from_model(tiny_table, tmp_path, word_vocabulary):
    """A function from changes of [run] to the config of a run that starts from a model."""
    torch.manual_seed(1)
    shape = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(shape, word_vocabulary).save(tmp_path / "start")

    def make(**run):
        start = {"encoder": {"path": str(tmp_path / "start")}, "run": {**tiny_table["run"], **run}}
        return train_config_from({**tiny_table, **start})

    return make


def test_the_best_model_may_be_the_start_and_says_so(from_model, tmp_path):
    worse = iter([0.9, 0.5, 0.4])
    config = from_model(metric_for_best_model="score", greater_is_better=True)
    result = run_training(
        config, evaluate=lambda encoder, step: {"score": next(worse)}, progress=False
    )
    assert [record["step"] for record in records(result.run, "evaluation")] == [0, 6, 12]
    assert (result.best_step, result.best_metric) == (0, 0.9)
    assert Encoder.load(result.best).digest() == Encoder.load(tmp_path / "start").digest()
    assert any(
        "step 0, before training: no later evaluation was better" in line
        for line in _summary(result)
    )


def test_training_that_helps_is_the_best_model(from_model):
    better = iter([0.4, 0.5, 0.9])
    config = from_model(metric_for_best_model="score", greater_is_better=True)
    result = run_training(
        config, evaluate=lambda encoder, step: {"score": next(better)}, progress=False
    )
    assert (result.best_step, result.best_when) == (12, "step 12")


def test_a_run_from_scratch_is_not_evaluated_before_it(tiny_config):
    run = run_training(tiny_config(), progress=False).run
    assert [record["step"] for record in records(run, "evaluation")] == [6, 12]


def test_frozen_embeddings_stay_as_they_are_and_the_rest_is_trained(from_model, tmp_path):
    config = from_model()
    frozen = dataclasses.replace(
        config, encoder=dataclasses.replace(config.encoder, freeze_embeddings=True)
    )
    before = Encoder.load(tmp_path / "start").backbone.state_dict()
    after = Encoder.load(run_training(frozen, progress=False).model).backbone.state_dict()
    same = {name for name, weight in after.items() if torch.equal(weight, before[name])}
    assert "word_embeddings.weight" in same
    assert not same - {"word_embeddings.weight", "token_type_embeddings.weight"}


def test_vectors_that_are_not_finite_are_told_in_words_of_training(from_model):
    def broken(encoder, step):
        if step:
            check_vectors(encoder.encode(["de1"]) * float("nan"), ["de1"], encoder.dim)
        return {"score": 1.0}

    with pytest.raises(
        NotFiniteError, match=r"infinity after step 6; .*optimizer\.learning_rate"
    ) as caught:
        run_training(from_model(metric_for_best_model="score"), evaluate=broken, progress=False)
    assert isinstance(caught.value.__cause__, TaskError)
    assert "--dtype" not in str(caught.value)


def test_the_corpus_decides_on_the_default_prompt():
    settings = EncodingSettings(prompts={"query": "query: "}, default_prompt="query")
    assert with_default_prompt(settings, "").default_prompt is None
    assert with_default_prompt(settings, "query: ") == settings
    named = with_default_prompt(dataclasses.replace(settings, default_prompt=None), "other: ")
    assert named.prompt_text(None) == "other: "
    assert named.prompts["query"] == "query: "
