"""Moses bitexts: two line-aligned files, on the disk or inside an OPUS ``moses.zip``."""

from __future__ import annotations

import contextlib
import lzma
import struct
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from interlingua.config import languages
from interlingua.config.languages import LanguageCode
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import (
    TextPair,
    languages_from_name,
    one_language_pair,
    one_line,
    peek,
    resolved_code,
    uncompressed_name,
    without_lost_values,
    written_codes,
)
from interlingua.errors import DamagedFileError, DataError, InterlinguaError, count_of
from interlingua.storage.files import PathLike, atomic_write, open_text, open_text_writer
from interlingua.storage.limits import MAX_MEMBERS, guard_expansion, guard_lines

NAMED_MEMBERS = 10
"""Number of members of an archive that an error names."""


class MosesFiles(NamedTuple):
    """The two files of a Moses pair and their languages."""

    paths: tuple[Path, Path]
    languages: tuple[str, str]


class Moses:
    """``corpus.de`` and ``corpus.en``, line by line translations.

    The user names them by their prefix, by one of them, or by both with a comma between them.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream both files; refuse files of unequal length."""
        paths, codes = moses_files(path, source_language, target_language)
        lines = [_lines(file, bad.errors) for file in paths]
        yield from _aligned(lines, [str(file) for file in paths], codes, bad)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write ``path.<source>`` and ``path.<target>``, or the files of ``a,b``.

        Line ends in texts become spaces. Scores and fields are left out, and named in a warning.
        """
        head, pairs = peek(one_language_pair(without_lost_values(pairs, path), path))
        if head is None:
            raise DataError(
                "there is no pair, so the languages of the files are unknown; nothing is written",
                path=path,
            )
        return self._write(pairs, path, head)

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write two empty files for the languages of a pair."""
        self._write(iter(()), path, head)

    def _write(self, pairs: Iterable[TextPair], path: str, head: TextPair) -> int:
        """Write two files, named by the languages of ``head``."""
        count = 0
        first_name, second_name = _names(path, head)
        with open_text_writer(first_name) as first, open_text_writer(second_name) as second:
            for pair in pairs:
                first.write(one_line(pair.source) + "\n")
                second.write(one_line(pair.target) + "\n")
                count += 1
        return count


class OpusZip:
    """The ``moses.zip`` that OPUS serves, streamed out of the archive.

    Its members are ``Corpus.de-en.de`` and ``Corpus.de-en.en``.
    """

    def read(
        self,
        path: str,
        source_language: str | None,
        target_language: str | None,
        skipped: Counter[str],
        bad: BadLines,
    ) -> Iterator[TextPair]:
        """Stream both members; refuse members of unequal length."""
        with open_archive(path) as archive:
            members, codes = _members(archive, path, source_language, target_language)
            lines = [_member_lines(archive, name, path, bad.errors) for name in members]
            # The members are closed before the archive, which otherwise keeps its file open.
            with contextlib.closing(lines[0]), contextlib.closing(lines[1]):
                yield from _aligned(lines, [f"{path}!{name}" for name in members], codes, bad)

    def write(self, pairs: Iterable[TextPair], path: str) -> int:
        """Write the archive with both members; they are gathered in temporary files first."""
        # The warning names the archive, and not the files that are gathered in it.
        plain = (TextPair(*pair[:4]) for pair in without_lost_values(pairs, path))
        return self._write(path, lambda prefix: Moses().write(plain, prefix))

    def write_empty(self, path: str, head: TextPair) -> None:
        """Write an archive with two empty members for the languages of a pair."""

        def write(prefix: str) -> int:
            Moses().write_empty(prefix, head)
            return 0

        self._write(path, write)

    def _write(self, path: str, write_members: Callable[[str], int]) -> int:
        """Write the archive of the files that ``write_members`` writes under a prefix."""
        import tempfile

        # The temporary files are in the folder of the archive: if it has room for the archive, it
        # has room for the files.
        parent: Path | None = Path(path).parent
        if not Path(path).parent.is_dir():
            parent = None
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            prefix = Path(folder) / Path(path).name.removesuffix(".zip")
            count = write_members(str(prefix))
            with (
                atomic_write(path, "wb") as file,
                zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
            ):
                for member in sorted(Path(folder).iterdir()):
                    archive.write(member, member.name)
        return count


@contextlib.contextmanager
def open_archive(path: PathLike) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive to read; errors while its members are read are also reported in one line.

    Raises:
        DataError: it can't be read, is damaged, encrypted or packed in a way that Python does not
            know, or has too many members.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if len(archive.infolist()) > MAX_MEMBERS:
                raise DataError(
                    f"the archive has {count_of(len(archive.infolist()), 'members')}, more than"
                    f" {MAX_MEMBERS:,}; unpack it yourself",
                    path=path,
                )
            yield archive
    except InterlinguaError:
        raise
    except zipfile.BadZipFile as error:
        raise DataError(
            f"is not a complete zip archive ({error}); fetch it again", path=path
        ) from error
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    except (RuntimeError, NotImplementedError) as error:  # encrypted; an unknown compression
        raise DataError(f"cannot be unpacked ({error}); unpack it yourself", path=path) from error
    except (ValueError, struct.error, OverflowError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise DataError(f"is a damaged zip archive ({error}); fetch it again", path=path) from error


def moses_files(path: str, source_language: str | None, target_language: str | None) -> MosesFiles:
    """Find the two files of a Moses pair.

    Args:
        path: their common prefix, either of them, or both with a comma.
        source_language: a code, if it is known.
        target_language: code of the target's language, or None.

    Raises:
        DataError: there are no two files, or their languages are unknown.
    """
    if "," in path and not Path(path).exists():
        first, second = (Path(part.strip()) for part in path.split(",", 1))
        # The caller's languages take precedence over the end of a file's name, and this end takes
        # precedence over a pair of languages in the name.
        named = languages_from_name(first) or (None, None)
        source = source_language or _language_of_suffix(first) or named[0]
        target = target_language or _language_of_suffix(second) or named[1]
        if not source or not target:
            raise DataError(
                "the languages are unknown, because the file names do not contain them; pass"
                " --source-language and --target-language",
                path=path,
            )
        return MosesFiles((first, second), (source, target))
    prefix = _prefix(path)
    sides = _sides(prefix)
    codes = [code for code, _ in sides]
    order = _source_and_target(
        codes, prefix, resolved_code(source_language), resolved_code(target_language)
    )
    if order is None:
        names = ", ".join(sorted(file.name for _, file in sides)) or "none"
        raise DataError(
            f"expected two files {prefix.name}.<source> and {prefix.name}.<target>, found"
            f" {names}; pass both files as a,b",
            path=path,
        )
    one, other = (sides[place] for place in order)
    return MosesFiles((one[1], other[1]), (one[0], other[0]))


def _aligned(
    lines: Sequence[Iterable[str]], names: Sequence[str], codes: tuple[str, str], bad: BadLines
) -> Iterator[TextPair]:
    """Yield the pairs of two streams of lines.

    Raises:
        DataError: one stream ends before the other; the error names the line.
    """
    for number, (a, b) in enumerate(zip_longest(*lines), 1):
        if a is None or b is None:
            # A line is missing somewhere before, so that no pair so far is certain: this stops the
            # reader in any case.
            shorter = 0 if a is None else 1
            raise DataError(
                f"the file ends here, but {Path(names[1 - shorter]).name} has more lines, so the"
                " two files are not aligned; fetch both again",
                path=names[shorter],
                line=number,
            )
        if bad.is_text(a, names[0], number) and bad.is_text(b, names[1], number):
            yield TextPair(a.rstrip("\r\n"), b.rstrip("\r\n"), *codes)


def _lines(path: Path, errors: str) -> Iterator[str]:
    # One generator a file, so that a bad byte is reported for the file it is in.
    with open_text(path, errors=errors) as file:
        yield from file


def _member_lines(archive: zipfile.ZipFile, name: str, path: str, errors: str) -> Generator[str]:
    number = 0
    place = f"{path}!{name}"
    with archive.open(name) as raw:
        # Against bombs: the unpacked size of a member is bounded, and so is the length of a line.
        unpacked = guard_expansion(raw, place, archive.getinfo(name).compress_size)
        try:
            for number, line in enumerate(guard_lines(unpacked, place), 1):
                # A byte order mark may precede the first line.
                yield line.decode("utf-8-sig" if number == 1 else "utf-8", errors)
        except UnicodeDecodeError as error:
            raise DataError(
                "the line is not UTF-8; convert the file to UTF-8", path=place, line=number
            ) from error
        except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as error:
            problem = f"is damaged or incomplete in the archive ({error}); fetch the archive again"
            raise DamagedFileError(problem, path=place, line=number or None) from error


def _members(
    archive: zipfile.ZipFile, path: str, source_language: str | None, target_language: str | None
) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the names of two members, and their languages."""
    sides: dict[str, list[tuple[LanguageCode, str]]] = {}
    for name in archive.namelist():
        prefix, _, suffix = name.rpartition(".")
        if prefix and (language := languages.find_in_name(suffix)):
            sides.setdefault(prefix, []).append((language, name))
    # An archive of OPUS also holds README, LICENSE and a file of ids.
    for prefix, members in sides.items():
        codes = [code for code, _ in members]
        order = _source_and_target(codes, prefix, source_language, target_language)
        if order is not None:
            one, other = (members[place] for place in order)
            return (one[1], other[1]), (one[0], other[0])
    names = archive.namelist()
    shown = ", ".join(names[:NAMED_MEMBERS])
    if len(names) > NAMED_MEMBERS:
        shown = f"{shown} and {len(names) - NAMED_MEMBERS} more"
    raise DataError(
        f"expected two members <name>.<source> and <name>.<target>, found {shown}", path=path
    )


def _names(path: str, pair: TextPair) -> tuple[str, str]:
    if "," in path:
        first, second = path.split(",", 1)
        return first.strip(), second.strip()
    stem = uncompressed_name(path)
    compression = path[len(stem) :]
    source, target = written_codes(pair)
    return f"{stem}.{source}{compression}", f"{stem}.{target}{compression}"


def _source_and_target(
    present: Sequence[str], prefix: PathLike, source: str | None, target: str | None
) -> tuple[int, int] | None:
    """Return which of the present languages is the source and which the target, if that is clear.

    The arguments decide; otherwise the name ("news.de-en" has the source first); otherwise, if
    there are two languages, their order.
    """
    requested = (source, target)
    if source is None or target is None:
        requested = languages_from_name(prefix) or (None, None)
    if requested[0] is None or requested[1] is None:
        return (0, 1) if len(present) == 2 else None
    first = languages.choose_code(requested[0], present)
    # Two regions of one language are two files.
    others = [None if place == first else code for place, code in enumerate(present)]
    second = languages.choose_code(requested[1], others)
    if first is None or second is None:
        return None
    return first, second


def _prefix(path: str) -> Path:
    plain = Path(uncompressed_name(path))
    if Path(path).is_file() and languages.find_in_name(plain.suffix[1:]):  # either of the two files
        return plain.with_suffix("")
    return plain


def _sides(prefix: Path) -> list[tuple[LanguageCode, Path]]:
    """Return the files that start with a prefix and end with a language."""
    found: dict[str, tuple[LanguageCode, Path]] = {}
    if not prefix.parent.is_dir():
        return []
    for file in sorted(prefix.parent.iterdir()):
        plain = uncompressed_name(file.name)
        if not plain.startswith(f"{prefix.name}."):
            continue
        if language := languages.find_in_name(plain[len(prefix.name) + 1 :]):
            # If both "news.de" and "news.de.gz" exist, the plain file is used; it comes first.
            found.setdefault(languages.written_tag(language), (language, file))
    return list(found.values())


def _language_of_suffix(path: Path) -> str | None:
    """Return the language of ``news.de`` or of ``news.de.txt``."""
    plain = Path(uncompressed_name(path))
    if plain.suffix.lower() == ".txt":
        plain = plain.with_suffix("")
    return languages.find_in_name(plain.suffix[1:])
