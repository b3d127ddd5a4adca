"""Contents of a file: format, languages, counts, faults, and the next command."""

from __future__ import annotations

import contextlib
import shlex
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.documents.encodings import detect_charset
from interlingua.corpus.formats.tabular import NAME_BOTH_TEXTS
from interlingua.corpus.inspection.counts import Quantiles
from interlingua.corpus.inspection.faults import (
    Fault,
    count_fault,
    header_fault,
    language_faults,
    misread_faults,
    slip_faults,
    swapped_faults,
)
from interlingua.corpus.inspection.languages_found import guess_language, script_shares
from interlingua.corpus.inspection.openers import Opened, open_units
from interlingua.corpus.inspection.streams import StreamCounts, count_pairs_of, count_texts_of
from interlingua.errors import InterlinguaError, count_of
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import stem_and_suffix

_REPEATED = 0.01
"""Minimum share of duplicates or copies that counts as a fault."""
_PAIR_OPTIONS = ("--source-language", "--target-language")
_SHOWN_SCRIPTS = 3


class SideLook(NamedTuple):
    """One side of a file: its texts."""

    language: str
    """Code that the file or the user names; empty where neither does."""
    found_language: str
    """Code of the language that the texts look like; empty if unknown."""
    scripts: dict[str, float]
    """Share of the letters by script, in a sample of the whole file."""
    empty: int
    duplicates: int
    """Texts that occurred before, without regard to case, punctuation and white space; the signs of
    numbers count."""
    characters: Quantiles | None
    sorted_by_length: str | None
    """ascending, descending or None."""
    sorted_by_alphabet: str | None


class FileLook(NamedTuple):
    """Contents of a file."""

    path: str
    kind: str
    """pairs, texts, document, questions, passages, labeled pairs, or unreadable."""
    format: str = ""
    encoding: str = ""
    columns: tuple[str, ...] = ()
    """Names of the values of a pair besides its texts and languages."""
    units: int = 0
    left_out: dict[str, int] = {}  # noqa: RUF012 - never changed
    """Units that the reader leaves out, by reason."""
    sides: tuple[SideLook, ...] = ()
    language_pairs: dict[str, int] = {}  # noqa: RUF012
    """Pairs by their languages, if the file has several."""
    duplicates: int = 0
    """Pairs that occurred before."""
    copies: int = 0
    """Pairs with the same text on both sides."""
    ratio: Quantiles | None = None
    """Number of target characters per source character."""
    sorted_by_score: str | None = None
    overlap: dict[str, int] = {}  # noqa: RUF012
    """Number of units that contain a sentence of a test set, by the name of the test set."""
    faults: tuple[Fault, ...] = ()
    next_command: str = ""
    error: str = ""
    """Reason why the file cannot be read."""


@dataclass(frozen=True)
class LookSettings:
    """Options for opening files and comparing them with test sets."""

    format: str | None = None
    languages: tuple[str | None, str | None] = (None, None)
    columns: tuple[str, str] | None = None
    evaluation: EvaluationKeys | None = None


def look_into(
    path: str, settings: LookSettings, progress: Progress = SILENT, *, name: str | None = None
) -> FileLook:
    """Read a file once and report its contents; an unreadable file is reported, too.

    Args:
        path: a file, the prefix of two files, two files joined by a comma, or data of a hub.
        settings: options for opening the file and comparing it with test sets.
        progress: counts the units.
        name: the name to report if the file is a copy of a file from elsewhere.
    """
    name = name or path
    evaluation = settings.evaluation
    # The evaluation sets are read only once, but their counts start from 0 for each file.
    if evaluation is not None:
        evaluation.counts = dict.fromkeys(evaluation.names, 0)
    try:
        opened = open_units(
            path,
            format=settings.format,
            languages=settings.languages,
            columns=settings.columns,
        )
        progress.start(None, opened.kind, Path(name).name)
        with tempfile.TemporaryDirectory(prefix="interlingua-look-") as folder:
            if opened.kind == "pairs":
                found = count_pairs_of(opened.pairs, Path(folder), evaluation, progress)
            else:
                found = count_texts_of(opened.texts, Path(folder), evaluation, progress)
    except InterlinguaError as error:
        return FileLook(name, "unreadable", error=str(error).replace(path, name))
    return _look_of(name, opened, found)


def _look_of(path: str, opened: Opened, found: StreamCounts) -> FileLook:
    """Return the report of a file that was counted."""
    named = _named_languages(opened, found)
    sides = _sides(found, named)
    faults = _faults(path, opened, found, named, sides)
    # If there is only one pair of languages, the sides show it.
    several = {}
    if len(found.languages) > 1:
        several = {"-".join(codes): count for codes, count in found.languages.most_common()}
    left_out = dict(+opened.skipped)
    if opened.bad.count:
        left_out["unreadable"] = opened.bad.count
    return FileLook(
        path=path,
        kind=opened.kind,
        format=opened.format,
        encoding=_encoding(opened, sides),
        columns=found.columns,
        units=found.units,
        left_out=left_out,
        sides=sides,
        language_pairs=several,
        duplicates=found.duplicates,
        copies=found.copies,
        ratio=found.ratios.ratios(),
        sorted_by_score=found.scores.direction(),
        overlap=found.overlap,
        faults=tuple(faults),
        next_command=next_command(path, opened.kind, sides, named=bool(opened.languages)),
    )


def _named_languages(opened: Opened, found: StreamCounts) -> tuple[str, ...]:
    """Return the named language of each side; empty if none is named or there are several."""
    if len(found.languages) > 1:
        return ("", "")
    # A report shows plain codes, without the region that a code may carry.
    named = tuple(map(str, opened.languages))
    return (*named, "", "")[: len(found.sides)]


def _sides(found: StreamCounts, named: Sequence[str]) -> tuple[SideLook, ...]:
    sides = []
    samples = ([unit.source for unit in found.sample], [unit.target for unit in found.sample])
    for counts, texts, language in zip(found.sides, samples, named, strict=False):
        guess = None
        if len(found.languages) <= 1:
            guess = guess_language(texts)
        # Names and links leave traces of other scripts in most files.
        scripts = list(script_shares(texts).items())[:_SHOWN_SCRIPTS]
        side = SideLook(
            language=language,
            found_language=guess or "",
            scripts=dict(scripts),
            empty=counts.empty,
            duplicates=counts.duplicates,
            characters=counts.lengths(),
            sorted_by_length=counts.by_length.direction(),
            sorted_by_alphabet=counts.by_alphabet.direction(),
        )
        sides.append(side)
    return tuple(sides)


def _faults(
    path: str,
    opened: Opened,
    found: StreamCounts,
    named: Sequence[str],
    sides: Sequence[SideLook],
) -> list[Fault]:
    """Return all faults of a file; faults that spoil pairs come first."""
    faults = []
    is_bitext = opened.kind == "pairs"
    if found.failure is not None:
        text = f"only the part before this fault was read: {found.failure}"
        faults.append(Fault("damaged", text, first=found.units))
    # Slips first: they spoil all pairs behind them, and other faults may follow from them.
    if is_bitext:
        faults += slip_faults(found.slips.end())
        # A file of several languages names them with each pair, in either direction.
        if len(found.languages) == 1:
            faults += swapped_faults(found.sample)
    if found.sample and len(found.languages) <= 1:
        codes = (*named, "", "")[:2]
        faults += language_faults(found.sample, (codes[0], codes[1]), _PAIR_OPTIONS)
    if opened.kind == "texts" and stem_and_suffix(path)[1] == ".tsv" and opened.format == "text":
        problem = "not a bitext but a text with one sentence a line, as no line has a tab"
        faults.append(Fault("no tabs", f"{problem}; {NAME_BOTH_TEXTS}"))
    faults += misread_faults(found.sample)
    faults += _encoding_faults(opened, sides)
    if found.first is not None:
        cells = [found.first.source, found.first.target][: len(sides)]
        faults += filter(None, [header_fault(cells)])
    return [*faults, *_count_faults(opened, found, sides), *_order_faults(found, sides)]


def _encoding_faults(opened: Opened, sides: Sequence[SideLook]) -> list[Fault]:
    """Return the faults of lines that can't be read."""
    bad = opened.bad
    faults = []
    if bad.undecoded:
        charset = _charset(opened, sides) or "ISO-8859-1"
        text = (
            f"{count_of(bad.undecoded, 'lines')} not in UTF-8, left out; convert the file, for"
            f" example: iconv -f {charset} -t UTF-8 (the first: {bad.first[0]})"
        )
        faults.append(Fault("not UTF-8", text, bad.undecoded))
    if bad.count > bad.undecoded:
        count = bad.count - bad.undecoded
        text = f"{count_of(count, 'lines')} cannot be read, left out (the first: {bad.first[0]})"
        faults.append(Fault("unreadable", text, count))
    faults += [Fault("damaged", damage) for damage in bad.damages]
    return faults


def _charset(opened: Opened, sides: Sequence[SideLook]) -> str | None:
    """Return the character set of the lines that are not UTF-8."""
    content = b"".join(opened.bad.contents)
    for side in sides:
        # There may be too few bytes to identify the set, or the package may not be installed.
        with contextlib.suppress(InterlinguaError):
            return detect_charset(content, "", side.language or side.found_language or None)
    return None


def _encoding(opened: Opened, sides: Sequence[SideLook]) -> str:
    if not opened.bad.undecoded:
        return "UTF-8"
    return f"UTF-8 and {_charset(opened, sides) or 'another'}"


def _count_faults(opened: Opened, found: StreamCounts, sides: Sequence[SideLook]) -> list[Fault]:
    """Return the faults that were counted: duplicates, copies, empty texts, test sentences."""
    units = found.units
    faults = []
    # Half of the texts of a bitext may occur twice although no pair occurs twice.
    duplicates = found.duplicates
    if opened.kind != "pairs":
        duplicates = sides[0].duplicates
    # A premise or a passage is in several labeled pairs or questions by design.
    is_fault = opened.kind in ("pairs", "texts")
    if is_fault and duplicates >= max(1, _REPEATED * units):
        what = f"of the {opened.kind} occurred before; prepare drops them"
        faults.append(count_fault("duplicates", duplicates, units, what, None))
    if found.copies >= max(1, _REPEATED * units):
        what = "of the pairs have the same text on both sides, so they are not translated"
        faults.append(count_fault("copies", found.copies, units, what, found.first_copy))
    for name, counts in zip(side_names(sides), found.sides, strict=True):
        if counts.empty:
            what = f"of the {name}s are empty; prepare drops them, score gives them 0"
            faults.append(count_fault("empty", counts.empty, units, what, counts.first_empty))
    for name, count in found.overlap.items():
        what = (
            f"of the {opened.kind} hold a sentence of the test set {name}; keep them out of"
            " training (key decontaminate in the config of prepare)"
        )
        faults.append(count_fault("test sentences", count, units, what, None))
    return faults


def _order_faults(found: StreamCounts, sides: Sequence[SideLook]) -> list[Fault]:
    """Return a fault for each way in which the file is sorted."""
    orders = []
    for name, side in zip(side_names(sides), sides, strict=True):
        orders.append((f"length of the {name}", side.sorted_by_length))
        orders.append((f"alphabet of the {name}", side.sorted_by_alphabet))
    orders.append(("score", found.scores.direction()))
    return [
        Fault("sorted", f"sorted by {name}, {order}; take a sample of the whole file, not its head")
        for name, order in orders
        if order is not None
    ]


def side_names(sides: Sequence[SideLook]) -> tuple[str, ...]:
    """Return the names of the sides of a file."""
    if len(sides) > 1:
        return ("source", "target")
    return ("text",)


def next_command(path: str, kind: str, sides: Sequence[SideLook], *, named: bool) -> str:
    """Return the next command; empty if there is none for such a file.

    Args:
        path: of the file.
        kind: of its units.
        sides: with the languages that were found.
        named: whether the file names its languages.
    """
    file = shlex.quote(path)
    stem = Path(path.partition(",")[0]).name.partition(".")[0] or "pairs"
    if kind == "pairs":
        languages = ""
        if not named:
            codes = [side.found_language or "CODE" for side in sides]
            options = zip(_PAIR_OPTIONS, codes, strict=True)
            languages = "".join(f" {option} {code}" for option, code in options)
        return f"interlingua score {file}{languages} -o {shlex.quote(f'{stem}.scored.tsv')}"
    if kind in ("texts", "document", "passages"):
        return f"interlingua index build {file} -o {shlex.quote(f'{stem}.index')}"
    return ""


def languages_in_words(side: SideLook) -> str:
    """Return the language of a side, and that of its texts if it differs."""
    if not side.language and not side.found_language:
        return "unknown"
    code = side.language or side.found_language
    text = f"{code} ({resolve_language(code).name})"
    if not side.language:
        return f"{text}, by its texts"
    if side.found_language and side.found_language != side.language:
        return f"{text}; texts look like {side.found_language}"
    return text
