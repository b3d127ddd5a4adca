"""BM25 against its formula as loops, what is a word in which script, and the order of equals."""

from __future__ import annotations

import math
import random
import sys
import tracemalloc

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError, MissingExtraError
from interlingua.evaluation.baselines import postings
from interlingua.evaluation.baselines.bm25 import STEMMERS, BM25Index, Tuned, analyzer, tune

WORDS = [f"w{word}" for word in range(12)]


def passages(count=30, *, seed=0):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(1, 15))) for _ in range(count)]


def naive_scores(query, texts, k1, b):
    """Compute Robertson's sum over the query's words, with Lucene's idf."""
    documents = [text.split() for text in texts]
    mean_length = sum(map(len, documents)) / len(documents)
    scores = []
    for document in documents:
        score = 0.0
        for word in query.split():
            with_word = sum(word in other for other in documents)
            idf = math.log(1 + (len(documents) - with_word + 0.5) / (with_word + 0.5))
            count = document.count(word)
            score += (
                idf * count / (count + k1 * (1 - b + b * len(document) / mean_length))
                if count
                else 0.0
            )
        scores.append(score)
    return scores


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.6, 1.0), (0.0, 0.5), (1.2, 0.0)])
def test_scores_and_order_are_the_formula_s(k1, b):
    texts, ids = passages(), [f"p{row}" for row in range(30)]
    queries = ["w0 w3 w3 w11", "w5", "w1 unknown w2", *passages(5, seed=1)]
    found, scores = BM25Index.build(ids, texts, k1=k1, b=b).search(queries, 30)
    for query, keys, values in zip(queries, found, scores, strict=True):
        expected = naive_scores(query, texts, k1, b)
        assert values.tolist() == pytest.approx(
            sorted(filter(None, expected), reverse=True), rel=1e-5
        )
        assert values.tolist() == pytest.approx([expected[int(key[1:])] for key in keys], rel=1e-5)


def test_a_score_worked_by_hand():
    # df = 1 of 2: idf = ln(1 + 1.5 / 1.5) = ln 2; the passage has the mean length: tf part = 1 / (1
    # + 0.9)
    index = BM25Index.build(["a", "b"], ["red house", "blue house"])
    found, scores = index.search(["red"])
    assert found == [["a"]]
    assert scores[0].tolist() == pytest.approx([math.log(2) / 1.9])


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_equals_come_in_the_order_of_the_passages(k):
    index = BM25Index.build(list("abcde"), ["x y", "z z z", "x y", "y x", "x x"])
    (ids,), (scores,) = index.search(["x"], k)
    assert ids == ["e", "a", "c", "d"][:k]
    assert len(scores) == len(ids)
    assert index.search(["x"], k)[0] == [ids]


def test_what_has_no_word_of_the_query_is_not_found():
    index = BM25Index.build(["a", "b"], ["one two", "three"])
    ids, scores = index.search(["", "four", "!?", "three"], 10)
    assert ids == [[], [], [], ["b"]]
    assert [len(values) for values in scores] == [0, 0, 0, 1]
    assert index.search(["one"], 0)[0] == [[]]
    assert len(index) == 2


def test_an_empty_passage_is_never_found_and_counts():
    texts = ["one", "", "one two"]
    (ids,), (scores,) = BM25Index.build(list("abc"), texts).search(["two"])
    assert ids == ["c"]
    assert scores.tolist() == pytest.approx([naive_scores("two", texts, 0.9, 0.4)[2]])


@pytest.mark.parametrize(
    ("language", "text", "words"),
    [
        (None, "The DOGS’ ﬁre-place, 2nd!", ["the", "dogs", "fire", "place", "2nd"]),
        ("en", "The dogs were running", ["the", "dog", "were", "run"]),
        ("swh_Latn", "Watoto wanacheza", ["watoto", "wanacheza"]),
        ("ben_Beng", "কি খবর?", ["কি", "খবর"]),
        ("rus_Cyrl", "Кошки", ["кошк"]),
        ("zh", "我爱北京。iPhone 15", ["我爱", "爱北", "北京", "iphone", "15"]),
        ("jpn_Jpan", "猫はどこ?", ["猫は", "はど", "どこ"]),
        ("kor_Hang", "서울은 수도", ["서울", "울은", "수도"]),
        ("tha_Thai", "แมวดี", ["แมว", "มวด", "วดี"]),
        ("zh", "水", ["水"]),
    ],
)
def test_what_is_a_word(language, text, words):
    assert analyzer(language)(text) == words


def test_every_stemmer_is_one_of_snowball_s():
    from Stemmer import algorithms

    assert set(STEMMERS.values()) <= set(algorithms())
    assert all(analyzer(code)("running") for code in STEMMERS)


def test_a_pool_of_languages_stems_each_text_by_its_own():
    texts, languages = (
        ["running dogs", "кошки", "running dogs"],
        ["eng_Latn", "rus_Cyrl", "swh_Latn"],
    )
    index = BM25Index.build(list("abc"), texts, language=languages)
    assert index.search(["dog"], language="eng_Latn")[0] == [["a"]]
    assert index.search(["кошка"], language="ru")[0] == [["b"]]
    assert index.search(["dogs"])[0] == [["c"]]
    assert BM25Index.build(["a"], ["running dogs"], language="en").search(["dog"])[0] == [["a"]]


def test_tuning_finds_what_a_search_of_all_settings_finds():
    texts, ids = passages(40, seed=2), [f"p{row}" for row in range(40)]
    queries = passages(12, seed=3)
    relevant = [{ids[row % 40], ids[(7 * row) % 40]} for row in range(12)]
    grid = {"k1": (0.1, 0.9, 2.0), "b": (0.0, 0.4, 1.0)}
    measured = {}
    for k1 in grid["k1"]:
        for b in grid["b"]:
            found, _ = BM25Index.build(ids, texts, k1=k1, b=b).search(queries, 10)
            ranks = [
                min((keys.index(key) for key in right if key in keys), default=None)
                for keys, right in zip(found, relevant, strict=True)
            ]
            measured[k1, b] = np.mean([0 if rank is None else 1 / (1 + rank) for rank in ranks])
    tuned = tune(ids, texts, queries, relevant, depth=10, **grid)
    assert tuned.mrr == pytest.approx(max(measured.values()))
    assert measured[tuned.k1, tuned.b] == pytest.approx(tuned.mrr)
    assert len({round(value, 6) for value in measured.values()}) > 3


def test_the_first_of_equals_is_taken():
    assert tune(["a"], ["x"], ["x"], [{"a"}], k1=(0.5, 0.9), b=(0.3, 0.4)) == Tuned(0.5, 0.3, 1.0)


@pytest.mark.parametrize(
    ("kwargs", "error", "message"),
    [
        ({"ids": ["a"], "texts": ["x", "y"]}, DataError, "2 passages, 1 ids and 2 languages"),
        ({"ids": [], "texts": []}, DataError, "0 passages"),
        ({"ids": ["a"], "texts": ["?!"]}, DataError, "no words"),
        (
            {"ids": ["a"], "texts": ["x"], "language": ["eng_Latn", "eng_Latn"]},
            DataError,
            "2 languages",
        ),
        ({"ids": ["a"], "texts": ["x"], "k1": -1.0}, ConfigError, "k1 = -1.0"),
        ({"ids": ["a"], "texts": ["x"], "b": 1.5}, ConfigError, "b = 1.5"),
    ],
)
def test_bad_input_is_refused(kwargs, error, message):
    with pytest.raises(error, match=message):
        BM25Index.build(**kwargs)


def test_tuning_needs_queries_and_settings():
    with pytest.raises(DataError, match="1 queries and 2 sets"):
        tune(["a"], ["x"], ["x"], [{"a"}, {"a"}])
    with pytest.raises(ConfigError, match="k1 or b"):
        tune(["a"], ["x"], ["x"], [{"a"}], k1=())


def test_an_index_for_queries_finds_what_one_for_all_does():
    texts, ids = passages(60, seed=4), [f"p{row}" for row in range(60)]
    queries = ["w0 w3 w3", "w5", "unknown w2", ""]
    whole, small = (
        BM25Index.build(ids, texts),
        BM25Index.build(ids, iter(texts), queries=iter(queries)),
    )
    for one, other in zip(whole.search(queries, 20), small.search(queries, 20), strict=True):
        assert [list(found) for found in one] == [list(found) for found in other]
    with pytest.raises(DataError, match="other queries"):
        small.search(["w1"])


@pytest.mark.parametrize("block", [1, 7, 10_000])
@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (1.6, 1.0), (0.0, 0.5), (1.2, 0.0)])
def test_scores_are_those_of_bm25s_bit_for_bit(block, k1, b, monkeypatch):
    bm25s = pytest.importorskip("bm25s")
    monkeypatch.setattr(postings, "BLOCK_PASSAGES", block)
    texts, ids = passages(80, seed=5), [f"p{row}" for row in range(80)]
    queries = ["w0 w3 w3 w11", "w5", *passages(6, seed=6)]
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    peer = bm25s.BM25(k1=k1, b=b, method="lucene")
    rows = [[vocabulary[word] for word in text.split()] for text in texts]
    peer.index((rows, vocabulary), create_empty_token=False, show_progress=False)
    found, scores = BM25Index.build(ids, texts, k1=k1, b=b).search(queries, 25)
    for query, keys, values in zip(queries, found, scores, strict=True):
        expected = peer.get_scores_from_ids([vocabulary[word] for word in query.split()])
        order = [row for row in np.argsort(-expected, kind="stable")[:25] if expected[row] > 0]
        assert keys == [ids[row] for row in order]
        assert np.array_equal(values, expected[order])
        assert values.dtype == expected.dtype


def test_texts_are_not_held(monkeypatch):
    monkeypatch.setattr(postings, "BLOCK_PASSAGES", 500)

    def peak(count):
        draw = random.Random(0)
        texts = (" ".join(draw.choices(WORDS, k=40)) for _ in range(count))
        tracemalloc.start()
        index = BM25Index.build(range(count), texts, queries=["w0 w1"])
        index.search(["w0 w1"], 10)
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(500)  # what is imported and cached once
    assert peak(6000) < peak(1500) + 4500 * 4  # a passage's text has 120 bytes, its words 1,300


def test_what_is_missing_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    analyzer.cache_clear()
    with pytest.raises(MissingExtraError, match=r"package PyStemmer .*pip install .*\[bm25\]"):
        BM25Index.build(["a"], ["x"], language="en")
