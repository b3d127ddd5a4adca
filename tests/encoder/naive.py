"""A transformer layer written out sentence by sentence and head by head, for one sentence."""

from __future__ import annotations

import copy
import math

import torch
from torch.nn import functional as F

from interlingua.encoder.alibi import alibi_slopes


def naive_layer(layer, x, *, context=None, shown=None):
    """Post-LN layer on one sentence (L, D): queries from ``x``, keys and values from ``context``,
    of those shown."""
    context = x if context is None else context
    count, width = len(x), x.shape[1] // layer.spec.heads
    shown = torch.ones(count, count, dtype=torch.bool) if shown is None else shown
    q, k, v = layer.query(x), layer.key(context), layer.value(context)
    rows = []
    for i in range(count):
        heads = []
        for head in range(layer.spec.heads):
            at = slice(head * width, (head + 1) * width)
            seen = [j for j in range(count) if shown[i, j]]
            slope = alibi_slopes(layer.spec.heads)[head] if layer.spec.alibi else 0.0
            scores = [q[i, at] @ k[j, at] / math.sqrt(width) - slope * abs(i - j) for j in seen]
            weights = torch.softmax(torch.stack(scores), 0)
            heads.append(sum(weight * v[j, at] for weight, j in zip(weights, seen, strict=True)))
        rows.append(torch.cat(heads))
    x = layer.attention_norm(x + layer.attention_output(torch.stack(rows)))
    return layer.output_norm(x + layer.output(layer.activation(layer.intermediate(x))))


def naive_embed(backbone, ids, positions, *, words=None):
    """LayerNorm of word, position and type embeddings of one sentence."""
    words = backbone.word_embeddings.weight[ids] if words is None else words
    table = backbone.position_embeddings.weight
    types = backbone.token_type_embeddings
    x = words + table[torch.as_tensor(positions) + backbone.config.first_position]
    return backbone.embedding_norm(x if types is None else x + types.weight[0])


def naive_backbone(backbone, ids, positions=None, *, words=None, num_layers=None):
    """Hidden states of one sentence."""
    x = naive_embed(backbone, ids, range(len(ids)) if positions is None else positions, words=words)
    for layer in backbone.layers[:num_layers]:
        x = naive_layer(layer, x)
    return x


def naive_cross_entropy(hidden, weight, bias, target):
    """-log softmax(W h + b) at the target, for one token."""
    return -F.log_softmax(weight @ hidden + bias, dim=0)[target]


def with_rounded_matrices(backbone):
    """A copy, with the matrices of its layers rounded to bfloat16."""
    rounded = copy.deepcopy(backbone)
    for parameter in rounded.layers.parameters():
        if parameter.dim() == 2:
            parameter.data.copy_(parameter.data.bfloat16())
    return rounded
