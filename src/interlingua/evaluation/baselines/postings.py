"""The postings of words (passage and count) in a file, so that memory does not grow.

Passages are split into words one at a time. The words are collected as numbers in an array until a
block is full. A block is then sorted by word and written: the length of each of its passages, its
distinct words, and for each word the passages that hold it with the counts. A score also needs two
figures of the whole collection: the number of passages with each word and the mean length of
passages. They are summed up over the blocks and known after the last one.

In memory are the block being filled and the vocabulary. A vocabulary of millions of words is large
itself; if the queries are known, only their words are kept, while all words count for the
lengths.
"""

from __future__ import annotations

import itertools
import tempfile
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, NamedTuple

import numpy as np
from jaxtyping import Int32, Int64
from numpy import ndarray

BLOCK_WORDS = 2**22
"""Number of words in memory at which a block is written; one passage may exceed it."""
BLOCK_PASSAGES = 2**18


class PostingsBlock(NamedTuple):
    """Consecutive passages and their postings.

    Attributes:
        first: number of its first passage.
        lengths: words of each passage.
        words: distinct ones, in ascending order.
        ends: end of each word's postings.
        passages: for each posting, the number of its passage in the block; ascending for each word.
        counts: for each posting, the number of occurrences of the word in the passage.
    """

    first: int
    lengths: Int32[ndarray, " n"]
    words: Int32[ndarray, " w"]
    ends: Int32[ndarray, " w"]
    passages: Int32[ndarray, " p"]
    counts: Int32[ndarray, " p"]

    def postings(self, word: int) -> tuple[Int32[ndarray, " m"], Int32[ndarray, " m"]]:
        """Return the passages of the block that contain a word, and how often each contains it."""
        at = int(np.searchsorted(self.words, word))
        if at == len(self.words) or self.words[at] != word:
            return self.passages[:0], self.counts[:0]
        # a word's postings start where those of the previous word end
        start = self.ends[at - 1] if at else 0
        part = slice(start, self.ends[at])
        return self.passages[part], self.counts[part]


class Postings:
    """The words of all passages.

    Args:
        passages: the words of each, in order.
        only: words to keep postings of; all by default.

    Attributes:
        count: passages.
        length: words of all passages together.
        vocabulary: word -> its number.
        document_frequencies: number of passages that contain each word, by its number.
        keeps_all: whether there are postings of all words.
    """

    def __init__(
        self, passages: Iterable[Sequence[str]], only: Iterable[str] | None = None
    ) -> None:
        self.count = 0
        self.length = 0
        self.keeps_all = only is None
        self.vocabulary: dict[str, int] = {}
        for word in only or ():
            self.vocabulary.setdefault(word, len(self.vocabulary))
        self.document_frequencies: Int64[ndarray, " v"] = np.zeros(0, np.int64)
        self._sizes: list[tuple[int, int, int]] = []
        with tempfile.TemporaryFile(prefix="interlingua-") as file:
            self._write(passages, file)
            file.flush()
            self._numbers: Int32[ndarray, " all"] = np.zeros(0, np.int32)
            # one map of the whole file, as each map would hold a file descriptor; an empty file
            # can't be mapped
            if self.count:
                self._numbers = np.memmap(file, np.int32, mode="r")
        self._make_room(len(self.vocabulary))

    def blocks(self) -> Iterator[PostingsBlock]:
        """Yield all blocks, in the order of the passages."""
        first = 0
        start = 0
        for passages, words, postings in self._sizes:
            # the order in which _write_block wrote lengths, words, ends, passages and counts
            sizes = (passages, words, words, postings, postings)
            edges = start + np.cumsum((0, *sizes))
            arrays = [self._numbers[low:high] for low, high in itertools.pairwise(edges)]
            yield PostingsBlock(first, *arrays)
            first += passages
            start = int(edges[-1])

    def _write(self, passages: Iterable[Sequence[str]], file: IO[bytes]) -> None:
        numbers = array("i")
        kept = array("i")
        lengths = array("i")
        for words in passages:
            if self.keeps_all:
                found = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in words]
            else:
                found = [self.vocabulary[word] for word in words if word in self.vocabulary]
            numbers.extend(found)
            # words that are not kept still count for the length, which scores depend on
            kept.append(len(found))
            lengths.append(len(words))
            # passages are never split, so a block may exceed the limit by one passage
            if len(numbers) >= BLOCK_WORDS or len(lengths) >= BLOCK_PASSAGES:
                self._write_block(numbers, kept, lengths, file)
                numbers = array("i")
                kept = array("i")
                lengths = array("i")
        if lengths:
            self._write_block(numbers, kept, lengths, file)

    def _write_block(
        self, numbers: array[int], kept: array[int], lengths: array[int], file: IO[bytes]
    ) -> None:
        of_word = np.frombuffer(numbers, np.int32).astype(np.int64)
        in_passage = np.repeat(np.arange(len(kept)), np.frombuffer(kept, np.int32))
        # word and passage in one number, so that sorting orders by words and then by passages
        pairs, counts = np.unique((of_word << 32) | in_passage, return_counts=True)
        # each pair of word and passage occurs once in ``pairs``, so this counts the passages of
        # each word
        words, holders = np.unique(pairs >> 32, return_counts=True)
        arrays = (
            np.frombuffer(lengths, np.int32),
            words,
            np.cumsum(holders),
            pairs & (2**32 - 1),
            counts,
        )
        for part in arrays:
            file.write(part.astype(np.int32).tobytes())
        self._sizes.append((len(lengths), len(words), len(pairs)))
        self.count += len(lengths)
        self.length += sum(lengths)
        self._make_room(len(self.vocabulary))
        self.document_frequencies[words] += holders

    def _make_room(self, words: int) -> None:
        """Extend ``document_frequencies`` to the number of words.

        It grows by at least an eighth of its length, because every block adds new words.
        """
        short = words - len(self.document_frequencies)
        if short > 0:
            ahead = max(short, len(self.document_frequencies) // 8)
            self.document_frequencies = np.pad(self.document_frequencies, (0, ahead))
