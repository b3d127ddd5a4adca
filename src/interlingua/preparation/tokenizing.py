"""Tokenization of blocks of pairs, in the processes of preparation."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt32
from numpy import ndarray

from interlingua.preparation.shards import Fate, Shard, split_lines
from interlingua.preparation.sources import LanguagePair
from interlingua.storage.files import PathLike

if TYPE_CHECKING:
    from interlingua.vocabulary.vocabulary import Vocabulary


MODEL_VOCABULARY = "model_vocabulary"
"""Name of the folder of a model's own vocabulary among the temporary files."""


class PairBlock(NamedTuple):
    """Lines of one language pair."""

    language_pair: LanguagePair
    lines: str
    """One line ``source<TAB>target`` per pair."""


class TokenBlock(NamedTuple):
    """The tokens of a block: first source, first target, second source, and so on."""

    language_pair: LanguagePair
    ids: UInt32[ndarray, " t"]
    lengths: UInt32[ndarray, " 2n"]


def pair_blocks(shards: Iterable[Shard], fate: Fate) -> Iterator[PairBlock]:
    """Yield the pairs of a fate."""
    for shard in shards:
        for lines in shard.line_blocks(shard.fates == fate):
            yield PairBlock(shard.language_pair, "".join(lines))


class PairTokenizer:
    """Tokenizer of both sides of pairs.

    In another process it reads the vocabulary from its folder, once.

    Args:
        vocabulary: the tokenizer.
        folder: where it is saved, for other processes.
        prompt: written before every text.
        max_tokens: longer sequences are cut to this many; None: none is cut.
    """

    def __init__(
        self, vocabulary: Vocabulary, folder: PathLike, *, prompt: str, max_tokens: int | None
    ) -> None:
        self.vocabulary = vocabulary
        self.folder = os.fspath(folder)
        self.prompt = prompt
        self.max_tokens = max_tokens

    def __reduce__(self) -> tuple[object, ...]:
        return _tokenizer_of, (self.folder, self.prompt, self.max_tokens)

    def tokenize(self, block: PairBlock) -> TokenBlock:
        """Return the token ids of a block."""
        sequences = list(chain.from_iterable(zip(*self._sides(block), strict=True)))
        lengths = np.fromiter(map(len, sequences), np.uint32, len(sequences))
        flat = chain.from_iterable(sequences)
        ids = np.fromiter(flat, np.uint32, int(lengths.sum()))
        return TokenBlock(block.language_pair, ids, lengths)

    def longest(self, block: PairBlock) -> Int64[ndarray, " n"]:
        """Return the number of tokens of the longer side of each pair."""
        sources, targets = [
            np.fromiter(map(len, side), np.int64, len(side)) for side in self._sides(block)
        ]
        return np.maximum(sources, targets)

    def _sides(self, block: PairBlock) -> list[list[list[int]]]:
        sides = []
        for language, texts in zip(block.language_pair, split_lines(block.lines), strict=True):
            if self.prompt:
                texts = [self.prompt + text for text in texts]
            ids = self.vocabulary.encode(
                texts, language=language, max_tokens=self.max_tokens, sentencepiece_threads=1
            )
            sides.append(ids)
        return sides


@functools.lru_cache(maxsize=1)
def saved_vocabulary(folder: str) -> Vocabulary:
    """Return a vocabulary that ``Vocabulary.save`` wrote; another process reads it once."""
    from interlingua.vocabulary.vocabulary import Vocabulary

    return Vocabulary.load(folder)


def _tokenizer_of(folder: str, prompt: str, max_tokens: int | None) -> PairTokenizer:
    return PairTokenizer(saved_vocabulary(folder), folder, prompt=prompt, max_tokens=max_tokens)
