"""A small demonstration: the nearest messages of other languages for a few sentences."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.evaluation_sets import pair_files, read_pair_file
from interlingua.encoder.protocol import TextEncoder
from interlingua.evaluation.metrics.retrieval import nearest_both_ways
from interlingua.storage.arrays import normalize_rows

_SHOWN_LANGUAGES = (
    "rus_Cyrl", "jpn_Jpan", "arb_Arab", "zho_Hans", "hin_Deva", "kor_Hang", "ell_Grek", "ukr_Cyrl",
    "pes_Arab", "deu_Latn", "tur_Latn", "spa_Latn", "fra_Latn",
)  # fmt: skip
_MOST_LANGUAGES = 6
"""Maximum number of languages for each sentence; those of ``_SHOWN_LANGUAGES`` come first."""
_WORDS = range(5, 13)
_PLAIN_WORD = re.compile(r"[^\W\d_][a-z']*[,.?!]?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Neighbor:
    """The message of another language that is nearest to a query."""

    language: str
    """English name of the language."""
    text: str
    cosine: float
    right: bool
    """True if it is the query's own translation."""
    candidates: int
    """Messages it was chosen from."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Demonstration:
    """A query and its nearest neighbor in each language."""

    query: str
    neighbors: tuple[Neighbor, ...]


def demonstrate(encoder: TextEncoder, folder: Path, *, queries: int = 4) -> list[Demonstration]:
    """Find the nearest neighbors of a few English sentences in languages that translate them.

    Args:
        encoder: the trained encoder.
        folder: held-out ``<lang>-eng.tsv`` files.
        queries: sentences to show.
    """
    texts = _read(folder)
    chosen = [code for code in _SHOWN_LANGUAGES if code in texts]
    others = [code for code in texts if code not in chosen]
    # Languages with the most messages come first. Choose twice as many languages as are shown,
    # because not all languages have every sentence.
    chosen += sorted(others, key=lambda code: -len(texts[code]))
    chosen = chosen[: 2 * _MOST_LANGUAGES]
    english = _shared_sentences([texts[code] for code in chosen], queries)
    if not english:
        return []
    english_vectors = normalize_rows(encoder.encode(english, language="eng_Latn"))
    found: list[list[Neighbor]] = [[] for _ in english]
    for code in chosen:
        candidates = list(texts[code].values())
        vectors = normalize_rows(encoder.encode(candidates, language=code))
        nearest, _ = nearest_both_ways(english_vectors, vectors)
        for row, sentence in enumerate(english):
            translation = texts[code].get(sentence)
            if translation is None or len(found[row]) == _MOST_LANGUAGES:
                continue
            best = int(nearest[row])
            found[row].append(
                Neighbor(
                    language=resolve_language(code).name,
                    text=candidates[best],
                    cosine=float(english_vectors[row] @ vectors[best]),
                    right=candidates[best] == translation,
                    candidates=len(candidates),
                )
            )
    return [Demonstration(query=q, neighbors=tuple(n)) for q, n in zip(english, found, strict=True)]


def _read(folder: Path) -> dict[str, dict[str, str]]:
    """Read English message -> translation for each language code."""
    texts = {}
    for file in pair_files(folder):
        foreign, english = read_pair_file(file)
        texts[resolve_language(file.source_language).code] = dict(
            zip(english, foreign, strict=True)
        )
    return texts


def _shared_sentences(texts: Sequence[Mapping[str, str]], count: int) -> list[str]:
    """Return the readable messages that most of the languages have, in a fixed order."""
    shared = Counter(message for messages in texts for message in messages if _is_readable(message))
    # Sort ties by the alphabet, so that two runs show the same messages.
    return sorted(shared, key=lambda message: (-shared[message], message))[:count]


def _is_readable(message: str) -> bool:
    """Return whether a message is plain words: no quotes, numbers or parts of placeholders."""
    words = message.split()
    return len(words) in _WORDS and all(map(_PLAIN_WORD.fullmatch, words))
