"""Slopes and penalties of ALiBi, against the paper's formula and loops over tokens."""

from __future__ import annotations

import pytest
import torch

from interlingua.encoder.modeling import attention
from interlingua.encoder.modeling.alibi import alibi_bias, alibi_slopes
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import LayerSpec
from interlingua.methods.decoders.visible import VisibleLayer, causal
from tests.encoder.naive import naive_layer, papers_slopes
from tests.encoder.shapes import JINA_BERT, layout_of, tiny_backbone

LENGTHS = [3, 1, 8, 3, 12]


@pytest.mark.parametrize("heads", range(1, 41))
def test_slopes_are_those_of_the_paper(heads):
    assert alibi_slopes(heads) == pytest.approx(papers_slopes(heads), rel=1e-12)


def test_slopes_of_eight_and_of_twelve_heads_by_hand():
    eight = [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]
    assert alibi_slopes(8) == eight
    root = 2**-0.5
    assert alibi_slopes(12) == pytest.approx([*eight, root, root / 2, root / 4, root / 8])


def test_penalties_by_hand():
    positions = torch.tensor([[0, 1, 2]])
    bias = alibi_bias(positions[:, :2], positions, 2, torch.float32)
    small, smaller = 2**-4, 2**-8
    expected = [
        [[0, -small, -2 * small], [-small, 0, -small]],
        [[0, -smaller, -2 * smaller], [-smaller, 0, -smaller]],
    ]
    torch.testing.assert_close(bias, torch.tensor([expected], dtype=torch.float32))


@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("grad", [True, False])
def test_blocks_of_queries_give_what_all_at_once_give(window, grad, monkeypatch):
    torch.manual_seed(0)
    layer = Layer(LayerSpec(width=24, heads=3, inner=8, alibi=True, window=window)).eval()
    x = torch.randn(sum(LENGTHS), 24)
    layout = layout_of(LENGTHS)
    with torch.set_grad_enabled(grad):
        whole = layer(layout.arrange(x), layout)
        # One query at a time of the longest sentence, and a few of the others.
        monkeypatch.setattr(attention, "MAX_BIAS_ELEMENTS", 3 * 12 * 1)
        torch.testing.assert_close(layer(layout.arrange(x), layout), whole)


@pytest.mark.parametrize("grad", [True, False])
def test_what_is_shown_is_penalized_too(grad):
    torch.manual_seed(0)
    layer = VisibleLayer(LayerSpec(width=8, heads=2, inner=12, alibi=True)).eval().double()
    layout = layout_of(LENGTHS)
    x, context = (torch.randn(sum(LENGTHS), 8, dtype=torch.float64) for _ in range(2))
    with torch.set_grad_enabled(grad):
        found = layout.restore(
            layer(layout.arrange(x), layout, context=layout.arrange(context), visible=causal)
        )
        expected = [
            naive_layer(layer, a, context=b, shown=torch.ones(len(a), len(a)).tril() > 0)
            for a, b in zip(x.split(LENGTHS), context.split(LENGTHS), strict=True)
        ]
    torch.testing.assert_close(found, torch.cat(expected))


def tiny():
    return tiny_backbone(hidden_size=24, num_attention_heads=3, vocab_size=60, **JINA_BERT)


@pytest.mark.parametrize("grad", [True, False])
def test_given_positions_decide_the_distance(grad):
    """Put two sentences in a row, and count the second from 0 again."""
    backbone = tiny()
    ids = torch.randint(60, (10,), generator=torch.Generator().manual_seed(1))
    bounds = torch.tensor([0, 5, 10], dtype=torch.int32)
    with torch.set_grad_enabled(grad):
        # Shifted by the same number, distances are what they were.
        shifted = torch.arange(10) % 5 + torch.tensor([3] * 5 + [40] * 5)
        plain = backbone(ids, bounds)
        torch.testing.assert_close(backbone(ids, bounds, positions=shifted), plain)
        # Of three tokens at places 0, 1, 0 the first and the last have the distance 0: exchanged,
        # they exchange their states.
        bounds = torch.tensor([0, 3], dtype=torch.int32)
        places = torch.tensor([0, 1, 0])
        found = backbone(ids[:3], bounds, positions=places)
        turned = backbone(ids[[2, 1, 0]], bounds, positions=places)
        torch.testing.assert_close(turned, found[[2, 1, 0]])
        others = backbone(ids[[2, 1, 0]], bounds)
    assert (others - found[[2, 1, 0]]).abs().max() > 1e-3


def test_order_of_tokens_matters():
    backbone = tiny()
    ids = torch.tensor([5, 6, 7, 8])
    bounds = torch.tensor([0, 4], dtype=torch.int32)
    found = backbone(ids, bounds)
    # Distances are symmetric: read backwards, each token has the state that it had.
    torch.testing.assert_close(backbone(ids.flip(0), bounds).flip(0), found)
    order = torch.tensor([1, 0, 2, 3])
    assert (backbone(ids[order], bounds)[order] - found).abs().max() > 1e-3
