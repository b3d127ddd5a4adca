r"""Pairing of documents that are translations of each other, by their names or by vectors.

Two documents are paired by names if no other document on either side has the same name without its
language (``pair_by_names``). Other documents are paired by vectors (``pair_documents``):

1. Sentence vectors are centered by the mean of their side, which removes most of the difference
   between the languages. A document vector is the weighted mean of its sentences' vectors. The
   weight of a sentence rises with its length, and falls with the number of documents that have it
   (Thompson and Koehn, EMNLP 2020). The k nearest documents in either direction are candidates, by
   exact search.
2. A candidate is scored by its sentences: the mean of each sentence's best similarity on the other
   side, in both directions (BiMax, arXiv 2510.15577). Two changes make the score sharper. The
   similarity of two sentences is lowered by the mean similarity of each to its nearest ones in a
   sample of the other side, so that phrases that occur on all pages count less. It is also lowered
   by the difference of their positions in their documents, because translations keep the order.
   Names, numbers and code that both documents share raise the score (``document_literals``).
3. The score is compared with those of the other candidates of both documents, like the margin
   that is known for pairs of sentences:

   .. math:: m(x, y) = s(x, y) - (1 - w) \bar s
       - \frac{w}{2k} \sum_{y'} s(x, y') - \frac{w}{2k} \sum_{x'} s(x', y)

   over the k best other candidates. With w = 1, pages of a family, such as the rules of 20 card
   games, have low margins although each is most like its translation. The mean scores of the other
   candidates are therefore shrunk towards the median of all scores. Pairs are accepted by
   descending margin, each document once; two pairs exchange their documents if that raises the sum
   of their margins.
4. The threshold is estimated from the data. Some documents of accepted pairs are removed, so that
   their partners have no translation left, and the other documents are paired again: each new pair
   of such a partner is wrong. The margins of these pairs estimate the number of wrong pairs above
   a threshold (``choose_threshold``).

Memory holds the document vectors, a few numbers per sentence, and the sentences of one document
and its candidates; sentence vectors are mapped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int64
from numpy import ndarray

from interlingua.alignment.document_literals import literal_overlaps
from interlingua.alignment.document_store import DocumentSide
from interlingua.mining.candidates import OneToOneMatcher
from interlingua.mining.documents import language_pattern, without_language
from interlingua.retrieval.topk.exact import mutual_topk
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import stem_and_suffix

DOCUMENT_CANDIDATES = 20
"""Nearest documents of each document that are compared by their sentences."""
OTHERS = 4
"""Number of other candidates of a document from which the margin of a candidate is computed."""
OTHERS_WEIGHT = 0.5
"""Weight of the mean score of the other candidates; the median of all scores has the remainder."""
LITERAL_WEIGHT = 0.05
"""Added to the score of two documents with the same words and numbers."""
BACKGROUND_SENTENCES = 1000
"""Sentences of the other side in the sample."""
NEAREST = 8
"""Number of nearest sentences of the sample; their mean similarity is subtracted."""
ORDER_WEIGHT = 0.3
"""Similarity that is subtracted for two sentences at opposite ends of their documents."""
WRONG_SHARE = 0.015
"""Share of wrong pairs among accepted ones that the threshold aims at."""
FEW_SENTENCES = 30
"""Vectors of a side with fewer sentences are not centered. Their mean represents the content of
these few sentences, and not only the language."""
LEAST_MARGIN = 0.34
"""Least margin if there is one pair; for n pairs, it is divided by the cube root of n."""
_MOST_NULL = 0.75
"""Quantile of the margins of ``null_margins``; accepted pairs below it are assumed to be wrong."""
_MADE_PAIRS = 6000
"""Number of wrong pairs to make for the choice of a threshold. ``_ROUNDS`` has the minimum and the
maximum number of rounds of pairing."""
_ROUNDS = (3, 20)
_EXCHANGES = 10
"""Maximum number of rounds in which pairs exchange their documents."""
_CHUNK = 16_384
"""Sentences worked on at once."""
PairKey = tuple[int, int]
"""Numbers of a source document and a target document."""


class DocumentPairing(NamedTuple):
    """Documents that belong together.

    Attributes:
        source: number of the document.
        target: number of its translation.
        score: margin; see the module.
        by: ``given``, ``names`` or ``texts``.
    """

    source: int
    target: int
    score: float
    by: str


class BestCandidate(NamedTuple):
    """A document without a partner, and the document of the other side that is most like it.

    Attributes:
        document: its number.
        candidate: number on the other side, -1 if there is none.
        score: margin of the two.
    """

    document: int
    candidate: int
    score: float


class PairedDocuments(NamedTuple):
    """The result of pairing.

    Attributes:
        pairs: in the order of the sources.
        threshold: margin from which pairs of texts are accepted.
        sources: source documents without a partner.
        targets: target documents without a partner.
        doubtful: pairs, given by the user or found by names, with scores like those of wrong pairs.
            With ``auto``, those found by names are not in ``pairs``.
    """

    pairs: list[DocumentPairing]
    threshold: float
    sources: list[BestCandidate]
    targets: list[BestCandidate]
    doubtful: list[DocumentPairing]


def pair_by_names(source: DocumentSide, target: DocumentSide) -> list[PairKey]:
    """Return pairs of documents with equal paths except for the language, if both are unique."""
    keys = [_name_keys(side) for side in (source, target)]
    counts = [Counter(own) for own in keys]
    # Later documents of a name replace earlier ones; such names are not unique, and so not used.
    places = {key: number for number, key in enumerate(keys[1])}
    return [
        (number, places[key])
        for number, key in enumerate(keys[0])
        if counts[0][key] == 1 and counts[1][key] == 1
    ]


def _name_keys(side: DocumentSide) -> list[str]:
    """Return the paths of documents without endings, languages and marks."""
    pattern = language_pattern(side.language)
    return [name_without_language(entry.name, pattern) for entry in side.entries]


def name_without_language(name: str, pattern: re.Pattern[str], *, ending: bool = False) -> str:
    """Return the path of a document without its ending, its language and its marks.

    Args:
        name: path below the folder of its side.
        pattern: see ``mining.documents.language_pattern``.
        ending: keep the ending.
    """
    folder, slash, file = name.rpartition("/")
    if not ending:
        file = stem_and_suffix(name)[0]
    # The pattern finds codes only between hyphens, dots and slashes, so en_US becomes en-US.
    return without_language(f"{folder}{slash}{file}".replace("_", "-"), pattern)


class SentenceFacts(NamedTuple):
    """Properties of a side's sentences from which the scores are computed.

    Attributes:
        side: the documents.
        vectors: of the distinct sentences, mapped.
        center: mean of all.
        weights: of the distinct sentences.
        nearness: mean similarity of each to its nearest ones in a sample of the other side.
    """

    side: DocumentSide
    vectors: Float32[ndarray, "n d"]
    center: Float32[ndarray, " d"]
    weights: Float32[ndarray, " n"]
    nearness: Float32[ndarray, " n"]

    def centered(self, rows: Int64[ndarray, " r"]) -> Float32[ndarray, "r d"]:
        """Return the centered vectors of some sentences, of length 1."""
        return _unit_rows(np.asarray(self.vectors[rows], np.float32) - self.center)


def _unit_rows(vectors: Float32[ndarray, "n d"]) -> Float32[ndarray, "n d"]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-6), np.float32)


def sentence_facts(
    sides: tuple[DocumentSide, DocumentSide],
    vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
) -> tuple[SentenceFacts, SentenceFacts]:
    """Compute center, weights and nearness of the sentences of both sides."""
    plain = []
    for side, own in zip(sides, vectors, strict=True):
        center = _center(own)
        nothing = np.zeros(len(own), np.float32)
        plain.append(SentenceFacts(side, own, center, sentence_weights(side), nothing))
    # The same seed in every run: a resumed one gets the same scores.
    rng = np.random.default_rng(0)
    samples = []
    for facts in plain:
        count = len(facts.vectors)
        # Ascending rows are read from the mapped file in one pass.
        rows = np.sort(rng.choice(count, min(BACKGROUND_SENTENCES, count), replace=False))
        samples.append(facts.centered(rows))
    found = [
        facts._replace(nearness=_nearness(facts, sample))
        for facts, sample in zip(plain, reversed(samples), strict=True)
    ]
    return found[0], found[1]


def _center(vectors: Float32[ndarray, "n d"]) -> Float32[ndarray, " d"]:
    """Return the mean of vectors; zeros if there are fewer than ``FEW_SENTENCES``."""
    # float32 would lose digits in the sum of millions of rows.
    total = np.zeros(vectors.shape[1], np.float64)
    if len(vectors) < FEW_SENTENCES:
        return total.astype(np.float32)
    for start in range(0, len(vectors), _CHUNK):
        total += vectors[start : start + _CHUNK].sum(axis=0, dtype=np.float64)
    return np.asarray(total / len(vectors), np.float32)


def _nearness(facts: SentenceFacts, sample: Float32[ndarray, "s d"]) -> Float32[ndarray, " n"]:
    """Compute the mean similarity of each sentence to its nearest ones in a sample.

    The nearest one is left out: it may be the translation of the sentence. It would lower the
    scores of right pairs, but not those of documents without a partner.
    """
    found = np.zeros(len(facts.vectors), np.float32)
    k = min(NEAREST + 1, len(sample))
    if k < 2:
        return found
    for start in range(0, len(found), _CHUNK):
        rows = np.arange(start, min(start + _CHUNK, len(found)))
        similar = facts.centered(rows) @ sample.T
        nearest = np.partition(similar, -k, axis=1)[:, -k:]
        found[rows] = (nearest.sum(axis=1) - nearest.max(axis=1)) / (k - 1)
    return found


def sentence_weights(side: DocumentSide) -> Float32[ndarray, " n"]:
    """Compute the weight of each distinct sentence: log(1 + length) log(1 + n / documents)."""
    texts = side.numbered.texts
    lengths = np.fromiter((len(text) for text in texts), np.float64, len(texts))
    documents = np.zeros(len(texts), np.int64)
    count = len(side.entries)
    for document in range(count):
        documents[np.unique(side.rows(document))] += 1
    weights = np.log1p(lengths) * np.log1p(count / np.maximum(documents, 1))
    return np.asarray(weights, np.float32)


def document_vectors(facts: SentenceFacts) -> Float32[ndarray, "d w"]:
    """Compute one vector of length 1 per document: the weighted mean of its sentences."""
    side = facts.side
    found = np.zeros((len(side.entries), facts.vectors.shape[1]), np.float32)
    for document in range(len(found)):
        rows = side.rows(document)
        if len(rows):
            found[document] = facts.weights[rows] @ facts.centered(rows)
    return _unit_rows(found)


class ScoredCandidates(NamedTuple):
    """Pairs of documents with the scores of their sentences.

    Attributes:
        x: source documents.
        y: target documents.
        scores: BiMax of each pair, raised by the words that both share.
    """

    x: Int64[ndarray, " c"]
    y: Int64[ndarray, " c"]
    scores: Float64[ndarray, " c"]


def find_candidates(
    source: SentenceFacts,
    target: SentenceFacts,
    also: Sequence[PairKey] = (),
    *,
    k: int = DOCUMENT_CANDIDATES,
    device: str | None = None,
) -> tuple[Int64[ndarray, " c"], Int64[ndarray, " c"]]:
    """Return the k nearest documents in either direction, in the order of the sources.

    Args:
        source: one side.
        target: the other.
        also: pairs to add.
        k: nearest documents.
        device: of the search.
    """
    vectors = document_vectors(source), document_vectors(target)
    of_x, of_y = mutual_topk(*vectors, k=k, device=device)
    width = len(vectors[1])
    near_x = of_x.indices.numpy()
    near_y = of_y.indices.numpy()
    # One number per pair, so that pairs found in both directions are unique, and sorted by source.
    keys = [
        (np.arange(len(near_x))[:, None] * width + near_x).ravel(),
        (near_y * width + np.arange(len(near_y))[:, None]).ravel(),
        np.array([x * width + y for x, y in also], np.int64),
    ]
    unique = np.unique(np.concatenate(keys))
    return unique // width, unique % width


def score_candidates(
    source: SentenceFacts,
    target: SentenceFacts,
    x: Int64[ndarray, " c"],
    y: Int64[ndarray, " c"],
    progress: Progress = SILENT,
) -> ScoredCandidates:
    """Compute the scores of candidates; see the module.

    Args:
        source: one side.
        target: the other.
        x: source documents, ascending.
        y: target documents.
        progress: counts the candidates.
    """
    scores = np.zeros(len(x))
    progress.start(len(x), "candidates", "comparing")
    bounds = np.flatnonzero(np.append(True, x[1:] != x[:-1])).tolist() if len(x) else []
    for start, stop in zip(bounds, [*bounds[1:], len(x)], strict=True):
        own = _document(source, int(x[start]))
        # The sentences of all candidates side by side: one product for all.
        others = [_document(target, int(other)) for other in y[start:stop]]
        scores[start:stop] = _scores(own, others)
        progress.advance(stop - start)
    return ScoredCandidates(x, y, scores)


class _Sentences(NamedTuple):
    """The sentences of a document: vectors, weights of sum 1, nearness, and places from 0 to 1."""

    vectors: Float32[ndarray, "n d"]
    weights: Float32[ndarray, " n"]
    nearness: Float32[ndarray, " n"]
    places: Float32[ndarray, " n"]


def _document(facts: SentenceFacts, number: int) -> _Sentences:
    rows = facts.side.rows(number)
    weights = facts.weights[rows]
    places = (np.arange(len(rows), dtype=np.float32) + 0.5) / max(len(rows), 1)
    return _Sentences(
        facts.centered(rows),
        np.asarray(weights / max(float(weights.sum()), 1e-6), np.float32),
        facts.nearness[rows],
        places,
    )


def _scores(own: _Sentences, others: Sequence[_Sentences]) -> Float64[ndarray, " c"]:
    """Compute the score of a document with each of some others."""
    joined = np.concatenate([other.vectors for other in others])
    products = own.vectors @ joined.T
    nearness = np.concatenate([other.nearness for other in others])
    places = np.concatenate([other.places for other in others])
    products -= (own.nearness[:, None] + nearness) / 2
    products -= ORDER_WEIGHT * np.abs(own.places[:, None] - places)
    scores = []
    start = 0
    for other in others:
        part = products[:, start : start + len(other.weights)]
        start += len(other.weights)
        # A document without sentences is similar to no other one, and gets the lowest cosine.
        if not part.size:
            scores.append(-1.0)
            continue
        both = own.weights @ part.max(axis=1) + other.weights @ part.max(axis=0)
        scores.append(float(both) / 2)
    return np.array(scores)


def margins(found: ScoredCandidates, forbidden: Bool[ndarray, " c"]) -> Float64[ndarray, " c"]:
    """Compute the margin of each candidate over the best other candidates of its two documents.

    See the module for the equation.

    Args:
        found: all candidates.
        forbidden: candidates that do not count as other candidates; their margins are minus
            infinity.
    """
    result = np.array(found.scores)
    if len(result):
        result -= (1 - OTHERS_WEIGHT) * np.median(result)
    for side in (found.x, found.y):
        result -= OTHERS_WEIGHT / 2 * _mean_of_others(side, found.scores, forbidden)
    result[forbidden] = -np.inf
    return result


def _mean_of_others(
    documents: Int64[ndarray, " c"], scores: Float64[ndarray, " c"], forbidden: Bool[ndarray, " c"]
) -> Float64[ndarray, " c"]:
    """Compute for each candidate the mean of the best scores of its document's other candidates.

    Documents without other candidates get the mean of all scores.
    """
    fallback = 0.0
    if len(scores):
        fallback = float(scores.mean())
    result = np.full(len(scores), fallback)
    order = np.lexsort((-scores, documents))
    allowed = order[~forbidden[order]]
    bounds = np.flatnonzero(np.append(True, np.diff(documents[allowed]) != 0)).tolist()
    for start, stop in zip(bounds, [*bounds[1:], len(allowed)], strict=True):
        # Scores are descending. If one of the best OTHERS + 1 is removed, OTHERS remain.
        rows = allowed[start:stop]
        best = scores[rows[: OTHERS + 1]]
        if len(rows) < 2:
            continue
        count = min(OTHERS, len(rows) - 1)
        # A candidate among the best ones is replaced by the next one.
        result[rows] = best[:count].mean()
        result[rows[:count]] = (best[: count + 1].sum() - scores[rows[:count]]) / count
    return result


def match_documents(
    found: ScoredCandidates, values: Float64[ndarray, " c"], sizes: tuple[int, int]
) -> Int64[ndarray, " p"]:
    """Return the indices of accepted candidates, best first, each document once.

    Args:
        found: all candidates, in the order of the sources, then of the targets.
        values: candidates are accepted by descending value, never with a value of minus infinity.
        sizes: number of documents of both sides.
    """
    # Stable: equal values are accepted in the order of the documents, in every run.
    order = np.argsort(-values, kind="stable")
    order = order[np.isfinite(values[order])]
    matcher = OneToOneMatcher(*sizes)
    accepted = np.asarray(order[matcher.accept(found.x[order], found.y[order])])
    accepted = _exchange_documents(found, values, accepted, sizes)
    return accepted[np.argsort(-values[accepted], kind="stable")]


def _exchange_documents(
    found: ScoredCandidates,
    values: Float64[ndarray, " c"],
    accepted: Int64[ndarray, " p"],
    sizes: tuple[int, int],
) -> Int64[ndarray, " p"]:
    """Swap the targets of two accepted pairs as long as that raises the sum of their margins.

    Of two similar pages and their translations, the best pair may be a wrong one. Then the other
    two documents are paired with each other, which is also wrong. A negative margin counts as 0, so
    that a good pair is not given up for two pairs without evidence.
    """
    gains = np.maximum(values, 0.0)
    # One number per candidate, ascending, by which a candidate is looked up.
    keys = found.x * sizes[1] + found.y
    for _ in range(_EXCHANGES):
        pair_of_x = np.full(sizes[0], -1)
        pair_of_y = np.full(sizes[1], -1)
        pair_of_x[found.x[accepted]] = accepted
        pair_of_y[found.y[accepted]] = accepted
        first, second = pair_of_x[found.x], pair_of_y[found.y]
        is_open = (first >= 0) & (second >= 0) & (first != second) & np.isfinite(values)
        rows = np.flatnonzero(is_open)
        first, second = first[rows], second[rows]
        # If a candidate replaces two pairs, two documents remain. Their pair may be no candidate.
        wanted = found.x[second] * sizes[1] + found.y[first]
        others = np.minimum(np.searchsorted(keys, wanted), max(len(keys) - 1, 0))
        raised = gains[rows] + gains[others] - gains[first] - gains[second]
        is_better = (keys[others] == wanted) & np.isfinite(values[others]) & (raised > 1e-9)
        better = np.flatnonzero(is_better)
        if not len(better):
            break
        # The largest rise first; a pair is changed once in a round.
        changed: set[int] = set()
        for place in better[np.argsort(-raised[better], kind="stable")].tolist():
            pairs = {int(first[place]), int(second[place])}
            if not pairs & changed:
                changed |= pairs
                accepted = np.setdiff1d(accepted, list(pairs))
                accepted = np.append(accepted, [rows[place], others[place]])
    return accepted


def null_margins(
    found: ScoredCandidates, accepted: Int64[ndarray, " p"], sizes: tuple[int, int]
) -> tuple[Float64[ndarray, " q"], float]:
    """Return the margins of null pairs: those accepted next if all accepted pairs are forbidden.

    A document that has no right partner may still be in an accepted pair. That pair is then its
    best wrong candidate. As this pair is forbidden, too, the margin of the document's null pair is
    too low. A second round of pairing measures by how much.

    Returns:
        The margins, and the mean by which they are too low for documents without a partner.
    """
    forbidden = np.zeros(len(found.scores), bool)
    forbidden[accepted] = True
    levels = []
    # The second round shows how much the loss of the best wrong candidate lowers a margin.
    for _ in range(2):
        values = margins(found, forbidden)
        rows = match_documents(found, values, sizes)
        levels.append(values[rows])
        forbidden[rows] = True
    loss = 0.0
    if len(levels[1]):
        loss = max(0.0, float(levels[0].mean() - levels[1].mean()))
    return levels[0], loss


def choose_threshold(
    found: ScoredCandidates,
    accepted: Int64[ndarray, " p"],
    values: Float64[ndarray, " c"],
    sizes: tuple[int, int],
    *,
    seed: int = 0,
) -> float:
    """Return the margin from which pairs are accepted.

    The expected share of wrong pairs is at most ``WRONG_SHARE``, and the worst accepted pairs are
    more likely right than wrong.

    Documents without a partner are made: the target of some accepted pairs is removed, and the
    source of others, and the rest is paired again. Each pair of a document that has lost its
    partner is wrong. If each side has n documents without a partner in the data, and m are made,
    the made wrong pairs come from (n + m)^2 - n^2 combinations of documents without a partner, and
    the wrong pairs in the data come from n^2 combinations. n is estimated from the
    accepted pairs that score like most null pairs.

    Args:
        found: all candidates.
        accepted: indices of the accepted ones.
        values: margins of all candidates.
        sizes: number of documents of both sides.
        seed: of the draws.
    """
    own = np.sort(values[accepted])[::-1]
    # A few documents are weak evidence.
    least = LEAST_MARGIN / max(len(own), 1) ** (1 / 3)
    null, loss = null_margins(found, accepted, sizes)
    if not len(null):
        return float(least)
    low = float(np.quantile(null, _MOST_NULL))
    wrong = min(float((own <= low).sum()) / _MOST_NULL, len(own))
    alone = [max(size - len(own) + wrong, 1.0) for size in sizes]
    good = accepted[values[accepted] > low]
    # At most two thirds of the pairs lose a document, so that enough others remain.
    made = max(1, min(int(max(alone)), len(good) // 3))
    share = min(1.0, (1 - _MOST_NULL) * wrong / max(len(good), 1))
    if len(good) < 2 * made:
        good = accepted
        share = wrong / max(len(own), 1)
    rounds = int(np.clip(_MADE_PAIRS // (2 * made), *_ROUNDS))
    draw = np.random.default_rng(seed)
    parts = [_made_wrong(found, draw.permutation(good), made, sizes) for _ in range(rounds)]
    # A drawn pair may be wrong itself. Then its documents have lost their best wrong candidate.
    margins_made = np.sort(np.concatenate(parts)) + loss * share
    # The expected number of wrong pairs in the data for each wrong pair that is made.
    in_data = alone[0] * alone[1]
    factor = in_data / ((alone[0] + made) * (alone[1] + made) - in_data) / rounds
    above = factor * (len(margins_made) - np.searchsorted(margins_made, own))
    counts = np.arange(1, len(own) + 1)
    # A pair is worth accepting if it is at least twice as likely right as wrong.
    gain = np.where(above <= WRONG_SHARE * counts, counts - 3 * above, 0)
    best = int(gain.argmax())
    if gain[best] > 0:
        return float(max(own[best], least))
    # No pair is worth accepting: the threshold is above the margins of all pairs.
    highest = max(float(null.max()), float(margins_made.max(initial=-np.inf)), float(own[0]))
    return float(max(highest + least, least))


def _made_wrong(
    found: ScoredCandidates, drawn: Int64[ndarray, " p"], made: int, sizes: tuple[int, int]
) -> Float64[ndarray, " q"]:
    """Return the margins of the new pairs of the documents that lose their partners.

    Args:
        found: all candidates.
        drawn: accepted pairs; the first ``made`` lose their target, the next their source.
        made: number of pairs.
        sizes: number of documents of both sides.
    """
    x_alone = drawn[:made]
    y_alone = drawn[made : 2 * made]
    # Forbid all candidates of a removed document, not only the one with its partner.
    forbidden = np.isin(found.y, found.y[x_alone]) | np.isin(found.x, found.x[y_alone])
    values = margins(found, forbidden)
    rows = match_documents(found, values, sizes)
    is_made = np.isin(found.x[rows], found.x[x_alone]) | np.isin(found.y[rows], found.y[y_alone])
    return np.asarray(values[rows[is_made]])


class PairsByTexts(NamedTuple):
    """Evidence of the vectors on the candidates.

    Attributes:
        values: margin of each candidate.
        threshold: least margin of a pair.
        doubt: margin below which a pair scores like wrong pairs.
    """

    values: Float64[ndarray, " c"]
    threshold: float
    doubt: float


def _pair_by_texts(
    found: ScoredCandidates, sizes: tuple[int, int], threshold: float | None
) -> PairsByTexts:
    """Compute the margins of candidates, and the threshold if it is None."""
    values = margins(found, np.zeros(len(found.scores), bool))
    accepted = match_documents(found, values, sizes)
    null, _ = null_margins(found, accepted, sizes)
    if threshold is None:
        threshold = choose_threshold(found, accepted, values, sizes)
    doubt = -np.inf
    if len(null):
        doubt = min(float(null.mean()), threshold)
    return PairsByTexts(values, threshold, doubt)


def _rest_by_texts(
    found: ScoredCandidates,
    by_texts: PairsByTexts,
    taken: tuple[set[int], set[int]],
    sizes: tuple[int, int],
) -> list[DocumentPairing]:
    """Use texts to pair the documents that are not taken yet."""
    values = np.where(by_texts.values >= by_texts.threshold, by_texts.values, -np.inf)
    values[np.isin(found.x, list(taken[0])) | np.isin(found.y, list(taken[1]))] = -np.inf
    rows = match_documents(found, values, sizes).tolist()
    return [
        DocumentPairing(int(found.x[row]), int(found.y[row]), float(values[row]), "texts")
        for row in rows
    ]


def _without_partner(
    found: ScoredCandidates,
    values: Float64[ndarray, " c"],
    pairs: Sequence[DocumentPairing],
    sizes: tuple[int, int],
) -> tuple[list[BestCandidate], list[BestCandidate]]:
    """Return the documents of either side that are in no pair, with their best candidates."""
    alone = []
    for side, (own, other) in enumerate(((found.x, found.y), (found.y, found.x))):
        taken = {pair[side] for pair in pairs}
        best: dict[int, BestCandidate] = {}
        for row in np.argsort(-values, kind="stable").tolist():
            document = int(own[row])
            if document not in taken and document not in best:
                best[document] = BestCandidate(document, int(other[row]), float(values[row]))
        alone.append(
            [
                best.get(document, BestCandidate(document, -1, 0.0))
                for document in range(sizes[side])
                if document not in taken
            ]
        )
    return alone[0], alone[1]


def pair_documents(
    sides: tuple[DocumentSide, DocumentSide],
    vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
    *,
    match: str = "auto",
    given: Sequence[PairKey] | None = None,
    threshold: float | None = None,
    device: str | None = None,
    progress: Progress = SILENT,
) -> PairedDocuments:
    """Pair the documents of two sides.

    Args:
        sides: source and target.
        vectors: of their distinct sentences.
        match: ``names`` pairs only by names, ``texts`` only by vectors, ``auto`` by names, and the
            remaining documents by vectors. With ``auto``, the documents of a pair by names that
            scores like wrong pairs are paired by vectors, too.
        given: pairs that are known; nothing else is paired.
        threshold: least margin of pairs by vectors; default: from the data.
        device: of the search.
        progress: counts the candidates.
    """
    sizes = (len(sides[0].entries), len(sides[1].entries))
    by = "given"
    fixed = list(given or ())
    if given is None and sizes == (1, 1):
        fixed = [(0, 0)]
    elif given is None and match != "texts":
        by = "names"
        fixed = pair_by_names(*sides)
    facts = sentence_facts(sides, vectors)
    x, y = find_candidates(*facts, also=fixed, device=device)
    found = score_candidates(*facts, x, y, progress)
    raised = found.scores + LITERAL_WEIGHT * literal_overlaps(sides, x, y)
    found = found._replace(scores=raised)
    by_texts = _pair_by_texts(found, sizes, threshold)
    keys = zip(found.x.tolist(), found.y.tolist(), strict=True)
    scores = dict(zip(keys, by_texts.values.tolist(), strict=True))
    named = [DocumentPairing(a, b, scores[a, b], by) for a, b in fixed]
    doubtful = [pair for pair in named if pair.score < by_texts.doubt]
    if by == "names" and match == "auto":
        named = [pair for pair in named if pair not in doubtful]
    taken = ({pair.source for pair in named}, {pair.target for pair in named})
    pairs = list(named)
    if given is None and match != "names":
        pairs += _rest_by_texts(found, by_texts, taken, sizes)
    pairs.sort()
    alone = _without_partner(found, by_texts.values, pairs, sizes)
    return PairedDocuments(pairs, by_texts.threshold, *alone, doubtful)
