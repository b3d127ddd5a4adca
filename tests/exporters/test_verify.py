from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from interlingua.config.languages import resolve_language
from interlingua.errors import CheckpointError, DataError
from interlingua.exporters import verify as verify_module
from interlingua.exporters.graphs import write_graphs
from interlingua.exporters.verify import (
    SAMPLES,
    check_exportable,
    measure_runtimes,
    verify,
    with_texts_of,
)
from tests.encoder.builders import edit_json

pytest.importorskip("sentence_transformers")


def test_an_untouched_model_passes(encoder, model):
    verification = verify(encoder, model)
    assert verification.texts == sum(len(texts) for texts in SAMPLES.values())
    assert verification.worst.keys() == SAMPLES.keys()
    assert 1 - 1e-5 < verification.minimum == min(verification.worst.values())


def test_samples_are_known_languages_and_hold_a_text_beyond_any_limit():
    assert all(resolve_language(code).code == code for code in SAMPLES)
    assert max(len(text.split()) for texts in SAMPLES.values() for text in texts) > 512


def pooling(encoder, model):
    edit_json(model / "1_Pooling" / "config.json", pooling_mode="cls")


def limit(encoder, model):
    edit_json(model / "sentence_bert_config.json", max_seq_length=30)
    edit_json(model / "tokenizer_config.json", model_max_length=30)


def tokens(encoder, model):
    edit_json(model / "tokenizer.json", normalizer={"type": "Lowercase"})


def weights(encoder, model):
    with torch.no_grad():
        encoder.backbone.layers[0].output.weight.normal_()


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (pooling, r"cosine -?0\.\d+.*pooling .*mean"),
        (limit, r"30 tokens, .*120"),
        (tokens, r"the tokens .* \d+: ids \[.*\] and \["),
        (weights, "hidden states differ"),
    ],
)
def test_the_first_stage_that_differs_is_named(encoder, model, change, named):
    change(encoder, model)
    with pytest.raises(CheckpointError, match=named):
        verify(encoder, model)


def test_prompts_are_checked_too(encoder, tmp_path):
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    encoder.save(tmp_path / "m")
    assert verify(encoder, tmp_path / "m").minimum > 1 - 1e-5
    edit_json(tmp_path / "m" / "config_sentence_transformers.json", prompts={"query": "tell: "})
    with pytest.raises(CheckpointError, match=r"prompt is 'tell: ', .*'ask: '"):
        verify(encoder, tmp_path / "m")


def test_every_runtime_is_a_column_and_every_language_a_row(encoder, model):
    write_graphs(encoder, model, ("onnx", "int8"))
    told = []
    found = verify(encoder, model, on_verified=told.append)
    assert told == [found]
    lines = found.table()
    assert lines[0].split("  ")[0] == "1 - smallest cosine"
    assert all(name in lines[0] for name in ("sentence-transformers", "onnx", "onnx int8"))
    assert {line.split()[0] for line in lines[1:-2]} == SAMPLES.keys()
    assert "!" not in "".join(lines)
    assert lines[-1].split() == ["allowed", "1.0e-05", "1.0e-05", "5.0e-03"]


def test_the_table_is_told_before_the_first_failure_is_raised(encoder, model):
    write_graphs(encoder, model, ("onnx",))
    weights(encoder, model)
    told = []
    with pytest.raises(CheckpointError, match="sentence-transformers returns another vector"):
        verify(encoder, model, on_verified=told.append)
    failures = told[0].failures()
    assert {name for name, _, _ in failures} == {"sentence-transformers", "onnx"}
    lowest = told[0].lowest["onnx"]["deu_Latn"]
    assert lowest.text in SAMPLES["deu_Latn"]
    assert lowest.cosine < 1 - 1e-5
    assert sum(line.count("!") for line in told[0].table()) == len(failures)


def test_a_vector_of_nan_is_no_agreement(encoder, model):
    class Broken:
        name, tolerance = "broken", 1e-5

        def encode(self, texts, *, prompt):
            return np.full((len(texts), encoder.dim), np.nan)

    found = measure_runtimes(encoder, [Broken()], {"eng_Latn": ["a", "b"]})
    assert [(name, language) for name, language, _ in found.failures()] == [("broken", "eng_Latn")]


def test_nan_with_one_prompt_is_not_hidden_by_the_next(encoder):
    class BrokenWithoutPrompt:
        name, tolerance = "broken", 1e-5

        def encode(self, texts, *, prompt):
            vectors = encoder.encode(texts, prompt=prompt)
            return vectors if prompt else np.full_like(vectors, np.nan)

    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "ask: "})
    samples = {"eng_Latn": ["a cat", "a dog"]}
    found = measure_runtimes(encoder, [BrokenWithoutPrompt()], samples, (None, "query"))
    assert [low.prompt for _, _, low in found.failures()] == [None]


def test_texts_of_files_join_the_sample_by_language(tmp_path, monkeypatch):
    monkeypatch.setattr(verify_module, "MOST_TEXTS", 3)
    (tmp_path / "ru.txt").write_text("один\nдва\n", encoding="utf-8")
    (tmp_path / "news.de-swh.tsv").write_text(
        "".join(f"eins {i}\tmoja {i}\n" for i in range(9)), encoding="utf-8"
    )
    found = with_texts_of([tmp_path / "ru.txt", tmp_path / "news.de-swh.tsv"])
    assert found["rus_Cyrl"] == [*SAMPLES["rus_Cyrl"], "один", "два"]
    assert found["deu_Latn"] == [*SAMPLES["deu_Latn"], "eins 0", "eins 1", "eins 2"]
    assert found["swh_Latn"] == ["moja 0", "moja 1", "moja 2"]
    assert with_texts_of([]) == {language: list(texts) for language, texts in SAMPLES.items()}
    with pytest.raises(DataError, match=r"missing\.tsv"):
        with_texts_of([tmp_path / "missing.tsv"])


def test_token_vectors_are_checked_too(static_encoder, tmp_path):
    static_encoder.save(tmp_path / "m")
    assert verify(static_encoder, tmp_path / "m").minimum > 1 - 1e-6
    tokens(static_encoder, tmp_path / "m")
    with pytest.raises(CheckpointError, match=r"tokens differ: \d+ and \d+"):
        verify(static_encoder, tmp_path / "m")
    static_encoder.save(tmp_path / "m")
    with torch.no_grad():
        static_encoder.backbone.word_embeddings.weight.normal_()
    with pytest.raises(CheckpointError, match=r"tokens are equal, .*vectors"):
        verify(static_encoder, tmp_path / "m")


def test_two_vectors_of_zero_agree_and_one_does_not(static_encoder):
    class Zero:
        name, tolerance = "zero", 1e-5

        def encode(self, texts, *, prompt):
            return np.zeros((len(texts), static_encoder.dim))

    assert not measure_runtimes(static_encoder, [Zero()], {"eng_Latn": [""]}).failures()
    assert (
        measure_runtimes(static_encoder, [Zero()], {"eng_Latn": ["", "a"]}).failures()[0][2].text
        == "a"
    )


def test_texts_of_a_user_that_yield_nan_are_named(encoder, model):
    good, bad = encoder.vocabulary.encode(["ru", "de7 en7"])
    with torch.no_grad():
        encoder.backbone.word_embeddings.weight[sorted(set(bad) - set(good))] = float("inf")
    with pytest.raises(CheckpointError, match=r"NaN .*'de7 en7'; "):
        verify(encoder, model, {"eng_Latn": ("ru", "de7 en7")})
    with pytest.raises(CheckpointError, match=r"word_embeddings\.weight .*NaN .*float32"):
        check_exportable(encoder, samples={"eng_Latn": ("ru",)})
