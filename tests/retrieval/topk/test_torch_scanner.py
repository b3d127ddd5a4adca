from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.retrieval.topk import torch_scanner
from interlingua.retrieval.topk.bounds import Block, Frame
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.torch_scanner import TorchScanner, multiplies_bfloat16
from tests.retrieval.topk.scanners import check, crowded, decaying, empty_lists, scan_all, turned


def test_centers_far_from_the_means_cost_time_alone():
    x, y = crowded(8, 120, 150, 24)
    far = Frame(np.full(24, 3.0, np.float32), np.full(24, -2.0, np.float32))
    check(lambda frame: TorchScanner(frame, dtype=torch.bfloat16), x, y, 4, frame=far)


def test_opposite_vectors_are_neighbors_too_where_there_are_no_better_ones():
    x = np.eye(4, dtype=np.float32)
    check(TorchScanner, x, -x, 3, frame=Frame(np.zeros(4, np.float32), np.zeros(4, np.float32)))


@pytest.mark.parametrize("rate", [1.0, 0.9])
def test_as_many_stages_are_taken_as_the_vectors_ask_for(rate, monkeypatch):
    monkeypatch.setattr(torch_scanner, "_TILE_ROWS", 256)
    monkeypatch.setattr(torch_scanner, "_TILE_COLUMNS", 512)
    x, y = decaying(12, 1500, 6400, 256, rate)
    # float32 rounds less, so that fewer stages are enough
    scanner = TorchScanner(turned(x, y), dtype=torch.bfloat16)
    scan_all(scanner, x, y, *empty_lists(x, y, 2))
    assert (scanner.stage == 3) == (rate == 1.0)


def test_products_that_overflow_are_looked_at_exactly():
    """Compute 1e20 * 1e20 - 1e20 * 1e20, which is NaN in float32, but 0 in float64."""
    x = np.array([[1e20, 1e20]], np.float32)
    y = np.array([[1e20, -1e20], [-1e20, 1.000001e20]], np.float32)
    frame = Frame(np.zeros(2, np.float32), np.zeros(2, np.float32))
    lists = NeighborLists(np.full((1, 1), -1.0, np.float32), np.full((1, 1), 99))
    scan_all(TorchScanner(frame, dtype=torch.float32), x, y, lists)
    assert lists.indices.tolist() == [[1]]
    assert lists.values == pytest.approx(1e20 * (float(y[1, 1]) - float(y[0, 0])))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_what_lies_behind_a_stage_is_rounded_up(dtype):
    x, y = decaying(13, 300, 300, 130, 0.97)
    scanner = TorchScanner(turned(x, y), dtype=dtype)
    block = scanner.prepare(Block(x, 0), of_x=True)
    for stage in range(2):
        behind = scanner._side(block, slice(0, 300), stage)[:300, 0].double().numpy()
        assert (behind >= block.precision.tails[:, stage]).all()
        assert (behind <= 1.02 * block.precision.tails[:, stage]).all()


def test_a_gpu_sums_in_float32_while_it_searches(monkeypatch):
    flags, seen = torch.backends.cuda.matmul, []
    before = flags.allow_bf16_reduced_precision_reduction
    tile = TorchScanner._tile
    monkeypatch.setattr(
        TorchScanner,
        "_tile",
        lambda *of: seen.append(flags.allow_bf16_reduced_precision_reduction) or tile(*of),
    )
    check(TorchScanner, *crowded(10, 20, 30, 16), 2)
    assert seen
    assert not any(seen)
    assert flags.allow_bf16_reduced_precision_reduction == before


def test_the_choice_of_the_type_is_the_processors():
    native = torch.ops.mkldnn._is_mkldnn_bf16_supported()
    assert multiplies_bfloat16(torch.device("cpu")) == native
    assert not multiplies_bfloat16(torch.device("mps"))
