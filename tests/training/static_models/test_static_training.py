from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import ConfigError
from interlingua.evaluation.validation import validation_evaluator
from interlingua.training.static_models import static_training as module
from interlingua.training.static_models.static_training import (
    RECIPE,
    WithPrompt,
    static_run_config,
    train_static,
    usual_prompt,
)

SHORT = (
    "run.max_steps=40", "run.global_batch_size=32", "run.precision=fp32", "run.threads=1",
    "run.seed=3", "optimizer.learning_rate=0.05", "data.valid_pairs=32", "run.device=cpu",
)  # fmt: skip


@pytest.fixture
def teacher(word_vocabulary):
    """An untrained transformer without knowledge of translations."""
    torch.manual_seed(0)
    return Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary
    )


def test_training_finds_translations_that_the_start_did_not(teacher, prepared, tmp_path):
    evaluate = validation_evaluator(prepared / "valid_text")
    result = train_static(
        teacher, prepared, tmp_path, overrides=SHORT, evaluate=evaluate, progress=False
    )
    start, trained = Encoder.load(tmp_path / "start"), Encoder.load(result.best)
    assert isinstance(trained.backbone, StaticBackbone)
    before, after = (evaluate(encoder, 0)["tatoeba_accuracy"] for encoder in (start, trained))
    assert before < 0.3
    assert after > 0.9
    assert result.best_metric == pytest.approx(after)


def test_the_same_call_goes_on_and_the_same_seed_gives_the_same_vectors(
    teacher, prepared, tmp_path, monkeypatch
):
    first = train_static(teacher, prepared, tmp_path / "a", overrides=SHORT, progress=False)
    again = train_static(teacher, prepared, tmp_path / "b", overrides=SHORT, progress=False)
    other = train_static(
        teacher, prepared, tmp_path / "c", overrides=(*SHORT, "run.seed=4"), progress=False
    )
    digests = [Encoder.load(result.model).digest() for result in (first, again, other)]
    assert digests[0] == digests[1] != digests[2]

    def unexpected(*args, **options):
        raise AssertionError("the start is there already")

    monkeypatch.setattr(module, "static_start", unexpected)
    assert train_static(teacher, prepared, tmp_path / "a", overrides=SHORT, progress=False).already


def test_a_frozen_teacher_can_be_distilled_instead(teacher, prepared, tmp_path):
    teacher.save(tmp_path / "teacher")
    distill = ("method.name=distill", f'method.teacher="{tmp_path / "teacher"}"')
    result = train_static(teacher, prepared, tmp_path, overrides=(*SHORT, *distill), progress=False)
    start = Encoder.load(tmp_path / "start")
    texts = [f"en{word}" for word in range(40)]
    target = teacher.eval().encode(texts)
    near, far = (
        (encoder.encode(texts) * target).sum(axis=1).mean()
        for encoder in (Encoder.load(result.model), start)
    )
    assert near > far + 0.2


def test_width_and_config(teacher, prepared, tmp_path):
    result = train_static(
        teacher, prepared, tmp_path, dim=5, overrides=(*SHORT, "run.max_steps=2"), progress=False
    )
    assert Encoder.load(result.model).dim == 5
    config = static_run_config(
        tmp_path / "start", prepared, tmp_path / "x", overrides=("run.num_train_epochs=2",)
    )
    assert config.run.num_train_epochs == 2
    assert config.run.max_steps is None
    assert config.method.options.exclude_repeats
    assert config.run.global_batch_size == RECIPE["run"]["global_batch_size"]
    assert (
        static_run_config(
            tmp_path, prepared, tmp_path / "x", retrieval=False
        ).run.metric_for_best_model
        == "valid_loss"
    )
    with pytest.raises(ConfigError, match=r"--set run: expected SECTION\.KEY=VALUE"):
        static_run_config(tmp_path, prepared, tmp_path / "x", overrides=("run=3",))
    with pytest.raises(ConfigError, match="temperatur"):
        static_run_config(tmp_path, prepared, tmp_path / "x", overrides=("method.temperatur=3",))


def test_the_teacher_reads_with_its_usual_prompt(teacher):
    import dataclasses

    assert usual_prompt(teacher) is None
    teacher.settings = dataclasses.replace(teacher.settings, prompts={"query": "en1 en2 "})
    assert usual_prompt(teacher) == "query"
    asking = WithPrompt(teacher.eval(), "query")
    assert asking.dim == teacher.dim
    np.testing.assert_array_equal(asking.encode(["en3"]), teacher.encode(["en3"], prompt="query"))
    np.testing.assert_array_equal(
        asking.encode(["en3"], prompt=""), teacher.encode(["en3"], prompt="")
    )
