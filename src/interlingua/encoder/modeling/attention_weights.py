"""The attention weights of the last layer.

Fast attention never computes them explicitly. So the layers before the last one run as always, and
the last one is computed only as far as these weights require. The first tokens of all sentences
need one score per token of the batch and head; the (l, l) matrix of each head is computed only for
a single sentence of l tokens.
"""

from __future__ import annotations

import math
from typing import cast

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.modeling.alibi import slopes_tensor
from interlingua.encoder.modeling.attention import Layout, apply_rotary
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.modeling.layer import Layer


@torch.inference_mode()
def first_token_attention(backbone: Backbone, batch: TokenBatch) -> Float[Tensor, "t h"]:
    """Compute the attention of each sentence's first token over its sentence, in the last layer.

    The first token is ``<s>``, ``[CLS]`` or the like. Dropout is off if the backbone is in
    evaluation mode.

    Args:
        backbone: with at least one layer.
        batch: the packed sentences, on the backbone's device.

    Returns:
        One row per token of the batch, one column per head; over a sentence each column sums to 1.
    """
    layer = cast(Layer, backbone.layers[-1])
    spec = layer.spec
    states = backbone(batch.input_ids, batch.cu_seqlens, num_layers=len(backbone.layers) - 1)
    states = layer.before_attention(states)
    # Queries of only first tokens, (b, heads, head width), but keys of all tokens.
    by_head = (-1, spec.heads, spec.head_width)
    queries = layer.queries(states[batch.cu_seqlens[:-1].long()]).view(by_head)
    keys = layer.keys(states)
    if spec.rotary_base is not None:
        # A first token has position 0 and is not rotated, so only keys are rotated. With
        # `flash` the layout keeps the tokens in the batch's order, which works on any device here.
        in_order = Layout.of(batch.cu_seqlens, flash=True)
        keys = apply_rotary(keys, in_order, heads=spec.heads, base=spec.rotary_base)
    keys = keys.view(by_head)
    sentence = batch.sequence_ids()
    scores = (queries[sentence] * keys).sum(-1).float() / math.sqrt(spec.head_width)
    # The distance of a token from the first token is its position.
    distances = batch.positions()[:, None]
    if spec.alibi:
        scores = scores - distances * slopes_tensor(spec.heads, scores.device)
    if spec.window is not None:
        scores = scores.masked_fill(distances > spec.window, -torch.inf)
    return softmax_by_sentence(scores, sentence, batch.batch_size)


@torch.inference_mode()
def sentence_attention(backbone: Backbone, batch: TokenBatch) -> Float[Tensor, "h l l"]:
    """Return the attention of every token to every token of one sentence, in the last layer.

    Args:
        backbone: with at least one layer.
        batch: one sentence, on the backbone's device.

    Returns:
        Per head a row for each token that looks and a column for each token that is looked at;
        rows sum to 1. Row 0 is ``first_token_attention``.
    """
    layer = cast(Layer, backbone.layers[-1])
    spec = layer.spec
    states = backbone(batch.input_ids, batch.cu_seqlens, num_layers=len(backbone.layers) - 1)
    states = layer.before_attention(states)
    queries, keys = layer.queries(states), layer.keys(states)
    if spec.rotary_base is not None:
        layout = Layout.of(batch.cu_seqlens, flash=True)
        queries = apply_rotary(queries, layout, heads=spec.heads, base=spec.rotary_base)
        keys = apply_rotary(keys, layout, heads=spec.heads, base=spec.rotary_base)
    by_head = (-1, spec.heads, spec.head_width)
    products = torch.einsum("qhw,khw->hqk", queries.view(by_head), keys.view(by_head))
    scores = products.float() / math.sqrt(spec.head_width)
    position = batch.positions()
    distances = (position[:, None] - position).abs()
    if spec.alibi:
        scores = scores - distances * slopes_tensor(spec.heads, scores.device)[:, None, None]
    if spec.window is not None:
        scores = scores.masked_fill(distances > spec.window, -torch.inf)
    return torch.softmax(scores, dim=-1)


def softmax_by_sentence(
    scores: Float[Tensor, "t h"], sentence: Int64[Tensor, " t"], sentences: int
) -> Float[Tensor, "t h"]:
    """Compute the softmax of each column over the tokens of each sentence.

    Args:
        scores: of packed tokens.
        sentence: index of the sentence to which each token belongs.
        sentences: number of sentences.
    """
    rows = sentence[:, None].expand_as(scores)
    shape = (sentences, scores.shape[1])
    # The largest score of each sentence is subtracted, so that no exponential overflows.
    largest = scores.new_full(shape, -torch.inf).scatter_reduce(0, rows, scores, reduce="amax")
    weights = torch.exp(scores - largest[sentence])
    return weights / scores.new_zeros(shape).index_add(0, sentence, weights)[sentence]
