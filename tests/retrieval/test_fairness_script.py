"""experiments/search/fairness.py: its search in memory is that of an index, and its measures are
right by hand."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings
from interlingua.retrieval.ranking import Hit
from interlingua.storage.arrays import normalize_rows

SCRIPT = Path(__file__).resolve().parents[2] / "experiments" / "search" / "fairness.py"
CODES = ("deu_Latn", "eng_Latn", "tha_Thai")
WIDTH = 16
SETTINGS = IndexSettings(model="m", digest="d", dim=WIDTH)


@pytest.fixture(scope="module")
def fairness():
    spec = importlib.util.spec_from_file_location("fairness", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def vectors():
    return normalize_rows(np.random.default_rng(0).normal(size=(120, WIDTH)).astype(np.float32))


@pytest.fixture(scope="module")
def table(fairness, vectors):
    """Forty passages in each language."""
    passages = [
        Passage(f"{code} {n}", f"text {n}", language=code) for code in CODES for n in range(40)
    ]
    return fairness.VectorTable(passages, vectors)


def test_the_search_in_memory_is_that_on_disk(fairness, table, vectors, tmp_path, monkeypatch):
    pytest.importorskip("lancedb")
    monkeypatch.setattr(fairness, "MRR_DEPTH", 20)
    index = table.on_disk(tmp_path / "index", SETTINGS)
    fairness.require_equal(table, index, vectors[:5])
    moved = fairness.VectorTable(table.passages, vectors[::-1])
    with pytest.raises(SystemExit, match="other passages"):
        fairness.require_equal(moved, index, vectors[:5])


def test_the_nearest_are_those_of_all_cosines(table, vectors):
    cosines = vectors @ vectors[7]
    order = np.argsort(-cosines)
    ids = [passage.id for passage in table.passages]
    assert [hit.id for hit in table.nearest(vectors[7], 9)] == [ids[row] for row in order[:9]]
    inside = [ids[row] for row in order if ids[row].startswith(("deu_Latn", "tha_Thai"))]
    found = table.nearest(vectors[7], 200, languages=["deu_Latn", "tha_Thai"])
    assert [hit.id for hit in found] == inside


def hits_of(names):
    return [
        Hit(name, -rank, "", "", name.partition(" ")[0], "{}") for rank, name in enumerate(names)
    ]


def test_the_measures_of_a_ranking_by_hand(fairness, table, vectors, monkeypatch):
    right = {
        "deu_Latn": {"deu_Latn 1"},
        "eng_Latn": {"eng_Latn 1", "eng_Latn 2"},
        "tha_Thai": {"tha_Thai 1"},
    }
    question = fairness.Question("q", "deu_Latn", right)
    ranking = hits_of(["deu_Latn 9", "eng_Latn 1", "deu_Latn 1", "eng_Latn 7", "eng_Latn 2"])
    monkeypatch.setattr(fairness, "rankings_of", lambda searcher, vector: {"": ranking})
    found = fairness.scores_of(table, vectors[:1], [question])
    assert found == {
        "recall@20 of answers in other languages": pytest.approx(100 * 2 / 3),
        "MRR@100 of the first answer in any language": 50,
        "MRR@100 within the question's language": 50,  # deu_Latn 1 is the second one in German
    }
    ranking[:] = hits_of([f"deu_Latn {n}" for n in range(10, 30)] + ["tha_Thai 1"])
    found = fairness.scores_of(table, vectors[:1], [question])
    assert list(found.values()) == pytest.approx([0, 100 / 21, 0])
