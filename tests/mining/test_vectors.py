from __future__ import annotations

import os

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining import vectors
from interlingua.mining.texts import Line, build_side
from interlingua.mining.vectors import (
    KnownVectors,
    check_known,
    count_zeros,
    drop_damaged,
    embed_side,
    finished,
    load_vectors,
    open_vectors,
)
from interlingua.storage.arrays import unit_rows
from interlingua.storage.journal import Journal
from tests.mining.invented import embed
from tests.progress_records import Recorded


@pytest.fixture(autouse=True)
def small_portions(monkeypatch):
    monkeypatch.setattr(vectors, "PORTION", 4)


@pytest.fixture
def side(tmp_path):
    lines = [Line(f"de{n} de{n + 1}", str(n)) for n in range(10)] + [Line("de3 de4", "again")]
    return build_side(tmp_path / "x", lambda: lines)


def embedded_again(side, folder):
    """Return the texts that another run embeds to complete all vectors."""
    seen = []

    def remembering(texts):
        seen.extend(texts)
        return embed(texts)

    embed_side(side, remembering, folder)
    np.testing.assert_array_equal(load_vectors(folder), embed(list(side.texts)))
    return seen


def test_portions_make_one_file_of_all(tmp_path, side):
    told = Recorded()
    assert embed_side(side, embed, tmp_path / "x", progress=told) == 0
    found = load_vectors(tmp_path / "x")
    np.testing.assert_array_equal(found, embed(list(side.texts)))
    assert found.dtype == np.float32
    assert told.counts == [(0, 10), (4, 10), (8, 10), (10, 10)]


def test_what_is_there_is_not_made_again(tmp_path, side):
    """Kill after two portions, with a cut last journal line and an empty third portion."""

    def dies(texts):
        if texts[0] == side.texts[8]:
            raise KeyboardInterrupt
        return embed(texts)

    with pytest.raises(KeyboardInterrupt):
        embed_side(side, dies, tmp_path / "x")
    assert finished(tmp_path / "x") == {0, 4}
    with open(tmp_path / "x" / "vectors-1of1.journal", "a") as journal:
        journal.write("8")
    assert finished(tmp_path / "x") == {0, 4}
    assert embedded_again(side, tmp_path / "x") == side.texts[8:10]
    _, *portions = Journal(tmp_path / "x" / "vectors-1of1.journal").read()
    assert [values[:2] for values in portions] == [[0, 24], [4, 24], [8, 24]]


def test_shards_share_a_file(tmp_path, side):
    assert embed_side(side, embed, tmp_path / "x", shard=(2, 2)) == 2
    assert finished(tmp_path / "x") == {4}
    assert embed_side(side, embed, tmp_path / "x", shard=(1, 2)) == 0
    np.testing.assert_array_equal(load_vectors(tmp_path / "x"), embed(list(side.texts)))


def test_known_vectors_are_scaled_and_the_others_made(tmp_path, side):
    """Use nine known lines of eleven. Text 3 is also the last line."""
    rng = np.random.default_rng(0)
    known = rng.standard_normal((9, 24)) * 5
    embed_side(side, embed, tmp_path / "x", known=KnownVectors([known]))
    expected = np.concatenate([unit_rows(known), embed(side.texts[9:10])])
    np.testing.assert_array_equal(load_vectors(tmp_path / "x"), expected)


def test_laser_takes_the_last_lines_vector(tmp_path, side):
    known = np.random.default_rng(0).standard_normal((11, 24))
    embed_side(side, embed, tmp_path / "x", known=KnownVectors([known], last=True))
    np.testing.assert_array_equal(load_vectors(tmp_path / "x")[3], unit_rows(known[10:])[0])


def test_broken_or_unlike_vectors_are_refused(tmp_path, side):
    def broken(texts):
        table = embed(texts)
        table[1, 0] = np.nan
        return table

    message = r"^a\.de: .*NaN .*line '1', 'de1 de2'; pass --dtype float32"
    with pytest.raises(DataError, match=message):
        embed_side(side, broken, tmp_path / "x", path="a.de")
    with pytest.raises(DataError, match=r"NaN .*line '0'"):
        embed_side(side, lambda texts: embed(texts).astype(np.float64) * 1e200, tmp_path / "x")
    with pytest.raises(ConfigError, match=r"widths \[5, 24\]"):
        embed_side(side, embed, tmp_path / "x", known=KnownVectors([np.ones((2, 5))]))
    embed_side(side, embed, tmp_path / "x", shard=(1, 2))
    with pytest.raises(ConfigError, match="vectors of another"):
        embed_side(side, lambda texts: embed(texts)[:, :7], tmp_path / "x")


def test_vectors_of_a_file(tmp_path):
    table = np.arange(12, dtype=np.float32).reshape(4, 3)
    np.save(tmp_path / "a.npy", table)
    table.tofile(tmp_path / "a.raw")
    for name in ("a.npy", "a.raw"):
        np.testing.assert_array_equal(open_vectors([tmp_path / name], 4)[np.arange(4)], table)
    np.save(tmp_path / "o.npy", np.array([[1]], dtype=object))
    for name, message in (
        ("a.npy", "expected 5 rows"),
        ("a.raw", "48 bytes .* 5 lines"),
        ("o.npy", "cannot be mapped"),
        ("none.npy", "No such file"),
    ):
        with pytest.raises(DataError, match=message):
            open_vectors([tmp_path / name], 5)


def test_vectors_of_several_files_are_one_table(tmp_path):
    table = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    paths = [tmp_path / f"{n}.npy" for n in range(3)]
    parts = table[:4], table[4:4], table[4:].astype(np.float16)
    for path, part in zip(paths, parts, strict=True):
        np.save(path, part)
    found, rows = open_vectors(paths, 9), np.array([8, 0, 3, 4, 4])
    np.testing.assert_allclose(found[rows], table[rows], rtol=1e-3)
    assert found[rows].dtype == np.float32
    with pytest.raises(DataError, match=r"0.npy: expected 10 rows .*shape \(9, 3\)"):
        open_vectors(paths, 10)
    np.save(paths[1], np.zeros((0, 4)))
    with pytest.raises(DataError, match=r"found shape \(9, 3\) and \(9, 4\)"):
        open_vectors(paths, 9)
    table.tofile(tmp_path / "raw")
    with pytest.raises(DataError, match=r"raw: .*every file must be \.npy"):
        open_vectors([*paths, tmp_path / "raw"], 9)


def test_vectors_that_have_no_length_become_nan():
    assert np.isnan(unit_rows(np.array([[np.inf, 1.0], [1e300, 0.0], [np.nan, 0.0]]))).all()
    signaling = np.array([[0x7FA00000, 0]], np.uint32).view(np.float32)  # of this NaN numpy warns
    assert np.isnan(unit_rows(signaling)).all()


@pytest.mark.parametrize(
    ("broken", "told"),
    [
        (np.full(3, np.inf), ".*NaN"),
        ([np.nan, 0, 0], ".*NaN"),
        (np.full(3, 1e39), ".*float32.* length 1"),
        (np.full(3, 1e200), ".*range of float32"),
        (np.full(3, 3e38), ".*range of float32"),
    ],
)
def test_broken_vectors_of_a_file_are_told_by_file_and_row(tmp_path, side, broken, told):
    table = np.random.default_rng(0).standard_normal((11, 3))
    table[8] = broken
    paths = [tmp_path / "a.npy", tmp_path / "b.npy"]
    for path, part in zip(paths, (table[:6], table[6:]), strict=True):
        np.save(path, part)
    known = open_vectors(paths, 11)
    for look in (lambda: known.scaled(np.array([7, 8])), lambda: check_known(side, known)):
        with pytest.raises(DataError, match=rf"b\.npy: row 2 \(counted from 0\) {told}"):
            look()
    check_known(side, KnownVectors([np.delete(table, 8, axis=0)]))


def test_only_vectors_that_a_text_takes_are_looked_at(side):
    table = np.ones((11, 3))
    table[10] = np.nan  # the line again of text 3
    check_known(side, KnownVectors([table]))
    with pytest.raises(DataError, match=r"^row 10 .*NaN"):
        check_known(side, KnownVectors([table], last=True))


def test_vectors_of_zeros_are_counted(tmp_path, side):
    table = np.ones((11, 3))
    table[[2, 9, 10]] = 0
    table[5] = 1e-300  # nothing, in float32 and in the square of float64
    embed_side(side, embed, tmp_path / "x", known=KnownVectors([table]))
    assert count_zeros(load_vectors(tmp_path / "x")) == 3


def harmed(path, harm):
    if harm == "removed":
        path.unlink()
    elif harm == "cut":
        os.truncate(path, path.stat().st_size - 5 * 24 * 4)
    else:
        content = bytearray(path.read_bytes())
        content[-1 if harm == "flipped" else 10] ^= 1
        path.write_bytes(content)


@pytest.mark.parametrize(
    ("harm", "made"), [("removed", 10), ("cut", 6), ("flipped", 2), ("flipped header", 0)]
)
def test_damaged_portions_are_embedded_again(tmp_path, side, caplog, harm, made):
    embed_side(side, embed, tmp_path / "x")
    harmed(tmp_path / "x" / "vectors.npy", harm)
    drop_damaged(tmp_path / "x", len(side))
    assert caplog.text.count("are embedded again") == (1 if made else 0)
    assert len(embedded_again(side, tmp_path / "x")) == made


def test_damage_of_another_shard_is_an_error(tmp_path, side):
    embed_side(side, embed, tmp_path / "x", shard=(1, 2))
    embed_side(side, embed, tmp_path / "x", shard=(2, 2))
    # the third portion is the first shard's
    harmed(tmp_path / "x" / "vectors.npy", "flipped")
    with pytest.raises(DataError, match=r"vectors\.npy: .*1 damaged portion"):
        drop_damaged(tmp_path / "x", len(side), (2, 2))
    drop_damaged(tmp_path / "x", len(side), (1, 2))
    assert finished(tmp_path / "x") == {0, 4}
    drop_damaged(tmp_path / "none", 3)
