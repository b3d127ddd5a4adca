"""Frozen teachers: models that embed sentences given as a student's tokens, or ready vectors.

A batch holds its sentences as the student's token ids. A teacher with the same vocabulary reads
these ids. Any other teacher reads the decoded text, which works only if the student's vocabulary
preserves all that the teacher reads (case, spaces). This is checked once, on ``PROBE``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.batches.sentences import sentence_keys
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import Dtype, encode_tokens
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.storage.files import open_text, sha256_file
from interlingua.vocabulary.vocabulary import Vocabulary, truncate

TokenizedSentences = Sequence[Sequence[int]]
PROBE = "The mayor of Bonn (67) says: it's 7 o'clock - why don't we start?"
"""Text of the check. The student's vocabulary encodes this text and decodes it again; the teacher's
vocabulary must give the result the same tokens as the original text."""


class Teacher(Protocol):
    """Interface of an encoder that embeds sentences the same way each time."""

    name: str
    width: int

    def digest(self) -> str:
        """Return a digest of everything that determines the vectors."""
        ...

    def embed(self, sentences: TokenizedSentences, language: str) -> Float32[ndarray, "n d"]:
        """Return vectors of sentences in the student's tokens, not normalized."""
        ...


class ModelTeacher:
    """A model that embeds the sentences.

    A model with the student's vocabulary reads the student's tokens. Any other reads the text of
    the tokens.

    Args:
        encoder: the model.
        student: the vocabulary of the sentences.
        pivot: language in which the check encodes ``PROBE``.
        prompt: text in front of each sentence.
        name: for messages.
        dtype: to compute in.

    Raises:
        ConfigError: the student's tokens do not keep the text as this model reads it.
    """

    def __init__(
        self,
        encoder: Encoder,
        student: Vocabulary,
        *,
        pivot: str,
        prompt: str = "",
        name: str = "",
        dtype: Dtype = "float32",
    ) -> None:
        self.encoder = encoder.eval()
        self.name = name or "the encoder itself"
        self.width = encoder.dim
        self._student = student
        self._prompt = prompt
        self._dtype = dtype
        self._rereads = bool(prompt) or student.digest() != encoder.vocabulary.digest()
        if self._rereads:
            read_back = self.in_own_tokens(student.encode([PROBE], language=pivot), pivot)
            limit = encoder.max_tokens
            own_ids = encoder.vocabulary.encode([prompt + PROBE], language=pivot, max_tokens=limit)
            if read_back != own_ids:
                raise ConfigError(
                    f"teacher: {self.name} has another vocabulary, and the corpus's vocabulary"
                    " changes case or spaces of the text; prepare the corpus with the teacher's"
                    " vocabulary, or use another teacher"
                )

    def digest(self) -> str:
        """Return a digest of everything that determines the vectors."""
        parts = (
            self.encoder.digest(),
            self._prompt,
            self._dtype,
            self.encoder.settings,
            self.encoder.max_tokens,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def embed(self, sentences: TokenizedSentences, language: str) -> Float32[ndarray, "n d"]:
        """Return vectors of sentences in the student's tokens, not normalized."""
        ids = self.in_own_tokens(sentences, language)
        return encode_tokens(self.encoder, ids, normalize=False, dtype=self._dtype)

    def in_own_tokens(self, sentences: TokenizedSentences, language: str) -> list[list[int]]:
        """Return the sentences in this model's tokens, cut to its maximum length."""
        own = self.encoder.vocabulary
        limit = self.encoder.max_tokens
        if self._rereads:
            texts = [self._prompt + self._student.decode(ids) for ids in sentences]
            return own.encode(texts, language=language, max_tokens=limit)
        return [truncate(ids, limit, closing_tokens=own.closing_tokens) for ids in sentences]


class VectorTeacher:
    """Ready vectors, of whatever model: ``NAME.npy`` with a row for each line of ``NAME.txt``.

    Args:
        path: of the .npy file.
        student: the vocabulary of the sentences; a line is found by its tokens, or by its text.
        pivot: language of the lines.
        max_tokens: length that the student's sentences are cut to.

    Raises:
        DataError: a file is missing, or the two files do not belong together.
    """

    def __init__(self, path: str, student: Vocabulary, *, pivot: str, max_tokens: int) -> None:
        self.name = path
        self._student = student
        file = Path(path).expanduser()
        lines = file.with_suffix(".txt")
        try:
            self._vectors = np.load(file, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise DataError(
                f"cannot be read as a matrix of vectors ({error}); save it with numpy.save",
                path=file,
            ) from error
        with open_text(lines) as opened:
            texts = [line.rstrip("\n") for line in opened]
        if self._vectors.ndim != 2 or len(self._vectors) != len(texts):
            raise DataError(
                f"expected one row per line of {lines.name} ({count_of(len(texts), 'lines')}),"
                f" found shape {self._vectors.shape}",
                path=file,
            )
        self.width = int(self._vectors.shape[1])
        digests = f"{sha256_file(file)} {sha256_file(lines)}"
        self._digest = hashlib.sha256(digests.encode()).hexdigest()
        # Two ways to a row: by the key of a line's tokens, and by the line itself.
        self._rows: dict[int, int] = {}
        self._rows_by_text = {_on_one_line(text): row for row, text in enumerate(texts)}
        if texts:
            ids = student.encode(texts, language=pivot, max_tokens=max_tokens)
            keys = sentence_keys(TokenBatch.from_lists(ids, [pivot] * len(ids)))
            self._rows = {key: row for row, key in enumerate(keys.tolist())}

    def digest(self) -> str:
        """Return a digest of everything that determines the vectors."""
        return self._digest

    def missing(self, sentences: TokenizedSentences) -> list[int]:
        """Return the indices of the sentences without a vector."""
        return [index for index, row in enumerate(self._rows_of(sentences)) if row is None]

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens, on one line."""
        return _on_one_line(self._student.decode(ids))

    def embed(self, sentences: TokenizedSentences, language: str) -> Float32[ndarray, "n d"]:
        """Return the ready vectors of sentences.

        Raises:
            DataError: a sentence has no vector.
        """
        if absent := self.missing(sentences):
            raise DataError(
                f"{len(absent)} of {len(sentences)} sentences have no vector; add their vectors,"
                f" for example the vector of {self.text(sentences[absent[0]])!r}",
                path=self.name,
            )
        return np.asarray(self._vectors[self._rows_of(sentences)], dtype=np.float32)

    def _rows_of(self, sentences: TokenizedSentences) -> list[int | None]:
        """Find the row of each sentence by its tokens, or else by its text.

        A sentence that was cut within a word may get other tokens when it is read again.
        """
        keys = sentence_keys(TokenBatch.from_lists(sentences, [""] * len(sentences))).tolist()
        rows = []
        for ids, key in zip(sentences, keys, strict=True):
            row = self._rows.get(key)
            # Decoding costs more than a look-up, so it is done only for the rest.
            if row is None:
                row = self._rows_by_text.get(self.text(ids))
            rows.append(row)
        return rows


def _on_one_line(text: str) -> str:
    return " ".join(text.split())
