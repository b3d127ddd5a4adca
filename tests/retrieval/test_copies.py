"""Equal texts are shown once, with the ids of all."""

from __future__ import annotations

import json

import numpy as np
import pytest

pytest.importorskip("lancedb")

from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.retrieval.ranking import Hit, hit_record, without_copies
from interlingua.retrieval.searcher import Searcher

QUESTION = np.array([1.0, 0.0], dtype=np.float32)


def vectors(wanted):
    """Encode the number in a text as its angle to the question."""
    angles = np.array([float(passage.text.split()[-1]) for passage in wanted])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory):
    """Fifty copies of the nearest text, and five other texts in two languages."""
    settings = IndexSettings(model="m", digest="x", dim=2)
    index = PassageIndex.create(tmp_path_factory.mktemp("copies") / "index", settings)
    passages = [Passage(f"copy{n:02}", "word 0.0", language="deu_Latn") for n in range(50)]
    passages += [Passage("other", "word 0.0", language="eng_Latn")]
    for n in range(1, 6):
        code = ["deu_Latn", "eng_Latn"][n % 2]
        passages.append(Passage(f"t{n}", f"word {n / 10}", language=code))
    index.add(passages, vectors)
    index.finish()
    return Searcher(index, None)


@pytest.mark.parametrize("mode", ["vector", "hybrid", "text"])
def test_copies_take_no_places_of_others(searcher, mode):
    hits = searcher.rank("word 0.0", QUESTION, top=7, mode=mode).hits
    assert len({(hit.text, hit.language) for hit in hits}) == len(hits) == 7
    copies = next(hit for hit in hits if hit.id.startswith("copy"))
    assert len(copies.places) == 49
    assert all(not hit.places for hit in hits if hit is not copies)


def test_fewer_texts_than_wanted_are_all_of_them(searcher):
    hits = searcher.rank("word", QUESTION, top=20).hits
    assert [hit.id for hit in hits] == ["copy00", "other", "t1", "t2", "t3", "t4", "t5"]


def test_each_language_begins_with_so_many_different_texts(searcher):
    hits = searcher.rank("word", QUESTION, top=4, per_language=2).hits
    assert [hit.id for hit in hits] == ["copy00", "other", "t1", "t2"]


def test_a_ranking_without_copies_is_as_it_was(searcher):
    hits = searcher.rank("word", QUESTION, top=3, where="id LIKE 't%'").hits
    assert [hit.id for hit in hits] == ["t1", "t2", "t3"]


@pytest.mark.parametrize(
    ("metadata", "link"),
    [
        ({}, None),
        ({"url": "https://example.org/a"}, "https://example.org/a"),
        ({"source": "shelf 3", "href": "HTTP://example.org"}, "HTTP://example.org"),
        ({"url": "javascript:alert(1)"}, None),
        ({"link": 3}, None),
    ],
)
def test_a_link_is_a_web_address(metadata, link):
    hit = Hit("a", 1.0, "t", "", "", json.dumps(metadata))
    assert hit_record(hit)["link"] == link
    assert hit_record(hit)["metadata"] == metadata


def test_titles_and_languages_tell_texts_apart():
    hits = [Hit("a", 3, "t", "", "de", "{}"), Hit("b", 2, "t", "x", "de", "{}")]
    hits += [Hit("c", 1, "t", "", "en", "{}"), Hit("d", 1, "t", "", "de", "{}")]
    found = without_copies(hits)
    assert [(hit.id, hit.places) for hit in found] == [("a", ("d",)), ("b", ()), ("c", ())]
