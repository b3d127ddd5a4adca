from __future__ import annotations

import time

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.mining import plan
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import TextFile
from interlingua.mining.plan import DifferentTexts, estimate
from interlingua.retrieval.topk import speed
from tests.mining.invented import embed, write_lines
from tests.mining.two_sides import Search, mine_files


def slowly(texts):
    """Encode slowly: a thousand characters take 10 ms."""
    time.sleep(1e-5 * sum(map(len, texts)))
    return embed(texts)


@pytest.fixture(autouse=True)
def short_trials(monkeypatch):
    monkeypatch.setattr(speed, "TRIED_VECTORS", 256)
    monkeypatch.setattr(plan, "_TRIAL_SECONDS", 0.05)


@pytest.fixture
def sides(tmp_path):
    made = []
    for name, count in (("a.de", 300), ("a.en", 200)):
        texts = [f"{name[2:]}{n} {'x ' * 20}" for n in range(count)]
        made.append(TextFile(write_lines(tmp_path / name, texts), "deu_Latn", encode=slowly))
    return made


def test_time_by_the_model_s_speed(tmp_path, sides):
    found = estimate(*sides, PairSearch(), tmp_path / "work")
    characters = sum(len(line) for file in sides for line in file.path.read_text().splitlines())
    assert found.texts == (300, 200)
    assert found.embedding_seconds == pytest.approx(1e-5 * characters, rel=0.9, abs=0.02)
    assert found.tiles == 1
    assert found.search_seconds > 0
    names = ["texts", "embedding", "nearest neighbors", "pairs", "time", "disk", "memory"]
    assert [line.split(":")[0] for line in found.lines()] == names
    many = estimate(*sides, PairSearch(), tmp_path / "work", at_once=4)
    assert "4 tasks at once" in many.lines()[4]


def test_equal_texts_are_counted_once(tmp_path, sides):
    for side in sides:
        side.path.write_text(side.path.read_text() * 8)
    found = estimate(*sides, PairSearch(), tmp_path / "work")
    assert found.texts == (300, 200)
    every = estimate(*sides, PairSearch(equal="never"), tmp_path / "work")
    assert every.texts == (2400, 1600)
    assert every.embedding_seconds > 4 * found.embedding_seconds


def test_different_texts_are_estimated_in_little_memory(monkeypatch):
    monkeypatch.setattr(plan, "SAMPLED_TEXTS", 2000)
    different = DifferentTexts()
    for n in range(60_000):
        different.add(str(n % 20_000 + 100_000))
    assert different.texts == pytest.approx(20_000, rel=0.06)
    assert different.characters == 6 * different.texts


def test_the_disk_is_enough_and_not_twice_enough(tmp_path, sides):
    found = estimate(*sides, PairSearch(), tmp_path / "work")
    mine_files(*sides, PairSearch(), tmp_path / "work", model="m")
    used = sum(path.stat().st_size for path in (tmp_path / "work").rglob("*") if path.is_file())
    assert used <= found.disk_bytes <= 2 * used


def test_vectors_that_are_there_take_no_time(tmp_path, sides):
    mine_files(*sides, PairSearch(), tmp_path / "work", model="m")
    assert estimate(*sides, PairSearch(), tmp_path / "work").embedding_seconds == 0
    known = []
    for side in sides:
        np.save(tmp_path / f"{side.path.name}.npy", embed(side.path.read_text().splitlines()))
        known.append(side._replace(encode=None, vectors=[tmp_path / f"{side.path.name}.npy"]))
    assert estimate(*known, PairSearch(), tmp_path / "none").embedding_seconds == 0


def test_within_documents_nothing_is_searched(tmp_path, sides):
    config = PairSearch(documents="equal")
    found = estimate(*sides, config, tmp_path / "work")
    assert (found.search_seconds, found.tiles) == (0, 0)


def test_an_approximate_searchs_time_is_not_estimated(tmp_path, sides):
    exactly = estimate(*sides, PairSearch(), tmp_path / "work")
    found = estimate(*sides, Search(approximate="hnsw:64"), tmp_path / "work")
    assert "approximate, time not estimated; an exact search " in found.lines()[2]
    assert "without the search" in found.lines()[4]
    assert found.memory_bytes >= exactly.memory_bytes + 500 * (2 * 24 + 256)


def test_less_memory_makes_more_tiles(tmp_path, sides):
    many = [
        side._replace(path=write_lines(tmp_path / f"many{n}", [f"x{i}" for i in range(5000)]))
        for n, side in enumerate(sides)
    ]
    assert estimate(*many, PairSearch(memory=2**21), tmp_path / "work").tiles > 1


def test_nothing_to_mine(tmp_path, sides):
    none = sides[0]._replace(path=write_lines(tmp_path / "none", [""]))
    with pytest.raises(DataError, match="contains no text"):
        estimate(none, sides[1], PairSearch(), tmp_path)
