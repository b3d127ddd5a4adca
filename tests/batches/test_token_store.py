from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.batches.token_store import TokenStore, TokenStoreWriter
from interlingua.errors import DataError
from interlingua.storage.files import sha256_file
from tests.batches.conftest import rewrite_header

PAIR = ("deu_Latn", "eng_Latn")
OTHER = ("eng_Latn", "fra_Latn")
SEQUENCES = st.lists(st.integers(0, 299), min_size=1, max_size=12)
ROWS = st.lists(st.tuples(SEQUENCES, SEQUENCES), min_size=1, max_size=20)


def write(path, rows, pair=PAIR, **settings):
    with TokenStoreWriter(path, **{"vocabulary_size": 300, **settings}) as writer:
        writer.append(pair, [a for a, _ in rows], [b for _, b in rows])
    return TokenStore.open(path)


def content(store, pair_index):
    sources, targets = store.read(pair_index, np.arange(store.counts[pair_index]))
    return [(a.tolist(), b.tolist()) for a, b in zip(sources, targets, strict=True)]


@settings(max_examples=30, deadline=None)
@given(chunks=st.lists(st.tuples(st.sampled_from([PAIR, OTHER]), ROWS), min_size=1, max_size=6))
@pytest.mark.parametrize("vocabulary_size", [300, 100_000])
def test_rows_come_back_as_they_were_written(tmp_path_factory, vocabulary_size, chunks):
    path = tmp_path_factory.mktemp("store") / "s"
    expected: dict[tuple[str, str], list] = {}
    # A buffer of nothing spills each chunk to the disk.
    with TokenStoreWriter(
        path, vocabulary_size=vocabulary_size, buffer_bytes=len(chunks) % 2 * 1000
    ) as writer:
        for pair, rows in chunks:
            writer.append(pair, [a for a, _ in rows], [b for _, b in rows])
            expected.setdefault(pair, []).extend(rows)
    store = TokenStore.open(path)
    store.verify()
    assert store.language_pairs == tuple(sorted(expected))
    assert len(store) == sum(map(len, expected.values()))
    for index, pair in enumerate(store.language_pairs):
        assert content(store, index) == [(list(a), list(b)) for a, b in expected[pair]]
    assert {file.name for file in path.iterdir()} == {"header.json", "offsets.bin", "tokens.bin"}


def test_rows_are_read_in_the_order_asked_for(store):
    sources, targets = store.read(1, np.asarray([30, 2, 30]))
    assert [int(ids[0]) for ids in sources] == [1030, 1002, 1030]
    assert [int(ids[0]) for ids in targets] == [1330, 1302, 1330]


def test_a_packed_read_mixes_language_pairs(store):
    found = store.read_packed(np.asarray([2, 0, 1]), np.asarray([4, 100, 0]))
    starts = np.cumsum(found.source_lengths) - found.source_lengths
    assert found.source_ids[starts].tolist() == [2004, 100, 1000]
    assert found.target_lengths.sum() == len(found.target_ids)


@pytest.mark.parametrize(("closing", "expected"), [(0, [1, 2, 3]), (1, [1, 2, 9]), (2, [1, 8, 9])])
def test_cut_sequences_keep_their_closing_tokens(tmp_path, closing, expected):
    rows = [([1, 2, 3, 4, 8, 9], [5, 9]), ([7], [1, 2, 3, 4, 8, 9])]
    store = write(tmp_path / "s", rows, closing_tokens=closing)
    found = store.read_packed(np.zeros(2, int), np.arange(2), max_tokens=3)
    assert found.source_ids.tolist() == [*expected, 7]
    assert found.target_ids.tolist() == [5, 9, *expected]
    assert found.target_lengths.tolist() == [2, 3]


def test_small_vocabularies_take_two_bytes_a_token(tmp_path):
    rows = [([1, 2], [3])]
    assert write(tmp_path / "small", rows).vocabulary_size == 300
    write(tmp_path / "large", rows, vocabulary_size=65_537)
    sizes = [(tmp_path / name / "tokens.bin").stat().st_size for name in ("small", "large")]
    assert sizes == [6, 12]


def test_the_digest_names_the_content(tmp_path):
    first, again = (write(tmp_path / name, [([1], [2])]) for name in "ab")
    assert first.digest == again.digest
    assert first.digest != write(tmp_path / "c", [([1], [3])]).digest
    assert first.digest != write(tmp_path / "d", [([1], [2])], vocabulary_digest="other").digest


@pytest.mark.parametrize(
    ("sources", "targets", "message"),
    [
        ([[1]], [], "1 source and 0 target"),
        ([[1], [2]], [[1], []], "row 1 of deu_Latn-eng_Latn .*empty"),
        ([[300]], [[1]], r"token ids below 300, found 1 to 300"),
        ([[-1]], [[1]], r"token ids .*found -1 to 1"),
    ],
)
def test_impossible_rows_are_refused_and_nothing_is_left(tmp_path, sources, targets, message):
    with (
        pytest.raises(DataError, match=message),
        TokenStoreWriter(tmp_path / "s", vocabulary_size=300, buffer_bytes=0) as writer,
    ):
        writer.append(OTHER, [[1]], [[2]])
        writer.append(PAIR, sources, targets)
    assert list(tmp_path.iterdir()) == []


def test_a_store_appears_when_it_is_whole_and_is_not_replaced(tmp_path):
    with (
        pytest.raises(KeyboardInterrupt),
        TokenStoreWriter(tmp_path / "s", vocabulary_size=9) as writer,
    ):
        writer.append(PAIR, [[3]], [[4]])
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []
    write(tmp_path / "s", [([1], [2])])
    with pytest.raises(DataError, match="already exists"):
        write(tmp_path / "s", [([3], [4])])
    assert content(TokenStore.open(tmp_path / "s"), 0) == [([1], [2])]


@pytest.mark.parametrize("name", ["tokens.bin", "offsets.bin"])
def test_a_file_cut_short_or_missing_is_found_at_once(damaged, name):
    whole = (damaged / name).read_bytes()
    (damaged / name).write_bytes(whole[:-2])
    with pytest.raises(DataError, match=rf"{name}: .*{len(whole)} bytes, found {len(whole) - 2}"):
        TokenStore.open(damaged)
    (damaged / name).unlink()
    with pytest.raises(DataError, match=f"{len(whole)} bytes, found 0"):
        TokenStore.open(damaged)


def test_a_changed_header_is_found_at_once(damaged):
    header = json.loads((damaged / "header.json").read_text())
    header["language_pairs"][0]["rows"] = 1
    (damaged / "header.json").write_text(json.dumps(header))
    with pytest.raises(DataError, match=r"header\.json: .*checksum"):
        TokenStore.open(damaged)


@pytest.mark.parametrize(
    ("text", "message"), [("{", "damaged"), ("[]", "object"), ('{"format": "x"}', "'x'")]
)
def test_a_header_that_is_none(damaged, text, message):
    (damaged / "header.json").write_text(text)
    with pytest.raises(DataError, match=message):
        TokenStore.open(damaged)


def test_a_folder_without_a_store(tmp_path):
    with pytest.raises(DataError, match="no token store"):
        TokenStore.open(tmp_path)


def test_changed_bytes_are_found_by_verify(damaged):
    tokens = bytearray((damaged / "tokens.bin").read_bytes())
    tokens[0] ^= 1
    (damaged / "tokens.bin").write_bytes(tokens)
    store = TokenStore.open(damaged)
    with pytest.raises(DataError, match=r"tokens\.bin: .*digest"):
        store.verify()


@pytest.mark.parametrize(
    ("name", "numbers", "message"),
    [
        ("tokens.bin", [1, 2, 3, 4, 5, 6, 7, 300], "token id 300"),
        ("tokens.bin", [1, 2, 3, 65_535, 5, 6, 7, 8], "token id 65535"),
        ("offsets.bin", [0, 3, 2, 6, 8], "invalid offsets"),
        ("offsets.bin", [0, 3, 3, 6, 8], "invalid offsets"),
        ("offsets.bin", [1, 3, 5, 6, 8], "invalid offsets"),
        ("offsets.bin", [0, 3, 5, 6, 7], "invalid offsets"),
        ("offsets.bin", [2**64 - 2, 3, 5, 6, 8], "invalid offsets"),
        ("offsets.bin", [0, 3, 5, 6, 2**63], "invalid offsets"),
    ],
)
def test_wild_numbers_with_right_digests_are_found(damaged, monkeypatch, name, numbers, message):
    np.asarray(numbers, np.uint64).astype("<u2" if name == "tokens.bin" else "<u8").tofile(
        damaged / name
    )
    digest = sha256_file(damaged / name)
    rewrite_header(damaged, lambda header: header["sha256"].update({name: digest}))
    for block in (1, 2, 1 << 20):  # what is compared across the bounds of blocks as well
        monkeypatch.setattr("interlingua.batches.token_store._COUNTED_AT_ONCE", block)
        with pytest.raises(DataError, match=rf"{name}: .*{message}"):
            TokenStore.open(damaged).verify()


@pytest.mark.parametrize("offsets", [[0, 10**9, 5, 6, 8], [2**64 - 2, 3, 5, 6, 8]])
def test_wild_offsets_are_not_read_from(damaged, offsets):
    np.asarray(offsets, "<u8").tofile(damaged / "offsets.bin")
    with pytest.raises(DataError, match=r"offsets\.bin: .*offsets"):
        TokenStore.open(damaged).read(0, np.asarray([0]))


@pytest.mark.parametrize("row", [-1, 2])
def test_rows_that_do_not_exist(damaged, row):
    with pytest.raises(DataError, match=f"row {row} of deu_Latn-eng_Latn .*2 rows"):
        TokenStore.open(damaged).read(0, np.asarray([0, row]))


def test_reading_no_rows(store):
    assert store.read(0, np.asarray([], dtype=int)) == ([], [])


READ_AT_RANDOM = """
import sys, resource, numpy as np
from interlingua.batches.token_store import TokenStore

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

store = TokenStore.open(sys.argv[1])
order = np.random.default_rng(0).permutation(20_000)
before, most = resident(), 0
for start in range(0, 20_000, 100):
    found = store.read_packed(np.zeros(100, int), order[start : start + 100])
    assert found.source_ids.sum() == 100 * sum(range(600))
    most = max(most, resident())
print(most - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_reading_at_random_keeps_nothing_resident(tmp_path):
    # 48 MB of tokens, all of them read once in random order by a process of its own.
    sequence = list(range(600))
    with TokenStoreWriter(tmp_path / "s", vocabulary_size=600) as writer:
        for _ in range(20):
            writer.append(PAIR, [sequence] * 1000, [sequence] * 1000)
    call = [sys.executable, "-c", READ_AT_RANDOM, str(tmp_path / "s")]
    done = subprocess.run(call, check=True, capture_output=True, text=True, timeout=120)
    assert int(done.stdout) < 16 << 20
