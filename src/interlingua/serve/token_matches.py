"""Which tokens of two sentences mean the same, by their last-layer states (as in MEXMA, Janeiro et al. 2024)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import COMPUTE_DTYPES
from interlingua.serve.model import ServedModel


class TokenSpan(NamedTuple):
    """A token and where its text stands.

    Attributes:
        text: the part of the sentence.
        start: its first character, from 0.
        end: the first character after it.
    """

    text: str
    start: int
    end: int


class TokenMatches(NamedTuple):
    """Tokens of two sentences and their cosines.

    Attributes:
        source: tokens of the first sentence, without special tokens.
        target: those of the second one.
        cosines: of each source token (row) with each target token (column).
    """

    source: list[TokenSpan]
    target: list[TokenSpan]
    cosines: Float[Tensor, "s t"]


@torch.inference_mode()
def match_tokens(
    model: ServedModel, source: str, target: str, *, language: tuple[str | None, str | None]
) -> TokenMatches:
    """The tokens of two sentences and how similar their states are.

    Args:
        model: the encoder.
        source: a sentence.
        target: another one.
        language: codes of both's languages, for vocabularies that need them.

    Raises:
        ConfigError: the model needs languages.
        DataError: a sentence is not valid Unicode.
    """
    encoder = model.encoder
    tokenized = [
        model.tokenize([text], prompt="", language=code).sequences[0]
        for text, code in zip((source, target), language, strict=True)
    ]
    batch = TokenBatch.from_lists(tokenized, ("", "")).to(encoder.device)
    states = encoder.frozen_backbone(COMPUTE_DTYPES[model.dtype])(batch.input_ids, batch.cu_seqlens)
    is_text = ~torch.isin(batch.input_ids, encoder.special_ids)
    first = len(tokenized[0])
    # A text without tokens has an unknown one in their place, which stands for no part of it.
    for text, tokens in ((source, is_text[:first]), (target, is_text[first:])):
        if not _offsets(model, text):
            tokens.fill_(False)
    directions = F.normalize(states.float(), dim=1)
    one = directions[:first][is_text[:first]]
    other = directions[first:][is_text[first:]]
    source_spans = _spans(model, source, is_text[:first].tolist())
    target_spans = _spans(model, target, is_text[first:].tolist())
    return TokenMatches(source_spans, target_spans, (one @ other.T).cpu())


def _spans(model: ServedModel, text: str, keep: list[bool]) -> list[TokenSpan]:
    offsets = _offsets(model, text)[: len(keep)]
    if not offsets:
        return []
    kept = [span for span, is_text in zip(offsets, keep, strict=True) if is_text]
    return [TokenSpan(text[start:end], start, end) for start, end in kept]


def _offsets(model: ServedModel, text: str) -> list[tuple[int, int]]:
    """First and last character of each token, special tokens included."""
    offsets: list[tuple[int, int]] = model.encoder.vocabulary.tokenizer.encode(text).offsets
    return offsets
