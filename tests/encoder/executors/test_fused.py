"""The kernel of the layers in training against the layers spelled out in torch, forward and
backward."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from interlingua.encoder.executors import fused
from interlingua.encoder.modeling.backbone import ACTIVATIONS
from interlingua.kernels import KERNEL_VARIANTS, library
from tests.encoder.shapes import layout_of, states_of, tiny_backbone

needs_kernel = pytest.mark.usefixtures("variant")
ROOT = Path(__file__).resolve().parents[3]
LENGTHS = [1, 17, 4, 4, 33, 64, 65, 130]


@pytest.fixture(params=KERNEL_VARIANTS)
def variant(use_variant, request):
    """Each variant of the kernel that this processor runs."""
    use_variant(request.param)
    if library("training") is None:
        pytest.skip(f"needs the compiled kernel and a processor that runs {request.param}")
    return request.param


def backbone_with(*, dropout=0.0, **changes):
    shape = {
        "hidden_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 3,
        "intermediate_size": 144,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        **changes,
    }
    backbone = tiny_backbone(noise=0.3, **shape).train()
    # Attention that is not even.
    for weight in backbone.layers.parameters():
        weight.data.mul_(2.0)
    return backbone


def states_and_gradients(backbone, batch, *, autocast=False):
    """Return states and gradients from equal random numbers, by name and in float64."""
    shape = (len(batch.input_ids), backbone.config.hidden_size)
    # The same under another default dtype.
    draw = torch.Generator().manual_seed(1)
    weights = torch.randn(shape, generator=draw, dtype=torch.float32)
    backbone.zero_grad()
    torch.manual_seed(7)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        states = states_of(backbone, batch)
    drawn = torch.rand(1, dtype=torch.float32)
    (states.float() * weights).sum().backward()
    found = {name: weight.grad.double() for name, weight in backbone.named_parameters()}
    return states.detach().double(), {**found, "random numbers drawn": drawn.double()}


def distances(one, other):
    """Return the relative distances of the states and of each gradient.

    That of the keys' bias is 0 but for rounding.
    """
    (states, gradients), (expected, wanted) = one, other
    names = [name for name in wanted if not name.endswith("key.bias")]
    pairs = [(states, expected), *((gradients[name], wanted[name]) for name in names)]
    return [float((a - b).norm() / b.norm()) for a, b in pairs]


@pytest.fixture
def both(monkeypatch):
    """A function that computes with the kernel, then with torch."""

    def compute(backbone, batch, **options):
        compiled = states_and_gradients(backbone, batch, **options)
        with monkeypatch.context() as patch:
            patch.setattr(fused, "takes", lambda *_: False)
            return compiled, states_and_gradients(backbone, batch, **options)

    return compute


@needs_kernel
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_float32_is_the_layer_in_torch(activation, random_batch, both):
    assert max(distances(*both(backbone_with(hidden_act=activation), random_batch(LENGTHS)))) < 1e-5


@needs_kernel
@pytest.mark.parametrize(
    "shape",
    [
        {"hidden_size": 16, "num_attention_heads": 1, "intermediate_size": 16},
        {"hidden_size": 128, "num_attention_heads": 2, "intermediate_size": 48},
        {"hidden_size": 160, "num_attention_heads": 2, "intermediate_size": 64},
        {"hidden_size": 80, "num_attention_heads": 5, "intermediate_size": 208},
    ],
)
def test_widths_of_every_kind_and_the_same_elements_dropped(shape, random_batch, both):
    assert max(distances(*both(backbone_with(**shape, dropout=0.2), random_batch(LENGTHS)))) < 1e-5


@needs_kernel
def test_bfloat16_is_nearer_to_float32_than_torch_is(random_batch, both):
    backbone, batch = backbone_with(dropout=0.1), random_batch(LENGTHS)
    _, exact = both(backbone, batch)
    ours, torchs = both(backbone, batch, autocast=True)
    own, other = distances(ours, exact), distances(torchs, exact)
    assert max(own) < 0.1
    assert sum(own) < sum(other)


@needs_kernel
def test_threads_share_the_work_and_change_nothing_but_the_order_of_sums(random_batch, set_threads):
    backbone, batch = backbone_with(dropout=0.1), random_batch(LENGTHS * 12)
    set_threads(3)
    several = states_and_gradients(backbone, batch)
    set_threads(1)
    alone = states_and_gradients(backbone, batch)
    assert torch.equal(several[0], alone[0])
    assert 0 < max(distances(several, alone)) < 1e-5


@needs_kernel
def test_without_gradients_states_are_the_same(random_batch):
    backbone, batch = backbone_with(), random_batch(LENGTHS)
    states = states_of(backbone, batch)
    with torch.no_grad():
        assert torch.equal(states_of(backbone, batch), states)


@needs_kernel
def test_large_scores_neither_overflow_nor_vanish(random_batch, both):
    backbone = backbone_with()
    with torch.no_grad():
        for layer in backbone.layers:
            layer.query.weight.mul_(30)
            layer.intermediate.weight.mul_(50)
    compiled, expected = both(backbone, random_batch([5, 40]))
    assert all(torch.isfinite(gradient).all() for gradient in compiled[1].values())
    assert distances(compiled, expected)[0] < 1e-3


@needs_kernel
def test_what_it_does_not_take():
    layer, layout = backbone_with().layers[0], layout_of([2, 3])
    x = torch.randn(5, 96)
    assert fused.takes(layer, x, layout)
    assert not fused.takes(layer, x.double(), layout)
    assert not fused.takes(layer.double(), x.double(), layout)
    assert not fused.takes(layer.float(), x, layout_of([2, 3], flash=True))
    assert not fused.takes(layer, x[:0], layout)
    with torch.autocast("cpu", torch.bfloat16):
        assert not fused.takes(layer, x, layout)
        assert fused.takes(layer, x.bfloat16(), layout)
    for shape in ({"intermediate_size": 150}, {"num_attention_heads": 4}):
        assert not fused.takes(backbone_with(**shape).layers[0], x, layout)


def test_without_the_kernel_nothing_is_taken(monkeypatch, random_batch):
    monkeypatch.setattr("interlingua.kernels.calls.library", lambda name: None)
    layer, layout = backbone_with().layers[0], layout_of([2, 3])
    assert not fused.takes(layer, torch.randn(5, 96), layout)
    assert backbone_with()(*random_batch([3, 4])[:2]).shape == (7, 96)


class NoKernel:
    """Kernel without effect. Its arguments are checked in ``calls.call_kernel``."""

    def __getattr__(self, name):
        return lambda *arguments: 0


@pytest.fixture
def default_dtype(request):
    before = torch.get_default_dtype()
    torch.set_default_dtype(request.param)
    yield request.param
    torch.set_default_dtype(before)


DTYPES = [torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("default_dtype", DTYPES, indirect=True)
@pytest.mark.parametrize("activations", [torch.float32, torch.bfloat16])
def test_buffers_do_not_take_torchs_default_dtype(default_dtype, activations, monkeypatch):
    """Check that every buffer has the type that the C function writes, or ``call`` raises."""
    monkeypatch.setattr("interlingua.kernels.calls.library", lambda name: NoKernel())
    x = torch.ones(7, 32, dtype=activations, requires_grad=True)
    qkv = torch.ones(7, 96, dtype=activations, requires_grad=True)
    floats = [torch.ones(32, dtype=torch.float32, requires_grad=True) for _ in range(3)]
    joint_bias = torch.ones(96, dtype=torch.float32, requires_grad=True)
    groups = layout_of([3, 4]).by_length
    outputs = [
        fused._ResidualNorm.apply(x, x, *floats, 1e-5, 0.1),
        fused._Activation.apply(x, floats[0], 1),
        fused._Attention.apply(qkv, joint_bias, groups, 2, 0.1),
    ]
    for output in outputs:
        assert output.dtype == activations
        output.backward(torch.ones_like(output))
    assert {part.grad.dtype for part in (*floats, joint_bias)} == {torch.float32}


UNDER_ANOTHER_DEFAULT = """
import sys, torch
from tests.encoder.executors.test_fused import LENGTHS, backbone_with
from tests.encoder.executors.test_fused import distances, states_and_gradients
from interlingua.encoder.executors import fused
from interlingua.batches.tokens import TokenBatch

draw = torch.Generator().manual_seed(0)
ids = [torch.randint(5, 100, (length,), generator=draw).tolist() for length in LENGTHS]
batch = TokenBatch.from_lists(ids, ("",) * len(LENGTHS))
backbone = backbone_with()
expected = states_and_gradients(backbone, batch)
torch.set_default_dtype(getattr(torch, sys.argv[1]))
found = states_and_gradients(backbone, batch)
assert torch.equal(found[0], expected[0])
assert max(distances(found, expected)) < 1e-6
"""


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_gradients_are_the_same_under_another_default_dtype(dtype):
    """Run in a separate process: too small buffers would corrupt the heap.

    Without the kernel, that of torch.
    """
    command = [sys.executable, "-c", UNDER_ANOTHER_DEFAULT, dtype]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT)
    assert ran.returncode == 0, ran.stderr
