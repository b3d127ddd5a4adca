from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import TextPair
from interlingua.errors import ConfigError, DataError
from interlingua.mining.score import BitextScorer, ScoreConfig, score_config
from interlingua.runtime.progress import SILENT
from tests.mining.words import encode
from tests.progress_records import Recorded


def pair(source, target):
    return TextPair(source, target, "deu_Latn", "eng_Latn")


def bitext(n, *, seed=0, wrong=0.3, repeated=0.2):
    """Return pairs of invented sentences, some wrong and some with repeated texts."""
    draw = random.Random(seed)
    pairs = []
    for _ in range(n):
        words = draw.choices(range(40), k=draw.randint(2, 5))
        other = draw.choices(range(40), k=draw.randint(2, 5)) if draw.random() < wrong else words
        source, target = (
            " ".join(f"{code}{word}" for word in side)
            for code, side in (("de", words), ("en", other))
        )
        if pairs and draw.random() < repeated:
            target = draw.choice(pairs).target
        pairs.append(pair(source, target))
    return pairs


def is_right(pair):
    return pair.source.replace("de", "") == pair.target.replace("en", "")


@pytest.mark.parametrize("size", [1, 7])
def test_progress_comes_with_every_batch_of_an_encoder_that_tells(size):
    def in_batches(texts, language=None, show_progress_bar=SILENT):
        for start in range(0, len(texts), size):
            show_progress_bar.advance(len(texts[start : start + size]))
        return encode(texts)

    told = Recorded()
    pairs = bitext(20, repeated=0)
    found = list(BitextScorer(in_batches, progress=told).score(pairs))
    assert told.done == pytest.approx(20)
    assert len(told.states) == sum(
        -(-len({pair[side] for pair in pairs}) // size) for side in (0, 1)
    )
    plain = list(BitextScorer(encode).score(pairs))
    assert np.array_equal(found[0].scores, plain[0].scores)


def naive(pairs, *, window, k, margin):
    """Pair by pair, block by block, cosine by cosine."""
    blocks, start = [], 0
    while start < len(pairs):
        stop = min(len(pairs), start + (window if start == 0 else max(1, window // 2)))
        blocks.append((range(start, stop), pairs[max(0, stop - window) : stop]))
        start = stop
    for block, pool in blocks:
        xs, ys = ({getattr(pair, side) for pair in pool} for side in ("source", "target"))
        vector = {text: encode([text])[0].astype(np.float64) for text in xs | ys}
        for i in block:
            x, y = pairs[i].source, pairs[i].target
            of_x = sorted((float(vector[x] @ vector[other]) for other in ys), reverse=True)[:k]
            of_y = sorted((float(vector[y] @ vector[other]) for other in xs), reverse=True)[:k]
            cosine, mean = float(vector[x] @ vector[y]), (np.mean(of_x) + np.mean(of_y)) / 2
            yield {"ratio": cosine / mean, "distance": cosine - mean, "absolute": cosine}[margin]


def scores_of(pairs, **options):
    found = list(BitextScorer(encode, ScoreConfig(**options)).score(pairs))
    assert [pair for block in found for pair in block.pairs] == pairs
    return np.concatenate([block.scores for block in found])


@pytest.mark.parametrize("margin", ["ratio", "distance", "absolute"])
@pytest.mark.parametrize(("n", "window"), [(3, 8), (8, 8), (29, 8), (24, 7), (12, 2)])
def test_equals_cosines_one_by_one(margin, n, window):
    pairs = bitext(n, seed=n)
    expected = list(naive(pairs, window=window, k=3, margin=margin))
    assert scores_of(pairs, window=window, k=3, margin=margin) == pytest.approx(expected, abs=1e-5)


def test_worked_by_hand():
    vectors = {"a": [1, 0], "b": [0, 1], "A": [0.6, 0.8], "B": [0, 1]}
    pairs = [pair("a", "A"), pair("b", "B")]

    def by_table(texts, **_):
        return np.array([vectors[text] for text in texts], np.float32)

    (block,) = BitextScorer(by_table, ScoreConfig(k=2)).score(pairs)
    # a: cosines 0.6 to A, 0 to B, mean 0.3; A: 0.6 to a, 0.8 to b, mean 0.7; so 0.6 / 0.5. b and B:
    # 1 / (0.9 + 0.5) * 2
    assert block.scores == pytest.approx([0.6 / 0.5, 1 / 0.7])
    assert block.cosines == pytest.approx([0.6, 1.0])
    # B is nearest to b, A to a; b is nearest to A and to B, a to none
    assert block.hubs.tolist() == [1, 2]


def test_right_pairs_score_higher_than_wrong_ones():
    pairs = bitext(400, wrong=0.5, repeated=0)
    right = np.array([is_right(pair) for pair in pairs])
    scores = scores_of(pairs, window=64)
    assert scores[right].min() > 1
    assert np.mean(scores[right][:, None] > scores[~right]) > 0.99


def test_a_sentence_said_often_is_embedded_once_and_no_neighbor_of_its_own():
    pairs = [pair("de1", "en1")] * 6 + bitext(20)
    seen = []

    def counting(texts, *, language):
        seen.extend((language, text) for text in texts)
        return encode(texts)

    (block,) = BitextScorer(counting, ScoreConfig()).score(pairs)
    assert len(seen) == len(set(seen))
    assert {language for language, _ in seen} == {"deu_Latn", "eng_Latn"}
    assert block.scores[0] > 1.1  # six copies among its four nearest would make it 1


def test_texts_that_left_the_window_are_forgotten():
    pairs = [pair(f"de{i}", f"en{i}") for i in (*range(30), 0)]
    seen = []

    def remembering(texts, **_):
        seen.extend(texts)
        return encode(texts)

    list(BitextScorer(remembering, ScoreConfig(window=4)).score(pairs))
    assert seen.count("de0") == 2
    assert seen.count("de5") == 1


def test_no_more_is_read_than_is_scored():
    taken = 0

    def endless():
        nonlocal taken
        for taken in itertools.count(1):
            yield pair(f"de{taken}", f"en{taken}")

    blocks = itertools.islice(BitextScorer(encode, ScoreConfig(window=16)).score(endless()), 4)
    found = [(len(block.pairs), taken) for block in blocks]
    assert found == [(16, 16), (8, 24), (8, 32), (8, 40)]


def test_blank_sides_score_nothing():
    pairs = [pair("de1", " "), *bitext(5), pair("", "en3")]
    (block,) = BitextScorer(encode, ScoreConfig()).score(pairs)
    assert block.scores[[0, -1]].tolist() == [0, 0]
    assert (block.scores[1:-1] != 0).all()
    (blank,) = BitextScorer(encode, ScoreConfig()).score([pair("", "")])
    assert blank.scores.tolist() == [0]


def test_progress_comes_to_the_number_of_pairs():
    told = Recorded()
    scorer = BitextScorer(encode, ScoreConfig(window=8), progress=told)
    list(scorer.score([*bitext(30), *bitext(4)]))
    assert told.done == pytest.approx(34)


def test_no_pairs_no_scores():
    assert list(BitextScorer(encode).score([])) == []


def test_one_language_pair_at_a_time():
    pairs = [*bitext(2), TextPair("fr1", "en1", "fra_Latn", "eng_Latn")]
    with pytest.raises(DataError, match="deu_Latn-eng_Latn and then fra_Latn-eng_Latn"):
        list(BitextScorer(encode).score(pairs))


def test_what_decides_what_a_score_means():
    assert ScoreConfig(k=3, window=100).scoring == "score ratio k=3 window=100"
    assert ScoreConfig(margin="absolute").scoring == "score absolute"
    for options in ({"margin": "half"}, {"k": 0}, {"window": 1}):
        with pytest.raises(ConfigError):
            ScoreConfig(**options)


def test_plain_cosines_only_on_request():
    for margin, cosine, kind in (("ratio", True, "absolute"), ("distance", False, "distance")):
        found = score_config(margin, k=2, window=8, cosine=cosine)
        assert found == ScoreConfig(margin=kind, k=2, window=8)
    with pytest.raises(ConfigError, match="--cosine"):
        score_config("absolute", k=4, window=8, cosine=False)


@pytest.mark.parametrize("margin", ["ratio", "absolute"])
def test_vectors_that_are_not_finite_are_refused_by_their_text(margin):
    def broken(texts, **options):
        found = encode(texts, **options)
        found[[row for row, text in enumerate(texts) if text == "en7"]] = np.nan
        return found

    pairs = [*bitext(5), pair("de7", "en7")]
    with pytest.raises(DataError, match=r"NaN .*'en7'"):
        list(BitextScorer(broken, ScoreConfig(margin=margin, k=2)).score(pairs))
