"""BM25 over any language, without Java: the baseline of words that dense retrieval has to beat.

Scores are Lucene's (Robertson's, with an idf that is never negative), computed by bm25s. What a word is:

- letters, digits and their marks, NFKC and lower case; all else parts words;
- in Chinese, Japanese and Korean script, overlapping pairs of characters, as in Lucene's CJK analyser;
- in Thai, Lao, Burmese and Khmer, which are written without spaces, overlapping triples;
- elsewhere words, stemmed where Snowball knows the language.

Mr. TyDi used Anserini with Lucene's analyser of each language, and white space where there is none. These differ in
dictionaries for Thai, Japanese and Korean, in stemmers for Bengali and Telugu, and in lists of stop words.
"""

from __future__ import annotations

import functools
import importlib
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float32

from interlingua.errors import ConfigError, DataError, MissingExtraError
from interlingua.languages import resolve

DEFAULT_K1, DEFAULT_B = 0.9, 0.4
"""Anserini's, as in Mr. TyDi's "BM25 (default)"."""
K1_GRID = (0.3, 0.6, 0.9, 1.2, 1.5, 1.8)
B_GRID = (0.2, 0.4, 0.6, 0.8, 1.0)
PAIRS = (
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
TRIPLES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
RUNS = re.compile(f"(?P<pairs>[{PAIRS}]+)|(?P<triples>[{TRIPLES}]+)|(?P<word>[^{PAIRS}{TRIPLES}]+)")
STEMMERS = {
    "arb": "arabic", "cat": "catalan", "dan": "danish", "deu": "german", "ell": "greek", "eng": "english",
    "eus": "basque", "fin": "finnish", "fra": "french", "gle": "irish", "hin": "hindi", "hun": "hungarian",
    "hye": "armenian", "ind": "indonesian", "ita": "italian", "lit": "lithuanian", "nld": "dutch", "nob": "norwegian",
    "npi": "nepali", "por": "portuguese", "ron": "romanian", "rus": "russian", "spa": "spanish", "swe": "swedish",
    "tam": "tamil", "tur": "turkish",
}  # fmt: skip
"""Snowball's algorithms by ISO 639-3."""


class Tuned(NamedTuple):
    """The parameters with the best MRR on a development set."""

    k1: float
    b: float
    mrr: float
    """Mean reciprocal rank within the depth searched, in [0, 1]."""


class BM25Index:
    """Passages to be searched by words; see ``build``."""

    def __init__(self, ids: Sequence[str], tokens: Tokens, language: str | None, k1: float, b: float) -> None:
        if k1 < 0 or not 0 <= b <= 1:
            raise ConfigError(f"BM25: k1 = {k1}, b = {b}; expected k1 of at least 0 and b in [0, 1]")
        self.ids, self.language = list(ids), language
        self._tokens = tokens
        self._scorer = _imported("bm25s", "bm25s").BM25(k1=k1, b=b, method="lucene")
        self._scorer.index((tokens.rows, tokens.vocabulary), create_empty_token=False, show_progress=False)

    @classmethod
    def build(
        cls,
        ids: Sequence[str],
        texts: Iterable[str],
        *,
        language: str | Sequence[str] | None = None,
        k1: float = DEFAULT_K1,
        b: float = DEFAULT_B,
    ) -> BM25Index:
        """Indexes passages.

        Args:
            ids: of the passages.
            texts: the passages, titles included.
            language: of all texts, or of each, in any code; decides about stemming. None = no stemming.
            k1: how soon more of the same word counts for nothing, at least 0.
            b: how much long passages are made to pay for their length, 0 to 1.

        Raises:
            ConfigError: a parameter is out of range.
            DataError: there are no passages, or not one id each.
            MissingExtraError: bm25s or PyStemmer is not installed.
        """
        tokens = Tokens.of(ids, texts, language)
        return cls(ids, tokens, language if isinstance(language, str) else None, k1, b)

    def __len__(self) -> int:
        return len(self.ids)

    def search(
        self, queries: Iterable[str], k: int = 100, *, language: str | None = None
    ) -> tuple[list[list[str]], list[Float32[np.ndarray, " n"]]]:
        """The best passages of each query, best first; equal scores in the order of the passages.

        Args:
            queries: the texts.
            k: passages at most; those without a word of the query are never among them.
            language: of the queries; default: that of the index.

        Returns:
            ids and scores, one list a query.
        """
        analyse = analyser(language or self.language)
        found = [self._best(self._tokens.known(analyse(query)), k) for query in queries]
        return [[self.ids[row] for row in rows] for rows, _ in found], [scores for _, scores in found]

    def _best(self, query: list[int], k: int) -> tuple[list[int], Float32[np.ndarray, " n"]]:
        if not query or k < 1:
            return [], np.zeros(0, dtype=np.float32)
        scores = self._scorer.get_scores_from_ids(query)
        rows = np.flatnonzero(scores > 0)
        if len(rows) > k:
            least = np.partition(scores[rows], len(rows) - k)[len(rows) - k]
            rows = rows[scores[rows] >= least]  # with all that share the last place
        rows = rows[np.argsort(-scores[rows], kind="stable")][:k]
        return rows.tolist(), scores[rows].astype(np.float32)


class Tokens(NamedTuple):
    """Passages as numbers of words."""

    rows: list[list[int]]
    vocabulary: dict[str, int]

    @classmethod
    def of(cls, ids: Sequence[str], texts: Iterable[str], language: str | Sequence[str] | None) -> Tokens:
        """Takes texts apart.

        Raises:
            DataError: there are none, or not one id and one language each.
        """
        texts = list(texts)
        languages = [language] * len(texts) if language is None or isinstance(language, str) else list(language)
        if not texts or not len(ids) == len(texts) == len(languages):
            raise DataError(
                f"BM25: {len(texts)} passages with {len(ids)} ids and {len(languages)} languages; give one of each"
            )
        vocabulary: dict[str, int] = {}
        rows = [
            [vocabulary.setdefault(word, len(vocabulary)) for word in analyser(code)(text)]
            for text, code in zip(texts, languages, strict=True)
        ]
        if not vocabulary:
            raise DataError("BM25: no passage has a word in it")
        return cls(rows, vocabulary)

    def known(self, words: Iterable[str]) -> list[int]:
        """Those words that a passage has, repetitions kept."""
        return [self.vocabulary[word] for word in words if word in self.vocabulary]


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
    """Tries all k1 and b on a development set; of equals the first.

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
        DataError: the queries are none, or not as many as their answers.
    """
    if not queries or len(queries) != len(relevant):
        raise DataError(f"BM25: {len(queries)} queries with {len(relevant)} sets of relevant passages to tune on")
    tokens = Tokens.of(ids, texts, language)
    best: Tuned | None = None
    for one_k1 in k1:
        for one_b in b:
            ranked, _ = BM25Index(ids, tokens, language, one_k1, one_b).search(queries, depth)
            mrr = sum(map(_reciprocal_rank, ranked, relevant)) / len(queries)
            if best is None or mrr > best.mrr:
                best = Tuned(one_k1, one_b, mrr)
    if best is None:
        raise ConfigError("BM25: no k1 or no b to try")
    return best


@functools.lru_cache(maxsize=512)
def analyser(language: str | None) -> Callable[[str], list[str]]:
    """What takes a text of a language apart into words, in order; see the module."""
    algorithm = None if language is None else STEMMERS.get(resolve(language).iso3)
    stem: Callable[[str], str] = str
    if algorithm is not None:
        stem = _imported("Stemmer", "PyStemmer").Stemmer(algorithm).stemWord

    def words(text: str) -> list[str]:
        found: list[str] = []
        for part in unicodedata.normalize("NFKC", text).lower().translate(_ONLY_WORDS).split():
            for run in RUNS.finditer(part):
                if run["word"]:
                    found.append(stem(run["word"]))
                else:
                    found += _overlapping(run[0], 2 if run["pairs"] else 3)
        return found

    return words


def _overlapping(run: str, size: int) -> list[str]:
    return [run[start : start + size] for start in range(max(1, len(run) - size + 1))]


def _reciprocal_rank(ranked: Sequence[str], relevant: Collection[str]) -> float:
    return next((1 / rank for rank, key in enumerate(ranked, 1) if key in relevant), 0.0)


class _OnlyWords(dict[int, int]):
    """For ``str.translate``: letters, digits and marks stay, all else becomes a space."""

    def __missing__(self, code: int) -> int:
        self[code] = code if unicodedata.category(chr(code))[0] in "LNM" else ord(" ")
        return self[code]


_ONLY_WORDS = _OnlyWords()


def _imported(module: str, package: str) -> Any:
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise MissingExtraError(package, "bm25") from error
