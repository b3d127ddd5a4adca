"""Rankings of passages: joined, shared out between languages, described by their languages.

A multilingual encoder may prefer passages in the question's own language, so that a pool of many
languages hides answers in the others. Two things help: a map that takes the language out of the
vectors, and a ranking that begins with the best passages of every language.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.storage.json_text import parse_json

RRF_CONSTANT = 60
"""k of reciprocal rank fusion; the paper's value."""


LINK_KEYS = ("link", "url", "uri", "href", "source")
"""Names of metadata that may hold the web address of a passage."""


class Hit(NamedTuple):
    """A passage that was found."""

    id: str
    score: float
    """Cosine with the question, BM25, or the sum of reciprocal ranks."""
    text: str
    title: str
    language: str
    metadata: str
    """JSON."""
    places: tuple[str, ...] = ()
    """Ids of other passages with the same title, text and language, which are not shown again."""


def without_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the first hit of each text, with the ids of the others as its places."""
    ids: dict[tuple[str, str, str], list[str]] = {}
    first: list[Hit] = []
    for hit in hits:
        key = hit.title, hit.text, hit.language
        if key not in ids:
            ids[key] = []
            first.append(hit)
        else:
            ids[key].append(hit.id)
    return [hit._replace(places=tuple(ids[hit.title, hit.text, hit.language])) for hit in first]


def hit_record(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON shows it: with its metadata as an object, and a link if it has one."""
    metadata = parse_json(hit.metadata)
    return {**hit._asdict(), "metadata": metadata, "link": _link(metadata)}


def _link(metadata: Mapping[str, Any]) -> str | None:
    """Return the web address in the metadata of a passage."""
    for name in LINK_KEYS:
        value = metadata.get(name)
        # Another scheme, such as javascript:, would be run by a page that shows the link.
        if isinstance(value, str) and value.lower().startswith(("https://", "http://")):
            return value
    return None


class LanguageShare(NamedTuple):
    """How much of a ranking is in one language."""

    language: str
    found: float
    """Share of the ranking, from 0 to 1."""
    indexed: float
    """Share of the passages searched."""


def merged(rankings: Sequence[Sequence[Hit]], top: int) -> list[Hit]:
    """The best hits of several rankings with comparable scores.

    Of equal scores the smaller id comes first.
    """
    hits = [hit for ranking in rankings for hit in ranking]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    return hits[:top]


def followed(hits: Sequence[Hit], others: Sequence[Hit], top: int) -> list[Hit]:
    """The first ``top`` hits of one ranking followed by those that only another ranking has."""
    ids = {hit.id for hit in hits}
    return [*hits, *(hit for hit in others if hit.id not in ids)][:top]


def first_of_each_language(hits: Sequence[Hit], most: int) -> list[Hit]:
    """Hits in their order, at most the first ``most`` of every language."""
    counts: Counter[str] = Counter()
    kept = []
    for hit in hits:
        counts[hit.language] += 1
        if counts[hit.language] <= most:
            kept.append(hit)
    return kept


def fused(rankings: Sequence[Sequence[Hit]], top: int) -> list[Hit]:
    """Reciprocal rank fusion (Cormack, Clarke and Büttcher 2009).

    score(d) = sum over rankings of 1 / (60 + rank(d)).

    Args:
        rankings: with scores that can't be compared, best first.
        top: hits to keep.
    """
    scores: Counter[str] = Counter()
    by_id: dict[str, Hit] = {}
    for ranking in rankings:
        for rank, hit in enumerate(ranking, start=1):
            scores[hit.id] += 1 / (RRF_CONSTANT + rank)  # type: ignore[assignment]
            by_id.setdefault(hit.id, hit)
    best = sorted(scores, key=lambda name: (-scores[name], name))
    return [by_id[name]._replace(score=scores[name]) for name in best[:top]]


def language_shares(hits: Sequence[Hit], indexed: Mapping[str, int]) -> list[LanguageShare]:
    """Every language's share of a ranking and of the passages searched, largest first.

    Args:
        hits: the ranking.
        indexed: number of passages by language, of the languages searched.
    """
    found = Counter(hit.language for hit in hits)
    total = sum(indexed.values())
    shares = [
        LanguageShare(language, found[language] / len(hits) if hits else 0.0, count / total)
        for language, count in indexed.items()
    ]
    return sorted(shares, key=lambda share: (-share.found, -share.indexed, share.language))
