"""Operations on rankings: join them, share them between languages, describe their languages.

A multilingual encoder may prefer passages in the question's own language. In an index of many
languages, these passages then hide the answers in other languages. Two things help: a map that
removes the language from the vectors, and a ranking with the best passages of every language first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from interlingua.corpus.documents.sections import joined_headings
from interlingua.storage.json_text import parse_json

WORDS_WEIGHT = 0.5
"""Weight of BM25 relative to cosines, both scaled to the range from 0 to 1; of the weights from
0.25 to 1.5, it is the best on TyDi GoldP."""
LINK_KEYS = ("link", "url", "uri", "href", "source")
"""Names of metadata that may hold the web address of a passage."""


class Hit(NamedTuple):
    """A passage that was found."""

    id: str
    score: float
    """Cosine with the question, or BM25; in a fused ranking the cosine of its place, see
    ``fused``."""
    text: str
    title: str
    language: str
    metadata: str
    """JSON."""
    places: tuple[str, ...] = ()
    """Ids of other passages that are not shown separately: they have the same title, text and
    language, or are the chunk before or after this one and share sentences with it."""
    document: str = ""
    """Name of the file, or id of the longer passage, that contains it; its own id if not cut."""
    offset: int = 0
    """Characters of the document's text before it."""
    heading: str = ""
    """Headings above it in the document, outermost first."""

    @property
    def context(self) -> str:
        """The title and the headings, if there are any."""
        return joined_headings(self.title, self.heading)


def without_copies(hits: Sequence[Hit]) -> list[Hit]:
    """Keep the first hit of each text, with the ids of the others as its places.

    Overlapping chunks of a document count as copies too, because they share an answer.
    """
    place_of: dict[tuple[str, str, str], int] = {}
    chunks_of: dict[str, list[int]] = {}
    first: list[Hit] = []
    ids: list[list[str]] = []
    for hit in hits:
        key = hit.title, hit.text, hit.language
        place = place_of.get(key)
        if place is None:
            chunks = chunks_of.setdefault(hit.document or hit.id, [])
            place = next((one for one in chunks if _overlap(first[one], hit)), None)
        if place is not None:
            ids[place].append(hit.id)
            continue
        place_of[key] = len(first)
        chunks.append(len(first))
        first.append(hit)
        ids.append([])
    return [hit._replace(places=tuple(names)) for hit, names in zip(first, ids, strict=True)]


def _overlap(one: Hit, other: Hit) -> bool:
    """Return whether two parts of a document share some of its text."""
    return one.offset < other.offset + len(other.text) and other.offset < one.offset + len(one.text)


def hit_record(hit: Hit) -> dict[str, Any]:
    """Return a hit as JSON shows it: with its metadata as an object, and a link if it has one."""
    metadata = parse_json(hit.metadata)
    return {**hit._asdict(), "metadata": metadata, "link": _link(metadata)}


def _link(metadata: Mapping[str, Any]) -> str | None:
    """Return the web address in the metadata of a passage."""
    for name in LINK_KEYS:
        value = metadata.get(name)
        # Other schemes are refused: a page that shows a javascript: link would run it.
        if isinstance(value, str) and value.lower().startswith(("https://", "http://")):
            return value
    return None


class LanguageShare(NamedTuple):
    """Share of one language in a ranking."""

    language: str
    found: float
    """Share of the ranking, from 0 to 1."""
    indexed: float
    """Share of the passages searched."""


def merged(rankings: Sequence[Sequence[Hit]], top: int) -> list[Hit]:
    """Return the best hits of several rankings with comparable scores.

    Of equal scores the smaller id comes first.
    """
    hits = [hit for ranking in rankings for hit in ranking]
    hits.sort(key=lambda hit: (-hit.score, hit.id))
    return hits[:top]


def followed(hits: Sequence[Hit], others: Sequence[Hit], top: int) -> list[Hit]:
    """Return one ranking, then the hits that only the other one has, at most ``top`` in total."""
    ids = {hit.id for hit in hits}
    return [*hits, *(hit for hit in others if hit.id not in ids)][:top]


def first_of_each_language(hits: Sequence[Hit], most: int) -> list[Hit]:
    """Return hits in their order, at most the first ``most`` of every language."""
    counts: Counter[str] = Counter()
    kept = []
    for hit in hits:
        counts[hit.language] += 1
        if counts[hit.language] <= most:
            kept.append(hit)
    return kept


def fused(
    nearest: Sequence[Hit], matching: Sequence[Hit], cosines: Mapping[str, float]
) -> list[Hit]:
    """Join a ranking by vectors and one by words, only inside each language.

    Words match passages in the question's language, relevant or not, and few others. In a ranking
    over all languages, such as reciprocal rank fusion, these passages would push translations of
    the answer down. So each language keeps the places that its cosines give it, and words only
    change the order of its own passages in these places. Inside a language, passages are
    ordered by a convex combination of normalized scores (Bruch, Gai and Ingber 2023):

        (cos(q, d) - low) / (high - low) + WORDS_WEIGHT * bm25(q, d) / best

    where low and high are the limits of the cosines in ``nearest``, and best is the largest BM25
    score in any language. Thus a language in which few words of the question occur keeps its order.

    Args:
        nearest: by cosine, best first.
        matching: by BM25.
        cosines: cosine of each of these passages with the question, by id.

    Returns:
        All hits. The score of a hit is the cosine of its place: the first hit of a language has
        the largest cosine of that language.
    """
    if not matching:
        return list(nearest)
    in_range = [hit.score for hit in nearest] or [*cosines.values()]
    low = min(in_range)
    span = (max(in_range) - low) or 1.0
    best = max(hit.score for hit in matching) or 1.0
    values = {name: (cosine - low) / span for name, cosine in cosines.items()}
    for hit in matching:
        values[hit.id] += WORDS_WEIGHT * hit.score / best
    by_language: dict[str, dict[str, Hit]] = {}
    for hit in (*nearest, *matching):
        by_language.setdefault(hit.language, {})[hit.id] = hit
    rankings = []
    for hits in by_language.values():
        ordered = sorted(hits.values(), key=lambda hit: (-values[hit.id], hit.id))
        places = sorted((cosines[name] for name in hits), reverse=True)
        pairs = zip(ordered, places, strict=True)
        rankings.append([hit._replace(score=place) for hit, place in pairs])
    # A sort is stable: hits of one language with equal cosines stay in their order.
    found = [hit for ranking in rankings for hit in ranking]
    return sorted(found, key=lambda hit: -hit.score)


def hit_language_shares(hits: Sequence[Hit], indexed: Mapping[str, int]) -> list[LanguageShare]:
    """Return every language's share of a ranking and of the passages searched, largest first.

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
