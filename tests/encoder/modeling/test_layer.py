from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.executors import fused
from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.modeling.attention import apply_rotary, attend, window_mask
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import LayerSpec, run_layer
from tests.encoder.naive import naive_layer
from tests.encoder.shapes import layout_of

PLAIN = LayerSpec(width=32, heads=2, inner=48)
OTHER = [
    {"gated": True},
    {"norm_first": True},
    {"norm_first": True, "attention_norm": False},
    {"norm_bias": False},
    {"attention_bias": False},
    {"intermediate_bias": False},
    {"output_bias": False},
    {"rotary_base": 100.0},
    {"alibi": True},
    {"query_key_norm": True},
    {"adds_input_twice": True},
    {"window": 2},
]
LENGTHS = [1, 6, 6, 3, 11]


def made(**changes):
    torch.manual_seed(0)
    spec = LayerSpec(width=32, heads=2, inner=48, **changes)
    layer = Layer(spec).double().eval()
    for parameter in layer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return layer


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        *OTHER,
        {"rotary_base": 50.0, "window": 1, "gated": True, "norm_first": True},
        {"alibi": True, "window": 3, "gated": True, "query_key_norm": True},
    ],
)
def test_each_choice_is_the_layer_written_out(changes, grad):
    layer = made(**changes)
    x = torch.randn(sum(LENGTHS), 32, dtype=torch.float64)
    layout = layout_of(LENGTHS)
    with torch.set_grad_enabled(grad):
        found = layout.restore(layer(layout.arrange(x), layout))
        expected = torch.cat([naive_layer(layer, one) for one in x.split(LENGTHS)])
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-6)  # angles are float32


@pytest.mark.parametrize("changes", OTHER)
def test_only_berts_layer_is_plain(changes):
    assert PLAIN.is_plain
    assert not LayerSpec(width=32, heads=2, inner=48, **changes).is_plain


def test_compiled_paths_leave_other_layers_to_torch(monkeypatch):
    monkeypatch.setattr(fused, "can_use_training_kernel", lambda x: True)
    x, layout = torch.randn(5, 32), layout_of([2, 3])
    assert fused.takes(Layer(PLAIN), x, layout)
    for changes in OTHER:
        assert not fused.takes(Layer(LayerSpec(width=32, heads=2, inner=48, **changes)), x, layout)


def test_fused_steps_make_the_layer_of_their_three_passes(monkeypatch):
    """Replace each pass of the kernel by its equivalent in torch."""
    layer = made()
    spec, layout = layer.spec, layout_of(LENGTHS)
    x = layout.arrange(torch.randn(sum(LENGTHS), 32, dtype=torch.float64))

    def attention(qkv, bias, groups, heads, rate):
        return attend(qkv + bias, layout, heads=heads, dropout_rate=rate)

    def activation(y, bias, kind):
        assert kind == fused.ACTIVATIONS[spec.activation].kernel
        return F.gelu(y + bias)

    def residual_norm(x, y, bias, weight, shift, eps, rate):
        assert rate == 0
        return F.layer_norm(x + y + bias, weight.shape, weight, shift, eps)

    monkeypatch.setattr(fused._Attention, "apply", attention)
    monkeypatch.setattr(fused._Activation, "apply", activation)
    monkeypatch.setattr(fused._ResidualNorm, "apply", residual_norm)
    expected = run_layer(spec, EagerSteps(layer, layout), x)
    torch.testing.assert_close(run_layer(spec, fused.FusedSteps(layer, layout), x), expected)


def test_a_rotation_by_hand():
    """Use base 1, so that every pair turns by one radian per position."""
    layout = layout_of([3])
    x = torch.tensor([[1.0, 0.0]] * 3)
    turned = apply_rotary(x, layout, heads=1, base=1.0)
    expected = torch.tensor([[1.0, 0.0], [0.5403023, 0.8414710], [-0.4161468, 0.9092974]])
    torch.testing.assert_close(turned, expected)


def test_rotated_scores_depend_on_the_distance_alone():
    layout = layout_of([9])
    q, k = torch.randn(1, 8, dtype=torch.float64), torch.randn(1, 8, dtype=torch.float64)
    queries = apply_rotary(q.expand(9, 8), layout, heads=2, base=30.0)
    keys = apply_rotary(k.expand(9, 8), layout, heads=2, base=30.0)
    scores = queries @ keys.T
    for distance in range(-8, 9):
        diagonal = scores.diagonal(distance)
        torch.testing.assert_close(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-6, rtol=1e-6)


def test_a_window_is_a_band_and_nothing_for_short_sentences():
    device = torch.device("cpu")
    assert window_mask(5, None, device) is None
    assert window_mask(3, 2, device) is None
    assert window_mask(4, 2, device).int().tolist() == [
        [1, 1, 1, 0],
        [1, 1, 1, 1],
        [1, 1, 1, 1],
        [0, 1, 1, 1],
    ]
