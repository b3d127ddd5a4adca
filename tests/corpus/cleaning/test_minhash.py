import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.corpus.cleaning.keys import text_key
from interlingua.corpus.cleaning.minhash import (
    band_keys,
    banding,
    jaccard,
    minima,
    shingle_codes,
    shingle_hashes,
)

SIZE = 3
words = st.text("abc d", max_size=12)


def plain_shingles(text, size=SIZE):
    key = text_key(text)
    return {key[i : i + size] for i in range(max(len(key) - size + 1, 1))}


def plain_jaccard(a, b, size=SIZE):
    a, b = plain_shingles(a, size), plain_shingles(b, size)
    return len(a & b) / len(a | b)


def hashed(texts, size=SIZE):
    codes, starts = shingle_codes(texts, size)
    return shingle_hashes(codes, starts, size), starts


@settings(deadline=None)
@given(st.lists(words, min_size=1, max_size=8))
def test_shingles_are_those_of_each_text_alone(texts):
    hashes, starts = hashed(texts)
    sets = [set(part.tolist()) for part in np.split(hashes, starts[1:])]
    assert [len(s) for s in sets] == [len(plain_shingles(text)) for text in texts]
    assert sets == [set(hashed([text])[0].tolist()) for text in texts]


@settings(deadline=None)
@given(st.lists(st.tuples(words, words), min_size=1, max_size=8))
def test_jaccard_is_exact(pairs):
    a, b = ([pair[side] for pair in pairs] for side in (0, 1))
    expected = [plain_jaccard(x, y) for x, y in pairs]
    assert jaccard(hashed(a), hashed(b)) == pytest.approx(expected)


def test_hand_worked_jaccard():
    # abc bcd cde def | abc bcd cdx: 2 of 5
    assert jaccard(hashed(["abcdef"]), hashed(["a-b C.d x"]))[0] == pytest.approx(2 / 5)


def noisy_texts(rng, count, letters=80):
    texts, indices = [], []
    for i in range(count):
        base = rng.integers(97, 123, letters)
        other = base.copy()
        places = rng.choice(letters, size=i % 14, replace=False)
        other[places] = rng.integers(97, 123, len(places))
        texts += ["".join(map(chr, base)), "".join(map(chr, other))]
        indices.append(plain_jaccard(*texts[-2:]))
    return texts, np.array(indices)


def test_minima_agree_as_often_as_the_jaccard_index_says():
    texts, exact = noisy_texts(np.random.default_rng(0), 700)
    hashes, starts = hashed(texts)
    agree = np.mean(
        [np.equal(*minima(hashes, starts, p).reshape(-1, 2).T) for p in range(256)], axis=0
    )
    error = agree - exact
    assert abs(error.mean()) < 0.005  # unbiased
    # the standard deviation of a mean of 256 independent draws, times at most 1.15
    assert np.sqrt((error**2).mean()) < 1.15 * np.sqrt((exact * (1 - exact)).mean() / 256)


def test_estimates_are_as_good_as_datasketchs():
    datasketch = pytest.importorskip("datasketch")
    texts, exact = noisy_texts(np.random.default_rng(1), 140)
    hashes, starts = hashed(texts)
    ours = np.mean(
        [np.equal(*minima(hashes, starts, p).reshape(-1, 2).T) for p in range(128)], axis=0
    )
    sketches = []
    for text in texts:
        sketch = datasketch.MinHash(num_perm=128, seed=3)
        sketch.update_batch([shingle.encode() for shingle in plain_shingles(text)])
        sketches.append(sketch)
    theirs = np.array([a.jaccard(b) for a, b in zip(sketches[::2], sketches[1::2], strict=True)])
    assert np.abs(ours - exact).mean() < 1.2 * np.abs(theirs - exact).mean()
    assert abs((ours - theirs).mean()) < 0.02


def test_band_keys_meet_as_often_as_they_should():
    texts, exact = noisy_texts(np.random.default_rng(2), 1400)
    hashes, starts = hashed(texts)
    met = np.mean(
        [np.equal(*keys.reshape(-1, 2).T) for keys in band_keys(hashes, starts, bands=40, rows=3)],
        axis=0,
    )
    for low in (0.2, 0.4, 0.6, 0.8):
        inside = (exact >= low) & (exact < low + 0.2)
        assert met[inside].mean() == pytest.approx((exact[inside] ** 3).mean(), abs=0.03)


@pytest.mark.parametrize(
    ("threshold", "permutations", "expected"),
    [(0.8, 64, (12, 5)), (0.9, 64, (9, 7)), (0.5, 64, (32, 2)), (1, 64, (1, 64))],
)
def test_banding(threshold, permutations, expected):
    bands, rows = banding(threshold, permutations)
    assert (bands, rows) == expected
    assert 1 - (1 - threshold**rows) ** bands >= 0.99
    assert bands * rows <= permutations
