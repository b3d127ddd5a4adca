"""The nearest tokens of a token, by kind: MEXMA (Janeiro et al. 2024), Table 9.

A few tokens of each sentence of one language are compared with all tokens of all languages. Each of
their nearest tokens is in one of four classes: of the same sentence, of the same language, of a
translation, or of none of these. The tokens of all languages do not fit into memory, so they are
read in windows, and for each query the best tokens so far are merged with the best of the window.
For this, one integer identifies a token; it encodes the token's language, line and place.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Int64
from numpy import ndarray

from interlingua.analysis.record import Analysis, Measure, bootstrap_mean
from interlingua.analysis.subject import Subject, needs_states, of_texts
from interlingua.analysis.tokens import TokenWindow, spell, token_ids, token_windows
from interlingua.config import CheckedSettings
from interlingua.encoder.encoder import Encoder
from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.parallel import ParallelTexts, read_parallel
from interlingua.retrieval.topk.dense import merge, no_neighbors
from interlingua.retrieval.topk.exact import Neighbors, exact_topk
from interlingua.runtime.progress import SILENT, Progress

CLASSES = {
    "same_sentence": "another token of the query's sentence",
    "same_language": "a token of another sentence in the query's language",
    "translation": "a token of the same sentence in another language",
    "other": "a token of another sentence in another language",
}
SAME_SENTENCE, SAME_LANGUAGE, TRANSLATION, OTHER = range(len(CLASSES))
SHOWN_NEIGHBORS = 3
LINE_BITS = 32
PLACE_BITS = 16
"""Bits of a token's number; 15 bits are left for the language."""
_NOTE = (
    "the paper's percentages are multiples of 1/1512 and not of 1/3750, so it did not count 250 x"
    " 3 x 5 neighbors; tokens are drawn at random in the paper and here, and other vocabularies"
    " split a text into other tokens"
)


class Token(NamedTuple):
    """Positions of tokens: arrays of one shape; ``code`` joins the three into one number."""

    language: Int64[ndarray, "*shape"]
    line: Int64[ndarray, "*shape"]
    place: Int64[ndarray, "*shape"]

    @property
    def code(self) -> Int64[ndarray, "*shape"]:
        """One number per token."""
        return np.asarray((((self.language << LINE_BITS) | self.line) << PLACE_BITS) | self.place)

    @classmethod
    def of(cls, code: Int64[ndarray, "*shape"]) -> Token:
        """Return the positions that numbers encode."""
        place = code & ((1 << PLACE_BITS) - 1)
        line = (code >> PLACE_BITS) & ((1 << LINE_BITS) - 1)
        return cls(code >> (LINE_BITS + PLACE_BITS), line, place)


class Matches(NamedTuple):
    """The query tokens and the nearest tokens of each, itself left out."""

    queries: Token
    neighbors: Token
    cosines: Float32[ndarray, "q k"]

    def classes(self) -> Int64[ndarray, "q k"]:
        """Return the class of each neighbor, an index of ``CLASSES``."""
        same_line = self.neighbors.line == self.queries.line[:, None]
        same_language = self.neighbors.language == self.queries.language[:, None]
        at_home = np.where(same_line, SAME_SENTENCE, SAME_LANGUAGE)
        abroad = np.where(same_line, TRANSLATION, OTHER)
        return np.where(same_language, at_home, abroad)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenMatching(CheckedSettings):
    """The classes of random tokens' nearest neighbors among all tokens of all languages.

    Neighbors are nearest by cosine; the paper does not state its similarity. Tokens are last-layer
    states; the tokenizer's special tokens and a prompt's are neither queries nor neighbors. The
    search is exact; one batch of tokens is in memory at a time.
    """

    name: ClassVar[str] = "token_matching"
    version: ClassVar[str] = "1"

    languages: tuple[str, ...] | None = None
    """Codes, names or groups; the paper's are mexma. Default: those of muse and English that the
    texts have, else all."""
    query_language: str = "eng_Latn"
    """Language of the query tokens; it is always one of the languages."""
    sentences: int = 250
    """Number of lines, from the first on, that queries are drawn from."""
    tokens_per_sentence: int = 3
    """Number of query tokens of each line; all tokens if the line has fewer."""
    k: int = 5
    """Neighbors of each query."""
    seed: int = 1
    """Seed of the draw."""
    examples: int = 8
    """Queries kept with their neighbors for the page."""
    shown_neighbors: int = SHOWN_NEIGHBORS
    """Number of neighbors kept for each of these queries."""
    shown_classes: tuple[Literal["same_sentence", "same_language", "translation", "other"], ...] = (
        "same_sentence",
        "same_language",
        "translation",
        "other",
    )
    """Queries to keep are taken from these classes in turn; the class of a query is that of its
    nearest neighbor."""

    def unfit(self, subject: Subject) -> str | None:
        """Return why this model is unfit for the analysis, see ``Analyser.unfit``."""
        return needs_states(subject)

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze a model, see ``Analyser.run``."""
        encoder = subject.states_of(self.name)
        query_language = full_code(self.query_language)
        texts = read_parallel(data, self.languages, also=(query_language,))
        matches = self._match(encoder, texts, query_language, subject, progress)
        return of_texts(
            self,
            texts,
            measures=tuple(_measures(matches, texts.languages)),
            examples=tuple(_examples(matches, encoder, texts, subject.prompt, self)),
            notes=(_NOTE,),
        )

    def _match(
        self,
        encoder: Encoder,
        texts: ParallelTexts,
        query_language: str,
        subject: Subject,
        progress: Progress,
    ) -> Matches:
        def windows(lines: Sequence[str], language: str) -> Iterator[TokenWindow]:
            ids = token_ids(encoder, lines, language=language, prompt=subject.prompt)
            return token_windows(
                encoder, ids, prompt=subject.prompt, batch_tokens=subject.batch_tokens
            )

        # The queries: a window holds whole lines, so a line's tokens are all drawn from one window.
        own = texts.languages.index(query_language)
        query_lines = texts.lines[query_language][: self.sentences]
        drawn = []
        for window in windows(query_lines, query_language):
            of_window = draw_tokens(
                window.states,
                window.line,
                window.place,
                count=self.tokens_per_sentence,
                seed=self.seed,
            )
            drawn.append(of_window)
        vectors, lines, places = (np.concatenate(parts) for parts in zip(*drawn, strict=True))
        if not len(vectors):
            raise DataError(
                f"the first {len(query_lines)} lines of {query_language} contain no tokens of"
                " text; provide lines with text",
                path=texts.folder,
            )
        queries = Token(np.full(len(lines), own), lines, places)
        # The search: one neighbor more than requested, as the query itself is among them.
        best = no_neighbors(len(vectors))
        progress.start(len(texts.languages) * texts.sentences, "sentences", self.name)
        for number, (language, text) in enumerate(texts.lines.items()):
            progress.note(language)
            for window in windows(text, language):
                if not len(window.states):
                    continue
                found = exact_topk(vectors, window.states, k=self.k + 1)
                # Convert places in the window to the tokens' numbers, which hold for all windows.
                code = Token(np.full(len(window.line), number), window.line, window.place).code
                named = found.indices.new_tensor(code)[found.indices]
                best = merge(best, Neighbors(found.similarities, named), offset=0, k=self.k + 1)
            progress.advance(len(text))
        return without_self(queries, best, self.k)


def draw_tokens(
    states: Float32[ndarray, "t d"],
    line: Int64[ndarray, " t"],
    place: Int64[ndarray, " t"],
    *,
    count: int,
    seed: int,
) -> tuple[Float32[ndarray, "q d"], Int64[ndarray, " q"], Int64[ndarray, " q"]]:
    """Draw random tokens of each line, with their lines and positions.

    A line's draw depends only on the seed and the line's number.

    Args:
        states: of tokens of text.
        line: of each token.
        place: of each token.
        count: tokens of a line; all if it has fewer.
        seed: of the draw.
    """
    rows = []
    for number in np.unique(line):
        candidates = np.flatnonzero(line == number)
        # A generator of its own for each line, so that windows of another size draw the same.
        rng = np.random.default_rng([seed, int(number)])
        draw = rng.choice(candidates, size=min(count, len(candidates)), replace=False)
        rows.append(np.sort(draw))
    # A window may have no token of text.
    chosen = np.concatenate(rows) if rows else np.zeros(0, np.int64)
    return states[chosen], line[chosen], place[chosen]


def without_self(queries: Token, found: Neighbors, k: int) -> Matches:
    """Return the k nearest tokens of each query that are not the query itself.

    Args:
        queries: their positions.
        found: the k + 1 nearest; their indices are codes.
        k: number of neighbors to return; fewer if fewer were found.
    """
    codes = found.indices.numpy()
    cosines = found.similarities.numpy()
    is_other = codes != queries.code[:, None]
    # Every row keeps as many neighbors as the row that has the fewest.
    count = min(k, int(is_other.sum(axis=1).min()))
    # The sort is stable: the query itself goes to the end, the others stay in order of cosine.
    order = np.argsort(~is_other, axis=1, kind="stable")[:, :count]
    kept = np.take_along_axis(codes, order, axis=1)
    return Matches(queries, Token.of(kept), np.take_along_axis(cosines, order, axis=1))


def _measures(matches: Matches, languages: Sequence[str]) -> list[Measure]:
    classes = matches.classes()
    lines = matches.queries.line
    found = []
    for number, (name, meaning) in enumerate(CLASSES.items()):
        # Average per query, then per sentence: tokens of one sentence are not independent.
        share = (classes == number).mean(axis=1)
        items = np.array([share[lines == line].mean() for line in np.unique(lines)])
        low, high = bootstrap_mean(items)
        by_language = {
            code: float(((classes == number) & (matches.neighbors.language == i)).mean())
            for i, code in enumerate(languages)
        }
        found.append(
            Measure(
                name=name,
                value=float(items.mean()),
                unit="share",
                low=low,
                high=high,
                items=items,
                by_language={code: value for code, value in by_language.items() if value},
                definition=f"share of a token's nearest tokens that are {meaning}, mean over"
                " sentences",
            )
        )
    return found


def _examples(
    matches: Matches,
    encoder: Encoder,
    texts: ParallelTexts,
    prompt: str,
    options: TokenMatching,
) -> list[Mapping[str, Any]]:
    """Return queries with their neighbors, in turn by the class of the nearest neighbor."""
    classes = matches.classes()
    nearest = classes[:, 0]
    wanted = [list(CLASSES).index(name) for name in options.shown_classes]
    of_class = [np.flatnonzero(nearest == number).tolist() for number in wanted]
    # One of each class, then a second of each, so that rare classes are shown too.
    in_turn = [row for rows in itertools.zip_longest(*of_class) for row in rows if row is not None]
    in_turn = in_turn[: options.examples]
    names = list(CLASSES)

    def shown(token: Token) -> dict[str, Any]:
        code = texts.languages[int(token.language)]
        spelled = spell(encoder, texts.lines[code][int(token.line)], language=code, prompt=prompt)
        start, end = spelled.spans[int(token.place)]
        return {
            "language": code,
            "line": int(token.line) + 1,
            "text": spelled.text,
            "start": start,
            "end": end,
        }

    def neighbor(row: int, rank: int) -> dict[str, Any]:
        token = Token(*(part[row, rank] for part in matches.neighbors))
        return shown(token) | {
            "class": names[classes[row, rank]],
            "cosine": round(float(matches.cosines[row, rank]), 4),
        }

    found: list[Mapping[str, Any]] = []
    for row in sorted(in_turn, key=lambda row: (nearest[row], row)):
        query = shown(Token(*(part[row] for part in matches.queries)))
        ranks = range(min(options.shown_neighbors, matches.cosines.shape[1]))
        found.append({"query": query, "neighbors": [neighbor(row, rank) for rank in ranks]})
    return found
