"""``interlingua.look`` and ``interlingua look``: the contents of files, before any work."""

from __future__ import annotations

import contextlib
import importlib.resources
import os
import shlex
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from interlingua.config.options import INPUT, argument, function_of, option
from interlingua.errors import ConfigError, DataError
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.shared_options import LineOptions, PairOptions

if TYPE_CHECKING:
    from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
    from interlingua.corpus.inspection.files import FileLook
    from interlingua.report.tables import Table

DATA_FOLDER_VARIABLE = "INTERLINGUA_DATA"
"""Variable that names the folder of published evaluation sets, as for ``evaluate``."""
_MOST = 0.8
"""Minimum share of the documents of a folder that are in its two most frequent languages."""
_ALIGNABLE = 5000
"""Maximum number of texts of a document; larger files are corpora to mine."""


class Looks(RowList["FileLook"]):
    """A report for each file, in the order in which they were named."""

    columns_if_empty: ClassVar[Sequence[str]] = ("path", "kind", "units")
    next_commands: tuple[str, ...] = ()
    """Next commands that take several of the files."""

    def records(self) -> list[dict[str, Any]]:
        """Return the reports as they are in JSON, a dictionary for each file."""
        return [_plain(found) for found in self]

    @property
    def lines(self) -> list[str]:
        """The report for people, in lines."""
        lines: list[str] = []
        for found in self:
            lines += [*look_table(found).text(), ""]
        return [*lines, *[f"next: {command}" for command in self.next_commands]]


def _plain(value: Any) -> Any:
    """Return a value with dictionaries in place of named tuples."""
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, tuple):
        return list(map(_plain, value))
    return value


@dataclass(frozen=True)
class LookOptions(PairOptions, LineOptions):
    """Options of ``look``."""

    files: PathLike | Sequence[PathLike] = argument(
        "Bitexts, texts, tables, questions, or folders of them; a.de,a.en or the prefix of"
        " Moses files; 'part-*.tsv', s3://...",
        kind=list[str],
    )
    input_format: str | None = option(
        None,
        "Format of a bitext: tsv, csv, jsonl, tmx and so on; by default that of the file's name.",
        group=INPUT,
    )
    source_column: str | None = option(
        None, "Column of the sources in a table, by name or by number from 1.", group=INPUT
    )
    target_column: str | None = option(
        None, "Column of the targets in a table, by name or by number from 1.", group=INPUT
    )
    tests: PathLike | Sequence[PathLike] | None = option(
        None,
        "Folder of a test set; the files are searched for its sentences. Repeatable. By default"
        " the published sets below $INTERLINGUA_DATA.",
        group=INPUT,
        kind=list[Path],
    )


def run_look(options: LookOptions, progress: Progress = SILENT) -> Looks:
    """Report the format, languages, counts and faults of files, and the next command.

    No model is needed. Each file is read once, in bounded memory; languages and character sets are
    judged by a sample of the whole file. A file that can't be read is reported with its reason, and
    the others are still looked at.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        A report for each file.

    Raises:
        ConfigError: an option is wrong, or no file is named.
        DataError: no file can be read.
    """
    from interlingua.corpus.inspection.files import FileLook, LookSettings, look_into
    from interlingua.storage.remote import fetch_file, is_remote

    settings = LookSettings(
        format=options.input_format,
        languages=(options.source_language, options.target_language),
        columns=_columns(options),
        evaluation=_evaluation(options),
    )
    found = Looks()
    with tempfile.TemporaryDirectory(prefix="interlingua-look-") as folder:
        for name in _paths(options):
            path = name
            if is_remote(name):
                try:
                    path = str(fetch_file(name, Path(folder)))
                except DataError as error:
                    found.append(FileLook(name, "unreadable", error=str(error)))
                    continue
            found.append(look_into(path, settings, progress, name=name))
    if all(one.error for one in found):
        raise DataError("; ".join(one.error for one in found))
    found.next_commands = (*_commands_for_unaligned(found), *_commands_for_two(options, found))
    return found


def _columns(options: LookOptions) -> tuple[str, str] | None:
    if options.source_column is None and options.target_column is None:
        return None
    if options.source_column is None or options.target_column is None:
        raise ConfigError(
            "--source-column and --target-column require each other; add the missing one, or"
            " remove both"
        )
    return options.source_column, options.target_column


def _named_files(options: LookOptions) -> list[str]:
    """Return the names that the user gave."""
    return [os.fspath(path) for path in _listed_paths(options.files)]


def _listed_paths(paths: PathLike | Sequence[PathLike]) -> list[PathLike]:
    if isinstance(paths, str | os.PathLike):
        return [paths]
    return list(paths)


def _paths(options: LookOptions) -> Iterator[str]:
    """Yield the files of all names, each file once.

    Patterns and folders are replaced by their files. A Moses pair counts as one file.

    Raises:
        ConfigError: there is none.
    """
    from interlingua.storage.remote import is_remote

    seen = set[str]()
    for name in _named_files(options):
        for part in _expanded(name):
            # A pattern may match both files of a Moses pair; they are inspected once, as a pair.
            key = part
            if not is_remote(part):
                key = _both_files(part, options) or part
            if key not in seen:
                seen.add(key)
                yield key
    if not seen:
        raise ConfigError("no input files; run: interlingua look FILES")


def _expanded(name: str) -> list[str]:
    """Return the files of a pattern or a folder; any other name as it is."""
    from interlingua.storage.remote import WILD, expand_pattern

    if os.path.isdir(name):
        found = sorted(path for path in Path(name).rglob("*") if _is_shown(path, Path(name)))
        # A data set of Hugging Face is read as a whole.
        if any(path.suffix in (".arrow", ".parquet") for path in found):
            return [name]
        return [str(path) for path in found]
    if any(mark in name for mark in WILD) and not os.path.exists(name):
        # A pattern that matches nothing is reported as a file that is missing.
        with contextlib.suppress(DataError):
            return list(map(str, expand_pattern(name)))
    return [name]


def _is_shown(path: Path, folder: Path) -> bool:
    """Return whether a path is a file that is not hidden and not in a hidden folder."""
    parts = path.relative_to(folder).parts
    return path.is_file() and not any(part.startswith(".") for part in parts)


def _both_files(path: str, options: LookOptions) -> str | None:
    """Return both files of a Moses pair, joined by a comma; None for any other file."""
    from interlingua.corpus.formats.bitext import guess_format
    from interlingua.corpus.formats.moses import moses_files

    try:
        if (options.input_format or guess_format(path)) != "moses":
            return None
        files = moses_files(path, options.source_language, options.target_language)
    except DataError:
        return None  # the reader reports it
    return ",".join(map(str, files.paths))


def _evaluation(options: LookOptions) -> EvaluationKeys | None:
    """Return the sentences of the test sets; None if there is no set."""
    from interlingua.corpus.cleaning.decontaminate import EvaluationKeys

    folders: list[PathLike] = []
    if options.tests is not None:
        folders += _listed_paths(options.tests)
    elif os.environ.get(DATA_FOLDER_VARIABLE):
        folders += _published_sets(Path(os.environ[DATA_FOLDER_VARIABLE]))
    if not folders:
        return None
    return EvaluationKeys.from_folders(folders)


def _published_sets(data: Path) -> list[Path]:
    """Return the folders of published evaluation sets below a folder."""
    from interlingua.storage.json_text import parse_json

    file = importlib.resources.files("interlingua") / "data" / "evaluation_sets.json"
    names = parse_json(file.read_text("utf-8"))
    return [data / name for name in names if (data / name).is_dir()]


def _commands_for_unaligned(found: Looks) -> Iterator[str]:
    """Yield the commands for two files that are named like aligned ones, and are not aligned."""
    for one in found:
        kinds = {fault.kind for fault in one.faults}
        if one.format == "moses" and "," in one.path and kinds & {"damaged", "shifted"}:
            both = shlex.join(one.path.split(","))
            yield f"interlingua mine {both} -o pairs.tsv"
            yield f"interlingua align {both} -o links.tsv"


def _commands_for_two(options: LookOptions, found: Looks) -> Iterator[str]:
    """Yield the commands that take texts of two languages, or folders of them, the best first."""
    texts = [one for one in found if one.kind in ("texts", "document")]
    if len(texts) != sum(not one.error for one in found):
        return
    names = _named_files(options)
    if all(map(os.path.isdir, names)) and len(names) <= 2:
        if _has_two_languages(names, texts):
            yield f"interlingua documents {shlex.join(names)} -o memory.tmx"
        return
    languages = {_language_of(one) for one in texts}
    if len(texts) != 2 or len(languages) != 2 or "" in languages:
        return
    both = shlex.join([one.path for one in texts])
    if any(one.kind == "document" for one in texts):
        yield f"interlingua documents {both} -o memory.tmx"
        return
    commands = [f"interlingua align {both} -o links.tsv", f"interlingua mine {both} -o pairs.tsv"]
    # A document and its translation have similar numbers of sentences; two corpora may not.
    sizes = sorted(one.units for one in texts)
    if sizes[1] > min(_ALIGNABLE, 2 * sizes[0]):
        commands.reverse()
    yield from commands


def _language_of(found: FileLook) -> str:
    """Return the named language of a text, otherwise the identified one; it may be empty."""
    return found.sides[0].language or found.sides[0].found_language


def _has_two_languages(folders: Sequence[str], texts: Sequence[FileLook]) -> bool:
    """Return whether two folders are in different languages, or one folder is in two languages.

    It is enough that most documents agree; a short text may be identified as a related language.
    """
    if len(folders) == 1:
        counts = Counter(filter(None, map(_language_of, texts)))
        both = counts.most_common(2)
        return len(both) == 2 and sum(count for _, count in both) >= _MOST * len(texts)
    found: set[str] = set()
    for folder in folders:
        inside = [one for one in texts if Path(one.path).is_relative_to(folder)]
        counts = Counter(filter(None, map(_language_of, inside)))
        found.update(code for code, _ in counts.most_common(1))
    return len(found) == 2


def look_table(found: FileLook) -> Table:
    """Return the table of a file: its contents, with its faults below."""
    from interlingua.corpus.inspection.rows import look_rows
    from interlingua.report.tables import Table

    notes = [f"{fault.kind}: {fault.text}" for fault in found.faults]
    if not found.error and not notes:
        notes = ["no faults found"]
    if found.next_command:
        notes.append(f"next: {found.next_command}")
    return Table(found.path, ("", ""), look_rows(found), notes, words=(0, 1))


look = function_of(LookOptions, run_look, "look")
