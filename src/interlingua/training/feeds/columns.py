"""Turns texts into columns of tokens, a chunk at a time.

Neither all texts nor all Python integers are held at once: a token takes four bytes in an array,
and some thirty as an integer in a list.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from jaxtyping import Int32

from interlingua.batches.table import TokenColumn
from interlingua.vocabulary.vocabulary import CHUNK_TEXTS, Vocabulary


class ColumnBuilder:
    """Collects texts of any languages, in order.

    Args:
        vocabulary: makes the tokens.
        max_tokens: longer texts are cut to this many.
    """

    def __init__(self, vocabulary: Vocabulary, max_tokens: int) -> None:
        self._vocabulary = vocabulary
        self._max_tokens = max_tokens
        self._texts: list[str] = []
        self._languages: list[str] = []
        self._sequences: list[Int32[np.ndarray, " t"]] = []

    def __len__(self) -> int:
        return len(self._languages)

    def add(self, text: str, language: str) -> int:
        """Take a text.

        Returns:
            its row.
        """
        self._texts.append(text)
        self._languages.append(language)
        # as many as the tokenizer takes at once
        if len(self._texts) == CHUNK_TEXTS:
            self._tokenize()
        return len(self._languages) - 1

    def column(self) -> TokenColumn:
        """The texts so far.

        Raises:
            DataError: there are none.
        """
        self._tokenize()
        return TokenColumn(self._sequences, self._languages)

    def _tokenize(self) -> None:
        """Language by language, as some vocabularies segment words by it first."""
        # Texts are cleared once they are tokenized, languages are kept: the last ones are theirs.
        languages = self._languages[len(self._sequences) :]
        found: dict[int, Int32[np.ndarray, " t"]] = {}
        for language in sorted(set(languages)):
            rows = [row for row, code in enumerate(languages) if code == language]
            texts = [self._texts[row] for row in rows]
            encoded = self._vocabulary.encode(texts, language=language, max_tokens=self._max_tokens)
            for row, ids in zip(rows, encoded, strict=True):
                found[row] = np.asarray(ids, dtype=np.int32)
        self._sequences += [found[row] for row in range(len(languages))]
        self._texts.clear()


def token_column(
    texts: Iterable[str], languages: Iterable[str], vocabulary: Vocabulary, max_tokens: int
) -> TokenColumn:
    """A column of texts with the language of each."""
    builder = ColumnBuilder(vocabulary, max_tokens)
    for text, language in zip(texts, languages, strict=True):
        builder.add(text, language)
    return builder.column()
