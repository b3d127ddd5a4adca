from __future__ import annotations

import pytest
import torch

from interlingua.encoder.modeling import efficient_attention
from interlingua.encoder.modeling.attention import attend, flash_available
from tests.encoder.naive import naive_attention
from tests.encoder.shapes import layout_of

LENGTHS = [3, 1, 5, 3, 2, 5]


def test_layout_groups_equal_lengths():
    layout = layout_of(LENGTHS)
    assert [group[1:] for group in layout.by_length.groups] == [(1, 1), (1, 2), (2, 3), (2, 5)]
    assert layout.positions.tolist() == [0, 0, 1, 0, 1, 2, 0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4]
    assert layout.arrange(torch.arange(19)).tolist()[:9] == [3, 12, 13, 0, 1, 2, 9, 10, 11]
    assert layout.max_seqlen == 5


def test_restore_undoes_arrange_and_their_gradients_too():
    layout = layout_of(LENGTHS)
    x = torch.randn(19, 2, dtype=torch.float64, requires_grad=True)
    assert torch.equal(layout.restore(layout.arrange(x)), x)
    assert torch.autograd.gradcheck(layout.arrange, (x,))
    assert torch.autograd.gradcheck(layout.restore, (x,))


@pytest.mark.parametrize("gradients", [True, False])
def test_attention_is_the_naive_one(gradients):
    torch.manual_seed(0)
    qkv = torch.randn(19, 24, dtype=torch.float64)
    layout = layout_of(LENGTHS)
    with torch.set_grad_enabled(gradients):
        context = layout.restore(attend(layout.arrange(qkv), layout, heads=2))
    expected = [naive_attention(*part.chunk(3, dim=1), heads=2) for part in qkv.split(LENGTHS)]
    assert torch.allclose(context, torch.cat(expected), atol=1e-12)


def test_attention_gradients():
    qkv = torch.randn(19, 12, dtype=torch.float64, requires_grad=True)
    layout = layout_of(LENGTHS)
    assert torch.autograd.gradcheck(lambda x: attend(layout.arrange(x), layout, heads=2), (qkv,))


def test_attention_dropout_keeps_the_expectation():
    torch.manual_seed(0)
    qkv = torch.cat([torch.zeros(400, 8), torch.ones(400, 4)], dim=1)  # all values 1
    qkv.requires_grad_()
    layout = layout_of([400])
    context = attend(qkv, layout, heads=1, dropout_rate=0.5)
    assert context.std() > 0.01
    assert context.mean().item() == pytest.approx(1, abs=0.01)


def test_flash_needs_cuda_and_half_precision():
    for device, dtype, width in [
        ("cpu", torch.bfloat16, 64),
        ("cuda", torch.float32, 64),
        ("cuda", torch.bfloat16, 20),
        ("cuda", torch.bfloat16, 512),
    ]:
        assert not flash_available(torch.device(device), dtype, width)


def test_flash_layout_keeps_the_batch_in_order():
    layout = layout_of(LENGTHS, flash=True)
    assert layout.positions.tolist()[:9] == [0, 1, 2, 0, 0, 1, 2, 3, 4]
    assert layout.max_seqlen == 5
    assert layout.cu_seqlens.dtype == torch.int32
    x = torch.arange(19)
    assert layout.arrange(x) is x


def test_the_installed_torch_has_the_kernel_as_it_is_called():
    schema = torch.ops.aten._flash_attention_forward.default._schema
    names = [argument.name for argument in schema.arguments]
    bounds = ["cum_seq_q", "cum_seq_k", "max_q", "max_k"]
    rest = ["dropout_p", "is_causal", "return_debug_mask"]
    assert names[:10] == ["query", "key", "value", *bounds, *rest]
    assert {"window_size_left", "window_size_right"} <= set(names)
    assert schema.returns[0].name == "output"


def test_the_installed_torch_has_the_kernel_for_float32_too():
    schema = torch.ops.aten._efficient_attention_forward.default._schema
    names = [argument.name for argument in schema.arguments]
    bounds = ["cu_seqlens_q", "cu_seqlens_k", "max_seqlen_q", "max_seqlen_k"]
    rest = ["dropout_p", "custom_mask_type", "compute_log_sumexp"]
    assert names[:11] == ["query", "key", "value", "bias", *bounds, *rest]
    assert schema.returns[0].name == "output"


def test_packed_kernels_are_not_taken_on_the_cpu():
    assert not efficient_attention.can_use_efficient_attention(torch.zeros(4, 3 * 16), 8)
