"""Attention over what is shown, against loops over tokens, and its limit cases."""

from __future__ import annotations

import pytest
import torch

from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.layer import Layer
from interlingua.methods.decoders.visible import VisibleLayer, attend_visible, causal
from tests.encoder.naive import naive_layer

LENGTHS = [3, 1, 4, 3, 6, 1]
CONFIG = BackboneConfig(
    vocab_size=9,
    hidden_size=8,
    num_attention_heads=2,
    intermediate_size=12,
    hidden_dropout_prob=0.3,
)


def boundaries(lengths):
    return torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)


def layer_and_streams(dtype=torch.float64):
    torch.manual_seed(0)
    layer = VisibleLayer(CONFIG.layer_spec()).eval().to(dtype)
    return layer, *(torch.randn(sum(LENGTHS), 8, dtype=dtype) for _ in range(2))


def some(rows, length):
    """Build a pattern by (row, i, j) for each row of the batch, with j = 0 always visible."""
    i, j = torch.arange(length)[:, None], torch.arange(length)[None]
    shown = (rows[:, None, None] * 7 + i * 3 + j * 5) % 4 < 2
    return shown | (j == 0)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("visible", [causal, some])
def test_it_is_attention_of_each_sentence_over_what_is_shown(visible, grad):
    layer, x, context = layer_and_streams()
    layout = Layout.of(boundaries(LENGTHS))
    with torch.set_grad_enabled(grad):
        found = layout.restore(
            layer(layout.arrange(x), layout, context=layout.arrange(context), visible=visible)
        )
        expected = [
            naive_layer(layer, a, context=b, shown=visible(torch.tensor([row]), len(a))[0])
            for row, (a, b) in enumerate(zip(x.split(LENGTHS), context.split(LENGTHS), strict=True))
        ]
    torch.testing.assert_close(found, torch.cat(expected))


def test_with_everything_shown_it_is_the_plain_layer():
    layer, x, _ = layer_and_streams()
    plain = Layer(CONFIG.layer_spec()).eval().double()
    plain.load_state_dict(layer.state_dict())
    layout = Layout.of(boundaries(LENGTHS))
    expected = plain(x, layout)
    torch.testing.assert_close(layer(x, layout), expected)
    everything = lambda rows, length: torch.ones(1, length, length, dtype=torch.bool)  # noqa: E731
    torch.testing.assert_close(layer(x, layout, visible=everything), expected)


def test_causal_attention_does_not_look_ahead():
    layer, x, _ = layer_and_streams()
    layout = Layout.of(boundaries(LENGTHS))
    later = x.clone()
    later[-1] += 1  # the last sentence's only token
    later[7] += 1  # the last token of the third sentence
    before, after = (
        layout.restore(layer(layout.arrange(y), layout, visible=causal)) for y in (x, later)
    )
    changed = (before != after).any(dim=1).nonzero()[:, 0].tolist()
    assert changed == [7, sum(LENGTHS) - 1]


def test_gradients_are_those_of_finite_differences():
    torch.manual_seed(1)
    layout = Layout.of(boundaries([2, 3]))
    streams = [torch.randn(5, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]

    def attended(q, k, v):
        return attend_visible(q, k, v, layout, heads=2, visible=some)

    assert torch.autograd.gradcheck(attended, streams)


def test_dropout_of_attention_is_that_of_training_alone():
    layer, x, _ = layer_and_streams(torch.float32)
    layout = Layout.of(boundaries(LENGTHS))
    still = [layer(x, layout, visible=causal) for _ in range(2)]
    assert torch.equal(*still)
    layer.train()
    assert not torch.equal(layer(x, layout, visible=causal), still[0])
