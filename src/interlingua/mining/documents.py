"""Mining within matched documents: matching of documents, and the search within each pair.

If both sides say which document each line belongs to, a translation is searched for in the
matching documents only. Each pair of documents is a small search of its own. If the matched
document is short, the k nearest of a text are all texts of this document, so their mean says little
about the text. The mean of the margin is therefore taken over the k nearest among the document and
a sample of all texts of the other side, the background. One search in the background serves a
group of documents, as one large matrix product is much faster than many small ones.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from jaxtyping import Float32, Int64, UInt64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.config.languages import resolve_language
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.errors import ConfigError, DataError
from interlingua.functional.margin import MarginKind
from interlingua.mining.candidates import FOUND, CandidatePairs, Refuses
from interlingua.mining.defaults import Retrieval
from interlingua.mining.texts import (
    Line,
    NumberedTexts,
    TextLayout,
    exact_keys,
    matches_file,
    read_text_lines,
)
from interlingua.retrieval.topk.exact import Neighbors, exact_topk, mutual_topk
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike, tab_rows

_GROUP = 8192
"""Number of texts of a side whose neighbors in the background are searched at a time."""
# Codes that occur in URLs and not in ISO 639-1 and 639-3: bibliographic codes of ISO 639-2, country
# codes for a language, and a macrolanguage for its one common member.
_OTHER_CODES = {
    "deu": "ger", "fra": "fre", "zho": "chi cn", "nld": "dut", "ces": "cze cz", "ell": "gre gr",
    "jpn": "jp", "ron": "rum", "slk": "slo", "eus": "baq", "sqi": "alb", "hye": "arm",
    "kat": "geo", "isl": "ice", "mkd": "mac", "msa": "may", "fas": "per", "pes": "fas per",
    "cym": "wel", "mya": "bur", "ukr": "ua", "swe": "se", "dan": "dk", "kor": "kr", "vie": "vn",
}  # fmt: skip
_LANGUAGE_PARAMETERS = r"(?<![a-z0-9])(?:lang|language|locale|hl|lc|lng)="
"""Query parameters of URLs that name a language."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DocumentMatch:
    """Rule that matches documents of both sides.

    Attributes:
        how: ``equal``: their names are equal; ``urls``: their URLs are equal except for the
            language; ``file``: a file lists the pairs.
        path: the file, source document TAB target document.
    """

    how: Literal["equal", "urls", "file"]
    path: Path | None = None

    @classmethod
    def parse(cls, text: str) -> DocumentMatch:
        """Parse ``equal``, ``urls``, or the name of a file.

        Raises:
            ConfigError: the text is none of these.
        """
        if text == "equal":
            return cls(how="equal")
        if text == "urls":
            return cls(how="urls")
        return cls(how="file", path=matches_file(text))


def reader(
    paths: Sequence[PathLike],
    layout: TextLayout,
    match: DocumentMatch | None,
    *,
    language: str,
    strip: bool = True,
    bad: BadLines | None = None,
    labels: Sequence[str] = (),
) -> Callable[[], Iterator[Line]]:
    """Return a function that reads the lines of a side, with document names that both sides share.

    Args:
        paths: see ``read_text_lines``.
        layout: of both files.
        match: how documents are matched, if they are.
        language: of this side, any code.
        strip: see ``read_text_lines``.
        bad: see ``read_text_lines``.
        labels: see ``read_text_lines``.

    Raises:
        ConfigError: documents are to be matched, and the layout has none.
    """
    if match is not None and layout != "documents":
        raise ConfigError(
            f"{paths[0]}: matching documents requires the layout documents (document TAB text),"
            f" found {layout!r}; pass --layout documents"
        )
    if match is None or match.how != "urls":
        return lambda: read_text_lines(paths, layout, strip=strip, bad=bad, labels=labels)
    pattern = language_pattern(language)

    def lines() -> Iterator[Line]:
        for line in read_text_lines(paths, layout, strip=strip, bad=bad, labels=labels):
            # All lines of this layout have a document.
            assert line.document is not None
            yield line._replace(document=without_language(line.document, pattern))

    return lines


def language_pattern(language: str) -> re.Pattern[str]:
    """Return a pattern that matches the names of a language in URLs.

    For German these are, for example, ``de``, ``deu``, ``ger``, ``de-at`` and ``german``.
    """
    found = resolve_language(language)
    name = found.name.partition(" (")[0].lower()
    codes = {found.iso1, found.iso3, *_OTHER_CODES.get(found.iso3, "").split()} - {None}
    if " " not in name:
        codes.add(name)
    # Alternatives are tried from left to right, so that "deu" must precede "de".
    one = "|".join(sorted(map(str, codes), key=lambda code: (-len(code), code)))
    # A parameter is removed if it names any language. Elsewhere the code must be a word of its own,
    # and may carry a region or script, as in "de-at" or "zh_hans".
    return re.compile(
        rf"{_LANGUAGE_PARAMETERS}(?:{one})?|(?<![a-z0-9])(?:{one})(?:[-_][a-z]{{2,4}})?(?![a-z0-9])"
    )


def without_language(url: str, pattern: re.Pattern[str]) -> str:
    """Remove scheme, ``www``, language and all but letters and digits from a URL.

    ``https://www.example.org/de/seite?lang=de`` and ``http://example.org/seite`` become equal.

    Args:
        url: any name of a document.
        pattern: see ``language_pattern``.
    """
    bare = re.sub(r"^[a-z]+://(?:www\d?\.)?", "", url.strip().lower())
    # Several separators in a row become one: the removal of a code leaves two in a row.
    return re.sub(r"[\W_]+", "/", pattern.sub("", bare)).strip("/")


class _Documents(NamedTuple):
    """The documents of a side, by ascending key.

    Attributes:
        keys: of the documents, ascending.
        starts: where the lines of each document start in ``texts``; one more for the end.
        texts: numbers of the texts of all lines that are not blank, document after document.
    """

    keys: UInt64[ndarray, " d"]
    starts: Int64[ndarray, " d+1"]
    texts: Int64[ndarray, " lines"]

    @classmethod
    def of(cls, side: NumberedTexts) -> _Documents:
        filled = np.flatnonzero(side.text_of_line >= 0)
        filled = filled[np.argsort(side.documents[filled], kind="stable")]
        keys, starts = np.unique(side.documents[filled], return_index=True)
        return cls(keys, np.append(starts, len(filled)), np.asarray(side.text_of_line[filled]))

    def texts_of(self, key: int) -> Int64[ndarray, " t"]:
        """Return the numbers of the texts of a document, each once."""
        at = int(np.searchsorted(self.keys, np.uint64(key)))
        return np.unique(self.texts[self.starts[at] : self.starts[at + 1]])


def check_matches(x: NumberedTexts, y: NumberedTexts, match: DocumentMatch) -> None:
    """Check before the work that some documents match.

    Raises:
        DataError: no documents match, or the file of matches cannot be used.
    """
    _matches(match, _Documents.of(x), _Documents.of(y))


def collect_document_pairs(
    x: NumberedTexts,
    y: NumberedTexts,
    x_vectors: Float32[ndarray, "n d"],
    y_vectors: Float32[ndarray, "m d"],
    match: DocumentMatch,
    *,
    k: int,
    margin: MarginKind,
    retrieval: Retrieval,
    background: int,
    device: str | None = None,
    refuses: Refuses | None = None,
    progress: Progress = SILENT,
) -> tuple[NDArray[np.void], str]:
    """Return the pairs of all matched documents, each pair once with its best score.

    The candidates of a text are its k nearest in the matched document. The mean of the margin is
    over its k nearest among these and a sample of all texts of the other side, because a short
    document may hold no more than k texts. Memory holds about 40 bytes per line and 50 per pair.

    Args:
        x: the texts of the source.
        y: those of the target.
        x_vectors: of length 1, in memory or mapped.
        y_vectors: of the target.
        match: rule that matches documents.
        k: number of neighbors.
        margin: kind of score.
        retrieval: within each pair of documents.
        background: size of the sample; 0 for only the documents.
        device: see ``search_device``.
        refuses: see ``retrieve``; with ``max``.
        progress: receives the progress of the work.

    Returns:
        ``FOUND`` records by descending score, and a sentence with the number of matched documents.
    """
    sides = _Documents.of(x), _Documents.of(y)
    matches, count = _matches(match, *sides)
    # A fixed seed: the same corpora give the same pairs, run by run.
    rng = np.random.default_rng(0)
    samples = [
        np.sort(rng.choice(len(vectors), min(background, len(vectors)), replace=False))
        for vectors in (x_vectors, y_vectors)
    ]
    # An empty first part, so that there is something to join where no document holds a pair.
    found = [np.zeros(0, FOUND)]
    progress.start(len(matches), "pairs of documents", "documents")
    for start, stop in _groups(matches, *sides):
        texts = [
            (sides[0].texts_of(a), sides[1].texts_of(b)) for a, b in matches[start:stop].tolist()
        ]
        found += _pairs_of_group(
            texts, (x_vectors, y_vectors), samples, k, margin, retrieval, device, refuses
        )
        progress.advance(stop - start)
    sizes = [f"{len(side.keys):,}" for side in sides]
    note = (
        f"{len(matches):,} of {count:,} matches name documents of both sides; the sides have"
        f" {' and '.join(sizes)} documents"
    )
    return _each_once(np.concatenate(found), len(x), len(y)), note


def _pairs_of_group(
    texts: list[tuple[Int64[ndarray, " a"], Int64[ndarray, " b"]]],
    vectors: tuple[Float32[ndarray, "n d"], Float32[ndarray, "m d"]],
    samples: list[Int64[ndarray, " s"]],
    k: int,
    margin: MarginKind,
    retrieval: Retrieval,
    device: str | None,
    refuses: Refuses | None,
) -> Iterator[NDArray[np.void]]:
    """Yield the pairs of some matched documents, document by document."""
    # One search in the background for the texts of all documents of the group together.
    xs = np.unique(np.concatenate([own_x for own_x, _ in texts]))
    ys = np.unique(np.concatenate([own_y for _, own_y in texts]))
    behind_x = _Background.of(xs, vectors[0], samples[1], vectors[1], k, device)
    behind_y = _Background.of(ys, vectors[1], samples[0], vectors[0], k, device)
    for own_x, own_y in texts:
        own = np.asarray(vectors[0][own_x]), np.asarray(vectors[1][own_y])
        of_x, of_y = mutual_topk(*own, k=k, device=device)
        means = {
            "x": behind_x.means(own_x, own_y, of_x, k),
            "y": behind_y.means(own_y, own_x, of_y, k),
        }
        candidates = CandidatePairs.of_neighbors(of_x, of_y, margin=margin, means=means)
        parts = candidates.retrieved(
            retrieval, ordered=False, refuses=_refuses_within(refuses, own_x, own_y)
        )
        found = np.concatenate([np.zeros(0, FOUND), *parts])
        # From rows within the two documents to numbers of the texts.
        found["x"] = own_x[found["x"]]
        found["y"] = own_y[found["y"]]
        yield found


def _refuses_within(
    refuses: Refuses | None, own_x: Int64[ndarray, " a"], own_y: Int64[ndarray, " b"]
) -> Refuses | None:
    """Return the same test for rows within two documents."""
    if refuses is None:
        return None
    return lambda xs, ys: refuses(own_x[xs], own_y[ys])


def _each_once(pairs: NDArray[np.void], n: int, m: int) -> NDArray[np.void]:
    """Return each pair with its best score and its hubs, by descending score."""
    # The last key is the first to sort by: by x, then y, then descending score, so that the first
    # of several equal pairs is the best one.
    pairs = pairs[np.lexsort((-pairs["score"], pairs["y"], pairs["x"]))]
    differs = (pairs["x"][1:] != pairs["x"][:-1]) | (pairs["y"][1:] != pairs["y"][:-1])
    # The first pair is always new; if there is no pair, the mask is cut to no entry.
    is_first = np.append(True, differs)[: len(pairs)]
    pairs = pairs[is_first]
    # A hub count is the number of pairs of a text: menus and notices have partners in many
    # documents.
    for side, size in (("x", n), ("y", m)):
        pairs[f"hub_{side}"] = np.bincount(pairs[side], minlength=size)[pairs[side]]
    # A stable sort: of equal scores the smaller x, then the smaller y comes first.
    return pairs[np.argsort(-pairs["score"], kind="stable")]


def _matches(
    match: DocumentMatch, x: _Documents, y: _Documents
) -> tuple[UInt64[ndarray, "p 2"], int]:
    """Return the keys of matched documents on both sides, and the number of all matches."""
    # Equal names, or URLs that ``reader`` has already made equal.
    if match.path is None:
        both = np.intersect1d(x.keys, y.keys)
        if not len(both):
            raise DataError(
                "no document name is on both sides; pass --documents urls, or a file of matches"
            )
        return np.stack([both, both], axis=1), len(both)
    names: list[list[str]] = [[], []]
    for number, cells in tab_rows(match.path):
        if len(cells) < 2:
            raise DataError(
                "expected source document TAB target document, found 1 column; correct the line",
                path=match.path,
                line=number,
            )
        # Further columns, such as a score of the match, are ignored.
        for side, cell in zip(names, cells, strict=False):
            side.append(cell.strip())
    pairs = np.unique(np.stack([exact_keys(side) for side in names], axis=1), axis=0)
    is_there = np.isin(pairs[:, 0], x.keys) & np.isin(pairs[:, 1], y.keys)
    if not is_there.any():
        raise DataError(
            "no pair of documents in the file is in the texts; check the names of the documents",
            path=match.path,
        )
    return pairs[is_there], len(pairs)


def _groups(
    matches: UInt64[ndarray, "p 2"], x: _Documents, y: _Documents
) -> Iterator[tuple[int, int]]:
    """Yield ranges of document pairs with at most ``_GROUP`` lines, or of one longer pair."""
    # Of each pair, the lines of its longer document.
    sizes = np.zeros(len(matches), np.int64)
    for place, side in enumerate((x, y)):
        at = np.searchsorted(side.keys, matches[:, place])
        sizes = np.maximum(sizes, np.diff(side.starts)[at])
    start = lines = 0
    for stop, size in enumerate(sizes.tolist()):
        if stop > start and lines + size > _GROUP:
            yield start, stop
            start = stop
            lines = 0
        lines += size
    yield start, len(matches)


class _Background(NamedTuple):
    """The nearest neighbors of some texts in a sample of the other side.

    Attributes:
        texts: their numbers, ascending.
        similarities: to the nearest, descending; k columns, none if there is no sample.
        others: numbers of these nearest texts.
    """

    texts: Int64[ndarray, " n"]
    similarities: Float32[ndarray, "n k"]
    others: Int64[ndarray, "n k"]

    @classmethod
    def of(
        cls,
        texts: Int64[ndarray, " n"],
        vectors: Float32[ndarray, "a d"],
        sample: Int64[ndarray, " s"],
        others: Float32[ndarray, "b d"],
        k: int,
        device: str | None,
    ) -> _Background:
        if not len(sample):
            shape = (len(texts), 0)
            return cls(texts, np.zeros(shape, np.float32), np.zeros(shape, np.int64))
        found = exact_topk(vectors[texts], others[sample], k=k, device=device)
        return cls(texts, found.similarities.numpy(), sample[found.indices.numpy()])

    def means(
        self, own: Int64[ndarray, " n"], other: Int64[ndarray, " m"], near: Neighbors, k: int
    ) -> Float32[ndarray, " n"]:
        """Compute the mean similarity of each text to its k nearest in document and sample.

        Args:
            own: texts of the document.
            other: texts of the matched one; those of them that are in the sample count once.
            near: the nearest of each text in the matched document.
            k: neighbors in the mean; there may be fewer.
        """
        at = np.searchsorted(self.texts, own)
        # Minus infinity excludes the texts of the matched document from the background.
        behind = np.where(np.isin(self.others[at], other), -np.inf, self.similarities[at])
        both = np.concatenate([near.similarities.numpy(), behind], axis=1)
        values = -np.sort(-both, axis=1)[:, :k]
        # A document is never empty, so that at least one value of each row is finite.
        is_neighbor = np.isfinite(values)
        sums = np.where(is_neighbor, values, 0).sum(axis=1)
        return np.asarray(sums / is_neighbor.sum(axis=1), dtype=np.float32)
