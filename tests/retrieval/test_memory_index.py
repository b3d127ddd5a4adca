from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import interlingua
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.memory_index import MemoryPassages
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.ranking import hit_record
from tests.tiny import tiny_encoder

TEXTS = [f"de{n} de{n + 1} de{n * 3 % 7}" for n in range(12)]


@pytest.fixture(scope="module")
def tiny(word_vocabulary):
    encoder = tiny_encoder(word_vocabulary)
    encoder.settings = dataclasses.replace(encoder.settings, prompts={"query": "en1 "})
    return encoder


def frame():
    pandas = pytest.importorskip("pandas")
    return pandas.DataFrame(
        {
            "id": [f"n{n}" for n in range(12)],
            "text": TEXTS,
            "language": ["de", "en", "fr"] * 4,
            "year": range(2000, 2012),
        }
    )


def record(hit):
    return hit_record(hit) | {"score": None}


def test_hits_are_ordered_by_the_cosine_with_the_question(tiny):
    hits = interlingua.search(tiny, "de1 de2", TEXTS, top=5)
    cosines = tiny.encode_document(TEXTS) @ tiny.encode_query("de1 de2")
    order = np.argsort(-cosines)[:5]
    assert [hit.id for hit in hits] == [str(row) for row in order]
    assert np.allclose([hit.score for hit in hits], cosines[order], atol=1e-6)
    assert [hit.text for hit in hits] == [TEXTS[row] for row in order]


def test_several_questions_have_a_ranking_each(tiny):
    index = interlingua.Index(tiny, TEXTS)
    questions = ["de1 de2", "de5"]
    several = interlingua.search(tiny, questions, TEXTS)
    assert several == [index.search(question) for question in questions]
    assert index.search(tuple(questions)) == several
    assert len(index) == 12
    assert index.search("de1", top=3) == interlingua.search(tiny, "de1", tuple(TEXTS), top=3)


def test_rows_of_a_table_are_passages_with_their_metadata(tiny):
    index = interlingua.Index(tiny, frame())
    hits = index.search("de1 de2", top=3, languages="de,fr")
    assert {hit.language for hit in hits} <= {"deu_Latn", "fra_Latn"}
    found = {hit.id: json.loads(hit.metadata) for hit in index.search("de1", top=12)}
    assert found["n3"] == {"year": 2003}
    balanced = index.search("de1", top=6, per_language=2)
    languages = [hit.language for hit in balanced]
    assert {code: languages.count(code) for code in languages} == dict.fromkeys(languages, 2)
    assert index.search("de1", top=2, mode="feedback")
    assert hits.to_pandas()["id"].tolist() == [hit.id for hit in hits]


def test_hits_are_those_of_an_index_on_disk(tiny, tmp_path):
    pytest.importorskip("lancedb")
    tiny.save(tmp_path / "model")
    frame().to_json(tmp_path / "passages.jsonl", orient="records", lines=True)
    interlingua.index(
        "build", [tmp_path / "model", tmp_path / "passages.jsonl"], output=tmp_path / "index"
    )
    index = interlingua.Index(tmp_path / "model", frame())
    for options in ({}, {"languages": "de"}, {"per_language": 2}, {"mode": "feedback"}):
        on_disk = interlingua.search(tmp_path / "index", "de1 de2", **options)
        in_memory = index.search("de1 de2", **options)
        assert [record(hit) for hit in in_memory] == [record(hit) for hit in on_disk]
        assert np.allclose([h.score for h in in_memory], [h.score for h in on_disk], atol=1e-6)


def test_long_passages_are_found_by_their_parts(tiny):
    long = " ".join(f"de{n % 7}." for n in range(400))
    index = interlingua.Index(tiny, [long, "en1"], chunk_tokens=100)
    assert len(index) > 2
    documents = {hit.document for hit in index.search("de1", top=50)}
    assert documents == {"0", "1"}


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda tiny: interlingua.Index(tiny, TEXTS, text_colum="a"), "'text_column'"),
        (lambda tiny: interlingua.Index(tiny, TEXTS, text_column="a"), "'a'"),
        (lambda tiny: interlingua.Index(tiny, "one text"), "one string"),
        (lambda tiny: interlingua.Index(tiny, ["a", None]), "row 1"),
        (lambda tiny: interlingua.Index(tiny, ["a", " "]), "row 1"),
        (lambda tiny: interlingua.Index(3, TEXTS), "Index"),
        (lambda tiny: interlingua.Index(tiny), "texts"),
        (lambda tiny: interlingua.Index(tiny, TEXTS).search(" "), "empty"),
        (lambda tiny: interlingua.Index(tiny, TEXTS).search("a", tpo=1), "'top'"),
        (lambda tiny: interlingua.Index(tiny, TEXTS).search("a", mode="text"), "'vector'|vector"),
        (lambda tiny: interlingua.Index(tiny, frame()).search("a", languages="th"), "tha_Thai"),
        (lambda tiny: interlingua.search(tiny, "a", TEXTS, where="year = 3"), "where"),
        (lambda tiny: interlingua.search(tiny, "a", TEXTS, device="cpu"), "device"),
        (lambda tiny: interlingua.search(tiny, "a"), "texts"),
    ],
)
def test_a_wrong_call_is_an_error_of_ours(tiny, make, named):
    with pytest.raises((ConfigError, DataError), match=named):
        make(tiny)


def test_an_id_that_occurs_twice_is_refused():
    passages = [Passage("a", "x"), Passage("a", "y")]
    with pytest.raises(DataError, match="'a'"):
        MemoryPassages(passages, np.eye(2, dtype=np.float32))


def test_an_index_is_shown_in_a_line(tiny):
    assert "12 passages in 3 languages" in repr(interlingua.Index(tiny, frame()))
    assert "\n" not in repr(interlingua.search(tiny, "de1", TEXTS))


def test_a_hit_has_the_plain_text_of_an_array(tiny):
    (hit,) = interlingua.Index(tiny, np.array(["en1 en2"])).search("en1")
    assert type(hit.text) is str
