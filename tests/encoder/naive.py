"""A transformer layer written out sentence by sentence and head by head, for one sentence."""

from __future__ import annotations

import copy
import math

import torch
from torch.nn import functional as F

from interlingua.encoder.modeling.layer_weights import ACTIVATIONS


def papers_slopes(heads):
    """Press et al. 2022, section 3: a geometric sequence that starts at 2^(-8/n), with that ratio.

    For other numbers than powers of two as in their code: those of the power below, then every
    other one of twice as many.
    """
    if math.log2(heads).is_integer():
        start = 2 ** (-8 / heads)
        return [start * start**head for head in range(heads)]
    power = 2 ** math.floor(math.log2(heads))
    return papers_slopes(power) + papers_slopes(2 * power)[0::2][: heads - power]


def rotated(row, position, base):
    """Rotate one head's vector pair by pair as complex numbers. Without base, keep it."""
    if base is None:
        return row
    half = len(row) // 2
    turned = row.clone()
    for i in range(half):
        angle = torch.tensor(position * base ** (-2 * i / len(row)))
        number = torch.complex(row[i], row[half + i]) * torch.complex(angle.cos(), angle.sin())
        turned[i], turned[half + i] = number.real, number.imag
    return turned


def naive_attention(q, k, v, heads, *, window=None, shown=None, base=None, alibi=False):
    """Compute attention of one sentence (L, D), token by token and head by head."""
    width = q.shape[1] // heads
    slopes = papers_slopes(heads)
    rows = []
    for i in range(len(q)):
        near = [j for j in range(len(q)) if window is None or abs(i - j) <= window]
        seen = [j for j in near if shown is None or shown[i, j]]
        contexts = []
        for head in range(heads):
            at = slice(head * width, (head + 1) * width)
            query = rotated(q[i, at], i, base)
            keys = torch.stack([rotated(k[j, at], j, base) for j in seen])
            scores = keys @ query / math.sqrt(width)
            if alibi:
                scores = scores - slopes[head] * torch.tensor([abs(i - j) for j in seen])
            contexts.append(scores.softmax(0) @ v[seen, at])
        rows.append(torch.cat(contexts))
    return torch.stack(rows)


def naive_layer(layer, x, *, context=None, shown=None):
    """Compute a layer of one sentence (L, D) from the description of each choice.

    Queries come from ``x``, keys and values from ``context``, of the tokens that are shown.
    """
    spec = layer.spec
    asks, answers = x, x if context is None else context
    if spec.norm_first and spec.attention_norm:
        asks, answers = layer.attention_norm(asks), layer.attention_norm(answers)
    q, k, v = layer.query(asks), layer.key(answers), layer.value(answers)
    if spec.query_key_norm:
        q, k = layer.query_norm(q), layer.key_norm(k)
    sees = {"window": spec.window, "shown": shown, "base": spec.rotary_base, "alibi": spec.alibi}
    attended = x + layer.attention_output(naive_attention(q, k, v, spec.heads, **sees))
    if not spec.norm_first:
        attended = layer.attention_norm(attended)
    if spec.adds_input_twice:
        attended = layer.second_attention_norm(x + attended)
    inner = layer.intermediate(layer.output_norm(attended) if spec.norm_first else attended)
    gate = 1
    if spec.gated:
        inner, gate = inner.chunk(2, dim=1)
    attended = attended + layer.output(ACTIVATIONS[spec.activation].function(inner) * gate)
    return attended if spec.norm_first else layer.output_norm(attended)


def naive_embed(backbone, ids, positions, *, words=None):
    """Compute LayerNorm of word, position and type embeddings of one sentence."""
    words = backbone.word_embeddings.weight[ids] if words is None else words
    table = backbone.position_embeddings.weight
    types = backbone.token_type_embeddings
    x = words + table[torch.as_tensor(positions) + backbone.config.first_position]
    return backbone.embedding_norm(x if types is None else x + types.weight[0])


def naive_backbone(backbone, ids, positions=None, *, words=None, num_layers=None):
    """Compute hidden states of one sentence."""
    x = naive_embed(backbone, ids, range(len(ids)) if positions is None else positions, words=words)
    for layer in backbone.layers[:num_layers]:
        x = naive_layer(layer, x)
    return x


def naive_cross_entropy(hidden, weight, bias, target):
    """Compute -log softmax(W h + b) at the target, for one token."""
    return -F.log_softmax(weight @ hidden + bias, dim=0)[target]


def with_rounded_matrices(backbone):
    """Return a copy, with the matrices of its layers rounded to bfloat16."""
    rounded = copy.deepcopy(backbone)
    for parameter in rounded.layers.parameters():
        if parameter.dim() == 2:
            parameter.data.copy_(parameter.data.bfloat16())
    return rounded
