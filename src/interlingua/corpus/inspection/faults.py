"""Faults of texts or pairs, each with its count, its place and a remedy.

The functions take a sample or the first texts of a file. So the same code checks a file that is
inspected and a file that a command starts to read.
"""

from __future__ import annotations

import functools
import logging
import os
import re
from collections.abc import Sequence
from typing import NamedTuple

from interlingua.config.languages import as_named, find_code, resolve_language
from interlingua.corpus.cleaning.language_evidence import contradicting_script
from interlingua.corpus.cleaning.named_languages import is_contradicted, is_word
from interlingua.corpus.inspection.languages_found import guess_language, swapped_pairs
from interlingua.corpus.inspection.misalignment import Slip, SlipFinder
from interlingua.corpus.inspection.misreading import misread_charset
from interlingua.errors import count_of
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
_LEAST_MISREAD = 3
"""Minimum number of texts that look misread, because one or two may do so by chance."""
_LEAST_SWAPPED = 5
_SWAPPED_SHARE = 0.005
_COLUMN_WORDS = frozenset(
    (
        *(
            "source",
            "target",
            "src",
            "tgt",
            "trg",
            "text",
            "texts",
            "sentence",
            "sentences",
            "score",
        ),
        *(
            "sentence1",
            "sentence2",
            "translation",
            "original",
            "anchor",
            "positive",
            "segment",
            "id",
        ),
        *("lang", "language", "english", "non", "from", "to", "reference", "hypothesis", "string"),
    )
)
"""Words that the names of columns consist of."""
_LONGEST_NAME = 30
_INSPECTED: set[tuple[str, int]] = set()
"""Path and hash of the first pairs of files that ``warn_of_first`` has inspected."""
_MOST_INSPECTED = 10_000
"""Maximum number of files in ``_INSPECTED``, which limits its memory."""


class Sampled(NamedTuple):
    """A pair of a sample, or a text with an empty target."""

    number: int
    """Position in the file, from 1."""
    source: str
    target: str = ""


class Fault(NamedTuple):
    """Something that is wrong, or that a user should know before any work."""

    kind: str
    """swapped, shifted, misread, not UTF-8, duplicates, copies, empty, sorted, header, test
    sentences, language, no tabs, damaged."""
    text: str
    """One line: fault, count, place and remedy."""
    units: int = 0
    """Number of units that have the fault; if only a sample was checked, those in the sample."""
    first: int | None = None
    """Number of the first such unit, from 1."""
    last: int | None = None


def header_fault(cells: Sequence[str]) -> Fault | None:
    """Return a fault if the first row contains column names but was read as a pair."""
    if not all(map(_is_column_name, cells)):
        return None
    # In a list of translated language names, both sides of a row name the same language.
    codes = [find_code(cell.strip()) for cell in cells]
    if len(codes) > 1 and None not in codes and len(set(codes)) == 1:
        return None
    shown = ", ".join(repr(cell.strip()) for cell in cells)
    text = (
        f"the first row ({shown}) contains column names and is read as texts; remove it, or"
        " choose the columns with --source-column and --target-column"
    )
    return Fault("header", text, 1, 1, 1)


def _is_column_name(cell: str) -> bool:
    name = cell.strip()
    if not name or len(name) > _LONGEST_NAME:
        return False
    words = re.split(r"[\s_.-]+", name.casefold())
    if _is_language(name):
        return True
    # "English German" may be a sentence, "source German" is not.
    has_word = any(word in _COLUMN_WORDS for word in words)
    return has_word and all(word in _COLUMN_WORDS or _is_language(word) for word in words)


def _is_language(name: str) -> bool:
    """Return whether a name is that of a language and not also an ordinary word."""
    code = as_named(find_code(name))
    return code is not None and not is_word(code)


def misread_faults(sample: Sequence[Sampled]) -> list[Fault]:
    """Return the fault of texts that were decoded in a wrong character set; empty if few are."""
    found = []
    # One misread side is enough: the two sides may come from files of different encodings.
    for unit in sample:
        charset = misread_charset(unit.source) or misread_charset(unit.target)
        if charset is not None:
            found.append((unit, charset))
    if len(found) < _LEAST_MISREAD:
        return []
    first, charset = found[0]
    # The message shows the misread word itself, which may be far from the start of the text.
    words = f"{first.source} {first.target}".split()
    bad = next((word for word in words if misread_charset(word)), first.source)
    how = f"UTF-8 that was decoded as {charset}; decode the original as UTF-8"
    if charset == "lost":
        how = "characters that could not be decoded; fetch or decode the original again"
    text = (
        f"{_share(len(found), len(sample))} of the sampled texts contain {how} (number"
        f" {first.number:,}: {bad[:40]!r})"
    )
    return [Fault("misread", text, len(found), first.number, found[-1][0].number)]


def swapped_faults(sample: Sequence[Sampled]) -> list[Fault]:
    """Return the fault of pairs whose sides are swapped in comparison with most pairs."""
    marks = swapped_pairs([(unit.source, unit.target) for unit in sample])
    found = [unit for unit, swap in zip(sample, marks, strict=True) if swap]
    # Copies, names and numbers are no evidence, and do not count.
    known = len(marks) - marks.count(None)
    if len(found) < max(_LEAST_SWAPPED, _SWAPPED_SHARE * known):
        return []
    text = (
        f"{_share(len(found), known)} of the sampled pairs have source and target swapped, between"
        f" pairs {found[0].number:,} and {found[-1].number:,}; swap their columns back"
    )
    return [Fault("swapped", text, len(found), found[0].number, found[-1].number)]


def language_faults(
    sample: Sequence[Sampled], languages: tuple[str, str], options: tuple[str, str]
) -> list[Fault]:
    """Return the faults of sides that are in other languages than the file says.

    Args:
        sample: of pairs, or of texts with an empty target.
        languages: of source and target; the second may be empty.
        options: names of the command-line options for the two languages.
    """
    sides = ([unit.source for unit in sample], [unit.target for unit in sample])
    guesses = [guess_language(texts) for texts in sides]
    # If each side is in the language of the other one, this is one fault, not two.
    if languages[1] and _is_turned(guesses, languages):
        text = (
            f"the first text of a pair is {resolve_language(languages[1]).name} and the second"
            f" {resolve_language(languages[0]).name}, in reverse order of the languages of the"
            f" file; pass {options[0]} {languages[1]} {options[1]} {languages[0]}"
        )
        return [Fault("swapped", text, len(sample), 1)]
    faults = []
    for code, texts, guess, option in zip(languages, sides, guesses, options, strict=True):
        if not code:
            continue
        # Commands reject a language by the same tests; texts in a close relative of it pass them.
        is_wrong = contradicting_script(texts, code) is not None or is_contradicted(texts, code)
        if is_wrong:
            found = "another language"
            if guess is not None:
                found = f"{guess} ({resolve_language(guess).name})"
            text = (
                f"the language is {code} ({resolve_language(code).name}), but the texts look like"
                f" {found}; pass {option} with the actual language"
            )
            faults.append(Fault("language", text, len(texts)))
    return faults


def _is_turned(guesses: Sequence[str | None], languages: tuple[str, str]) -> bool:
    """Return whether each side is in the language of the other one."""
    names = [guess and resolve_language(guess).iso3 for guess in guesses]
    own = [resolve_language(code).iso3 for code in languages]
    return own[0] != own[1] and names == own[::-1]


def slip_faults(slips: Sequence[Slip]) -> list[Fault]:
    """Return a fault for each part of a file in which one side is shifted."""
    faults = []
    for slip in slips:
        side, place = "source", "above"
        if slip.shift > 0:
            side, place = "target", "below"
        lines = count_of(abs(slip.shift), "lines")
        text = (
            f"from about pair {slip.first:,} on, the translations are {lines} {place} their"
            f" sources; look near this pair for an extra {side}, or a missing one on the other side"
        )
        faults.append(Fault("shifted", text, slip.last - slip.first + 1, slip.first, slip.last))
    return faults


def count_fault(kind: str, count: int, total: int, what: str, first: int | None) -> Fault:
    """Return a fault of counted units, with their share in the text of the fault."""
    place = ""
    if first is not None:
        place = f", the first is number {first:,}"
    return Fault(kind, f"{count:,} ({_share(count, total)}) {what}{place}", count, first)


def _share(count: int, total: int) -> str:
    """Return a share in percent as text; the text shows 0 only if the count is 0."""
    share = 100 * count / max(total, 1)
    if share and share < 0.1:
        return "less than 0.1 %"
    return f"{share:.1f} %"


def first_faults(pairs: Sequence[tuple[str, str]]) -> list[Fault]:
    """Return the faults of the first pairs of a file that a command starts to read."""
    if not pairs:
        return []
    sample = [Sampled(number, *pair) for number, pair in enumerate(pairs, 1)]
    slips = SlipFinder()
    slips.add([pair[0] for pair in pairs], [pair[1] for pair in pairs])
    return [
        *filter(None, [header_fault(pairs[0])]),
        *misread_faults(sample),
        *swapped_faults(sample),
        *slip_faults(slips.end()),
    ]


def warn_of_first(pairs: Sequence[tuple[str, str]], path: PathLike) -> None:
    """Log once the faults of the first pairs of a file.

    A file that is opened again with the same first pairs is not inspected again.
    """
    inspection = (os.fspath(path), hash(tuple(pairs)))
    if inspection in _INSPECTED:
        return
    if len(_INSPECTED) == _MOST_INSPECTED:
        _INSPECTED.clear()
    _INSPECTED.add(inspection)
    for fault in first_faults(pairs):
        _warn_of_fault(os.fspath(path), fault.text)


def warn_of_first_texts(texts: Sequence[str], path: PathLike) -> None:
    """Log once if the first texts of a file were decoded in a wrong character set."""
    sample = [Sampled(number, text) for number, text in enumerate(texts, 1)]
    for fault in misread_faults(sample):
        _warn_of_fault(os.fspath(path), fault.text)


@functools.cache
def _warn_of_fault(path: str, text: str) -> None:
    """Log a fault once, as a file may be opened several times."""
    log.warning("%s: %s; see interlingua look", path, text)
