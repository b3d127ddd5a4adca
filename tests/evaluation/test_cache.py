from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.errors import TaskError
from interlingua.evaluation import cache
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.time_limit import Budget, BudgetUsed
from tests.encoder.test_query_and_passage import Towers


def test_each_text_is_embedded_once_and_comes_back_in_order(number_encoder):
    with CachedEncoder(number_encoder, prompt="query: ", batch_tokens=100) as cached:
        first = cached.encode(["one 1", "two 2", "one 1"], language="eng_Latn")
        again = cached.encode(["three 3", "two 2"], language="eng_Latn")
    assert number_encoder.texts == ["one 1", "two 2", "three 3"]
    assert number_encoder.calls == [("query: ", "eng_Latn", 100)] * 2
    expected = [
        number_encoder.vector(text).astype(np.float32) for text in ("1", "2", "1", "3", "2")
    ]
    assert np.array_equal(np.concatenate([first, again]), expected)
    assert (cached.encoded_texts, cached.reused_texts) == (3, 2)


def test_a_text_in_two_languages_is_two_texts(number_encoder):
    with CachedEncoder(number_encoder) as cached:
        cached.encode(["OK 1"], language="eng_Latn")
        cached.encode(["OK 1"], language="deu_Latn")
    assert number_encoder.texts == ["OK 1", "OK 1"]


def test_counts_are_of_the_task(number_encoder):
    with CachedEncoder(number_encoder) as cached:
        cached.encode(["one 1", "two 2", "one 1"])
        cached.start_counting()
        cached.encode(["one 1", "three 3", "three 3"])
        counts = cached.counts()
    assert counts.pop("encode_seconds") >= 0
    assert counts == {"texts": 2, "truncated_texts": None, "encoded_texts": 1, "reused_texts": 2}


@pytest.mark.parametrize(
    "wrap", [lambda encoder: encoder, lambda encoder: OwnEncoder(encoder, name="m")]
)
def test_cut_texts_are_counted_once_whoever_asks(short_encoder, wrap, monkeypatch, caplog):
    monkeypatch.setattr(cache, "ENCODER_PORTION_TEXTS", 2)
    with CachedEncoder(wrap(short_encoder)) as cached:
        cached.encode(["de1", "de1 de2 de3 de4", "de2", "de2 de3 de4 de5", "de1 de2 de3 de4"])
        assert cached.counts()["texts"] == 4
        assert cached.counts()["truncated_texts"] == 2
        assert cached.report.cuts == "2 of 4 texts were cut to 3 tokens"
        cached.start_counting()
        cached.encode(["de2", "de2 de3 de4 de5"])
        assert (cached.counts()["texts"], cached.counts()["truncated_texts"]) == (2, 1)
    assert not caplog.records


def test_a_block_that_is_left_by_an_error_keeps_its_vectors(short_encoder, tmp_path, monkeypatch):
    monkeypatch.setattr(cache, "ENCODER_PORTION_TEXTS", 2)
    texts, real, calls = ["de1", "de2 de3 de4 de5", "de3", "de4", "de5"], short_encoder.encode, []

    def stopped(texts, **options):
        calls.append(texts)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(texts, **options)

    object.__setattr__(short_encoder, "encode", stopped)
    file = tmp_path / "model" / "unfinished.vectors"
    with pytest.raises(KeyboardInterrupt), CachedEncoder(short_encoder, unfinished=file) as cached:
        cached.encode(texts, language="deu_Latn")
    with CachedEncoder(short_encoder, unfinished=file) as cached:
        vectors = cached.encode(texts, language="deu_Latn")
        counts = cached.counts()
    assert calls == [texts[:2], texts[2:4], texts[4:], texts[4:]]
    assert (counts["texts"], counts["truncated_texts"]) == (5, 1)
    assert (counts["encoded_texts"], counts["reused_texts"]) == (1, 4)
    assert np.allclose(vectors, real(texts), atol=1e-6)
    assert not file.exists()


def test_portions_are_as_small_as_the_encoder_wants(number_encoder):
    number_encoder.portion_texts = 3
    with CachedEncoder(number_encoder) as cached:
        cached.encode([f"text {number}" for number in range(7)])
    assert len(number_encoder.calls) == 3


def test_the_budget_ends_between_portions(number_encoder):
    number_encoder.portion_texts = 3
    budget = Budget(5, clock=lambda: len(number_encoder.texts))
    texts = [f"text {number}" for number in range(9)]
    with CachedEncoder(number_encoder, budget=budget) as cached:
        with pytest.raises(BudgetUsed):
            cached.encode(texts)
        assert number_encoder.texts == texts[:6]
        with pytest.raises(BudgetUsed):
            cached.encode(texts[5:7])
        assert len(cached.encode(texts[:6])) == 6


def test_only_kept_vectors_are_given_and_no_work_is_counted(number_encoder):
    with CachedEncoder(number_encoder) as cached:
        cached.encode(["one 1", "two 2"])
        with cached.only_kept():
            cached.encode(["two 2"])
            with pytest.raises(BudgetUsed):
                cached.encode(["two 2", "three 3"])
        counts = cached.counts()
        assert len(number_encoder.texts) == 2
        assert len(cached.encode(["three 3"])) == 1
    assert (counts["texts"], counts["encoded_texts"], counts["reused_texts"]) == (1, 2, 0)


class Wrong:
    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, **_):
        return self.vectors


@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (np.ones((1, 4)), r"shape \(1, 4\), expected \(2, d\)"),
        (np.ones(2), r"shape \(2,\), expected \(2, d\)"),
        (np.array([[1.0], [np.nan]]), "NaN .*'b'; "),
    ],
)
def test_unusable_vectors_are_one_line(vectors, message):
    with CachedEncoder(Wrong(vectors)) as cached, pytest.raises(TaskError, match=message):
        cached.encode(["a", "b"])


def test_a_width_that_changes_is_noticed():
    encoder = Wrong(np.ones((1, 4)))
    with CachedEncoder(encoder) as cached:
        cached.encode(["a"])
        encoder.vectors = np.ones((1, 5))
        with pytest.raises(TaskError, match=r"shape \(1, 5\), expected \(1, 4\)"):
            cached.encode(["b"])


def test_the_cache_keeps_roles_apart():
    towers = Towers()
    with CachedEncoder(towers, batch_tokens=5) as cached:
        question = cached.encode(["a"], language="deu_Latn", role="query")
        passages = cached.encode(["a", "a"], role="passage", titles=["T", "U"])
        again = cached.encode(["a"], role="passage", titles=["T"])
        plain = cached.encode(["a"])
    assert [rows.tolist() for rows in (question, again, plain)] == [[[2, 2]], [[3, 3]], [[1, 1]]]
    assert passages.shape == (2, 2)
    assert towers.said == [
        ("query", ["a"], "deu_Latn", 5),
        ("passage", ["a", "a"], ["T", "U"]),
        ("any", ["a"]),
    ]


def test_one_tower_reads_titles_before_passages_and_uses_its_prompts(number_encoder):
    number_encoder.settings = EncodingSettings(prompts={"query": "query: ", "passage": "passage: "})
    with CachedEncoder(number_encoder, role_prompts={"query": "ask: "}) as cached:
        cached.encode(["1"], role="query")
        cached.encode(["text 2", "3"], role="passage", titles=["Title", ""])
        assert cached.used_prompts == {"query": "ask: ", "passage": "passage: "}
    assert number_encoder.texts == ["1", "Title text 2", "3"]
    assert [call[0] for call in number_encoder.calls] == ["ask: ", "passage"]


@pytest.mark.parametrize("normalize", [True, False])
def test_an_inner_product_may_be_what_the_model_means(short_encoder, normalize):
    short_encoder.settings = dataclasses.replace(short_encoder.settings, normalize=normalize)
    with CachedEncoder(short_encoder) as cached:
        lengths = np.linalg.norm(cached.encode(["de1 de2", "de3"], role="passage"), axis=1)
        plain = np.linalg.norm(cached.encode(["de1 de2", "de3"]), axis=1)
    assert np.allclose(lengths, 1, atol=1e-5) == normalize
    assert np.allclose(plain, 1, atol=1e-5) == normalize
