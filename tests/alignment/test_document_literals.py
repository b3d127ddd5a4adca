"""Words and numbers that documents share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from interlingua.alignment.document_files import StoredDocument
from interlingua.alignment.document_literals import literal_overlaps
from interlingua.alignment.document_pairing import pair_documents
from interlingua.alignment.document_store import number_documents
from interlingua.corpus.documents import Unit


def make_side(texts, language):
    documents = [
        StoredDocument(f"{number}.md", f"{number}.md", language, "", [Unit(text)], 0)
        for number, text in enumerate(texts)
    ]
    return number_documents(documents, language)


SOURCE = make_side(
    ["Die Funktion DAY seit 1954", "Die Funktion MONTH seit 1954", "Die Hilfe"], "deu_Latn"
)
TARGET = make_side(["函数MONTH，1954年", "函数DAY，2000年", "帮助"], "zho_Hans")


def test_the_overlap_is_that_of_the_formula():
    x, y = (axis.ravel() for axis in np.indices((3, 3)))
    found = literal_overlaps((SOURCE, TARGET), x, y).reshape(3, 3)
    # Of three documents, DAY and MONTH are in one on each side, 1954 in two and in one.
    rare, number = math.log(3), math.log(3 / 2)
    assert found[1, 0] == pytest.approx(1)
    assert found[0, 1] == pytest.approx(rare / math.sqrt((rare + number) * rare))
    assert found[0, 0] == pytest.approx(number / (rare + number))
    assert found[2].tolist() == found[:, 2].tolist() == [0, 0, 0]


def test_candidates_are_worked_on_in_parts(monkeypatch):
    x, y = (axis.ravel() for axis in np.indices((3, 3)))
    expected = literal_overlaps((SOURCE, TARGET), x, y)
    monkeypatch.setattr("interlingua.alignment.document_literals._CHUNK", 2)
    np.testing.assert_array_equal(literal_overlaps((SOURCE, TARGET), x, y), expected)
    assert literal_overlaps((SOURCE, TARGET), x[:0], y[:0]).tolist() == []


def test_equal_sentences_are_told_apart_by_their_literals():
    # The vectors of the four functions are equal; only their names differ.
    names = ["DAY", "MONTH", "YEAR", "HOUR"]
    sides = (
        make_side([f"Die Funktion {name}" for name in names], "deu_Latn"),
        make_side([f"函数 {name}" for name in reversed(names)], "zho_Hans"),
    )
    same = np.eye(1, 8, dtype=np.float32).repeat(4, axis=0)
    found = pair_documents(sides, (same, same), match="texts", threshold=0.0)
    assert [(pair.source, pair.target) for pair in found.pairs] == [(0, 3), (1, 2), (2, 1), (3, 0)]
