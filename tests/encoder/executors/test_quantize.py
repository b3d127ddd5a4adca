from __future__ import annotations

import pytest
import torch

from interlingua.encoder.executors import quantize
from interlingua.encoder.executors.quantize import hadamard, mixed, rotate_rows, whole_product

WIDTHS = [16, 20, 24, 32, 80, 96, 384, 1024, 1536]


def test_blocks_by_hand():
    assert mixed(384) == (8, 16)  # 24 strides of 16
    assert mixed(1536) == (32, 1)  # 96 strides
    assert mixed(144) == (1, 16)  # 9 strides
    assert mixed(24) == (1, 8)


@pytest.mark.parametrize("order", [1, 2, 8, 32])
def test_hadamard_s_matrix_is_orthogonal_with_entries_of_one_size(order):
    matrix = hadamard(order)
    assert torch.allclose(matrix @ matrix.T, torch.eye(order), atol=1e-6)
    assert torch.allclose(matrix.abs(), torch.full((order, order), order**-0.5))


def test_hadamard_of_order_four_by_hand():
    signs = [[1, 1, 1, 1], [1, -1, 1, -1], [1, 1, -1, -1], [1, -1, -1, 1]]
    assert torch.allclose(hadamard(4), torch.tensor(signs) / 2)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_product_is_the_same_if_both_sides_are_rotated(width):
    torch.manual_seed(0)
    x, weight = torch.randn(5, width), torch.randn(7, width)
    assert torch.allclose(rotate_rows(x) @ rotate_rows(weight).T, x @ weight.T, atol=1e-4)
    assert torch.allclose(rotate_rows(rotate_rows(x)), x, atol=1e-5)
    assert (rotate_rows(x) - x).abs().max() > 0.5


def test_what_stands_out_is_spread():
    row = torch.zeros(1, 384)
    row[0, 146] = 8.0
    turned = rotate_rows(row)
    assert turned.abs().max() == pytest.approx(8 / 128**0.5)
    assert int((turned.abs() > 1e-6).sum()) == 128


def test_rounding_by_hand():
    numbers, scales = quantize.quantize(torch.tensor([[5.0, -1.0], [3.0, 0.0], [0.0, 0.0]]))
    # Sum and difference: 4 and 6, 3 and 3.
    assert numbers.tolist() == [[85, 127], [127, 127], [0, 0]]
    assert scales[:, 0].tolist() == pytest.approx([6 / 2**0.5 / 127, 3 / 2**0.5 / 127, 0], abs=1e-9)


@pytest.mark.parametrize("width", WIDTHS)
def test_rounding_is_at_most_half_a_step_off(width):
    torch.manual_seed(1)
    rows = torch.randn(9, width) * torch.logspace(-6, 6, 9)[:, None]
    numbers, scales = quantize.quantize(rows)
    assert numbers.dtype == torch.int8
    assert int(numbers.abs().max()) == 127
    assert ((numbers * scales - rotate_rows(rows)).abs() <= 0.501 * scales).all()


def test_a_channel_that_stands_out_costs_little():
    """Add an outlier channel. A plain scale per row would leave few steps for the others."""
    torch.manual_seed(2)
    x, weight = torch.randn(64, 384), torch.randn(96, 384)
    x[:, 15] *= 100
    exact = x.double() @ weight.double().T
    (rows, scales), (columns, factors) = quantize.quantize(x), quantize.quantize(weight)
    turned = whole_product(rows, columns) * scales * factors.T
    step = x.abs().amax(1, keepdim=True) / 127
    plain = (x / step).round() * step @ weight.T
    assert (turned - exact).norm() < 0.03 * exact.norm()
    assert (turned - exact).norm() < 0.5 * (plain - exact).norm()


@pytest.mark.parametrize("width", [*WIDTHS, 4096, 16384])
@pytest.mark.parametrize("kind", ["random", "even", "one"])
def test_int16_weights_are_as_large_as_their_sums_allow(kind, width):
    torch.manual_seed(1)
    turned = {
        "random": torch.randn(3, width),
        "even": torch.full((3, width), -0.7),
        "one": torch.nn.functional.one_hot(torch.tensor([0, 1, 2]), width).float(),
    }[kind]
    numbers, scales = quantize.quantize_to_int16(rotate_rows(turned))
    assert numbers.dtype == torch.int16
    largest, sums = numbers.long().abs().amax(1), numbers.long().abs().sum(1)
    assert (sums * quantize.LARGEST_INT16 < 2**31).all()
    full = sums * quantize.LARGEST_INT16 > 2**31 - 2**12 * width
    assert (full | (largest == 32767)).all()
    assert ((numbers * scales - turned).abs() <= 0.51 * scales).all()


def test_int16_weights_pass_on_what_is_no_number():
    weight = torch.ones(3, 32)
    weight[0, 3], weight[1, 4] = float("nan"), float("inf")
    _, scales = quantize.quantize_to_int16(weight)
    assert scales[:, 0].isfinite().tolist() == [False, False, True]


@pytest.mark.parametrize("rows", [1, 5, 40])
@pytest.mark.parametrize("lacks", [None, "_int_mm", "probe", "instructions"])
def test_whole_products_are_exact(rows, lacks, monkeypatch):
    if lacks == "_int_mm":
        monkeypatch.delattr(torch, "_int_mm", raising=False)
    elif lacks == "probe":
        monkeypatch.delattr(torch.cpu, "_is_vnni_supported", raising=False)
    elif lacks == "instructions":
        monkeypatch.setattr(torch.cpu, "_is_vnni_supported", lambda: False)
        monkeypatch.setattr(torch, "_int_mm", lambda x, y: pytest.fail("it would be slow"))
    torch.manual_seed(3)
    x, weight = (torch.randint(-127, 128, (n, 24), dtype=torch.int8) for n in (rows, 7))
    assert torch.equal(whole_product(x, weight).long(), x.long() @ weight.long().T)
