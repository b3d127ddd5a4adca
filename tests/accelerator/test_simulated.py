import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.modeling.attention import Layout, attend
from interlingua.runtime.devices import on_device
from tests.accelerator.simulated import CUDA, Device, MismatchError, host, moved


def test_device_operation_on_a_host_tensor_raises(cuda: Device):
    with cuda.recorded():
        x = torch.ones(3, device="cuda")
        assert x.device == CUDA
        assert x.is_cuda
        with pytest.raises(MismatchError, match="aten::add"):
            x + torch.ones(3)


@pytest.mark.parametrize(
    ("kind", "wait"),
    [
        ("item", lambda x: x.sum().item()),
        ("item", lambda x: bool(x.any())),
        ("tolist", lambda x: x.tolist()),
        ("cpu", lambda x: x.cpu()),
        ("nonzero", lambda x: x.nonzero()),
        ("boolean index", lambda x: x[x > 1]),
        ("boolean index", lambda x: x.index_put_((x > 1,), x.sum())),
        ("index on the host", lambda x: x[torch.tensor([0])]),
        ("unique", lambda x: torch.unique(x)),
        ("repeat_interleave without a size", lambda x: torch.repeat_interleave(x.long())),
        ("tensor", lambda x: x * torch.tensor([2.0, 1.0, 0.0], device=x.device)),
        ("copy to the device that blocks", lambda x: torch.ones(3).to(x.device)),
        (
            "copy to the device from pageable memory",
            lambda x: torch.ones(3).to(x.device, non_blocking=True),
        ),
    ],
)
def test_what_the_host_waits_for_is_counted(cuda: Device, kind, wait):
    with cuda.recorded() as waits:
        wait(torch.arange(3.0, device="cuda"))
    assert [found for found, _ in waits] == [kind]


def test_pinned_copies_and_masks_with_a_scalar_are_free(cuda: Device):
    with cuda.recorded() as waits:
        x = on_device(torch.arange(3.0), CUDA)
        x[x > 1] = 0.0
        y = x.masked_fill(x == 0, 5.0) + x[on_device(torch.tensor([1, 0, 2]), CUDA)]
    assert host(y).tolist() == [6.0, 1.0, 5.0]
    assert not waits


def test_gradients_are_those_of_the_cpu(cuda: Device):
    torch.manual_seed(0)
    layer = torch.nn.Linear(4, 3)
    x = torch.randn(5, 4)
    F.gelu(layer(x)).square().sum().backward()
    expected = layer.weight.grad.clone()
    with cuda.recorded() as waits:
        moved(layer)
        layer.zero_grad()
        F.gelu(layer(on_device(x, CUDA))).square().sum().backward()
    assert torch.equal(host(layer.weight.grad), expected)
    assert not waits


@pytest.mark.parametrize("window", [None, 2])
def test_flash_attention_is_that_of_equal_lengths(cuda: Device, window):
    torch.manual_seed(0)
    qkv = torch.randn(12, 3 * 16).bfloat16()
    cu_seqlens = torch.tensor([0, 3, 8, 12], dtype=torch.int32)
    gradient = torch.randn(12, 16).bfloat16()
    apart = Layout.of(cu_seqlens)
    a = qkv.clone().requires_grad_()
    expected = apart.restore(attend(apart.arrange(a), apart, heads=2, window=window))
    expected.backward(gradient)
    with cuda.recorded() as waits:
        b = on_device(qkv, CUDA).requires_grad_()
        layout = Layout.of(cu_seqlens, flash=True, device=CUDA)
        found = attend(b, layout, heads=2, window=window)
        found.backward(on_device(gradient, CUDA))
    assert torch.allclose(host(found), expected, atol=0.02)
    assert torch.allclose(host(b.grad), a.grad, atol=0.05)
    assert not waits


def test_flash_attention_drops_weights_both_ways(cuda: Device):
    # all values are 1, so that a context is the sum of the weights that are kept
    qkv = torch.cat([torch.randn(40, 16), torch.ones(40, 8)], dim=1).bfloat16()
    with cuda.recorded():
        x = on_device(qkv, CUDA).requires_grad_()
        layout = Layout.of(torch.tensor([0, 40], dtype=torch.int32), flash=True, device=CUDA)
        torch.manual_seed(3)
        context = attend(x, layout, heads=1, dropout_rate=0.25)
        context.backward(torch.ones_like(context))
    sums = host(context)[:, 0].float()
    assert sums.mean().item() == pytest.approx(1.0, abs=0.05)
    assert sums.std().item() > 0.05
    # what a token's value adds to the contexts is what the weights that show it sum to
    of_values = host(x.grad)[:, 16].float()
    assert of_values.sum().item() == pytest.approx(sums.sum().item(), rel=0.02)
