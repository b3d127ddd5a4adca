"""Blocks of subtitles: cues joined to sentences.

A sentence often spans several cues. A cue continues in the next one if it has no end mark, the
next one follows soon, and the file uses end marks at all. Many Chinese and Thai subtitles have no
end marks. In such a file, a cue continues only if it ends with a mark such as a comma, or if the
next cue starts with a small letter. The text of each speaker of a cue is a separate unit.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from interlingua.corpus.documents.encodings import decode_file
from interlingua.corpus.documents.plain_text import SENTENCE_ENDS
from interlingua.corpus.documents.units import CUE, BlockDocument, TextBlock, join_texts
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.formats.localization.subtitles import Cue, read_cues
from interlingua.corpus.segments.sentence_splitting import CLOSING
from interlingua.errors import count_of
from interlingua.storage.files import PathLike, open_bytes
from interlingua.storage.limits import read_limited

_LONGEST_GAP = 3000
"""Maximum number of milliseconds between two cues of one sentence."""
_MOST_CUES = 8
"""Maximum number of cues of one sentence."""
_PUNCTUATED = 0.3
"""Minimum share of cues with an end mark for a file to use end marks at all."""
_CONTINUED = ",;-–—、，；،"
_ELLIPSES = ("...", "…")
_GREEK_QUESTION = re.compile("[\u0370-\u03ff];$")
_APART = "♪♫[(（【"
"""Characters at the start of songs and sounds."""


def read_captions(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read subtitles.

    Raises:
        DataError: there is no cue that can be read, or the encoding is not certain.
        MissingExtraError: pysubs2 is not installed.
    """
    with open_bytes(path) as file:
        decoded = decode_file(read_limited(file, path), path, language=language)
    bad = BadLines()
    is_wide = decoded.charset.startswith("utf")
    cues = read_cues(path, encoding=None if is_wide else decoded.charset, bad=bad)
    notes = decoded.notes
    if bad.count:
        notes = (*notes, f"{count_of(bad.count, 'cues')} cannot be read: {bad.first[0]}")
    return BlockDocument([TextBlock(text, CUE) for text in join_cues(cues)], notes=notes)


def join_cues(cues: Iterable[Cue]) -> list[str]:
    """Return the sentences of cues; a sentence may extend over several cues."""
    speeches = [(cue, speech) for cue in cues for speech in cue.speeches]
    ended = sum(_is_ended(speech) for _, speech in speeches)
    is_punctuated = ended >= _PUNCTUATED * len(speeches)
    joined: list[str] = []
    number = 0
    last: Cue | None = None
    for cue, speech in speeches:
        goes_on = (
            last is not None
            and last is not cue
            and cue.start - last.end <= _LONGEST_GAP
            and number < _MOST_CUES
            and _goes_on(joined[-1], speech, is_punctuated)
        )
        if goes_on:
            joined[-1] = _join(joined[-1], speech)
            number += 1
        else:
            joined.append(speech)
            number = 1
        last = cue
    return joined


def _is_ended(text: str) -> bool:
    bare = text.rstrip(CLOSING + " ")
    # The question mark of Greek is a semicolon.
    if _GREEK_QUESTION.search(bare):
        return True
    return not bare or bare[-1] in SENTENCE_ENDS or text[-1] in "♪♫])）】:"


def _goes_on(before: str, text: str, is_punctuated: bool) -> bool:
    """Return whether a sentence continues in the next cue."""
    if before[0] in _APART or text[0] in _APART:
        return False
    if text.startswith(_ELLIPSES) and before.endswith((*_ELLIPSES, *_CONTINUED)):
        return True
    if _is_ended(before):
        return before.endswith(_ELLIPSES) and text[0].islower()
    return is_punctuated or text[0].islower() or before[-1] in _CONTINUED


def _join(before: str, text: str) -> str:
    for mark in _ELLIPSES:
        if text.startswith(mark):
            # Marks of a pause at the end of one cue and the start of the next belong to one pause.
            text = text.removeprefix(mark).lstrip()
            before = before.removesuffix("...").removesuffix("…").rstrip()
    return join_texts(before, text)
