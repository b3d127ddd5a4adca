"""BM25 over any language, without Java: the lexical baseline of dense retrieval.

Scores are Lucene's (Robertson's, with an idf that is never negative), with the roundings of the
package bm25s:

    sum over the query's words of
        ln(1 + (N - df + 0.5) / (df + 0.5)) * tf / (tf + k1 * (1 - b + b * length / mean))

where N is the number of passages, mean their mean length, df the number of passages that contain
the word, length the length of this passage, and tf the number of times that it contains the word.
The postings are in a file (``postings.py``), which a search reads a block at a time, for all
queries at once. The best passages of each query so far are kept. The definition of a word:

- letters, digits and combining marks, in NFKC and lower case; all other characters separate words;
- in Chinese, Japanese and Korean script, overlapping pairs of characters, as in Lucene's CJK
  analyzer;
- in Thai, Lao, Burmese and Khmer, which are written without spaces, overlapping triples;
- elsewhere words, stemmed where Snowball knows the language.

The package bm25s computes the same scores, to the last bit, and is not used for two reasons. First,
it holds all postings in memory: with passages of 60 words, its peak memory grows by 3.1 kB per
passage (151 MB for 20,000, 340 MB for 80,000), which is 31 GB for 10 million. Here, the size of a
block limits the memory (261 MB for 240,000), and the run takes two thirds of the time. Second, it
orders passages with equal scores arbitrarily, and this module keeps them in the order of the index.
Therefore, the two did not return the same 100 passages in the same order for any of 100 queries.

Mr. TyDi used Anserini with Lucene's analyzer of each language, and split texts at white space where
Lucene has no analyzer. Lucene's analyzers differ from this module in dictionaries for Thai,
Japanese and Korean, in stemmers for Bengali and Telugu, and in lists of stop words.
"""

from __future__ import annotations

import functools
import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Int32, Int64

from interlingua.config.languages import resolve_language
from interlingua.errors import ConfigError, DataError, count_of, import_extra
from interlingua.evaluation.baselines.postings import Postings, PostingsBlock

DEFAULT_K1 = 0.9
DEFAULT_B = 0.4
"""Anserini's default values of k1 and b, as in Mr. TyDi's "BM25 (default)"."""
K1_GRID = (0.3, 0.6, 0.9, 1.2, 1.5, 1.8)
B_GRID = (0.2, 0.4, 0.6, 0.8, 1.0)
_PAIRS = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
TRIPLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
RUNS = re.compile(
    f"(?P<pairs>[{_PAIRS}]+)|(?P<triples>[{TRIPLES}]+)|(?P<word>[^{_PAIRS}{TRIPLES}]+)"
)
STEMMERS = {
    "arb": "arabic", "cat": "catalan", "dan": "danish", "deu": "german", "ell": "greek",
    "eng": "english", "eus": "basque", "fin": "finnish", "fra": "french", "gle": "irish",
    "hin": "hindi", "hun": "hungarian", "hye": "armenian", "ind": "indonesian", "ita": "italian",
    "lit": "lithuanian", "nld": "dutch", "nob": "norwegian", "npi": "nepali", "por": "portuguese",
    "ron": "romanian", "rus": "russian", "spa": "spanish", "swe": "swedish", "tam": "tamil",
    "tur": "turkish",
}  # fmt: skip
"""ISO 639-3 code -> Snowball's stemming algorithm for the language."""


class Tuned(NamedTuple):
    """The parameters with the best MRR on a development set."""

    k1: float
    b: float
    mrr: float
    """Mean reciprocal rank within the depth searched, in [0, 1]."""


class BM25Index:
    """A BM25 index over passages; ``build`` constructs it."""

    def __init__(
        self, ids: Sequence[str], postings: Postings, language: str | None, k1: float, b: float
    ) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise ConfigError(
                f"BM25: expected k1 of at least 0 and b from 0 to 1, found k1 = {k1}, b = {b}"
            )
        self.ids = ids
        self.language = language
        self._postings = postings
        self._k1 = k1
        self._b = b

    @classmethod
    def build(
        cls,
        ids: Sequence[str],
        texts: Iterable[str],
        *,
        language: str | Sequence[str] | None = None,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
        queries: Iterable[str] | None = None,
    ) -> BM25Index:
        """Build an index of passages.

        Args:
            ids: of the passages.
            texts: the passages, titles included; read once and not held.
            language: of all texts, or of each, in any code; it determines stemming. None = no
                stemming.
            k1: saturation of repeated words, at least 0; lower values saturate sooner.
            b: strength of the length normalization, 0 to 1.
            queries: in the index's language; if set, the index is only for these, and takes less
                memory and disk.

        Raises:
            ConfigError: a parameter is out of range.
            DataError: there are no passages, or their number differs from the number of ids.
            MissingExtraError: PyStemmer is not installed.
        """
        of_all: str | None = None
        if isinstance(language, str):
            of_all = language
        only = None
        if queries is not None:
            # words that no query has can't change a score, so their postings are not kept
            analyze = analyzer(of_all)
            only = [word for query in queries for word in analyze(query)]
        return cls(ids, read_postings(ids, texts, language, only), of_all, k1, b)

    def __len__(self) -> int:
        return len(self.ids)

    def search(
        self, queries: Iterable[str], k: int = 100, *, language: str | None = None
    ) -> tuple[list[list[str]], list[Float32[np.ndarray, " n"]]]:
        """Return the best passages of each query, best first.

        Passages with equal scores are in index order.

        Args:
            queries: the texts.
            k: maximum number of passages; a passage without any word of the query is never
                returned.
            language: of the queries; default: that of the index.

        Returns:
            ids and scores, one list a query.

        Raises:
            DataError: the index is for other queries.
        """
        analyze = analyzer(language or self.language)
        words_of_queries = [self._known(analyze(query)) for query in queries]
        best = [Best.empty() for _ in words_of_queries]
        # blocks outside, queries inside: each block is read from the file once for all queries
        for block in self._postings.blocks():
            scorer = _BlockScorer(block, self._postings, self._k1, self._b)
            for index, words in enumerate(words_of_queries):
                if words and k >= 1:
                    best[index] = best[index].joined(scorer.best(words, k), k)
        ids = [self._ids_of(one) for one in best]
        return ids, [one.scores for one in best]

    def _ids_of(self, best: Best) -> list[str]:
        return [self.ids[row] for row in best.rows.tolist()]

    def _known(self, words: Sequence[str]) -> list[int]:
        """Return the numbers of the words that occur in a passage, with repetitions."""
        vocabulary = self._postings.vocabulary
        if not self._postings.keeps_all and any(word not in vocabulary for word in words):
            raise DataError(
                "BM25: the index was built for other queries; build it for these queries, or with"
                " queries=None"
            )
        numbers = [vocabulary[word] for word in words if word in vocabulary]
        # an index for certain queries numbers their words even if no passage has them
        return [number for number in numbers if self._postings.document_frequencies[number]]


class Best(NamedTuple):
    """The best passages of a query, best first."""

    rows: Int64[np.ndarray, " n"]
    scores: Float32[np.ndarray, " n"]

    @classmethod
    def empty(cls) -> Best:
        """Return an instance without passages."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.float32))

    def joined(self, later: Best, k: int) -> Best:
        """Return the k best of these and of ``later``, which all come after these in the index."""
        rows = np.concatenate([self.rows, later.rows])
        scores = np.concatenate([self.scores, later.scores])
        # stable, so equal scores stay in the order of the passages
        order = np.argsort(-scores, kind="stable")[:k]
        return Best(rows[order], scores[order])


class _BlockScorer:
    """A scorer of one block's passages.

    The scores of a word are computed once and shared by all queries that contain it.
    """

    def __init__(self, block: PostingsBlock, postings: Postings, k1: float, b: float) -> None:
        mean_length = postings.length / postings.count
        self._block = block
        self._postings = postings
        # the part of the denominator that depends only on the passage
        self._norms = k1 * ((1 - b) + b * block.lengths / mean_length)
        self._of_word: dict[int, tuple[Int32[np.ndarray, " m"], Float32[np.ndarray, " m"]]] = {}

    def best(self, words: Sequence[int], k: int) -> Best:
        """Return the k best passages of the block for the words of a query."""
        scores = np.zeros(len(self._block.lengths), dtype=np.float32)
        for word in words:
            # a word that the query repeats counts each time, as in Lucene
            passages, of_word = self._scores(word)
            scores[passages] += of_word
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:
            least = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
            # keep all passages that share the last place; the stable sort then takes the first of
            # them
            rows = rows[scores[rows] >= least]
        rows = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return Best(self._block.first + rows, scores[rows])

    def _scores(self, word: int) -> tuple[Int32[np.ndarray, " m"], Float32[np.ndarray, " m"]]:
        if word not in self._of_word:
            passages, counts = self._block.postings(word)
            held_by = int(self._postings.document_frequencies[word])
            # the idf rounded to float32 and multiplied in float64: the roundings of bm25s
            idf = np.float32(math.log(1 + (self._postings.count - held_by + 0.5) / (held_by + 0.5)))
            saturation = counts / (self._norms[passages] + counts)
            self._of_word[word] = passages, (np.float64(idf) * saturation).astype(np.float32)
        return self._of_word[word]


def read_postings(
    ids: Sequence[str],
    texts: Iterable[str],
    language: str | Sequence[str] | None,
    only: Iterable[str] | None = None,
) -> Postings:
    """Split passages into words and collect their postings.

    Args:
        ids: of the passages.
        texts: the passages, read once and not held.
        language: of all texts, or of each.
        only: words to keep; all by default.

    Raises:
        DataError: there are no passages or no words, or the number of ids or of languages differs
            from the number of passages.
    """

    def language_of(row: int) -> str | None:
        if language is None or isinstance(language, str):
            return language
        # too few languages are refused below, where the passages are counted
        return language[row] if row < len(language) else None

    def words_of_passages() -> Iterator[list[str]]:
        for row, text in enumerate(texts):
            yield analyzer(language_of(row))(text)

    postings = Postings(words_of_passages(), only)
    count = postings.count
    languages = count
    if language is not None and not isinstance(language, str):
        languages = len(language)
    if not count or not len(ids) == count == languages:
        raise DataError(
            "BM25: expected one id and one language per passage, found"
            f" {count_of(count, 'passages')}, {len(ids)} ids and {languages} languages"
        )
    if not postings.length:
        raise DataError("BM25: the passages contain no words; check the texts and the language")
    return postings


def tune(
    ids: Sequence[str],
    texts: Iterable[str],
    queries: Sequence[str],
    relevant: Sequence[Collection[str]],
    *,
    language: str | None = None,
    k1: Sequence[float] = K1_GRID,
    b: Sequence[float] = B_GRID,
    depth: int = 100,
) -> Tuned:
    """Try all combinations of k1 and b on a development set; of equals, the first wins.

    Args:
        ids: of the passages.
        texts: the passages.
        queries: of the development set.
        relevant: ids of the passages that answer each query.
        language: of passages and queries.
        k1: values to try.
        b: values to try.
        depth: passages looked at in each ranking.

    Raises:
        DataError: there are no queries, or their number differs from the number of sets in
            ``relevant``.
    """
    if not queries or len(queries) != len(relevant):
        raise DataError(
            f"BM25: tuning requires one set of relevant passages per query, found {len(queries)}"
            f" queries and {len(relevant)} sets"
        )
    # passages are read once, because k1 and b only weight the counts; only words of the queries are
    # kept
    analyze = analyzer(language)
    only = [word for query in queries for word in analyze(query)]
    postings = read_postings(ids, texts, language, only)
    best: Tuned | None = None
    for one_k1 in k1:
        for one_b in b:
            ranked, _ = BM25Index(ids, postings, language, one_k1, one_b).search(queries, depth)
            mrr = sum(map(_reciprocal_rank, ranked, relevant)) / len(queries)
            if best is None or mrr > best.mrr:
                best = Tuned(one_k1, one_b, mrr)
    if best is None:
        raise ConfigError("BM25: no values of k1 or b to try; pass at least one of each")
    return best


@functools.lru_cache(maxsize=512)
def analyzer(language: str | None) -> Callable[[str], list[str]]:
    """Return a function that splits a text of a language into words, in order; see the module."""
    stem: Callable[[str], str] = str  # leaves a word as it is
    if language is not None and (algorithm := STEMMERS.get(resolve_language(language).iso3)):
        stemmer = import_extra("Stemmer", package="PyStemmer", extra="bm25")
        stem = stemmer.Stemmer(algorithm).stemWord

    def words(text: str) -> list[str]:
        found: list[str] = []
        for part in unicodedata.normalize("NFKC", text).lower().translate(_ONLY_WORDS).split():
            for run in RUNS.finditer(part):
                if run["word"]:
                    found.append(stem(run["word"]))
                elif run["pairs"]:
                    found += _overlapping(run[0], 2)
                else:
                    found += _overlapping(run[0], 3)
        return found

    return words


def _overlapping(run: str, size: int) -> list[str]:
    return [run[start : start + size] for start in range(max(1, len(run) - size + 1))]


def _reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    return next((1 / rank for rank, key in enumerate(ranked, 1) if key in relevant), 0.0)


class _OnlyWords(dict[int, int]):
    """A ``str.translate`` table that keeps letters, digits and marks; others become spaces."""

    def __missing__(self, code: int) -> int:
        # stored, so that a character's category is looked up once
        self[code] = ord(" ")
        if unicodedata.category(chr(code))[0] in "LNM":
            self[code] = code
        return self[code]


_ONLY_WORDS = _OnlyWords()
