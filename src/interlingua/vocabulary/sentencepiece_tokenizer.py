"""Tokenization of many texts by SentencePiece's C++, several times as fast as ``tokenizers``.

The tokenizer that ``sentencepiece_conversion.py`` makes of a SentencePiece model gives the same ids
as the model itself, under four conditions. All are checked; if one is not met, the ``tokenizers``
tokenizer is used:

1. The tokenizer is exactly the conversion of the model, byte by byte. A tokenizer that was grown,
   trimmed or edited is not.
2. The model is BPE, has the default treatment of spaces, and has no symbols defined by the user. It
   is not Unigram, because two Unigram segmentations may have equal scores; then rounding decides
   between them.
3. The text is in NFKC. Python's ``unicodedata`` converts it ten times as fast as ``tokenizers``,
   but the two may use different versions of Unicode. So each character is compared once.
4. The text does not hold U+2581, SentencePiece's sign for a space.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import cast

from interlingua.vocabulary.sentencepiece_conversion import (
    SPACE,
    PieceType,
    has_default_settings,
    read_model,
    tokenizer_json,
)

# Marks of a high and of a low combining class. If another mark is between them, a library
# that recognizes it as a mark swaps it with one of them in normalization.
HIGH_MARK = "\u0345"
LOW_MARK = "\u0334"


class SentencePieceTokenizer:
    """Tokenizer by SentencePiece, with the ids of the tokenizer that was made from its model.

    Args:
        model_file: a SentencePiece model for which ``can_replace`` is true.
    """

    def __init__(self, model_file: bytes) -> None:
        import sentencepiece
        from tokenizers import normalizers

        self._processor = sentencepiece.SentencePieceProcessor(model_proto=model_file)
        self._normalizes = bool(read_model(model_file).character_map)
        self._nfkc = normalizers.NFKC()
        self._compared: set[str] = set()
        """Characters for which both libraries give the same ids."""

    def covers(self, texts: Sequence[str]) -> bool:
        """Return whether all characters of the texts are known to give equal ids."""
        new = set("".join(texts)) - self._compared
        if SPACE in new:
            return False
        if self._normalizes:
            # Use one call for all characters; line feeds separate them and stay unchanged.
            lines = "\n".join(f"{mark}\nx{HIGH_MARK}{mark}{LOW_MARK}" for mark in sorted(new))
            if unicodedata.normalize("NFKC", lines) != self._nfkc.normalize_str(lines):
                return False
        self._compared |= new
        return True

    def encode(self, texts: Sequence[str], *, threads: int) -> list[list[int]]:
        """Return the token ids of each text.

        Args:
            texts: texts that ``covers`` accepts.
            threads: threads to use; the result does not depend on it.
        """
        normalized = list(texts)
        if self._normalizes:
            normalized = [unicodedata.normalize("NFKC", text) for text in texts]
        return cast("list[list[int]]", self._processor.encode(normalized, num_threads=threads))


def can_replace(model_file: bytes, definition: str, special_tokens: Sequence[str]) -> bool:
    """Return whether a SentencePiece model gives the ids of a tokenizer.

    Args:
        model_file: the SentencePiece model.
        definition: content of the tokenizer's ``tokenizer.json``.
        special_tokens: the tokenizer's special tokens.
    """
    model = read_model(model_file)
    known = {PieceType.NORMAL, PieceType.UNKNOWN, PieceType.CONTROL, PieceType.BYTE}
    is_plain = model.algorithm == "bpe" and {piece.type for piece in model.pieces} <= known
    if not is_plain or not has_default_settings(model_file):
        return False
    return tokenizer_json(model_file, special_tokens=special_tokens) == definition
