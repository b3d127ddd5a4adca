"""Moses bitexts: two line-aligned files, side by side on the disk or inside an OPUS
``moses.zip``.
"""

from __future__ import annotations

import contextlib
import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from interlingua import languages
from interlingua.corpus.bad_lines import BadLines
from interlingua.corpus.formats import (
    TextPair,
    languages_from_name,
    one_language_pair,
    one_line,
    uncompressed_name,
)
from interlingua.errors import DamagedFileError, DataError, InterlinguaError
from interlingua.files import COMPRESSIONS, PathLike, atomic_write, open_text, open_text_writer
from interlingua.limits import MAX_MEMBERS, guard_expansion, guard_lines

NAMED_MEMBERS = 10
"""Of an archive in an error."""


class MosesFiles(NamedTuple):
    """The two files of a Moses pair and their languages."""

    paths: tuple[Path, Path]
    languages: tuple[str, str]


class Moses:
    """``corpus.de`` and ``corpus.en``, line by line translations.

    Named by their prefix, by either, or ``a,b``.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams both files; refuses files of unequal length."""
        (first, second), (source, target) = moses_files(path, source_language, target_language)
        yield from aligned(
            _lines(first, bad.errors),
            _lines(second, bad.errors),
            str(first),
            str(second),
            source,
            target,
            bad,
        )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes ``path.<source>`` and ``path.<target>``, or the files of ``a,b``.

        Line ends in texts become spaces.
        """
        iterator = one_language_pair(pairs, path)
        head = next(iterator, None)
        if head is None:
            raise DataError(
                "there is no pair, so the files' languages are unknown; nothing was written",
                path=path,
            )
        count = 0
        with contextlib.ExitStack() as stack:
            first, second = (
                stack.enter_context(open_text_writer(name)) for name in _names(path, head)
            )
            for pair in _chain(head, iterator):
                first.write(one_line(pair.source) + "\n")
                second.write(one_line(pair.target) + "\n")
                count += 1
        return count


class OpusZip:
    """The ``moses.zip`` that OPUS serves, streamed out of the archive: ``Corpus.de-en.de`` and
    ``Corpus.de-en.en``.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Streams both members; refuses members of unequal length."""
        with open_archive(path) as archive:
            first, second, source, target = _members(
                archive, path, source_language, target_language
            )
            # Closed before the archive is, which else keeps its file open.
            with (
                contextlib.closing(_member_lines(archive, first, path, bad.errors)) as sources,
                contextlib.closing(_member_lines(archive, second, path, bad.errors)) as targets,
            ):
                yield from aligned(
                    sources, targets, f"{path}!{first}", f"{path}!{second}", source, target, bad
                )

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Writes the archive with both members; they are gathered in temporary files first."""
        import tempfile

        with tempfile.TemporaryDirectory(
            dir=Path(path).parent if Path(path).parent.is_dir() else None
        ) as folder:
            prefix = Path(folder) / Path(path).name.removesuffix(".zip")
            count = Moses().write(pairs, str(prefix))
            with (
                atomic_write(path, "wb") as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                for member in sorted(Path(folder).iterdir()):
                    archive.write(member, member.name)
        return count


@contextlib.contextmanager
def open_archive(path: PathLike) -> Iterator[zipfile.ZipFile]:
    """Opens a zip archive to read; what its members raise while they are read is one line, too.

    Raises:
        DataError: it can't be read, is damaged, encrypted or packed in a way that Python does not
            know, or has too many members.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise DataError(
                    f"{len(archive.infolist()):,} members, more than {MAX_MEMBERS:,}; take the two"
                    " files out of it yourself",
                    path=path,
                )
            yield archive
    except InterlinguaError:
        raise
    except zipfile.BadZipFile as error:
        raise DataError(f"not a whole zip archive ({error}); fetch it again", path=path) from error
    except OSError as error:
        raise DataError(
            f"can't be read: {error.strerror or error}; check the path", path=path
        ) from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted; a compression of others
        raise DataError(f"can't be unpacked ({error}); unpack it yourself", path=path) from error
    except (ValueError, struct.error, OverflowError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"a damaged zip archive ({error}); fetch it again", path=path) from error


def moses_files(path: str, source_language: str | None, target_language: str | None) -> MosesFiles:
    """Finds the two files of a Moses pair.

    Args:
        path: their common prefix, either of them, or both with a comma.
        source_language: a code, where it is known.
        target_language: code of the target's language, or None.

    Raises:
        DataError: there are no two files, or their languages are unknown.
    """
    if "," in path and not Path(path).exists():
        first, second = (Path(part.strip()) for part in path.split(",", 1))
        ends = tuple(_language_of_suffix(item) for item in (first, second))
        named = languages_from_name(first) or (None, None)
        found = (source_language or ends[0] or named[0], target_language or ends[1] or named[1])
        if not all(found):
            raise DataError(
                "its languages are neither given nor in the files' names; name both", path=path
            )
        return MosesFiles((first, second), (str(found[0]), str(found[1])))
    prefix = _prefix(path)
    wanted = _resolved(source_language), _resolved(target_language)
    sides = _sides(prefix)
    order = wanted if all(wanted) else languages_from_name(prefix) or tuple(sides)
    if len(order) != 2 or any(language not in sides for language in order):
        there = ", ".join(sorted(file.name for file in sides.values())) or "none"
        raise DataError(
            f"expected two files {prefix.name}.<source> and {prefix.name}.<target>, found {there};"
            " name both as a,b",
            path=path,
        )
    first_language = str(order[0])
    second_language = str(order[1])
    return MosesFiles(
        (sides[first_language], sides[second_language]), (first_language, second_language)
    )


def aligned(
    sources: Iterable[str],
    targets: Iterable[str],
    source_name: str,
    target_name: str,
    source: str,
    target: str,
    bad: BadLines,
) -> Iterator[TextPair]:
    """Pairs two streams of lines.

    Raises:
        DataError: one stream ends before the other, with the line where it does.
    """
    for number, (a, b) in enumerate(zip_longest(sources, targets), 1):
        if a is None or b is None:
            short, long = (source_name, target_name) if a is None else (target_name, source_name)
            raise DataError(
                f"ends here, but {Path(long).name} goes on; the two files are not aligned, fetch"
                " both again",
                path=short,
                line=number,
            )
        if bad.is_text(a, source_name, number) and bad.is_text(b, target_name, number):
            yield TextPair(a.rstrip("\r\n"), b.rstrip("\r\n"), source, target)


def _lines(path: Path, errors: str) -> Iterator[str]:
    # One generator a file, so that a bad byte is reported for the file it is in.
    with open_text(path, errors=errors) as file:
        yield from file


def _member_lines(archive: zipfile.ZipFile, name: str, path: str, errors: str) -> Generator[str]:
    number = 0
    place = f"{path}!{name}"
    with archive.open(name) as raw:
        unpacked = guard_expansion(raw, place, archive.getinfo(name).compress_size)
        try:
            for number, line in enumerate(guard_lines(unpacked, place), 1):
                yield line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
        except UnicodeDecodeError as error:
            raise DataError("not UTF-8; convert it first", path=place, line=number) from error
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            problem = f"damaged or cut short in the archive ({error}); fetch it again"
            raise DamagedFileError(problem, path=place, line=number or None) from error


def _members(
    archive: zipfile.ZipFile, path: str, source_language: str | None, target_language: str | None
) -> tuple[str, str, str, str]:
    sides: dict[str, dict[str, str]] = {}
    for name in archive.namelist():
        prefix, _, suffix = name.rpartition(".")
        if prefix and (language := _language(suffix)):
            sides.setdefault(prefix, {})[language] = name
    for prefix, members in sides.items():
        order = (source_language, target_language)
        if not all(order):
            order = languages_from_name(prefix) or tuple(members)  # type: ignore[assignment]
        if len(order) == 2 and all(language in members for language in order):
            first = str(order[0])
            second = str(order[1])
            return members[first], members[second], first, second
    names = archive.namelist()
    shown = ", ".join(names[:NAMED_MEMBERS])
    if len(names) > NAMED_MEMBERS:
        shown = f"{shown} and {len(names) - NAMED_MEMBERS} more"
    raise DataError(f"no two members <name>.<source> and <name>.<target> among {shown}", path=path)


def _names(path: str, pair: TextPair) -> tuple[str, str]:
    if "," in path:
        first, second = path.split(",", 1)
        return first.strip(), second.strip()
    packed = Path(path).suffix if Path(path).suffix.lower() in COMPRESSIONS else ""
    stem = uncompressed_name(path)
    codes = [languages.resolve(code) for code in (pair.source_language, pair.target_language)]
    short = [code.iso1 or code.iso3 for code in codes]
    if short[0] == short[1]:
        short = [code.code for code in codes]
    return f"{stem}.{short[0]}{packed}", f"{stem}.{short[1]}{packed}"


def _prefix(path: str) -> Path:
    plain = Path(uncompressed_name(path))
    return plain.with_suffix("") if Path(path).is_file() and _language(plain.suffix[1:]) else plain


def _sides(prefix: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    if prefix.parent.is_dir():
        for file in sorted(prefix.parent.iterdir()):
            plain = uncompressed_name(file.name)
            if plain.startswith(prefix.name + ".") and (
                language := _language(plain[len(prefix.name) + 1 :])
            ):
                found.setdefault(language, file)
    return found


def _language_of_suffix(path: Path) -> str | None:
    """Of ``news.de`` and of ``news.de.txt``."""
    plain = Path(uncompressed_name(path))
    if plain.suffix.lower() == ".txt":
        plain = plain.with_suffix("")
    return _language(plain.suffix[1:])


def _language(code: str) -> str | None:
    found = languages.find(code) if code else None
    return None if found is None else found.language.code


def _resolved(code: str | None) -> str | None:
    return languages.resolve(code).code if code else None


def _chain(head: TextPair, rest: Iterator[TextPair]) -> Iterator[TextPair]:
    yield head
    yield from rest
