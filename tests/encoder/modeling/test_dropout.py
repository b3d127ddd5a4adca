from __future__ import annotations

import pytest
import torch

from interlingua.encoder.modeling.dropout import dropout, random_bytes


def test_no_rate_returns_the_tensor_itself():
    x = torch.randn(5)
    assert dropout(x, 0.0) is x


@pytest.mark.parametrize("rate", [0.001, 0.999])
def test_a_rate_near_the_ends_drops_a_256th_or_all_but_that(rate):
    torch.manual_seed(0)
    y = dropout(torch.ones(1_000_000), rate)
    assert float((y == 0).float().mean()) == pytest.approx(
        1 / 256 if rate < 0.5 else 255 / 256, rel=0.05
    )
    assert float(y.mean()) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_zeroes_the_rate_and_keeps_the_expectation(rate):
    torch.manual_seed(0)
    y = dropout(torch.ones(1000, 333), rate)
    assert float((y == 0).float().mean()) == pytest.approx(round(rate * 256) / 256, abs=0.003)
    assert float(y.mean()) == pytest.approx(1, abs=0.005)
    assert y.unique().numel() == 2


def test_every_byte_of_a_random_word_drops_alike():
    torch.manual_seed(0)
    zeros = (dropout(torch.ones(800_000), 0.1) == 0).view(-1, 8).float().mean(0)
    assert zeros.min() > 0.09
    assert zeros.max() < 0.115


def test_gradient_is_the_mask():
    torch.manual_seed(0)
    x = torch.ones(1000, requires_grad=True)
    y = dropout(x, 0.3)
    y.sum().backward()
    assert torch.equal(x.grad, y.detach())


def test_keeps_the_dtype_and_follows_the_seed():
    x = torch.ones(7, 3, dtype=torch.bfloat16)
    torch.manual_seed(4)
    first = dropout(x, 0.2)
    torch.manual_seed(4)
    assert first.dtype == torch.bfloat16
    assert torch.equal(first, dropout(x, 0.2))


def test_bytes_of_several_tensors_are_those_drawn_one_by_one():
    torch.manual_seed(4)
    together = random_bytes([3, 16, 9])
    torch.manual_seed(4)
    assert torch.equal(together, torch.cat([random_bytes([size]) for size in (3, 16, 9)]))
    assert len(together) == 8 + 16 + 16
