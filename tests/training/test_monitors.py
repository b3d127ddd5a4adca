import math

import pytest
import torch

from interlingua.training.monitors import Spread, spread


def test_orthogonal_sentences_by_hand():
    found = spread(torch.eye(4) * 3)
    # centered rows of I - 1/4: three equal singular values; each column has variance 3/16
    assert found.effective_rank == pytest.approx(3.0, rel=1e-5)
    assert found.mean_cosine == pytest.approx(0.0, abs=1e-6)
    assert found.std == pytest.approx(3**0.5 / 4 * 2)
    assert found.warning() is None


def test_two_opposite_sentences_by_hand():
    found = spread(torch.tensor([[2.0, 0.0], [-1.0, 0.0]]))
    assert found == pytest.approx((0.5 * 2**0.5, 1.0, -1.0), abs=1e-6)


def test_one_point_is_called_a_collapse():
    generator = torch.Generator().manual_seed(0)
    found = spread(torch.ones(64, 16) + 1e-3 * torch.randn(64, 16, generator=generator))
    assert found.mean_cosine > 0.999
    assert "collapsing to one point" in found.warning()
    assert "global_batch_size" in found.warning()


def test_one_direction_is_called_by_its_name():
    signs = torch.tensor([1.0, -1.0]).repeat(32)
    found = spread(signs[:, None] * torch.ones(64, 16))
    assert found.effective_rank == pytest.approx(1.0, abs=1e-4)
    assert "one direction" in found.warning()


def test_random_embeddings_are_fine():
    found = spread(torch.randn(512, 32, generator=torch.Generator().manual_seed(1)))
    assert found.std == pytest.approx(1.0, abs=0.02)
    assert found.effective_rank > 30
    assert abs(found.mean_cosine) < 0.01
    assert found.warning() is None


def test_identical_embeddings_give_numbers():
    found = spread(torch.ones(8, 4))
    assert found.std == pytest.approx(0.0, abs=1e-6)
    assert "collapsing" in found.warning()


@pytest.mark.parametrize(("cosine", "warned"), [(0.949, False), (0.951, True)])
def test_the_ceiling_of_the_mean_cosine(cosine, warned):
    """Use vectors in many directions on one side, which only the cosine shows."""
    found = Spread(std=0.5, effective_rank=20.0, mean_cosine=cosine).warning()
    assert (found is not None and "collapsing to one point" in found) == warned


@pytest.mark.parametrize(("std", "warned"), [(0.101, False), (0.099, True)])
def test_the_floor_of_the_deviation(std, warned):
    assert (Spread(std=std, effective_rank=20.0, mean_cosine=0.5).warning() is not None) == warned


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_embeddings_that_are_not_finite_are_told_and_are_no_crash(value):
    embeddings = torch.eye(4)
    embeddings[2, 1] = value
    found = spread(embeddings)
    assert all(math.isnan(number) for number in found)
    assert found.warning().startswith("the embeddings contain NaN or infinity; lower learning_rate")
