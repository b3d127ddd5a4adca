"""The index of digests against a dictionary, and what it takes in memory."""

from __future__ import annotations

import hashlib
import tracemalloc

import numpy as np
import pytest

from interlingua.evaluation import key_index
from interlingua.evaluation.key_index import KEY_BYTES, KeyIndex


def digests(*numbers):
    return [
        hashlib.blake2b(str(number).encode(), digest_size=KEY_BYTES).digest() for number in numbers
    ]


@pytest.mark.parametrize("waiting", [1, 7, 1000])
def test_rows_are_those_of_a_dictionary(waiting, monkeypatch):
    monkeypatch.setattr(key_index, "WAITING", waiting)
    draw = np.random.default_rng(0)
    index, expected = KeyIndex(), {}
    for first in range(0, 600, 5):
        keys = digests(*draw.integers(0, 400, 5))  # some of them again
        index.add(keys, range(first, first + 5))
        expected.update(zip(keys, range(first, first + 5), strict=True))
        asked = digests(*draw.integers(0, 500, 20))
        assert index.find(asked).tolist() == [expected.get(key, -1) for key in asked]


def test_packed_keys_have_rows_in_their_order():
    index, (a, b, c) = KeyIndex(), digests(1, 2, 3)
    index.add([a], [7])
    index.add_packed(a + b + c + b, 10)
    assert index.find([a, b, c]).tolist() == [10, 13, 12]


@pytest.mark.parametrize("end", [b"\0", b"\0\0", b"\1\0"])
def test_zero_bytes_at_the_end_of_a_key_count(end, monkeypatch):
    monkeypatch.setattr(key_index, "WAITING", 1)
    keys = [bytes(KEY_BYTES), bytes(KEY_BYTES - len(end)) + end, b"\0" * (KEY_BYTES - 1) + b"\1"]
    index = KeyIndex()
    index.add(keys, range(3))
    assert index.find(keys).tolist() == [1 if keys[0] == keys[1] else 0, 1, 2]


def test_an_empty_index_finds_nothing():
    assert KeyIndex().find([]).tolist() == []
    assert KeyIndex().find(digests(1)).tolist() == [-1]


def test_a_key_takes_24_bytes_once_merged(monkeypatch):
    monkeypatch.setattr(key_index, "WAITING", 4096)
    count = 40_000
    tracemalloc.start()
    index = KeyIndex()
    before = tracemalloc.get_traced_memory()[0]
    for first in range(0, count, 1000):
        index.add(digests(*range(first, first + 1000)), range(first, first + 1000))
    index.merge()
    held = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 24 * count <= held < 26 * count
