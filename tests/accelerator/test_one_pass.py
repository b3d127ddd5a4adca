"""run.compile: the same layer and the same cross-entropy, compiled for real.

What can't be compiled is reported at once.
"""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.executors.eager import EagerSteps
from interlingua.encoder.executors.fused_by_compiler import OnePassSteps
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.layer import Layer
from interlingua.encoder.modeling.layer_weights import LayerSpec, run_layer
from interlingua.errors import ConfigError
from interlingua.functional import masked_lm
from interlingua.functional.masked_lm import linear_cross_entropy
from interlingua.runtime.fusion import Switch, one_pass, switch

pytestmark = pytest.mark.filterwarnings("ignore")  # of torch about its own parts
CPU = torch.device("cpu")
SHAPES = [
    {},
    {"gated": True, "activation": "silu", "intermediate_bias": False},
    {"norm_first": True, "norm_bias": False},
    {"norm_first": True, "attention_norm": False, "output_bias": False},
]


@pytest.fixture
def compiling():
    switch.set(on=True, device=CPU)
    yield
    switch.set(on=False, device=CPU)


def graphs():
    """Return the graphs that were compiled so far."""
    return torch._dynamo.utils.counters["stats"]["unique_graphs"]


def layer_of(shape, dtype=torch.float64):
    torch.manual_seed(0)
    layer = Layer(LayerSpec(width=32, heads=2, inner=48, **shape)).to(dtype)
    for parameter in layer.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)
    return layer


def through(steps, layer, lengths, dtype=torch.float64):
    """Return the states after a layer, and the gradients of its weights."""
    layout = Layout.of(torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32))
    x = torch.randn(sum(lengths), 32, dtype=dtype, generator=torch.Generator().manual_seed(1))
    layer.zero_grad()
    found = run_layer(layer.spec, steps(layer, layout), x)
    found.sum().backward(retain_graph=True)  # as where the gradient of each term is measured
    layer.zero_grad()
    found.square().sum().backward()
    return [found.detach(), *(parameter.grad for parameter in layer.parameters())]


@pytest.mark.parametrize("shape", SHAPES)
def test_the_steps_are_those_of_torch(shape):
    layer = layer_of(shape)
    torch.testing.assert_close(
        through(OnePassSteps, layer, [3, 3, 5]), through(EagerSteps, layer, [3, 3, 5])
    )


def test_dropout_zeroes_what_is_new_and_keeps_the_mean():
    layer = Layer(LayerSpec(width=32, heads=2, inner=48, dropout_rate=0.5))
    torch.nn.init.zeros_(layer.output.weight)
    torch.nn.init.ones_(layer.output.bias)
    steps = OnePassSteps(layer.train(), Layout.of(torch.tensor([0, 500], dtype=torch.int32)))
    found = steps.added(torch.full((500, 32), 3.0), torch.randn(500, 48), "output", None)
    assert set(found.unique().tolist()) == {3.0, 5.0}
    assert found.mean().item() == pytest.approx(4, abs=0.05)


def test_states_between_layers_are_in_the_type_of_the_products():
    layer = layer_of({}, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        one, eager = (
            through(steps, layer, [3, 3, 5], torch.float32)[0]
            for steps in (OnePassSteps, EagerSteps)
        )
    assert (one.dtype, eager.dtype) == (torch.bfloat16, torch.float32)
    torch.testing.assert_close(one.float(), eager, atol=0.05, rtol=0.05)


def test_a_compiled_layer(compiling):
    """Check other numbers and lengths of sentences too, without another compilation."""
    torch._dynamo.reset()
    layer = layer_of({}, torch.float32)
    compiled = [graphs()]
    for lengths in ([3, 3, 5], [7, 2], [9, 4, 4, 1]):
        found, expected = (
            through(steps, layer, lengths, torch.float32) for steps in (OnePassSteps, EagerSteps)
        )
        torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)
        compiled.append(graphs())
    assert compiled[0] < compiled[1] == compiled[-1]
    assert isinstance(layer._steps(torch.randn(5, 32, dtype=torch.float64), None), OnePassSteps)


def test_a_compiled_cross_entropy(compiling, monkeypatch):
    monkeypatch.setattr(masked_lm, "can_use_training_kernel", lambda _: False)
    torch._dynamo.reset()
    before = graphs()
    torch.manual_seed(0)
    hidden, weight, bias = (
        torch.randn(*size, requires_grad=True) for size in ((7, 16), (50, 16), (50,))
    )
    targets = torch.randint(50, (7,))
    expected = F.cross_entropy(hidden @ weight.T + bias, targets, reduction="none")
    found = linear_cross_entropy(hidden, weight, bias, targets, tile=20)
    torch.testing.assert_close(found, expected)
    upstream = torch.randn(7)
    gradients = [
        torch.autograd.grad(y, (hidden, weight, bias), upstream) for y in (found, expected)
    ]
    torch.testing.assert_close(*gradients)
    assert graphs() > before


def test_rows_are_dynamic_and_widths_compiled_in(compiling, monkeypatch):
    found = []

    def backend(graph, inputs):
        found.append([list(x.shape) for x in inputs if isinstance(x, torch.Tensor)])
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=backend))

    @one_pass(rows=1)
    def scaled(x, weight):
        return x * weight

    for rows, width in ((5, 4), (7, 4), (9, 4), (5, 6), (8, 6)):
        scaled(torch.ones(rows, width), torch.ones(width))
    # One compilation for each width, which is a number in it.
    assert [[x[1], *weight] for x, weight in found] == [[4, 4], [6, 6]]


def test_functions_are_compiled_while_the_switch_is_on(monkeypatch):
    made = []
    monkeypatch.setattr(
        torch, "compile", lambda function, **_: made.append(function.__name__) or function
    )

    @one_pass()
    def twice(x):
        return 2 * x

    assert (twice(3), made) == (6, [])
    switch.set(on=True, device=CPU)
    assert (twice(3), twice(4)) == (6, 8)
    switch.set(on=False, device=CPU)
    assert (twice(3), made) == (6, ["_probe", "twice"])


def test_a_machine_that_can_t_compile(monkeypatch):
    def fails(*_, **__):
        raise RuntimeError("No working C++ compiler found\nin a long text")

    monkeypatch.setattr(torch, "compile", fails)
    other = Switch()
    with pytest.raises(ConfigError, match=r"a C\+\+ compiler, .*compile"):
        other.set(on=True, device=CPU)
    assert not other.is_on
