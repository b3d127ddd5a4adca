"""Documents of invented words in two languages, as files and as sides in memory."""

from __future__ import annotations

import random

import numpy as np

from interlingua.alignment.document_files import StoredDocument
from interlingua.alignment.document_store import number_documents
from interlingua.corpus.documents import Unit
from tests.mining.invented import embed, sentence, text

CODES = {"de": "deu_Latn", "en": "eng_Latn"}


def contents(count, *, seed=0, sentences=8):
    """Return the numbers of the words of each sentence. The first of a document is a heading."""
    draw = random.Random(seed)
    return [[sentence(draw) for _ in range(sentences)] for _ in range(count)]


def markdown(document, language):
    """Format a document as Markdown: a heading, then paragraphs of two sentences."""
    heading, *rest = (f"{text(numbers, language)}." for numbers in document)
    lines = [f"# {heading[:-1]}", ""]
    for start in range(0, len(rest), 2):
        lines += [" ".join(one.capitalize() for one in rest[start : start + 2]), ""]
    return "\n".join(lines)


def units(document, language):
    """Return a document as units: a heading, then a paragraph per sentence."""
    heading, *rest = (text(numbers, language) for numbers in document)
    return [Unit(heading, "heading", 1), *(Unit(one) for one in rest)]


def side(documents, language, names=None):
    """Return a side in memory, and the vectors of its distinct sentences."""
    names = names or [f"{number}.md" for number in range(len(documents))]
    stored = [
        StoredDocument(name, name, CODES[language], "", units(document, language), 0)
        for name, document in zip(names, documents, strict=True)
    ]
    found = number_documents(stored, CODES[language])
    return found, embed(list(found.numbered.texts))


def two_sides(shared, alone, *, seed=0, sentences=8):
    """Return two sides in random order, and the right pairs of their documents."""
    draw = random.Random(seed)
    both = contents(shared, seed=seed, sentences=sentences)
    sides, places = [], []
    for number, language in enumerate(("de", "en")):
        own = both + contents(alone, seed=seed + 10 + number, sentences=sentences)
        order = list(range(len(own)))
        draw.shuffle(order)
        sides.append(side([own[place] for place in order], language))
        places.append([order.index(place) for place in range(shared)])
    right = set(zip(*places, strict=True))
    return (sides[0][0], sides[1][0]), (sides[0][1], sides[1][1]), right


def write_sides(folder, documents, names=("{number}.md", "{number}.md")):
    """Write documents in both languages below ``de`` and ``en``."""
    for language, name in zip(("de", "en"), names, strict=True):
        (folder / language).mkdir(parents=True, exist_ok=True)
        for number, document in enumerate(documents):
            path = folder / language / name.format(number=number)
            path.write_text(markdown(document, language), encoding="utf-8")


def random_vectors(count, width=16, *, seed=0):
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)
