"""Exact search over mapped vectors finds what LanceDB's exact scan finds, and nothing outdated."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from interlingua.retrieval import passage_index
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.retrieval.vector_scan import SCAN_FOLDER, VectorScan, open_scan
from interlingua.storage.arrays import unit_rows

pytest.importorskip("lancedb")
WIDTH = 48
LANGUAGES = ("deu_Latn", "eng_Latn", "")
ALL = "true"
"""A condition that every passage meets, so that LanceDB searches."""


def embed(passages):
    """Return a unit vector that depends only on the text."""
    seeds = [list(passage.text.encode()) for passage in passages]
    rows = [np.random.default_rng(seed).standard_normal(WIDTH) for seed in seeds]
    return unit_rows(np.array(rows))


def invented(count, *, first=0):
    numbers = range(first, first + count)
    return [Passage(f"p{n}", f"text {n}", "", LANGUAGES[n % 3]) for n in numbers]


def question(text="a question"):
    return embed([Passage("q", text)])[0]


@pytest.fixture
def index(tmp_path):
    settings = IndexSettings(model="somewhere", digest="d1", dim=WIDTH)
    made = PassageIndex.create(tmp_path / "index", settings)
    made.add(invented(500), embed)
    made.finish()
    return made


@pytest.fixture
def only_mapped(monkeypatch):
    """Refuse searches by LanceDB."""

    def refused(*args):
        raise AssertionError("LanceDB searched")

    monkeypatch.setattr(PassageIndex, "_hits", refused)


@pytest.fixture
def only_lance(monkeypatch):
    """Refuse searches by mapped vectors."""

    def refused(*args):
        raise AssertionError("mapped vectors were searched")

    monkeypatch.setattr(PassageIndex, "_scanned", refused)


def ids(hits):
    return [hit.id for hit in hits]


@pytest.mark.parametrize("top", [1, 7, 600])
@pytest.mark.parametrize("languages", [(), ("deu_Latn",), ("", "eng_Latn", ""), ("tha_Thai",)])
def test_mapped_vectors_find_what_lancedb_finds(index, top, languages):
    for number in range(5):
        vector = question(f"question {number}")
        mapped = index.nearest(vector, top, languages=languages)
        lance = index.nearest(vector, top, languages=languages, where=ALL)
        assert [hit._replace(score=0) for hit in mapped] == [hit._replace(score=0) for hit in lance]
        scores = [hit.score for hit in lance]
        assert [hit.score for hit in mapped] == pytest.approx(scores, abs=1e-6)


@pytest.mark.usefixtures("only_mapped")
def test_equal_cosines_go_to_the_smaller_id(index):
    copies = [Passage(f"c{n:02}", "a copy", "", LANGUAGES[n % 3]) for n in reversed(range(20))]
    index.add(copies, embed)
    index.finish()
    assert ids(index.nearest(question("a copy"), 5)) == [f"c{n:02}" for n in range(5)]


def test_vectors_of_any_length_are_ranked_exactly():
    rng = np.random.default_rng(0)
    vectors = (rng.standard_normal((3000, 16)) * rng.choice([1e-3, 1, 30], (3000, 1))).astype("f")
    rows = np.arange(3000, dtype=np.uint64)
    longest = float(np.linalg.norm(vectors, axis=1).max())
    scan = VectorScan(vectors, rows, np.arange(3000), languages={}, longest=longest)
    for vector in rng.standard_normal((5, 16)).astype("f"):
        cosines = vectors.astype(float) @ vector.astype(float)
        assert scan.nearest(vector, 40).rows.tolist() == np.argsort(-cosines)[:40].tolist()


@pytest.mark.usefixtures("only_mapped")
def test_no_condition_needs_no_scan_of_the_table(index):
    assert len(index.nearest(question(), 7, languages=["deu_Latn"])) == 7
    assert len(index.nearest(question(), 7, exact=True)) == 7


@pytest.mark.usefixtures("only_mapped")
def test_the_vectors_stay_on_the_disk(index):
    index.nearest(question(), 1)
    base = index._opened.scan.vectors
    while isinstance(base, np.ndarray):
        base = base.base
    assert isinstance(base, mmap.mmap)


@pytest.mark.usefixtures("only_lance")
def test_changes_are_found_before_the_vectors_are_mapped_anew(index):
    index.add(invented(1, first=900), embed)
    assert ids(index.nearest(question("text 900"), 1)) == ["p900"]
    index.delete(["p900"])
    assert ids(index.nearest(question("text 900"), 1)) != ["p900"]


@pytest.mark.usefixtures("only_mapped")
def test_mapped_vectors_follow_changes_and_compaction(index):
    index.add(invented(1, first=900), embed)
    index.finish()
    assert ids(index.nearest(question("text 900"), 1)) == ["p900"]
    index.delete(["p900"])
    index.finish()
    assert ids(index.nearest(question("text 900"), 1)) != ["p900"]
    index.compact()
    assert ids(index.nearest(question("text 17"), 1)) == ["p17"]


@pytest.mark.usefixtures("only_mapped")
def test_another_writer_is_noticed(index):
    index.nearest(question(), 1)
    other = PassageIndex(index.folder)
    before = index.state()
    other.add(invented(1, first=900), embed)
    other.finish()
    assert index.state() != before
    index.reload()
    assert ids(index.nearest(question("text 900"), 1)) == ["p900"]


def test_a_map_that_comes_after_its_version_is_noticed(index):
    place = index.folder / SCAN_FOLDER
    aside = place.rename(index.folder.parent / "aside")
    before = index.state()
    aside.rename(place)
    assert index.state() != before


@pytest.mark.usefixtures("only_lance")
def test_no_scan_is_read_of_another_version(index):
    version = index._table.version
    assert open_scan(index.folder, version + 1) is None
    assert open_scan(index.folder, version) is not None


@pytest.mark.parametrize("name", ["vectors.npy", "rows.npy", "ranks.npy", "record.json"])
@pytest.mark.parametrize("damage", ["changed", "cut", "removed"])
def test_a_damaged_map_is_left_out_and_written_anew(index, name, damage, caplog):
    expected = ids(index.nearest(question(), 5))
    file = index.folder / SCAN_FOLDER / name
    content = bytearray(file.read_bytes())
    content[-20] ^= 1
    if damage == "cut":
        del content[-30:]
    file.write_bytes(content)
    if damage == "removed":
        file.unlink()
    index.reload()
    assert ids(index.nearest(question(), 5)) == expected
    # Without its record there is no map, as in the index of an older version.
    assert bool(caplog.records) == ((name, damage) != ("record.json", "removed"))
    assert all("index compact" in record.getMessage() for record in caplog.records)
    assert index._opened.scan is None
    index.compact()
    assert ids(index.nearest(question(), 5)) == expected
    assert index._opened.scan is not None


def test_a_vector_that_differs_from_the_table_is_not_believed(index):
    best, second = ids(index.nearest(question(), 2))
    scan = index._opened.scan
    changed = scan.vectors.copy()
    changed[scan.nearest(question(), 1).positions[0]] *= 1.01
    index._opened = index._opened._replace(
        scan=VectorScan(
            changed, scan.rows, scan.ranks, languages=scan.languages, longest=scan.longest * 1.01
        )
    )
    found = index.nearest(question(), 2)
    assert ids(found) == [best, second]
    assert found[0].score == pytest.approx(index.nearest(question(), 1, where=ALL)[0].score)


@pytest.mark.usefixtures("only_lance")
def test_larger_indexes_are_not_mapped(index, monkeypatch):
    assert passage_index.MOST_SCANNED == 1_000_000
    monkeypatch.setattr(passage_index, "MOST_SCANNED", 500)
    index.add(invented(1, first=900), embed)
    index.finish()
    assert not (index.folder / SCAN_FOLDER).exists()
    assert ids(index.nearest(question("text 900"), 1)) == ["p900"]


def test_an_index_of_vectors_is_asked_for_and_then_read(index, monkeypatch):
    assert not index.is_approximate
    monkeypatch.setattr(passage_index, "LEAST_APPROXIMATE", 500)
    index.finish(approximate=True)
    searched = []
    monkeypatch.setattr(PassageIndex, "_scanned", lambda *args: searched.append("map") or [])
    monkeypatch.setattr(PassageIndex, "_hits", lambda *args: searched.append("cells") or [])
    index.nearest(question(), 3)
    index.nearest(question(), 3, exact=True)
    assert searched == ["cells", "map"]


@pytest.mark.usefixtures("only_lance")
def test_an_empty_index_has_no_map(index):
    index.delete(where=ALL)
    index.finish()
    assert not (index.folder / SCAN_FOLDER).exists()
    assert index.nearest(question(), 3) == []
