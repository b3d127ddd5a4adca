from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.analysis.uniform_pooling import UniformPooling, compared
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.language_shift import LanguageShift
from interlingua.encoder.post_pooling import Dense, PostPooling
from interlingua.errors import ConfigError
from interlingua.evaluation.suite import evaluate_suite
from tests.analysis.conftest import fixed_subject, random_vectors
from tests.evaluation.results_made import make


def delta(cls, uniform, **facts):
    return compared(make(scores=(cls, cls), **facts), make(scores=(uniform, uniform), **facts))


@pytest.mark.parametrize(
    ("cls", "uniform", "printed", "higher"),
    [
        (
            0.0092,
            0.0202,
            -119.6,
            False,
        ),  # Table 10: xsim of LaBSE; its -119.65 comes from more digits
        (0.1865, 0.2073, -11.2, False),
        (0.6465, 0.6350, 1.78, True),
        (0.6277, 0.5803, 7.55, True),
        (0.0960, 0.1821, -89.7, False),
        (0.6399, 0.5424, 15.24, True),
        (0.6535, 0.5698, 12.81, True),
    ],
)
def test_the_papers_differences(cls, uniform, printed, higher):
    first, second, change = delta(cls, uniform, higher=higher, task="t")
    assert (first.name, second.name, change.name) == ("t_cls", "t_uniform", "t_delta")
    assert (first.value, second.value) == (pytest.approx(cls), pytest.approx(uniform))
    assert change.value == pytest.approx(printed, abs=0.05)
    assert f"the denominator is {100 * cls:.2f} %" in change.definition
    assert first.better == ("higher" if higher else "lower")


def test_no_difference_relative_to_nothing():
    assert [m.name for m in delta(0.0, 0.5)] == ["tatoeba_cls", "tatoeba_uniform"]


def test_both_poolings_of_one_model(folder, subject):
    task = "flores_p_at_1_flores200_devtest"
    found = UniformPooling(suite=("flores_p_at_1",)).run(subject, folder)
    for pooling, way in (("cls", "cls"), ("mean", "uniform")):
        settings = dataclasses.replace(subject.encoder.settings, pooling=pooling)
        encoder = Encoder(subject.encoder.backbone, subject.encoder.vocabulary, settings).eval()
        (result,) = evaluate_suite(OwnEncoder(encoder, name="x"), ["flores_p_at_1"], folder)
        assert found[f"{task}_{way}"].value == result.main_score
        assert (
            found[f"{task}_{way}"].by_language["deu_Latn-eng_Latn"]
            == result.subsets[0].scores["accuracy"]
        )
    assert found.languages == ("deu_Latn", "eng_Latn", "fra_Latn")
    assert found.sentences == 4
    assert subject.encoder.settings.pooling == "cls"
    assert "though" in found.notes[0]
    assert len(found.notes) == 1


@pytest.mark.parametrize("shifts", [False, True])
def test_what_follows_pooling_stays(folder, subject, shifts):
    """Use a Dense layer, as in LaBSE, and a language shift."""
    torch.manual_seed(2)
    bare = subject.encoder
    layers = PostPooling([Dense(bare.dim, 3, activation="tanh")])
    shift = (
        LanguageShift(["deu_Latn", "eng_Latn", "fra_Latn"], torch.randn(3, 3)) if shifts else None
    )
    deep = Encoder(bare.backbone, bare.vocabulary, bare.settings, layers, shift).eval()
    (expected,) = evaluate_suite(OwnEncoder(deep, name="x"), ["flores_p_at_1"], folder)
    found = UniformPooling(suite=("flores_p_at_1",)).run(subject._replace(encoder=deep), folder)
    assert found["flores_p_at_1_flores200_devtest_cls"].value == expected.main_score


def test_a_mean_pooling_model_is_told_so(folder, subject):
    info = dataclasses.replace(subject.info, pooling="mean")
    found = UniformPooling(suite=("flores_p_at_1",), languages=("de", "fr")).run(
        subject._replace(info=info), folder
    )
    assert "the model pools by mean" in found.notes[1]
    assert found.languages == ("deu_Latn", "fra_Latn")


def test_other_encoders_are_refused(folder):
    with pytest.raises(ConfigError, match="uniform_pooling reads hidden states"):
        UniformPooling().run(fixed_subject(random_vectors(3, 4)), folder)
