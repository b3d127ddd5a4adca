"""Long passages in chunks of the model's tokens, cut at the ends of sentences.

A vector says little about a text of thousands of tokens, and an encoder reads only its first few
hundred. So a passage of more than ``tokens`` is cut into chunks of nearly equal size at the ends of
its sentences. The last sentences of a chunk, up to ``overlap`` tokens, are repeated in the next
one, so that text that belongs together is found together. A sentence that is too long is cut at
white space near its middle, otherwise between two characters, but never before a combining mark.
"""

from __future__ import annotations

import itertools
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from interlingua.corpus.segments.sentence_splitting import split_text
from interlingua.errors import ConfigError
from interlingua.retrieval.passage_files import Passage
from interlingua.runtime.portions import ceil_div

TOKENS = 256
OVERLAP = 32
LEAST_TOKENS = 16
SPACES = " \n\t\u3000"
JOINS_NEXT = "\u200d\u0e40\u0e41\u0e42\u0e43\u0e44\u0ec0\u0ec1\u0ec2\u0ec3\u0ec4"
"""Joiner of emoji, and vowels of Thai and Lao that are written before their consonant."""
JOINS_PREVIOUS = "\u200d\u0e33\u0eb3\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Joiner of emoji, the vowel am of Thai and Lao, and skin tones."""
CountTokens = Callable[[Sequence[str], str], Sequence[int]]
"""Function that returns the number of tokens of each text in a language, without special tokens."""
_Span = tuple[int, int]
"""Part of a text: its first character, and the one after it."""


class ChunkSettings(NamedTuple):
    """Options for the cutting of passages.

    Attributes:
        tokens: maximum number of tokens in a chunk; 0 = passages are not cut.
        overlap: maximum number of tokens that a chunk shares with the one before it.
    """

    tokens: int = TOKENS
    overlap: int = OVERLAP


DEFAULT_CHUNKS = ChunkSettings()


def check_chunks(settings: ChunkSettings) -> None:
    """Refuse sizes from which no chunks can be made.

    Raises:
        ConfigError: a number is out of range.
    """
    tokens, overlap = settings
    if tokens and tokens < LEAST_TOKENS:
        raise ConfigError(
            f"--chunk-tokens: expected 0 (no chunks) or at least {LEAST_TOKENS}, found {tokens}"
        )
    if overlap < 0 or (tokens and 2 * overlap > tokens):
        raise ConfigError(
            f"--chunk-overlap: expected a number from 0 to half of --chunk-tokens ({tokens // 2}),"
            f" found {overlap}"
        )


def chunked(
    passages: Iterable[Passage], settings: ChunkSettings, count: CountTokens, most: int
) -> Iterator[Passage]:
    """Yield passages, and cut long ones into chunks.

    The id of a chunk is the id of its passage, followed by the number of the chunk:
    ``guide.md:12#2``. All chunks have the passage's id as their document, unless the passage itself
    is a part of a document.

    Args:
        passages: any number.
        settings: sizes.
        count: returns the numbers of tokens of texts.
        most: maximum number of tokens that the model reads of a text with its title and heading.
    """
    for passage in passages:
        passage = passage._replace(document=passage.document or passage.id)
        if not settings.tokens or len(passage.text.encode(errors="replace")) <= settings.tokens:
            # A token has at least one byte.
            yield passage
            continue
        size = settings.tokens
        if context := passage.context:
            size = min(size, most - count([context], passage.language)[0])
        size = max(min(size, most), LEAST_TOKENS)
        if count([passage.text], passage.language)[0] <= size:
            yield passage
            continue
        spans = _chunk_spans(passage, size, min(settings.overlap, size // 2), count)
        for number, (start, stop) in enumerate(spans, start=1):
            yield passage._replace(
                id=f"{passage.id}#{number}",
                text=passage.text[start:stop],
                offset=passage.offset + start,
            )


def _chunk_spans(passage: Passage, size: int, overlap: int, count: CountTokens) -> Iterator[_Span]:
    """Yield the chunks of a text."""
    text = passage.text
    parts: list[tuple[_Span, int]] = []
    spans = sentence_spans(text, passage.language)
    counts = count([text[start:stop] for start, stop in spans], passage.language)
    for span, tokens in zip(spans, counts, strict=True):
        parts += _shorter(text, span, tokens, size, passage.language, count)
    total = sum(tokens for _, tokens in parts)
    # Chunks of equal size, so that the last one is not a rest of a few words.
    target = ceil_div(total, ceil_div(total, size))
    first = done = 0
    while done < len(parts):
        stop = first
        tokens = 0
        while stop < len(parts) and (
            stop <= done or (tokens < target and tokens + parts[stop][1] <= size)
        ):
            tokens += parts[stop][1]
            stop += 1
        yield parts[first][0][0], parts[stop - 1][0][1]
        done = first = stop
        if done == len(parts):
            return
        shared = 0
        # The shared part leaves room for the next sentence.
        while first and shared + parts[first - 1][1] <= min(overlap, size - parts[done][1]):
            first -= 1
            shared += parts[first][1]


def sentence_spans(text: str, language: str) -> list[_Span]:
    """Return where the sentences of a text are."""
    # The splitter changes nothing but white space, so that the other characters can be counted.
    solid = array("q", (at for at, one in enumerate(text) if not one.isspace()))
    spans = []
    seen = 0
    for sentence in split_text(text.split("\n"), language):
        length = sum(len(word) for word in sentence.split())
        spans.append((solid[seen], solid[seen + length - 1] + 1))
        seen += length
    return spans


def _cut_of_word(text: str, start: int, middle: int, stop: int) -> int:
    """Return where to cut a word, at or near its middle, so that no character loses its marks."""
    for cut in itertools.chain(range(middle, stop), range(middle - 1, start, -1)):
        if not (_continues(text[cut]) or text[cut - 1] in JOINS_NEXT):
            return cut
    return middle  # one character with more marks than a chunk has tokens


def _continues(character: str) -> bool:
    """Return whether a character belongs to the one before it: a mark, a joiner or a skin tone."""
    return unicodedata.category(character)[0] == "M" or character in JOINS_PREVIOUS


def _shorter(
    text: str, span: _Span, tokens: int, size: int, language: str, count: CountTokens
) -> list[tuple[_Span, int]]:
    """Cut a sentence of too many tokens in halves, and cut the halves again if necessary."""
    whole: list[tuple[_Span, int]] = []
    pending = [(span, tokens)]
    while pending:
        (start, stop), tokens = pending.pop()
        if tokens <= size or stop - start < 2:
            whole.append(((start, stop), tokens))
            continue
        middle = (start + stop) // 2
        quarter = (stop - start) // 4
        # White space in the second or third quarter, else the middle of a word.
        space = max(text.rfind(mark, middle - quarter, middle + quarter) for mark in SPACES)
        cut = space + 1 if space >= start else _cut_of_word(text, start, middle, stop)
        halves = [(start, cut), (cut, stop)]
        counts = count([text[one:other] for one, other in halves], language)
        pending += reversed(list(zip(halves, counts, strict=True)))
    return whole
