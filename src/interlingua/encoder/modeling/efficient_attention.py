"""Attention of packed sentences in one kernel where FlashAttention is not available.

FlashAttention needs 16 bits and a GPU from Ampere on. For float32, and for older GPUs (V100, T4),
torch has its memory-efficient attention, which takes the boundaries of sentences as well. The
operation is not part of torch's public interface, so each process tries it once on a few sentences,
gradients included. If it is missing, raises or gives other numbers, attention runs by groups of
equal length.

For packed sentences it supports only the plain case, as its source shows (torch 2.7 to 2.13):

- It refuses a bias, so it supports neither ALiBi nor a local window: its ``window_size`` is for
  causal masks, and its gradients ignore it.
- Its dropout is wrong. The forward pass draws the same numbers for all sentences and heads, and
  the backward pass draws others.
"""

from __future__ import annotations

import functools
import itertools
import logging

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from interlingua.runtime.devices import on_device

log = logging.getLogger("interlingua")
# Relative to the largest number: the trial is to find what is broken, not to measure rounding.
TOLERANCES = {torch.float32: 1e-3, torch.float16: 1e-2, torch.bfloat16: 5e-2}
# Some are shorter and some longer than the kernels' blocks of 32 to 128 queries or keys.
_TRIAL_LENGTHS = (3, 1, 70, 200)
TRIAL_HEADS = 2
# The kernels load 16 bytes at a time: eight numbers of 16 bits.
WIDTH_STEP = 8
# The kernels' strides have 32 bits.
MAX_ELEMENTS = 2**31 - 1


def can_use_efficient_attention(qkv: Float[Tensor, "t 3*d"], head_width: int) -> bool:
    """Return whether the kernel can run on these queries, keys and values.

    Dropout, windows and ALiBi are not supported.
    """
    # torch's name CUDA may mean ROCm, where the operation is another program.
    if not qkv.is_cuda or torch.version.hip is not None:
        return False
    if qkv.dtype not in TOLERANCES or head_width % WIDTH_STEP or qkv.numel() > MAX_ELEMENTS:
        return False
    return passes_trial(qkv.device, qkv.dtype, head_width)


def attend_packed(
    qkv: Float[Tensor, "t 3 h w"], cu_seqlens: Int[Tensor, " b+1"], longest: int
) -> Float[Tensor, "t h w"]:
    """Compute softmax(q k' / sqrt(w)) v of every sentence over itself.

    Args:
        qkv: queries, keys and values of all sentences.
        cu_seqlens: offsets of sentences, in 32 bits and on the same device.
        longest: tokens of the longest sentence.
    """
    # The kernel takes a batch of one row: (1, t, h, w) each.
    q, k, v = qkv[None].unbind(2)
    bias = None
    dropout_rate = 0.0
    mask = 0
    # The gradients read the logarithms of the softmax's sums.
    has_gradient = torch.is_grad_enabled() and qkv.requires_grad
    context, *_ = torch.ops.aten._efficient_attention_forward(
        q, k, v, bias, cu_seqlens, cu_seqlens, longest, longest, dropout_rate, mask, has_gradient
    )
    return context[0]  # type: ignore[no-any-return]


@functools.cache
def passes_trial(device: torch.device, dtype: torch.dtype, head_width: int) -> bool:
    """Return whether the kernel gives the numbers of plain attention, and their gradients.

    The host waits for the device here, once in a process.
    """
    try:
        apart = _largest_difference(device, dtype, head_width)
    # A torch without the operation, with another signature, or without a kernel for this GPU.
    except (AttributeError, RuntimeError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        log.info("attention by groups of equal length in %s on %s: %s", dtype, device, reason)
        return False
    # NaN does not pass either.
    passes = apart <= TOLERANCES[dtype]
    if not passes:
        log.warning(
            "torch's memory-efficient attention deviates by %.1e in %s on %s; attention by"
            " groups of equal length is used instead",
            apart,
            dtype,
            device,
        )
    return passes


def _largest_difference(device: torch.device, dtype: torch.dtype, head_width: int) -> float:
    """Return the difference of kernel and plain attention, relative to the largest number.

    The differences of contexts and of gradients are summed.
    """
    tokens = sum(_TRIAL_LENGTHS)
    # A generator of its own: what the program draws does not depend on whether there was a trial.
    draw = torch.Generator().manual_seed(0)
    qkv = torch.randn(tokens, 3, TRIAL_HEADS, head_width, generator=draw).to(dtype)
    upstream = torch.randn(tokens, TRIAL_HEADS, head_width, generator=draw).to(dtype)
    bounds = torch.tensor([0, *_TRIAL_LENGTHS]).cumsum(0).int()
    # The trial happens inside of a layer, but the layer's settings must not apply to it. These are:
    # gradients, which are disabled while encoding; autocast; and the hooks by which checkpoints
    # drop activations.
    with (
        torch.inference_mode(False),
        torch.enable_grad(),
        torch.autocast(device.type, enabled=False),
        torch.autograd.graph.saved_tensors_hooks(_unchanged, _unchanged),
    ):
        x = on_device(qkv, device).requires_grad_()
        context = attend_packed(x, on_device(bounds, device), max(_TRIAL_LENGTHS))
        (gradient,) = torch.autograd.grad(context, x, on_device(upstream, device))
        reference = qkv.double().requires_grad_()
        expected = _sentence_by_sentence(reference, bounds)
        (expected_gradient,) = torch.autograd.grad(expected, reference, upstream.double())
    # Detached: outside of the block a checkpoint would count what is saved for gradients.
    pairs = ((context.detach(), expected.detach()), (gradient, expected_gradient))
    differences = [
        float((found.cpu().double() - wanted).abs().max() / wanted.abs().max())
        for found, wanted in pairs
    ]
    # Not `max`, which would drop a NaN.
    return sum(differences)


def _sentence_by_sentence(
    qkv: Float[Tensor, "t 3 h w"], cu_seqlens: Int[Tensor, " b+1"]
) -> Float[Tensor, "t h w"]:
    contexts = []
    for first, last in itertools.pairwise(cu_seqlens.tolist()):
        # (h, l, w) each.
        q, k, v = qkv[first:last].permute(1, 2, 0, 3).unbind(0)
        contexts.append(F.scaled_dot_product_attention(q, k, v).transpose(0, 1))
    return torch.cat(contexts)


def _unchanged(x: Tensor) -> Tensor:
    return x
