"""Cues of subtitle files: SubRip (.srt), WebVTT (.vtt) and Sub Station Alpha (.ass, .ssa).

pysubs2 parses times and tags. It never fails: a cue with a damaged time becomes text of the cue
before it, and so do notes, styles and identifiers of WebVTT. SubRip and WebVTT are therefore cut
into cues here first; a cue that can't be read is left out and reported with its line.
"""

from __future__ import annotations

import codecs
import html
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.bitext import SUBTITLE_SUFFIXES
from interlingua.corpus.formats.charsets import known_charset
from interlingua.errors import ConfigError, DataError, import_extra
from interlingua.storage.files import PathLike, open_bytes, stem_and_suffix
from interlingua.storage.limits import read_limited, refuse_long

MAX_SUBTITLE_BYTES = 1 << 26
_ARROW = "-->"
_TIMES_IN_TEXT = re.compile(r"<\d{1,4}(:\d\d)+[.,]\d{1,3}>")
"""Times inside of a cue of WebVTT at which its next words appear."""
_WITHOUT_TEXT = re.compile(r"\ufeff?(WEBVTT|NOTE|STYLE|REGION)\b")
_CUE_NUMBER = re.compile(r"\s*\d+\s*")
_DASH = re.compile(r"^\s*[-\u2010-\u2015]\s*(?=\S)")
"""The start of a speaker's line."""


class Cue(NamedTuple):
    """A subtitle."""

    start: int
    """Milliseconds."""
    end: int
    """Milliseconds."""
    text: str
    """Without tags, with the line breaks of the screen."""
    line: int
    """Line of the file, from 1, with the times; in .ass and .ssa the number of the cue."""

    @property
    def speeches(self) -> tuple[str, ...]:
        """The text of each speaker on one line, if lines start with dashes; else the whole text."""
        found: list[str] = []
        for line in self.text.split("\n"):
            words = " ".join(_DASH.sub("", line).split())
            if _DASH.match(line) or not found:
                found.append(words)
            else:
                found[-1] = f"{found[-1]} {words}".strip()
        return tuple(filter(None, found))


def is_subtitle_name(path: PathLike) -> bool:
    """Return whether a file's name has a suffix of subtitles, also with one of a compression."""
    return stem_and_suffix(path)[1] in SUBTITLE_SUFFIXES


def read_cues(
    path: PathLike, *, encoding: str | None = None, bad: BadLines | None = None
) -> list[Cue]:
    """Read the cues of a subtitle file, sorted by their start; cues without text are left out.

    Args:
        path: .srt, .vtt, .ass or .ssa, also compressed.
        encoding: a character set, if it is known; UTF-8, or UTF-16 with a mark, by default.
        bad: receives the cues that can't be read; without it, a warning reports them.

    Raises:
        DataError: the file is missing, is no text in that character set, or has no cue.
        MissingExtraError: pysubs2 is not installed.
    """
    kind = stem_and_suffix(path)[1]
    if kind not in SUBTITLE_SUFFIXES:
        raise DataError(
            f"unknown format of subtitles; use one of: {', '.join(SUBTITLE_SUFFIXES)}", path=path
        )
    pysubs2 = import_extra("pysubs2", extra="subtitles")
    with open_bytes(path) as file:
        content = read_limited(file, path, MAX_SUBTITLE_BYTES)
    text = _decoded(content, encoding, path).replace("\r\n", "\n").replace("\r", "\n")
    is_reported = bad is not None
    bad = bad or BadLines()
    if kind in (".ass", ".ssa"):
        cues = _cues_of_styled(text, kind[1:], path, pysubs2)
    else:
        cues = _cues_of_blocks(text, kind[1:], path, pysubs2, bad)
    if not is_reported:
        bad.log_report(path)
    for cue in cues:
        refuse_long(len(cue.text), "this cue", path=path, line=cue.line)
    return sorted((cue for cue in cues if cue.text), key=lambda cue: cue.start)


def _decoded(content: bytes, encoding: str | None, path: PathLike) -> str:
    """Return the text of a file.

    Raises:
        DataError: it is in another character set, or is binary.
        ConfigError: there is no such character set.
    """
    charset = "utf-8-sig"
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        charset = "utf-16"
    elif encoding is not None and known_charset(encoding) != "utf-8":
        known = known_charset(encoding)
        if known is None:
            raise ConfigError(
                f"unknown character set {encoding[:40]!r}; use a character set for text, such as"
                " cp1252"
            )
        charset = known
    try:
        text = content.decode(charset)
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"is not {charset.removesuffix('-sig').upper()}; convert it to UTF-8, for example:"
            " iconv -f WINDOWS-1252 -t UTF-8",
            path=path,
            line=line,
        ) from error
    # NUL is valid UTF-8, and no text has it.
    if "\0" in text:
        raise DataError(
            "contains NUL, so it is not text; check that it is a subtitle file", path=path
        )
    return text


def _cues_of_styled(text: str, kind: str, path: PathLike, pysubs2: Any) -> list[Cue]:
    """Return the cues of Sub Station Alpha.

    Raises:
        DataError: it has no such cue.
    """
    try:
        events = pysubs2.SSAFile.from_string(text, kind).events
    except (pysubs2.Pysubs2Error, ValueError, LookupError, RecursionError) as error:
        reason = " ".join(str(error).split())[:100]
        raise DataError(
            f"cannot be read as subtitles ({reason}); check that the file is complete", path=path
        ) from error
    cues = [_cue(event, number) for number, event in enumerate(events, 1) if event.is_text]
    if not cues:
        raise DataError("the file contains no cue; check that it is a subtitle file", path=path)
    return cues


def _cues_of_blocks(text: str, kind: str, path: PathLike, pysubs2: Any, bad: BadLines) -> list[Cue]:
    """Return the cues of SubRip and WebVTT.

    Raises:
        DataError: there is no cue that can be read.
    """
    times = pysubs2.formats.get_format_class(kind).TIMESTAMP
    cut = {"vtt": _vtt_blocks, "srt": _srt_blocks}[kind]
    readable: list[list[str]] = []
    numbers: list[int] = []
    failure: DataError | None = None
    for number, lines in cut(text):
        problem = _problem_of(lines, times)
        if not problem:
            readable.append(lines)
            numbers.append(number)
            continue
        error = DataError(problem, path=path, line=number)
        bad.leave_out(error, "\n".join(lines))
        failure = failure or error
    # A file of which no cue can be read is no file of subtitles.
    if not numbers:
        raise failure or DataError(
            "the file contains no cue; check that it is a subtitle file", path=path
        )
    # pysubs2 treats a last line of digits as the number of the next cue, so each cue gets such a
    # line.
    joined = "".join("\n".join(lines) + "\n\n1\n" for lines in readable)
    events = pysubs2.SSAFile.from_string(joined, kind).events
    cues = []
    for number, event in zip(numbers, events, strict=True):
        cue = _cue(event, number)
        # Only WebVTT has references such as &amp; in its texts.
        if kind == "vtt":
            cue = cue._replace(text=html.unescape(cue.text))
        if cue.end < cue.start:
            bad.leave_out(
                DataError("the cue ends before it begins", path=path, line=number), cue.text
            )
        else:
            cues.append(cue)
    return cues


def _srt_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the lines of each cue of SubRip, without its own number.

    A cue ends at the times of the next one: some files have blank lines inside of a text.
    """
    block: list[str] = []
    start = 0
    for number, line in enumerate(text.split("\n"), 1):
        if _ARROW in line:
            if block:
                yield start, _without_next_number(block)
            block = []
            start = number
        if start:
            block.append(line.strip())
    if block:
        yield start, block


def _without_next_number(block: list[str]) -> list[str]:
    """Remove the next cue's number, and blank lines before it, from the end of a cue's lines."""
    last = len(block)
    if last > 1 and _CUE_NUMBER.fullmatch(block[-1]):
        last -= 1
    while last > 1 and not block[last - 1]:
        last -= 1
    return block[:last]


def _vtt_blocks(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line number and the lines of each cue of WebVTT, without identifiers and notes."""
    block: list[str] = []
    for number, line in enumerate([*text.split("\n"), ""], 1):
        if line.strip():
            block.append(_TIMES_IN_TEXT.sub("", line.strip()))
            continue
        # The times are in the first line, or behind an identifier in the second.
        places = [place for place, own in enumerate(block[:2]) if _ARROW in own]
        if places:
            yield number - len(block) + places[0], block[places[0] :]
        elif block and not _WITHOUT_TEXT.match(block[0]):
            # A block without times is text that a blank line cut off, or a damaged cue.
            yield number - len(block), block
        block = []


def _problem_of(lines: list[str], times: re.Pattern[str]) -> str:
    """Return the fault of the lines of a cue, which start with its times."""
    if _ARROW not in lines[0]:
        return "the cue has no times"
    if len(times.findall(lines[0])) != 2:
        return "the times cannot be read; expected hours:minutes:seconds"
    if any(len(times.findall(line)) == 2 for line in lines[1:]):
        return "the text of the cue contains a second line of times"
    return ""


def _cue(event: Any, number: int) -> Cue:
    """Return the cue of an event of pysubs2."""
    lines = (" ".join(line.split()) for line in event.plaintext.split("\n"))
    return Cue(event.start, event.end, "\n".join(filter(None, lines)), number)
