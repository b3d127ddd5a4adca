"""Matches of tokens of two sentences by last-layer states: MEXMA (Janeiro et al. 2024).

If the states have little information about languages, the tokens of translations are near to each
other.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import COMPUTE_DTYPES
from interlingua.serving.model import ServedModel, TokenizedTexts


class TokenSpan(NamedTuple):
    """A token and the position of its text.

    Attributes:
        text: the part of the sentence.
        start: its first character, from 0.
        end: the first character after it.
    """

    text: str
    start: int
    end: int


class SentencePair(NamedTuple):
    """Two sentences, ready for the encoder.

    Attributes:
        tokenized: the token ids of both sentences.
        is_text: for each token of each sentence, True if it represents a part of the sentence;
            special tokens do not.
        spans: for each sentence, the tokens that ``is_text`` marks, with their positions.
    """

    tokenized: TokenizedTexts
    is_text: list[list[bool]]
    spans: list[list[TokenSpan]]


def tokenized_pair(
    model: ServedModel,
    texts: tuple[str, str],
    languages: tuple[str | None, str | None],
    *,
    auto_truncate: bool = True,
) -> SentencePair:
    """Return the tokens of two sentences, and the part of the text that each covers.

    Args:
        model: the encoder.
        texts: the two sentences.
        languages: their codes, for vocabularies that need them.
        auto_truncate: cut a sentence that is too long; otherwise refuse it.

    Raises:
        ConfigError: the model needs languages.
        DataError: a sentence is not valid Unicode, or too long and not to be cut.
    """
    special = set(model.encoder.special_ids.tolist())
    found = SentencePair(TokenizedTexts([], 0), [], [])
    truncated = 0
    for text, language in zip(texts, languages, strict=True):
        tokenized = model.tokenize(
            [text], prompt="", language=language, auto_truncate=auto_truncate
        )
        (ids,) = tokenized.sequences
        truncated += tokenized.truncated
        # The tokenizer gives the positions of tokens. The ids are cut at the model's limit, but the
        # tokenizer's output is not.
        vocabulary = model.encoder.vocabulary
        text = vocabulary.as_read(text, language=language)
        offsets = vocabulary.tokenizer.encode(text).offsets[: len(ids)]
        # A text without tokens gets one unknown token, which represents no part of the text.
        is_text = [bool(offsets) and token not in special for token in ids]
        spans = [place for place, kept in zip(offsets, is_text, strict=bool(offsets)) if kept]
        found.tokenized.sequences.append(ids)
        found.is_text.append(is_text)
        found.spans.append([TokenSpan(text[start:end], start, end) for start, end in spans])
    return found._replace(tokenized=TokenizedTexts(found.tokenized.sequences, truncated))


@torch.inference_mode()
def token_cosines(model: ServedModel, pair: SentencePair) -> Float[Tensor, "s t"]:
    """Compute cosines of each source token (row) with each target token (column).

    Args:
        model: the encoder.
        pair: the sentences.
    """
    encoder = model.encoder
    batch = TokenBatch.from_lists(pair.tokenized.sequences, ("", "")).to(encoder.device)
    backbone = encoder.frozen_backbone(COMPUTE_DTYPES[model.dtype])
    states = backbone(batch.input_ids, batch.cu_seqlens)
    # Both sentences are concatenated, each without its special tokens.
    directions = F.normalize(states.float(), dim=1).cpu()
    source, target = torch.split(directions, [len(kept) for kept in pair.is_text])
    source_is_text, target_is_text = (torch.tensor(kept) for kept in pair.is_text)
    cosines: Tensor = source[source_is_text] @ target[target_is_text].T
    return cosines
