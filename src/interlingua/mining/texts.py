"""One side of a corpus to mine: its distinct texts, and the lines of each.

``number_texts`` numbers the texts of lines in memory. ``build_side`` does the same for the lines of
files (``read_text_lines``) of any length, and writes them to a few plain files. Strings are stored
one behind the other in one file, and their ends in another (``Strings``), so that memory does not
grow.

Equal texts are found by sorting 64-bit keys of all lines, as many at once as memory holds. The
input is read twice: once for the keys, and once for the texts that turned out to be the first of
their kind. ``text_of_line`` maps a line to its text; ``starts`` and ``lines`` map a text to its
lines, like the compressed rows of a sparse matrix.

A side is a step of a workspace. If the files of a step were cut or changed, the workspace notices
this, and the side is read again. The check takes about as long as the digest of the input, which
each run computes anyway.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Int64, UInt64
from numpy import ndarray

from interlingua.corpus.cleaning.keys import EMPTY_KEY, text_keys
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.sentence_table import is_table
from interlingua.errors import ConfigError, DamagedFileError, DataError
from interlingua.mining.defaults import Equal
from interlingua.runtime.portions import ceil_div, portions
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike, open_text

log = logging.getLogger("interlingua")
TextLayout = Literal["lines", "ids", "documents"]
LAYOUTS: tuple[TextLayout, ...] = get_args(TextLayout)
_CHUNK = 65_536
"""Lines worked on at once."""
_UNREADABLE = "unreadable"
"""Document of lines that were left out; as they are blank, nothing of it is compared."""
_LOOKED_AT = 200
"""Number of lines from which the layout is determined."""
ZEROS = 65_536
"""Numbers written at once."""


class StringsWriter:
    """Writer of strings to ``NAME.text`` and end offsets to ``NAME.ends``. Old files are replaced.

    Args:
        folder: an existing folder.
        name: of the strings.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts: BinaryIO = open(folder / f"{name}.text", "wb")  # noqa: SIM115 - closed with the block
        self._ends: BinaryIO = open(folder / f"{name}.ends", "wb")  # noqa: SIM115
        self._size = 0

    def extend(self, strings: Iterable[str]) -> None:
        """Add some strings."""
        encoded = [string.encode("utf-8") for string in strings]
        ends = self._size + np.cumsum([len(one) for one in encoded], dtype=np.int64)
        self._texts.write(b"".join(encoded))
        self._ends.write(ends.tobytes())
        if len(ends):
            self._size = int(ends[-1])

    def __enter__(self) -> StringsWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        # The files must be on the disk, not only in system memory, before a record names them.
        for file in (self._texts, self._ends):
            file.flush()
            os.fsync(file.fileno())
            file.close()


class Strings(Sequence[str]):
    """Strings that a ``StringsWriter`` wrote, read as needed.

    Args:
        folder: with its two files.
        name: of the strings.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._ends = mapped(folder / f"{name}.ends", np.dtype(np.int64))
        self._bytes = mapped(folder / f"{name}.text", np.dtype(np.uint8))

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, number):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN204 - one, or a list of some
        if isinstance(number, slice):
            return self.part(*number.indices(len(self))[:2])
        start = self._start_of(number)
        return self._bytes[start : int(self._ends[number])].tobytes().decode("utf-8")

    def _start_of(self, number: int) -> int:
        """Return the first byte of a string: the end of the one before it."""
        if number == 0:
            return 0
        return int(self._ends[number - 1])

    def part(self, start: int, stop: int) -> list[str]:
        """Return consecutive strings in one read."""
        if stop <= start:
            return []
        first = self._start_of(start)
        ends = (self._ends[start:stop] - first).tolist()
        # The strings are decoded one by one, because their ends count bytes, not characters.
        content = self._bytes[first : first + ends[-1]].tobytes()
        return [content[a:b].decode("utf-8") for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    @property
    def total_bytes(self) -> int:
        """Size of all strings in UTF-8."""
        return len(self._bytes)


def mapped(path: Path, dtype: np.dtype[np.generic], *, mode: str = "r") -> np.ndarray:
    """Map a file of numbers into memory.

    An empty file, which can't be mapped, becomes an empty array.
    """
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode)  # type: ignore[call-overload,no-any-return]


def zeros(dtype: Any, size: int, path: Path | None = None) -> np.ndarray:
    """Return an array of zeros: in memory, or in a new file if a path is passed."""
    if path is None:
        return np.zeros(size, dtype)
    return mapped_zeros(path, np.dtype(dtype), size)


def mapped_zeros(path: Path, dtype: np.dtype[np.generic], size: int) -> np.ndarray:
    """Create a file of zeros as a memory map, to be filled.

    The whole file is written first: writing to a map of a sparse file ends the process if the disk
    is full.

    Raises:
        OSError: the disk is full.
    """
    zeros = np.zeros(min(size, ZEROS), dtype)
    with open(path, "wb") as file:
        for start in range(0, size, ZEROS):
            # The slice is shorter than ``zeros`` only in the last round.
            file.write(zeros[: size - start].tobytes())
    return mapped(path, dtype, mode="r+")


class Line(NamedTuple):
    """A line of a file.

    Attributes:
        text: empty where the line is blank.
        name: its name.
        document: that it is part of; None if the layout has no documents. It may be empty:
            if a document's name is only its language, nothing remains without the language.
    """

    text: str
    name: str
    document: str | None = None


def read_text_lines(
    paths: Sequence[PathLike],
    layout: TextLayout,
    *,
    strip: bool = True,
    bad: BadLines | None = None,
    labels: Sequence[str] = (),
) -> Iterator[Line]:
    """Yield the lines of a text file, or of several as if they were one, including blank ones.

    Args:
        paths: files, also .gz, .xz or .zst.
        layout: ``lines``, one text per line, named by its number from 1 over all files; ``ids``, id
            TAB text; ``documents``, document TAB text or document TAB id TAB text, the document
            being anything that identifies it, such as its URL.
        strip: remove the white space at both ends of a text.
        bad: how to handle unreadable lines; skipped ones are yielded as blank lines, because known
            vectors are matched by line.
        labels: of the files, with which their lines are named: ``news.txt:12``.

    Raises:
        DataError: a line has no tab, but the layout requires one.
    """
    number = 0
    bad = bad or BadLines()
    # Either all lines of a side have a document or none has, the bad ones included: the keys of
    # the documents are a column of numbers without gaps.
    bad_document = None
    if layout == "documents":
        bad_document = _UNREADABLE
    named = dict(zip(paths, labels, strict=bool(labels)))
    for path, at, line in _numbered(paths, bad):
        number += 1
        position = str(number)
        if named:
            position = f"{named[path]}:{at}"
        if not bad.is_text(line, path, at):
            yield Line("", position, bad_document)
            continue
        line = line.removesuffix("\n").removesuffix("\r")
        found = _parse_line(line, layout, position, strip)
        if found is None:
            column = {"ids": "id", "documents": "document"}[layout]
            problem = f"expected {column} TAB text, found no tab; correct the line"
            bad.reject(DataError(problem, path=path, line=at), line)
            found = Line("", position, bad_document)
        yield found


def _parse_line(line: str, layout: TextLayout, position: str, strip: bool) -> Line | None:
    """Split a line into its parts; None if it has no tab and its layout needs one.

    Args:
        line: without its line end.
        layout: see ``read_text_lines``.
        position: number of the line, which names it if nothing else does.
        strip: whether to remove the white space at both ends of the text.
    """
    text = line
    name = position
    document = None
    # A text may hold tabs itself, so that no line is split further than its layout needs.
    if layout == "ids":
        name, tab, text = line.partition("\t")
        if not tab:
            return None
    elif layout == "documents":
        *names, text = line.split("\t", 2)
        if not names:
            return None
        name = f"{names[0]}#{position}"
        if len(names) > 1:
            name = names[1]
        document = names[0].strip()
    if strip:
        text = text.strip()
    return Line(text, name.strip(), document)


def _numbered(paths: Sequence[PathLike], bad: BadLines) -> Iterator[tuple[PathLike, int, str]]:
    """Yield the lines of all files, each with its file and its number in that file, from 1."""
    for path in paths:
        number = 0
        try:
            with open_text(path, errors=bad.errors) as lines:
                for number, line in enumerate(lines, 1):
                    yield path, number, line
        except DamagedFileError as error:
            bad.damaged(error, f"{number:,} lines", is_empty=not number)


def matches_file(name: str) -> Path:
    """Return the path of a file of matched documents.

    Raises:
        ConfigError: there is none.
    """
    if not Path(name).is_file():
        raise ConfigError(
            f"--documents: expected equal, urls or a file of matched documents, found {name!r}"
        )
    return Path(name)


def guess_layout(path: PathLike) -> TextLayout:
    """Guess the layout of a file from its first lines.

    It is ``ids`` if each of them is a word without white space, a tab and a text, otherwise
    ``lines``.

    Raises:
        DataError: the file is missing or empty.
    """
    if is_table(path):
        return "lines"
    # Bad bytes are not an error yet: they are reported when all is read.
    with open_text(path, errors="surrogateescape") as lines:
        first = [line.rstrip("\r\n").split("\t") for line in itertools.islice(lines, _LOOKED_AT)]
    if not first:
        raise DataError("the file is empty; expected one sentence per line", path=path)
    # A first word that comes twice is not an id, but a part of the text.
    if all(map(_begins_with_word, first)) and len({cells[0] for cells in first}) == len(first):
        return "ids"
    return "lines"


def _begins_with_word(cells: Sequence[str]) -> bool:
    """Return whether a line has two cells, the first of them a word without white space."""
    return len(cells) == 2 and bool(cells[0]) and not any(map(str.isspace, cells[0]))


@dataclass(frozen=True, slots=True)
class NumberedTexts:
    """The texts of one side, by number in the order in which they are first met.

    Attributes:
        texts: each once.
        names: of all lines, in their order.
        text_of_line: the number of each line's text, -1 where the line is blank.
        starts: where the lines of each text start in ``lines``; one more for the end.
        lines: numbers, from 0, of the lines of all texts, one text behind the other.
        documents: key of the document of each line; empty where there are none.
    """

    texts: Sequence[str]
    names: Sequence[str]
    text_of_line: Int64[ndarray, " lines"]
    starts: Int64[ndarray, " texts+1"]
    lines: Int64[ndarray, " filled"]
    documents: UInt64[ndarray, " lines"]

    @classmethod
    def load(cls, folder: Path) -> NumberedTexts:
        """Load the result of ``build_side``."""
        return cls(
            Strings(folder, "texts"),
            Strings(folder, "names"),
            mapped(folder / "text_of_line.i64", np.dtype(np.int64)),
            mapped(folder / "starts.i64", np.dtype(np.int64)),
            mapped(folder / "lines.i64", np.dtype(np.int64)),
            mapped(folder / "documents.u64", np.dtype(np.uint64)),
        )

    def __len__(self) -> int:
        return len(self.texts)

    def origins(self, text: int) -> list[str]:
        """Return the names of the lines of a text."""
        return [self.names[int(line)] for line in self.lines_of(text)]

    def lines_of(self, text: int) -> Int64[ndarray, " lines"]:
        """Return the numbers, from 0, of the lines that hold a text."""
        return self.lines[int(self.starts[text]) : int(self.starts[text + 1])]

    def first_lines(self, start: int, stop: int, *, last: bool = False) -> Int64[ndarray, " texts"]:
        """Return the first (or the last) line of some texts."""
        at = self.starts[start:stop]
        if last:
            at = self.starts[start + 1 : stop + 1] - 1
        return np.asarray(self.lines[at])

    @property
    def blank(self) -> int:
        """Lines without a text."""
        return len(self.text_of_line) - len(self.lines)


def number_texts(
    lines: Iterable[Line],
    *,
    path: PathLike,
    equal: Equal = "exact",
    keep_blank: bool = False,
    memory: int = 2**30,
) -> NumberedTexts:
    """Assign numbers to the texts of a side in memory; no file is written.

    Args:
        lines: of the side, without documents.
        path: the name of the side in errors.
        equal: see ``build_side``.
        keep_blank: see ``build_side``.
        memory: see ``build_side``.

    Raises:
        DataError: there is no text.
    """
    lines = list(lines)
    texts = [line.text for line in lines]
    number = _marks(texts, keep_blank)
    starts, lines_of_texts = _number_texts(number, _keys(texts, equal), equal, memory)
    distinct = [texts[int(first)] for first in lines_of_texts[starts[:-1]]]
    if not distinct:
        raise DataError("the file contains no text; expected one sentence per line", path=path)
    names = [line.name for line in lines]
    documents = np.zeros(0, np.uint64)
    return NumberedTexts(distinct, names, number, starts, lines_of_texts, documents)


def build_side(
    folder: Path,
    read: Callable[[], Iterable[Line]],
    *,
    path: PathLike | None = None,
    equal: Equal = "exact",
    keep_blank: bool = False,
    memory: int = 2**30,
    label: str = "reading",
    progress: Progress = SILENT,
) -> NumberedTexts:
    """Read a side twice and write its numbered texts to a folder.

    Texts are compared by 64-bit keys: the probability that two of ten million different texts have
    the same key is 3e-6.

    Args:
        folder: is made if it is missing; must not contain a side yet.
        read: starts again with each call.
        path: its name in errors; default: the folder.
        equal: which lines hold the same text. ``exact``: equal lines. ``folded``: also lines that
            differ only in case, white space or punctuation, except the signs of numbers.
            ``never``: none.
        keep_blank: whether blank lines count as texts too.
        memory: bytes that the comparison may take.
        label: of the progress.
        progress: receives the progress of the work.

    Raises:
        DataError: there is no text.
    """
    folder.mkdir(parents=True, exist_ok=True)
    # The first reading: how many lines there are is not known yet.
    progress.start(None, "lines", label)
    rows = _write_keys(folder, read(), equal, keep_blank, progress)
    number = mapped(folder / "text_of_line.i64", np.dtype(np.int64), mode="r+")
    keys = mapped(folder / "keys.u64", np.dtype(np.uint64))
    _number_texts(number, keys, equal, memory, folder)
    # The second one.
    progress.start(2 * rows, "lines", label, done=rows)
    _write_texts(folder, read(), progress)
    (folder / "keys.u64").unlink()
    side = NumberedTexts.load(folder)
    if not len(side):
        raise DataError(
            "the file contains no text; expected one sentence per line", path=path or folder
        )
    return side


def exact_keys(texts: Sequence[str]) -> UInt64[ndarray, " n"]:
    """Compute 64-bit BLAKE2b keys of texts; equal texts have equal keys."""
    digests = (hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), np.uint64)


def _write_keys(
    folder: Path,
    lines: Iterable[Line],
    equal: Equal,
    keep_blank: bool,
    progress: Progress,
) -> int:
    """Write the names of lines and the keys of their texts and documents; return the line count.

    ``text_of_line`` says at first which lines are blank, by -1, and has 0 for all others.
    """
    rows = 0
    with (
        StringsWriter(folder, "names") as names,
        open(folder / "keys.u64", "wb") as keys,
        open(folder / "text_of_line.i64", "wb") as numbers,
        open(folder / "documents.u64", "wb") as documents,
    ):
        for chunk in portions(lines, _CHUNK):
            texts = [line.text for line in chunk]
            keys.write(_keys(texts, equal).tobytes())
            numbers.write(_marks(texts, keep_blank).tobytes())
            names.extend(line.name for line in chunk)
            # All lines of a file have a document or none has, see ``read_text_lines``; extra lines
            # behind them, such as held-out pairs, have none.
            if chunk[0].document is not None:
                documents.write(exact_keys([line.document or "" for line in chunk]).tobytes())
            rows += len(chunk)
            progress.advance(len(chunk))
    return rows


def _marks(texts: Sequence[str], keep_blank: bool) -> Int64[ndarray, " n"]:
    """Return -1 for blank lines and 0 for all others."""
    return np.array([0 if text or keep_blank else -1 for text in texts], np.int64)


def _keys(texts: Sequence[str], equal: Equal) -> UInt64[ndarray, " n"]:
    """Compute keys that are equal for texts to be merged."""
    exact = exact_keys(texts)
    if equal != "folded":
        return exact
    folded = text_keys(texts)
    # Folding leaves nothing of texts of only dots and dashes, which are compared as they are.
    return np.where(folded == EMPTY_KEY, exact, folded)


def _number_texts(
    number: Int64[ndarray, " lines"],
    keys: UInt64[ndarray, " lines"],
    equal: Equal,
    memory: int,
    folder: Path | None = None,
) -> tuple[Int64[ndarray, " texts+1"], Int64[ndarray, " filled"]]:
    """Assign numbers to the texts, and list the lines of each.

    Args:
        number: -1 for blank lines and 0 for all others; gets the number of each line's text.
        keys: of the texts of all lines.
        equal: see ``build_side``.
        memory: see ``build_side``.
        folder: with a folder, arrays with one entry per line or text are memory maps of files
            there, so that memory holds a chunk of each.

    Returns:
        ``starts`` and ``lines`` of ``NumberedTexts``.
    """

    def zeros_of(name: str, size: int) -> Int64[ndarray, " size"]:
        return zeros(np.int64, size, folder / f"{name}.i64" if folder is not None else None)

    # Each filled line first points at the first line of equal text, then gets that text's number.
    if equal != "never":
        _find_first_lines(keys, number, memory)
    texts = 0
    for start in range(0, len(number), _CHUNK):
        own = np.arange(start, min(start + _CHUNK, len(number)))
        first = number[start : start + _CHUNK]
        is_new = (first >= 0) & ((first == own) | (equal == "never"))
        is_repeated = (first >= 0) & ~is_new
        # ``first`` is a view: its values are read before the numbers overwrite them.
        earlier = first[is_repeated]
        number[own[is_new]] = np.arange(texts, texts + np.count_nonzero(is_new))
        # The first line is in this chunk or an earlier one, so that it has its number by now.
        number[own[is_repeated]] = number[earlier]
        texts += int(np.count_nonzero(is_new))
    # The number of lines of each text, and from that the offsets of its lines. Adding in place
    # requires that a text occurs only once in a chunk of ``_grouped``, which is the case.
    starts = zeros_of("starts", texts + 1)
    for chunk in _grouped(number):
        starts[chunk.texts + 1] += chunk.counts
    # This is done in chunks, because one cumsum would need memory for the whole array. Each chunk
    # starts with the sum so far, which is the last entry of the chunk before.
    for start in range(0, texts, _CHUNK):
        part = starts[start : start + _CHUNK + 1]
        part[:] = np.cumsum(part)
    # A counting sort: the cursor of a text is where its next line goes.
    filled = int(starts[-1])
    lines = zeros_of("lines", filled)
    cursor = zeros_of("cursor", texts + 1)
    cursor[:] = starts
    for chunk in _grouped(number):
        first_free = np.repeat(cursor[chunk.texts], chunk.counts)
        lines[first_free + chunk.places] = chunk.lines
        cursor[chunk.texts] += chunk.counts
    if folder is not None:
        (folder / "cursor.i64").unlink()
    return starts, lines


def _find_first_lines(
    keys: UInt64[ndarray, " n"], number: Int64[ndarray, " n"], memory: int
) -> None:
    """Assign to each filled line the first line with its key."""
    # As many keys are sorted at once as memory holds. A line takes 40 bytes: its row, order, key,
    # and memory for sorting. Equal keys have equal remainders, so that each part can be sorted
    # separately.
    parts = max(1, ceil_div(len(keys) * 40, memory))
    for part in range(parts):
        found = [np.zeros(0, np.int64)]
        for start in range(0, len(keys), _CHUNK):
            is_in_part = keys[start : start + _CHUNK] % np.uint64(parts) == part
            is_filled = number[start : start + _CHUNK] >= 0
            found.append(start + np.flatnonzero(is_in_part & is_filled))
        rows = np.concatenate(found)
        # A stable sort keeps the lines of one key in their order, the first one first.
        order = np.argsort(keys[rows], kind="stable")
        rows = rows[order]
        ordered = keys[rows]
        is_first = np.append(True, ordered[1:] != ordered[:-1])[: len(rows)]
        number[rows] = rows[is_first][np.cumsum(is_first) - 1]


class _Grouped(NamedTuple):
    """The filled lines of a chunk, grouped by their text.

    Attributes:
        lines: their numbers, in the order of their texts.
        texts: numbers of these texts, each once, ascending.
        counts: lines of the chunk that each text has.
        places: position of each line, from 0, among the lines of the chunk with the same text.
    """

    lines: Int64[ndarray, " p"]
    texts: Int64[ndarray, " q"]
    counts: Int64[ndarray, " q"]
    places: Int64[ndarray, " p"]


def _grouped(number: Int64[ndarray, " n"]) -> Iterator[_Grouped]:
    """Yield all filled lines, a chunk at a time; ``number`` has the text of each line."""
    for start in range(0, len(number), _CHUNK):
        part = number[start : start + _CHUNK]
        filled = np.flatnonzero(part >= 0)
        rows = filled[np.argsort(part[filled], kind="stable")]
        texts, counts = np.unique(part[rows], return_counts=True)
        first_of_text = np.cumsum(counts) - counts
        places = np.arange(len(rows)) - np.repeat(first_of_text, counts)
        yield _Grouped(rows + start, texts, counts, places)


def _write_texts(folder: Path, lines: Iterable[Line], progress: Progress) -> None:
    """Write the first of each group of equal texts."""
    number = mapped(folder / "text_of_line.i64", np.dtype(np.int64))
    texts = rows = 0
    with StringsWriter(folder, "texts") as writer:
        for chunk in portions(lines, _CHUNK):
            numbers = number[rows : rows + len(chunk)].tolist()
            new: list[str] = []
            # Texts are numbered in the order in which they are first met: a line holds a new one
            # if its number is the next.
            for line, own in zip(chunk, numbers, strict=True):
                if own == texts + len(new):
                    new.append(line.text)
            writer.extend(new)
            texts += len(new)
            rows += len(chunk)
            progress.advance(len(chunk))
