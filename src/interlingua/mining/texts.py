"""One side of a corpus to mine: its texts, each once, on disk, and all the lines that each stands
in.

``read_lines`` reads the lines of files, ``build_side`` lays them down in a few plain files. Strings
lie one behind the other in one file, and where each ends in another (``Strings``): any of them is
at hand, and memory does not grow.

``side.json`` is written last, when the files are on the disk, and has the size and the SHA-256 of
each. A side that was cut or changed since is noticed when it is opened, and read again from its
input; that takes about as long as the digest of the input, which each run makes anyway.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, NamedTuple, get_args

import numpy as np
from jaxtyping import Int64, UInt64
from numpy import ndarray

from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.keys import EMPTY_KEY, text_keys
from interlingua.corpus.sentence_table import is_table
from interlingua.errors import ConfigError, DamagedFileError, DataError
from interlingua.files import PathLike, atomic_write, open_text, sha256_file, sync_file
from interlingua.json_text import parse_json
from interlingua.portions import ceil_div, portions
from interlingua.runtime import Counted, silent
from interlingua.temporary import sync_folder

ZEROS = 65_536
"""Numbers written at once."""


class StringsWriter:
    """Appends strings to ``NAME.text`` and where each ends to ``NAME.ends``; what was there goes.

    Args:
        folder: which is there.
        name: of the strings.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._texts: BinaryIO = open(folder / f"{name}.text", "wb")  # noqa: SIM115 - closed with the block
        self._ends: BinaryIO = open(folder / f"{name}.ends", "wb")  # noqa: SIM115
        self._size = 0

    def extend(self, strings: Iterable[str]) -> None:
        """Adds some."""
        encoded = [string.encode("utf-8") for string in strings]
        ends = self._size + np.cumsum([len(one) for one in encoded], dtype=np.int64)
        self._texts.write(b"".join(encoded))
        self._ends.write(ends.tobytes())
        self._size = int(ends[-1]) if len(ends) else self._size

    def __enter__(self) -> StringsWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
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
        start = int(self._ends[number - 1]) if number else 0
        return self._bytes[start : int(self._ends[number])].tobytes().decode("utf-8")

    def part(self, start: int, stop: int) -> list[str]:
        """Some that stand one behind the other, in one read."""
        if stop <= start:
            return []
        first = int(self._ends[start - 1]) if start else 0
        ends = (self._ends[start:stop] - first).tolist()
        whole = self._bytes[first : first + ends[-1]].tobytes()
        return [whole[a:b].decode("utf-8") for a, b in zip([0, *ends[:-1]], ends, strict=True)]

    @property
    def total_bytes(self) -> int:
        """Of all of them, in UTF-8."""
        return len(self._bytes)


def mapped(path: Path, dtype: np.dtype[np.generic], *, mode: str = "r") -> np.ndarray:
    """A file of numbers as a memory map; an empty one, which can't be mapped, as an empty array."""
    if not path.stat().st_size:
        return np.zeros(0, dtype)
    return np.memmap(path, dtype, mode)  # type: ignore[call-overload,no-any-return]


def mapped_zeros(path: Path, dtype: np.dtype[np.generic], size: int) -> np.ndarray:
    """A new file of zeros as a memory map, to be filled.

    All of it is written first: a map of a file with holes ends the process where the disk is full.

    Raises:
        OSError: there is no room.
    """
    zeros = np.zeros(min(size, ZEROS), dtype)
    with open(path, "wb") as file:
        for start in range(0, size, ZEROS):
            file.write(zeros[: size - start].tobytes())
    return mapped(path, dtype, mode="r+")


RECORD = "side.json"
FORMAT = "interlingua-side-1"
FILES = (
    "texts.text",
    "texts.ends",
    "names.text",
    "names.ends",
    "text_of_line.i64",
    "starts.i64",
    "lines.i64",
    "documents.u64",
)
SCRATCH = ("keys.u64", "cursor.i64")
"""That a side is made with."""
OF_VECTORS = ("model.json", "vectors.npy")
"""In the same folder, see ``vectors.embed_side``."""
JOURNALS = "vectors-*of*.journal"


@dataclass(frozen=True, kw_only=True, slots=True)
class SideRecord:
    """What ``side.json`` says.

    Attributes:
        what: tells the input and the settings from others.
        lines: of the input.
        texts: each once.
        files: name -> its bytes and their SHA-256.
    """

    what: str
    lines: int
    texts: int
    files: dict[str, list[int | str]]

    @classmethod
    def read(cls, folder: Path) -> SideRecord | None:
        """The record of a folder; nothing where no side was finished and nothing depends on one.

        Raises:
            DataError: it is damaged or missing, and there are vectors of its texts.
        """
        path = folder / RECORD
        try:
            found = parse_json(path.read_text(encoding="utf-8"))
            if found.pop("format") == FORMAT:
                return cls(**found)
            problem = "is of another version of interlingua"
        except FileNotFoundError:
            problem = "is missing"
        except (ValueError, KeyError, TypeError, AttributeError):
            problem = "is damaged"
        if not has_vectors(folder):
            return None
        raise DataError(
            f"{problem}, so it is not known what texts the vectors are of; remove {folder} or"
            " choose another --work folder",
            path=path,
        )

    def write(self, folder: Path) -> None:
        """Puts the record into a folder; then the side is finished."""
        with atomic_write(folder / RECORD) as file:
            json.dump({"format": FORMAT, **asdict(self)}, file)

    def damage(self, folder: Path) -> str:
        """Which file is not what was written; empty if all are."""
        for name in FILES:
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if [path.stat().st_size, sha256_file(path)] != self.files.get(name):
                return f"{name} was cut or changed since it was written"
        return ""


def describe(folder: Path) -> dict[str, list[int | str]]:
    """Bytes and SHA-256 of each file of a side, which are on the disk when this returns."""
    found: dict[str, list[int | str]] = {}
    for name in FILES:
        sync_file(folder / name)
        found[name] = [(folder / name).stat().st_size, sha256_file(folder / name)]
    sync_folder(folder)
    return found


def remove_files(folder: Path) -> None:
    """Removes the files of a side.

    Its record, and what depends on it, only if no vectors are finished.

    The record of finished vectors stays until the next one takes its place, so that a run that is
    killed while it reads damaged texts again does not lose them.
    """
    names = [*FILES, *SCRATCH]
    if not has_vectors(folder):
        names += [RECORD, *OF_VECTORS, *(path.name for path in folder.glob(JOURNALS))]
    for name in names:
        (folder / name).unlink(missing_ok=True)


def has_vectors(folder: Path) -> bool:
    """Whether vectors of a side are finished."""
    return any(path.stat().st_size for path in folder.glob(JOURNALS))


log = logging.getLogger("interlingua")

Layout = Literal["lines", "ids", "documents"]
Equal = Literal["exact", "folded", "never"]
LAYOUTS: tuple[Layout, ...] = get_args(Layout)
CHUNK = 65_536
"""Lines worked on at once."""
UNREADABLE = "unreadable"
"""Document of lines that were left out; as they are blank, nothing of it is compared."""
LOOKED_AT = 200
"""Lines that tell the layout."""


class Line(NamedTuple):
    """A line of a file: its text, what it is called by, and the document it is part of."""

    text: str
    name: str
    document: str = ""


def read_lines(
    paths: Sequence[PathLike], layout: Layout, *, strip: bool = True, bad: BadLines | None = None
) -> Iterator[Line]:
    """The lines of a text file, blank ones too, or of several as if they were one.

    Args:
        paths: files, also .gz, .xz or .zst.
        layout: ``lines``, a text each, called by its number from 1 in all of them; ``ids``, id TAB
            text; ``documents``, document TAB text or document TAB id TAB text, the document being
            anything that tells it, such as its URL.
        strip: take the white space at both ends of a text away.
        bad: what becomes of lines that can't be read; those that are left out come as blank ones,
            as vectors that are known go by lines.

    Raises:
        DataError: a line has no tab, where there must be one.
    """
    number = 0
    bad = bad or BadLines()
    for path, at, line in _numbered(paths, bad):
        number += 1
        if not bad.is_text(line, path, at):
            yield Line("", str(number), UNREADABLE if layout == "documents" else "")
            continue
        line = line.removesuffix("\n").removesuffix("\r")
        if layout == "lines":
            yield Line(line.strip() if strip else line, str(number))
            continue
        *names, text = line.split("\t", 2 if layout == "documents" else 1)
        if not names:
            problem = f"expected {'id' if layout == 'ids' else 'document'} TAB text, got no tab"
            bad.reject(DataError(problem, path=path, line=at), line)
            yield Line("", str(number), UNREADABLE if layout == "documents" else "")
            continue
        document = names[0] if layout == "documents" else ""
        name = names[-1] if len(names) > 1 or layout == "ids" else f"{document}#{number}"
        yield Line(text.strip() if strip else text, name.strip(), document.strip())


def _numbered(paths: Sequence[PathLike], bad: BadLines) -> Iterator[tuple[PathLike, int, str]]:
    for path in paths:
        number = 0
        try:
            with open_text(path, errors=bad.errors) as lines:
                for number, line in enumerate(lines, 1):
                    yield path, number, line
        except DamagedFileError as error:
            bad.damaged(error, f"{number:,} lines", is_empty=not number)


def guess_layout(path: PathLike) -> Layout:
    """``ids`` where each of the first lines is a word without white space, a tab and a text.

    Else ``lines``.

    Raises:
        DataError: the file is missing or empty.
    """
    if is_table(path):
        return "lines"
    with open_text(
        path, errors="surrogateescape"
    ) as lines:  # bad bytes are reported when all is read
        first = [line.rstrip("\r\n").split("\t") for line in itertools.islice(lines, LOOKED_AT)]
    if not first:
        raise DataError("the file is empty; expected a sentence per line", path=path)
    named = all(
        len(cells) == 2 and cells[0] and not any(map(str.isspace, cells[0])) for cells in first
    )
    return "ids" if named and len({cells[0] for cells in first}) == len(first) else "lines"


@dataclass(frozen=True, slots=True)
class Side:
    """The texts of one side, by number in the order in which they are first met.

    Attributes:
        texts: each once.
        names: of all lines, in their order.
        text_of_line: the number of each line's text, -1 where the line is blank.
        starts: where the lines of each text begin in ``lines``; one more for the end.
        lines: numbers, from 0, of the lines of all texts, one text behind the other.
        documents: key of the document of each line; empty where there are none.
    """

    texts: Strings
    names: Strings
    text_of_line: Int64[ndarray, " lines"]
    starts: Int64[ndarray, " texts+1"]
    lines: Int64[ndarray, " filled"]
    documents: UInt64[ndarray, " lines"]

    @classmethod
    def load(cls, folder: Path) -> Side:
        """What ``build_side`` wrote."""
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
        """What the lines of a text are called by."""
        return [self.names[int(line)] for line in self.lines_of(text)]

    def lines_of(self, text: int) -> Int64[ndarray, " lines"]:
        """Numbers, from 0, of the lines that a text stands in."""
        return self.lines[int(self.starts[text]) : int(self.starts[text + 1])]

    def first_lines(self, start: int, stop: int, *, last: bool = False) -> Int64[ndarray, " texts"]:
        """The first (or the last) line of some texts."""
        at = self.starts[start + 1 : stop + 1] - 1 if last else self.starts[start:stop]
        return np.asarray(self.lines[at])

    @property
    def blank(self) -> int:
        """Lines without a text."""
        return len(self.text_of_line) - len(self.lines)


def build_side(
    folder: Path,
    read: Callable[[], Iterable[Line]],
    *,
    what: str,
    path: PathLike | None = None,
    equal: Equal = "exact",
    keep_blank: bool = False,
    memory: int = 2**30,
    replace: bool = False,
    progress: Counted = silent,
) -> Side:
    """Reads a side twice and lays it down in a folder.

    What an earlier run finished is taken as it is.

    Texts are compared by 64-bit keys: ten million differing ones hold two of one key with a
    probability of 3e-6.

    Args:
        folder: made; what an unfinished run left there is removed.
        read: begins anew with each call.
        what: tells this side and settings from others, kept with it.
        path: what errors call it by; the folder by default.
        equal: which lines hold the same text: those that are ``exact``-ly equal, or also those that
            differ in case, punctuation or white space (``folded``), or none (``never``).
        keep_blank: take blank lines for texts as well.
        memory: bytes that the comparison may take.
        replace: another side that is in the folder is removed.
        progress: called with the lines read, and all of both times; 0 while they are not known.

    Raises:
        ConfigError: the folder holds another side.
        DataError: there is no text, or the folder holds vectors and no text is known to be theirs.
    """
    record = SideRecord.read(folder)
    is_same = record is not None and record.what == what
    if record is not None and is_same:
        damage = record.damage(folder)
        if not damage:
            return Side.load(folder)
        log.warning("%s: %s; the texts are read again", folder, damage)
    elif record is not None and not replace:
        raise ConfigError(
            f"{folder} holds other texts or settings; choose another --work folder or remove it"
        )
    rows = _lay_down(
        folder, read, equal=equal, keep_blank=keep_blank, memory=memory, progress=progress
    )
    side = Side.load(folder)
    if not len(side):
        raise DataError("holds no text; expected a sentence per line", path=path or folder)
    made = SideRecord(what=what, lines=rows, texts=len(side), files=describe(folder))
    if record is not None and is_same and made != record and has_vectors(folder):
        raise DataError(
            "its texts or side.json were damaged, and the texts come out otherwise now, so the"
            " vectors may not be theirs; remove the folder or choose another --work folder",
            path=folder,
        )
    made.write(folder)
    return side


def _lay_down(
    folder: Path,
    read: Callable[[], Iterable[Line]],
    *,
    equal: Equal,
    keep_blank: bool,
    memory: int,
    progress: Counted,
) -> int:
    """Writes all files of a side but the last one; returns how many lines it has."""
    folder.mkdir(parents=True, exist_ok=True)
    remove_files(folder)
    rows = _write_keys(folder, read(), equal, keep_blank, lambda lines: progress(lines, 0))
    _number_texts(folder, equal, memory)
    _write_texts(folder, read(), lambda more: progress(rows + more, 2 * rows))
    (folder / "keys.u64").unlink()
    return rows


def exact_keys(texts: Sequence[str]) -> UInt64[ndarray, " n"]:
    """64-bit keys of texts, equal for equal texts; BLAKE2b."""
    digests = (hashlib.blake2b(text.encode("utf-8"), digest_size=8).digest() for text in texts)
    return np.frombuffer(b"".join(digests), np.uint64)


def _write_keys(
    folder: Path,
    lines: Iterable[Line],
    equal: Equal,
    keep_blank: bool,
    progress: Callable[[int], None],
) -> int:
    """Names of the lines, keys of their texts and documents, and which are blank: -1 in
    ``text_of_line``.
    """
    rows = 0
    with (
        StringsWriter(folder, "names") as names,
        open(folder / "keys.u64", "wb") as keys,
        open(folder / "text_of_line.i64", "wb") as numbers,
        open(folder / "documents.u64", "wb") as documents,
    ):
        for chunk in portions(lines, CHUNK):
            texts = [line.text for line in chunk]
            keys.write(_keys(texts, equal).tobytes())
            numbers.write(
                np.array([0 if text or keep_blank else -1 for text in texts], np.int64).tobytes()
            )
            names.extend(line.name for line in chunk)
            if chunk[0].document:
                documents.write(exact_keys([line.document for line in chunk]).tobytes())
            rows += len(chunk)
            progress(rows)
    return rows


def _keys(texts: Sequence[str], equal: Equal) -> UInt64[ndarray, " n"]:
    exact = exact_keys(texts)
    if equal != "folded":
        return exact
    folded = text_keys(texts)
    return np.where(
        folded == EMPTY_KEY, exact, folded
    )  # of dots and dashes alone nothing would be left


def _number_texts(folder: Path, equal: Equal, memory: int) -> None:
    """Numbers the texts, and makes the list of the lines of each.

    What is as long as the side is mapped.
    """
    number = mapped(folder / "text_of_line.i64", np.dtype(np.int64), mode="r+")
    if equal != "never":
        _find_first_lines(mapped(folder / "keys.u64", np.dtype(np.uint64)), number, memory)
    texts = 0
    for start in range(0, len(number), CHUNK):
        own = np.arange(start, min(start + CHUNK, len(number)))
        first = number[start : start + CHUNK]
        new = (first >= 0) & ((first == own) | (equal == "never"))
        again = (first >= 0) & ~new
        earlier = first[again]
        number[own[new]] = np.arange(texts, texts + np.count_nonzero(new))
        number[own[again]] = number[earlier]
        texts += int(np.count_nonzero(new))
    starts = mapped_zeros(folder / "starts.i64", np.dtype(np.int64), texts + 1)
    for _, at, counts, _ in _grouped(number):
        starts[at + 1] += counts
    for start in range(0, texts, CHUNK):  # in chunks, as cumsum would take the memory of all
        part = starts[start : start + CHUNK + 1]
        part[:] = np.cumsum(part)
    filled = int(starts[-1])
    lines = mapped_zeros(folder / "lines.i64", np.dtype(np.int64), filled)
    cursor = mapped_zeros(folder / "cursor.i64", np.dtype(np.int64), texts + 1)
    cursor[:] = starts
    for rows, at, counts, places in _grouped(number):
        lines[np.repeat(cursor[at], counts) + places] = rows
        cursor[at] += counts
    (folder / "cursor.i64").unlink()


def _find_first_lines(
    keys: UInt64[ndarray, " n"], number: Int64[ndarray, " n"], memory: int
) -> None:
    """Puts the first line with its key in the place of each filled line.

    As many keys at once as memory holds.
    """
    parts = max(1, ceil_div(len(keys) * 40, memory))
    for part in range(parts):
        found = [np.zeros(0, np.int64)]
        for start in range(0, len(keys), CHUNK):
            chunk = keys[start : start + CHUNK]
            found.append(
                start
                + np.flatnonzero(
                    (chunk % np.uint64(parts) == part) & (number[start : start + CHUNK] >= 0)
                )
            )
        rows = np.concatenate(found)
        order = np.argsort(keys[rows], kind="stable")
        rows = rows[order]
        ordered = keys[rows]
        fresh = np.append(True, ordered[1:] != ordered[:-1])[: len(rows)]
        number[rows] = rows[fresh][np.cumsum(fresh) - 1]


def _grouped(
    number: Int64[ndarray, " n"],
) -> Iterator[
    tuple[Int64[ndarray, " p"], Int64[ndarray, " q"], Int64[ndarray, " q"], Int64[ndarray, " p"]]
]:
    """Filled lines of a chunk by their text, the texts, how many of each, and the place of each
    line among them.
    """
    for start in range(0, len(number), CHUNK):
        part = number[start : start + CHUNK]
        filled = np.flatnonzero(part >= 0)
        rows = filled[np.argsort(part[filled], kind="stable")]
        at, counts = np.unique(part[rows], return_counts=True)
        yield (
            rows + start,
            at,
            counts,
            np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts),
        )


def _write_texts(folder: Path, lines: Iterable[Line], progress: Callable[[int], None]) -> None:
    """The first of each lot of equal texts."""
    number = mapped(folder / "text_of_line.i64", np.dtype(np.int64))
    texts = rows = 0
    with StringsWriter(folder, "texts") as writer:
        for chunk in portions(lines, CHUNK):
            numbers = number[rows : rows + len(chunk)].tolist()
            fresh: list[str] = []
            for line, own in zip(chunk, numbers, strict=True):
                if own == texts + len(fresh):
                    fresh.append(line.text)
            writer.extend(fresh)
            texts = texts + len(fresh)
            rows = rows + len(chunk)
            progress(rows)
