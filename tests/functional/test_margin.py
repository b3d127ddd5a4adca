from __future__ import annotations

import pytest
import torch

from interlingua.functional.margin import MARGINS, best_neighbor, margin_score, score_neighbors


@pytest.mark.parametrize(
    ("margin", "expected"), [("ratio", 1.5), ("distance", 0.3), ("absolute", 0.9)]
)
def test_worked_by_hand(margin, expected):
    # b = (0.8 + 0.4) / 2 = 0.6
    score = margin_score(torch.tensor(0.9), torch.tensor(0.8), torch.tensor(0.4), margin=margin)
    assert score.item() == pytest.approx(expected)


def test_neighborhoods_of_cosine_one_leave_the_cosine():
    similarity, one = torch.rand(4, 4, generator=torch.Generator().manual_seed(0)), torch.ones(())
    assert torch.equal(margin_score(similarity, one, one, margin="ratio"), similarity)
    assert torch.allclose(margin_score(similarity, one, one, margin="distance"), similarity - 1)


@pytest.mark.parametrize("margin", MARGINS)
def test_scores_of_neighbors_are_the_naive_loop(margin):
    generator = torch.Generator().manual_seed(1)
    similarities = torch.rand(5, 3, generator=generator, dtype=torch.float64)
    indices = torch.randint(0, 7, (5, 3), generator=generator)
    x_means, y_means = torch.rand(5, generator=generator), torch.rand(7, generator=generator)
    scores = score_neighbors(
        similarities, indices, x_means.double(), y_means.double(), margin=margin
    )
    for i in range(5):
        for n in range(3):
            c, b = (
                similarities[i, n].item(),
                (x_means[i].item() + y_means[indices[i, n]].item()) / 2,
            )
            naive = {"ratio": c / b, "distance": c - b, "absolute": c}[margin]
            assert scores[i, n].item() == pytest.approx(naive, rel=1e-12)


def test_best_neighbor_is_the_first_of_equals():
    scores = torch.tensor([[0.1, 0.9, 0.9], [0.5, 0.5, 0.5], [0.0, 0.1, 0.2]])
    assert best_neighbor(scores, torch.tensor([[7, 4, 2], [6, 5, 0], [1, 2, 3]])).tolist() == [
        4,
        6,
        3,
    ]


@pytest.mark.parametrize("margin", MARGINS)
def test_gradients(margin):
    generator = torch.Generator().manual_seed(2)
    inputs = [torch.rand(3, 3, generator=generator, dtype=torch.float64) + 0.5 for _ in range(3)]
    inputs = [
        tensor.requires_grad_(margin != "absolute" or n == 0) for n, tensor in enumerate(inputs)
    ]
    assert torch.autograd.gradcheck(lambda *a: margin_score(*a, margin=margin), inputs)


def test_an_unknown_margin_is_an_error():
    with pytest.raises(ValueError, match=r"margin 'relative'; .*ratio, distance, absolute"):
        margin_score(torch.ones(1), torch.ones(1), torch.ones(1), margin="relative")
