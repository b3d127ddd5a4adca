"""Links of paired documents keep to headings and units, and have probabilities."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.alignment.document_files import StoredDocument
from interlingua.alignment.document_links import (
    estimate_probabilities,
    link_documents,
    linked_pairs,
)
from interlingua.alignment.document_store import number_documents
from interlingua.alignment.sentence_alignment import AlignConfig
from interlingua.corpus.documents import Unit
from tests.mining.invented import embed


def one_side(code, *units):
    stored = StoredDocument(f"{code}.md", f"{code}.md", code, "", [Unit(*one) for one in units], 0)
    return number_documents([stored], code)


def linked(source, target, encode=embed, config=None):
    """Return the links between two documents of units, with sentences on both sides."""
    sides = one_side("deu_Latn", *source), one_side("eng_Latn", *target)
    vectors = tuple(embed(list(side.numbered.texts)) for side in sides)
    found = link_documents(0, (0, 0), sides, vectors, encode, config or AlignConfig())
    return sides, found, [link[:2] for link in found.links if link.source and link.target]


def encode(texts, *, language):
    return embed(texts)


def test_a_heading_is_linked_with_headings_only():
    source = [("de1 de2", "heading", 1), ("de3 de4 de5",), ("de6 de7", "heading", 2), ("de8 de9",)]
    target = [("en1 en2", "heading", 1), ("en3 en4 en5",), ("en6 en7",), ("en8 en9", "heading", 2)]
    _, found, links = linked(source, target, encode)
    assert links[:2] == [((0,), (0,)), ((1,), (1,))]
    kinds = ([one[1:2] == ("heading",) for one in side] for side in (source, target))
    own, other = kinds
    assert all(own[x] == other[y] for left, right in links for x in left for y in right)
    # Each sentence is in a link, with or without a partner.
    assert sorted(n for link in found.links for n in link.source) == [0, 1, 2, 3]
    # Without headings on one side they are linked with what is there.
    plain = [(one[0],) for one in target]
    assert linked(source, plain, encode)[2] == [((n,), (n,)) for n in range(4)]


@pytest.mark.parametrize(("kind", "is_joined"), [("paragraph", True), ("cell", False)])
def test_sentences_are_joined_across_paragraphs_and_not_across_cells(kind, is_joined):
    source = [(f"de{n} de{n + 1} de{n + 2}", kind) for n in range(0, 60, 3)]
    target = [(one[0].replace("de", "en"), kind) for one in source]
    # Two units of the source are one of the target.
    target[4:6] = [(f"{target[4][0]} {target[5][0]}", kind)]
    _, _, links = linked(source, target, encode)
    assert (((4, 5), (4,)) in links) == is_joined


def test_sentences_of_one_item_are_joined():
    sides = (
        one_side("deu_Latn", ("Eins zwei. Drei vier.", "item"), ("Fünf.", "item")),
        one_side("eng_Latn", ("One two. Three four.", "code")),
    )
    assert sides[0].sentences(0) == ["Eins zwei.", "Drei vier.", "Fünf."]
    assert sides[0].border_flags(0).tolist() == [True, False, True]
    # Code is one unit, whatever marks are in it.
    assert sides[1].sentences(0) == ["One two. Three four."]


def test_linked_pairs_say_where_they_are_from():
    source = [("de1 de2", "heading", 1), *((f"de{n} de{n + 3}",) for n in range(5, 15))]
    target = [(one[0].replace("de", "en"), *one[1:]) for one in source]
    sides, found, links = linked(source, target, encode)
    assert len(links) == 11
    pairs = linked_pairs(found, (0, 0), sides, [0.5] * 10 + [float("nan")])
    assert pairs[0][:4] == ("de1 de2", "en1 en2", "deu_Latn", "eng_Latn")
    assert pairs[0].score == pytest.approx(1 - found.links[0].cost, abs=1e-6)
    assert pairs[0].fields == {
        "probability": 0.5,
        "source_document": "deu_Latn.md",
        "target_document": "eng_Latn.md",
        "source_position": "1",
        "target_position": "1",
        "kind": "heading",
    }
    assert pairs[-1].fields["probability"] == ""
    # Moved targets score below the links.
    assert len(found.wrong) == 11
    assert max(found.wrong) < min(pair.score for pair in pairs)


def test_single_sentences_are_not_embedded_again():
    asked = []

    def counted(texts, *, language):
        asked.extend(texts)
        return embed(texts)

    source = [(f"de{n} de{n + 3}",) for n in range(12)]
    linked(source, [(one[0].replace("de", "en"),) for one in source], counted)
    singles = {one[0] for one in source}
    assert not singles & set(asked)


@pytest.mark.parametrize("share", [0.0, 0.3])
def test_probabilities_are_calibrated(share):
    rng = np.random.default_rng(0)
    count = 2000
    is_right = rng.random(count) >= share
    scores = np.where(is_right, rng.normal(0.8, 0.1, count), rng.normal(0.1, 0.15, count))
    found = estimate_probabilities(scores, rng.normal(0.1, 0.15, count))
    assert abs(found.mean() - is_right.mean()) < 0.03
    assert ((found > 0.5) == is_right).mean() > 0.98
    order = np.argsort(scores)
    assert (np.diff(found[order]) >= -1e-12).all()


def test_a_few_links_have_no_probability():
    assert np.isnan(estimate_probabilities(np.ones(3), np.zeros(2))).all()
    assert len(estimate_probabilities(np.zeros(0), np.zeros(0))) == 0
