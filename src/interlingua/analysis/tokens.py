"""Tokens of texts with their hidden states, and the position of each token in its text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import CPU_BATCH_TOKENS
from interlingua.encoder.encoder import Encoder
from interlingua.errors import TaskError


class TokenWindow(NamedTuple):
    """Tokens of text of consecutive lines; special tokens and those of the prompt are left out.

    Attributes:
        states: last-layer states, of length 1.
        line: of each token, from 0.
        place: among all tokens of its line, special ones too, from 0.
    """

    states: Float32[ndarray, "t d"]
    line: Int64[ndarray, " t"]
    place: Int64[ndarray, " t"]


class Spelled(NamedTuple):
    """A text and the part of it that each token covers, which is empty for special tokens.

    Attributes:
        text: without the prompt; spaced as the vocabulary segments it.
        spans: first character and the one after the last.
    """

    text: str
    spans: list[tuple[int, int]]


def token_ids(
    encoder: Encoder, lines: Sequence[str], *, language: str, prompt: str = ""
) -> list[list[int]]:
    """Return ids of lines as the encoder reads them.

    They include prompt and special tokens, and are cut at the encoder's limit.
    """
    prompted = [prompt + line for line in lines]
    return encoder.vocabulary.encode(prompted, language=language, max_tokens=encoder.max_tokens)


def batches(
    encoder: Encoder, ids: Sequence[Sequence[int]], *, batch_tokens: int
) -> Iterator[tuple[int, TokenBatch]]:
    """Yield batches of consecutive lines up to a budget, each with its first line's number.

    The lines keep their order, so that results can be assigned to the number of their line.

    Args:
        encoder: the batches are on its device.
        ids: of each line.
        batch_tokens: maximum number of tokens in a batch, which has at least one line.
    """
    limit = batch_tokens
    if encoder.device.type == "cpu":
        limit = min(batch_tokens, CPU_BATCH_TOKENS)
    first = 0
    tokens = 0
    # There is one step more than there are lines; it completes the last batch.
    for line in range(len(ids) + 1):
        if line == len(ids) or (line > first and tokens + len(ids[line]) > limit):
            batch = TokenBatch.from_lists(ids[first:line], ("",) * (line - first))
            yield first, batch.to(encoder.device)
            first = line
            tokens = 0
        if line < len(ids):
            tokens += len(ids[line])


def token_windows(
    encoder: Encoder,
    ids: Sequence[Sequence[int]],
    *,
    prompt: str = "",
    batch_tokens: int = CPU_BATCH_TOKENS,
) -> Iterator[TokenWindow]:
    """Yield the states of all tokens of text.

    Args:
        encoder: in evaluation mode.
        ids: from ``token_ids``.
        prompt: that was put before each line.
        batch_tokens: tokens held at once.

    Raises:
        TaskError: the states hold NaN or infinity.
    """
    backbone = encoder.frozen_backbone(torch.float32)
    for first, batch in batches(encoder, ids, batch_tokens=batch_tokens):
        with torch.inference_mode():
            hidden = backbone(batch.input_ids, batch.cu_seqlens).float()
            states = F.normalize(hidden, dim=-1).cpu().numpy()
        check_finite_values(states, first)
        kept = text_mask(encoder, batch, prompt)
        line = batch.sequence_ids().cpu().numpy() + first
        place = batch.positions().cpu().numpy()
        yield TokenWindow(states[kept], line[kept], place[kept])


def check_finite_values(values: Float32[ndarray, "*shape"], line: int) -> None:
    """Refuse values that can't be counted or averaged.

    Args:
        values: that a model gave.
        line: of the first text, from 0.

    Raises:
        TaskError: NaN or infinity is among them.
    """
    if not np.isfinite(values).all():
        raise TaskError(
            f"the model returned NaN or infinity for tokens from line {line + 1} on; check the"
            " weights of the model"
        )


def text_mask(encoder: Encoder, batch: TokenBatch, prompt: str = "") -> Bool[ndarray, " t"]:
    """Return which tokens are text, and neither the tokenizer's own nor the prompt's."""
    special = torch.isin(batch.input_ids, encoder.special_ids).cpu().numpy()
    place = batch.positions().cpu().numpy()
    # A line is: opening tokens, the prompt, the text, closing tokens.
    opening = encoder.vocabulary.opening_tokens
    of_prompt = (place >= opening) & (place < opening + prompt_length(encoder, prompt))
    return np.asarray(~special & ~of_prompt)


def prompt_length(encoder: Encoder, prompt: str) -> int:
    """Return the number of a prompt's tokens; a space at its end belongs to the text."""
    if not prompt.strip():
        return 0
    # Tokenizers join a space to the word that follows it.
    ids = encoder.vocabulary.tokenizer.encode(prompt.rstrip(), add_special_tokens=False).ids
    return len(ids)


def spell(encoder: Encoder, line: str, *, language: str, prompt: str = "") -> Spelled:
    """Return a line with the span of each of its tokens.

    Args:
        encoder: with the vocabulary.
        line: the text.
        language: its code.
        prompt: that was put before it.
    """
    vocabulary = encoder.vocabulary
    text = vocabulary.as_read(prompt + line, language=language)
    begin = 0
    # If the vocabulary changed the line, the prompt can't be removed and is shown too.
    if text.endswith(line):
        begin = len(text) - len(line)
    # Tokens of the prompt end before the text starts, and get an empty part of it.
    offsets = vocabulary.tokenizer.encode(text).offsets
    spans = [(max(0, start - begin), max(0, end - begin)) for start, end in offsets]
    return Spelled(text[begin:], spans)
