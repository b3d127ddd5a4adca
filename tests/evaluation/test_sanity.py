from __future__ import annotations

import dataclasses
import re
import zlib

import numpy as np
import pytest

from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.model_info import ModelInfo
from interlingua.evaluation.sanity import check_sanity, cut_note, own_poolings, probe
from tests.evaluation.encoders import tiny_encoder

ROWS = {text: row for _, texts in probe() for row, text in enumerate(texts)}


class Understands:
    """Encoder that knows the meaning of the probe's sentences.

    Does better or worse with a prompt, and as a pooling.
    """

    def __init__(
        self, *, noise=0.0, offset=0.0, scale=None, with_prompt=None, others=None, prompts=()
    ):
        self.noise, self.offset, self.scale, self.with_prompt = (
            noise,
            offset,
            scale,
            with_prompt or {},
        )
        from interlingua.encoder.directories.model_directory import EncodingSettings

        self.settings = EncodingSettings(prompts={text: text for text in prompts})
        if others is not None:
            self.poolings = lambda texts, prompt: {
                mode: self.vectors(texts, noise) for mode, noise in others.items()
            }

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        return self.vectors(texts, self.with_prompt.get(prompt, self.noise))

    def vectors(self, texts, noise):
        meanings = np.random.default_rng(0).standard_normal((max(ROWS.values()) + 1, 24))
        rng = np.random.default_rng(zlib.crc32(texts[0].encode()))
        found = meanings[[ROWS[text] for text in texts]]
        found = found / np.linalg.norm(found, axis=1, keepdims=True)
        shifted = found + noise * rng.standard_normal(found.shape) / np.sqrt(24) + self.offset
        return (
            shifted if self.scale is None else shifted * self.scale(np.arange(len(texts)))[:, None]
        )


def info(name="model", **changes):
    return dataclasses.replace(
        ModelInfo(name=name, digest=None, library="x", pooling="mean"), **changes
    )


def test_the_probe_is_two_hundred_sentences_that_differ():
    languages = [language for language, _ in probe()]
    texts = [text for _, texts in probe() for text in texts]
    assert len(texts) == len(set(texts)) == 204
    assert languages[:2] == ["eng_Latn"] * 2
    assert len(set(languages)) == 5
    assert all(text == text.strip() and text for text in texts)
    scripts = {"rus_Cyrl": "[а-яё]", "zho_Hans": "[\u4e00-\u9fff]"}
    assert all(
        re.search(scripts[language], text)
        for language, texts in probe()
        if language in scripts
        for text in texts
    )


def test_nothing_is_said_of_an_encoder_that_is_read_well():
    found = check_sanity(Understands(), info(), dot_tasks=["beir"])
    assert found.warnings == ()
    assert found.measured["retrieved"] == {"as requested": 1.0, "prompt='query: '": 1.0}
    assert abs(found.measured["unrelated_cosine"]) < 0.05
    assert found.measured["length_spread"] < 1e-6
    assert found.measured["sentences"] == 204


def test_another_pooling_that_is_clearly_better_is_named():
    encoder = Understands(noise=1.5, others={"mean": 1.5, "cls": 0.1, "max": 1.5})
    found = check_sanity(encoder, info())
    (warning,) = found.warnings
    assert warning.startswith(
        "on a probe of translations, pooling=cls retrieves the right sentence in 100 % of 340"
        " searches instead of "
    )
    assert set(found.measured["retrieved"]) == {
        "as requested",
        "pooling=cls",
        "pooling=max",
        "prompt='query: '",
    }
    assert found.measured["retrieved"]["as requested"] < 0.8


def test_a_little_better_is_not_enough():
    encoder = Understands(noise=1.0, others={"cls": 0.97})
    found = check_sanity(encoder, info())
    assert found.measured["retrieved"]["pooling=cls"] >= found.measured["retrieved"]["as requested"]
    assert found.warnings == ()


def test_a_prompt_of_the_models_own_that_is_clearly_better_is_named():
    encoder = Understands(noise=1.5, with_prompt={"search: ": 0.1}, prompts=["search: "])
    assert "prompt='search: ' retrieves" in check_sanity(encoder, info()).warnings[0]
    assert check_sanity(encoder, info(), prompt="search: ").warnings == ()
    assert check_sanity(encoder, info(), prompt="x: ").measured["retrieved"].keys() == {
        "as requested"
    }


@pytest.mark.parametrize(
    "name", ["intfloat/multilingual-e5-small", "me5", "nomic-ai/nomic-embed-text-v1.5"]
)
def test_what_a_model_is_called_decides_nothing(name):
    assert check_sanity(Understands(), info(name)).warnings == ()
    assert check_sanity(Understands(), info(name), prompt="find: ").warnings == ()


def test_a_common_prompt_that_is_clearly_better_is_found_under_any_name():
    encoder = Understands(noise=1.5, with_prompt={"query: ": 0.1})
    assert "prompt='query: ' retrieves" in check_sanity(encoder, info("mine")).warnings[0]


def test_a_pooling_that_is_not_the_models_own_is_said():
    encoder = Understands()
    encoder.own_pooling = "mean"
    (warning,) = check_sanity(encoder, info(pooling="cls", pooling_from="requested")).warnings
    assert "pooling cls" in warning
    assert "mean; remove --pooling" in warning
    assert check_sanity(encoder, info(pooling="mean", pooling_from="requested")).warnings == ()
    encoder.own_pooling = None
    assert check_sanity(encoder, info(pooling="cls", pooling_from="requested")).warnings == ()


def test_vectors_in_a_narrow_cone_are_said():
    found = check_sanity(Understands(offset=1.0), info())
    assert "a mean cosine of 0.9" in found.warnings[0]
    assert found.measured["unrelated_cosine"] > 0.9
    assert found.measured["retrieved"]["as requested"] == 1.0


@pytest.mark.parametrize(("constant", "what"), [(0.0, "zero"), (0.5, "the same")])
def test_vectors_that_tell_nothing_apart_are_said(constant, what):
    encoder = Understands()
    encoder.vectors = lambda texts, noise: (
        np.full((len(texts), 4), constant) * (1 + 1e-8 * len(texts[0]))
    )
    (warning,) = check_sanity(encoder, info(), dot_tasks=["beir"]).warnings
    assert warning.startswith(
        f"the vectors of all sentences are {what}, so the scores are meaningless"
    )


def test_unequal_lengths_matter_only_to_inner_products():
    encoder = Understands(scale=lambda rows: 1 + rows % 3)
    assert check_sanity(encoder, info()).warnings == ()
    (warning,) = check_sanity(encoder, info(), dot_tasks=["beir"]).warnings
    assert warning.startswith(
        "beir uses the inner product, but the lengths of the vectors vary by 42 %"
    )


def test_the_unrelated_cosine_is_that_of_a_double_loop():
    encoder = Understands(offset=0.2)
    columns = [encoder.encode(list(texts)) for _, texts in probe()]
    unit = [column / np.linalg.norm(column, axis=1, keepdims=True) for column in columns]
    cosines = [
        a[i] @ b[j] for a in unit for b in unit for i in range(34) for j in range(34) if i != j
    ]
    assert check_sanity(encoder, info()).measured["unrelated_cosine"] == pytest.approx(
        np.mean(cosines)
    )


@pytest.fixture
def own(word_vocabulary):
    return tiny_encoder(word_vocabulary)


@pytest.mark.parametrize("normalize", [True, False])
def test_one_pass_gives_every_pooling_of_ours(own, normalize):
    texts = ["de1 de2", "en4 en5 en6"]
    own.settings = dataclasses.replace(own.settings, normalize=normalize)
    own.train()  # there is no dropout in a trial
    found = own_poolings(own, texts, language="eng_Latn", prompt="ru1 ")
    for mode, vectors in found.items():
        own.settings = dataclasses.replace(own.settings, pooling=mode)
        assert np.allclose(
            vectors, own.encode(texts, prompt="ru1 ", normalize_embeddings=normalize), atol=1e-5
        )
    assert set(found) == {"cls", "mean", "max"}


def test_ours_are_tried_with_every_pooling(own):
    for encoder in (own, OwnEncoder(own, name="m", pooling="max")):
        found = check_sanity(
            encoder, encoder.info if encoder is not own else info("m", pooling="mean")
        )
        assert len(found.measured["retrieved"]) == 4  # three poolings and a prompt
    assert any("pooling max" in warning for warning in found.warnings)


def test_many_cut_texts_are_a_note():
    assert cut_note(100, 6, 128) == [
        "6 % of the texts were cut to 128 tokens; the scores are for the truncated texts"
    ]
    assert cut_note(100, 5, 128) == cut_note(100, None, 128) == cut_note(0, 0, None) == []


def test_zeros_of_the_probe_are_no_warning_but_those_of_a_task_are(caplog):
    """Check that the probe does not use up the one warning of an encoder, either."""

    def embed(texts):
        return np.array([[0.0, 0.0] if len(text) % 2 else [1.0, 0.5] for text in texts])

    encoder = FunctionEncoder(embed)
    check_sanity(encoder, info())
    assert not [record for record in caplog.records if "zeros" in record.message]
    encoder.encode(["odd"])
    assert [record for record in caplog.records if "zeros" in record.message]
