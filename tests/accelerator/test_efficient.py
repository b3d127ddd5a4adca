"""Attention of packed sentences where FlashAttention can't run, on the simulated device."""

import logging

import pytest
import torch

from interlingua.encoder.modeling import efficient_attention
from interlingua.encoder.modeling.attention import Layout, attend
from interlingua.runtime.devices import on_device
from tests.accelerator import simulated
from tests.accelerator.simulated import CUDA, Device, host, moved
from tests.accelerator.test_encode import TEXTS
from tests.methods.conftest import tiny_encoder

FORWARD = "aten::_efficient_attention_forward"
BACKWARD = "aten::_efficient_attention_backward"
LENGTHS = [3, 1, 5, 3, 2, 9, 40, 7]
OPTIONS = {"heads": 2}


def both_ways(qkv, lengths, device, **options):
    """Return contexts in the batch's order, and the gradient of queries, keys and values."""
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    layout = Layout.of(bounds, device=device)
    x = on_device(qkv, device).detach().requires_grad_()
    context = layout.restore(attend(layout.arrange(x), layout, **{**OPTIONS, **options}))
    upstream = torch.linspace(-1, 1, len(qkv) * qkv.shape[1] // 3).view(len(qkv), -1)
    context.backward(on_device(upstream.to(qkv.dtype), device))
    return host(context).detach(), host(x.grad)


def made(lengths=LENGTHS, dtype=torch.float32):
    draw = torch.Generator().manual_seed(0)
    return torch.randn(sum(lengths), 3 * 16, generator=draw).to(dtype)


def assert_close(found, expected, atol):
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=atol)


@pytest.mark.parametrize(
    ("dtype", "atol"), [(torch.float32, 1e-5), (torch.float16, 4e-3), (torch.bfloat16, 4e-2)]
)
def test_packed_is_group_by_group_with_gradients(cuda: Device, dtype, atol):
    qkv = made(dtype=dtype)
    with cuda.recorded() as waits:
        found = both_ways(qkv, LENGTHS, CUDA)
    assert cuda.launches[FORWARD] == 2  # of which one is the trial
    assert cuda.launches[BACKWARD] == 2
    assert_close(found, both_ways(qkv, LENGTHS, torch.device("cpu")), atol)
    assert not waits


def test_launches_do_not_grow_with_the_number_of_lengths(cuda: Device):
    counts = []
    for lengths in ([2, 3], [2, 3], list(range(1, 61))):
        with cuda.recorded():
            both_ways(made(lengths), lengths, CUDA)
        counts.append(sum(cuda.launches.values()))
    # Group by group it would be some 30 for each length. The first had the trial.
    assert counts[2] == counts[1] < 40


@pytest.mark.parametrize(
    ("options", "is_packed"),
    [
        ({"window": 39}, True),  # the first of 40 tokens sees the last
        ({"window": 38}, False),
        ({"alibi": True}, False),
        ({"rotary_base": 10_000.0}, True),
    ],
)
def test_windows_and_penalties_go_group_by_group(cuda: Device, options, is_packed):
    qkv = made()
    with cuda.recorded():
        found = both_ways(qkv, LENGTHS, CUDA, **options)
    assert (FORWARD in cuda.launches) == is_packed
    assert_close(found, both_ways(qkv, LENGTHS, torch.device("cpu"), **options), 1e-5)


def test_dropout_goes_group_by_group(cuda: Device):
    with cuda.recorded():
        both_ways(made(), LENGTHS, CUDA, dropout_rate=0.1)
    assert FORWARD not in cuda.launches


def test_sentences_of_one_length_are_one_product_as_before(cuda: Device):
    with cuda.recorded():
        both_ways(made([4, 4]), [4, 4], CUDA)
    assert FORWARD not in cuda.launches


def refused(*_):
    raise RuntimeError("cutlassF: no kernel found to launch!")


def off_by_a_bit(forward):
    def wrong(*args):
        context, *rest = forward(*args)
        return (context + 0.1, *rest)

    return wrong


def with_wrong_gradients(backward):
    def wrong(*args, **options):
        first, *rest = backward(*args, **options)
        return (first * torch.nan, *rest)

    return wrong


@pytest.mark.parametrize(
    ("operation", "broken", "is_warned"),
    [
        (FORWARD, lambda _: refused, False),
        (BACKWARD, lambda _: refused, False),
        (FORWARD, off_by_a_bit, True),
        (BACKWARD, with_wrong_gradients, True),
    ],
)
def test_a_broken_kernel_is_found_and_left_alone(
    cuda: Device, monkeypatch, caplog, operation, broken, is_warned
):
    monkeypatch.setitem(simulated.ATTENTION, operation, broken(simulated.ATTENTION[operation]))
    qkv = made()
    with cuda.recorded(), caplog.at_level(logging.INFO, "interlingua"):
        found = [both_ways(qkv, LENGTHS, CUDA) for _ in range(2)]
    assert cuda.launches[FORWARD] == 1
    assert ("deviates by" in caplog.text) == is_warned
    assert "groups of equal length" in caplog.text
    expected = both_ways(qkv, LENGTHS, torch.device("cpu"))
    for each in found:
        assert_close(each, expected, 1e-5)


def test_a_torch_without_the_operation_goes_group_by_group(cuda: Device, monkeypatch):
    class Without:
        pass

    monkeypatch.setattr(torch.ops, "aten", Without())
    with cuda.recorded():
        assert not efficient_attention.can_use_efficient_attention(on_device(made(), CUDA), 8)


def test_rocm_goes_group_by_group(cuda: Device, monkeypatch):
    monkeypatch.setattr(torch.version, "hip", "6.3")
    with cuda.recorded():
        both_ways(made(), LENGTHS, CUDA)
    assert FORWARD not in cuda.launches


@pytest.mark.parametrize(
    ("dtype", "capability", "is_packed"),
    [
        ("float32", (9, 0), True),
        ("tf32", (8, 0), True),
        ("float16", (7, 0), True),
        ("float16", (7, 5), True),
        ("bfloat16", (7, 5), False),
    ],
)
def test_encoding_without_flash_attention(cuda: Device, monkeypatch, dtype, capability, is_packed):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: capability)
    expected = tiny_encoder().eval().encode(TEXTS)
    encoder = moved(tiny_encoder().eval())
    with cuda.recorded() as waits:
        found = encoder.encode(TEXTS, dtype=dtype)
    assert (found * expected).sum(axis=1).min() > 0.999
    layers = len(encoder.backbone.layers)
    trials = 1
    assert cuda.launches[FORWARD] == trials + layers * is_packed
    assert "aten::_flash_attention_forward" not in cuda.launches
    assert not waits


def test_the_trial_inside_of_a_checkpointed_layer(cuda: Device):
    encoder = moved(tiny_encoder().eval())
    for layer in encoder.backbone.layers:
        layer.recomputes = True
    bounds = torch.tensor([0, 3, 8]).int()
    gradients = []
    with cuda.recorded():
        for _ in range(2):
            torch.manual_seed(0)
            encoder.zero_grad()
            encoder.backbone(torch.arange(6, 14), bounds).square().sum().backward()
            weight = encoder.backbone.layers[0].query.weight
            gradients.append(host(weight.grad).clone())
    assert cuda.launches[FORWARD] == 1 + 2 * 2 * len(encoder.backbone.layers)
    assert torch.equal(*gradients)


def test_the_trial_draws_no_random_number(cuda: Device):
    before = torch.get_rng_state()
    with cuda.recorded():
        assert efficient_attention.can_use_efficient_attention(on_device(made(), CUDA), 8)
    assert torch.equal(torch.get_rng_state(), before)
