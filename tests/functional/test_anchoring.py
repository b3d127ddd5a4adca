"""The terms of learning from a bank: naive loops, numbers by hand, limits, gradients."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.functional.anchoring import (
    contrast_with_bank,
    mean_gap,
    principal_components,
    soft_labels,
    split_softmax,
    squared_distance,
)
from tests.functional.draws import cosine, draw


def cosines(rows, columns):
    return torch.tensor([[cosine(u, v) for v in columns] for u in rows], dtype=torch.float64)


def naive_contrast(positives, bank, temperature, excluded):
    total = 0.0
    for row, positive in enumerate(positives.tolist()):
        own = math.exp(positive / temperature)
        kept = [
            value for column, value in enumerate(bank[row].tolist()) if not excluded[row][column]
        ]
        total -= math.log(own / (own + sum(math.exp(value / temperature) for value in kept)))
    return total / len(positives)


def softmax(values):
    whole = sum(map(math.exp, values))
    return [math.exp(value) / whole for value in values]


def test_distance_by_hand():
    # unit vectors (1, 0) and (0, 1) are 2 apart in squares, (0, 1) and (0, 1) not at all: a mean of
    # 1
    student, target = torch.tensor([[3.0, 0.0], [0.0, 5.0]]), torch.tensor([[0.0, 2.0], [0.0, 1.0]])
    assert float(squared_distance(student, target)) == pytest.approx(1)


def test_distance_is_twice_one_less_the_cosine():
    s, z = draw(3, 4), draw(3, 4, seed=1)
    expected = sum(2 - 2 * cosine(a, b) for a, b in zip(s, z, strict=True)) / 3
    assert float(squared_distance(s, z)) == pytest.approx(expected, abs=1e-12)


def test_offset_is_the_naive_loop():
    s, z, languages = draw(5, 4), draw(5, 4, seed=1), [7, 3, 7, 7, 3]
    total = 0.0
    for language in (3, 7):
        rows = [row for row in range(5) if languages[row] == language]
        gaps = torch.stack([s[row] / s[row].norm() - z[row] / z[row].norm() for row in rows])
        total += len(rows) / 5 * float(gaps.mean(dim=0).square().sum())
    assert float(mean_gap(s, z, torch.tensor(languages))) == pytest.approx(total, abs=1e-12)


def test_offset_of_one_sentence_a_language_is_the_distance():
    s, z = draw(3, 4), draw(3, 4, seed=1)
    torch.testing.assert_close(mean_gap(s, z, torch.arange(3)), squared_distance(s, z))
    assert torch.autograd.gradcheck(
        lambda a: mean_gap(a, z, torch.tensor([0, 1, 0])), (s.requires_grad_(),)
    )


def test_offset_does_not_see_what_averages_out():
    z = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    s = torch.tensor([[0.6, 0.8], [0.6, -0.8]])
    assert float(mean_gap(s, z, torch.zeros(2, dtype=torch.long))) == pytest.approx(0.16)


def test_contrast_is_the_naive_loop():
    positives, bank = draw(3).tanh(), draw(3, 5, seed=1).tanh()
    excluded = torch.zeros(3, 5, dtype=torch.bool)
    excluded[0, 1] = excluded[2, :4] = True
    found = contrast_with_bank(positives, bank, temperature=0.3, excluded=excluded)
    assert float(found) == pytest.approx(naive_contrast(positives, bank, 0.3, excluded), abs=1e-12)
    everything = contrast_with_bank(positives, bank, temperature=0.3)
    assert float(everything) == pytest.approx(
        naive_contrast(positives, bank, 0.3, ~excluded & excluded), abs=1e-12
    )


def test_contrast_with_one_equal_negative_is_log_two():
    assert float(
        contrast_with_bank(torch.tensor([0.4]), torch.tensor([[0.4]]), temperature=0.05)
    ) == pytest.approx(math.log(2))


def test_contrast_with_nothing_left_is_zero():
    nothing = torch.ones(2, 3, dtype=torch.bool)
    assert (
        float(
            contrast_with_bank(torch.rand(2), torch.rand(2, 3), temperature=0.1, excluded=nothing)
        )
        == 0
    )


def test_soft_labels_are_the_naive_loop():
    s, z, bank = draw(3, 4), draw(3, 4, seed=1), draw(5, 4, seed=2)
    positives, student, teacher = cosines(s, z).diagonal(), cosines(s, bank), cosines(z, bank)
    excluded = torch.zeros(3, 5, dtype=torch.bool)
    excluded[1, 2] = excluded[1, 4] = True
    total = 0.0
    for row in range(3):
        kept = [column for column in range(5) if not excluded[row, column]]
        p = softmax([1 / 0.2, *(float(teacher[row, column]) / 0.2 for column in kept)])
        q = softmax(
            [float(positives[row]) / 0.2, *(float(student[row, column]) / 0.2 for column in kept)]
        )
        total += sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))
    found = soft_labels(positives, student, teacher, temperature=0.2, excluded=excluded)
    assert float(found) == pytest.approx(total / 3, abs=1e-12)


def test_soft_labels_of_a_student_that_agrees_are_zero():
    z, bank = draw(3, 4), draw(6, 4, seed=1)
    teacher = cosines(z, bank)
    found = soft_labels(torch.ones(3, dtype=torch.float64), teacher, teacher, temperature=0.05)
    assert float(found) == pytest.approx(0, abs=1e-12)


def test_soft_labels_have_the_gradient_of_the_paper_s_loss():
    """Compare with cross-entropy of softmax labels, as in the released code."""
    positives, student, teacher = (
        x.tanh().requires_grad_() for x in (draw(3), draw(3, 5, seed=1), draw(3, 5, seed=2))
    )
    soft_labels(positives, student, teacher, temperature=0.1).backward()
    assert teacher.grad is None
    found = positives.grad.clone(), student.grad.clone()
    positives.grad = student.grad = None
    ones = torch.ones(3, 1, dtype=torch.float64)
    labels = (torch.cat([ones, teacher.detach()], dim=1) / 0.1).softmax(dim=1)
    exps = torch.exp(torch.cat([positives[:, None], student], dim=1) / 0.1)
    (-(labels * torch.log(exps / exps.sum(dim=1, keepdim=True))).sum() / 3).backward()
    torch.testing.assert_close(found, (positives.grad, student.grad), rtol=1e-9, atol=1e-12)


def test_split_softmax_is_the_naive_loop():
    x, y, h = draw(3, 4), draw(3, 4, seed=1), draw(5, 4, seed=2)
    owners = torch.tensor([2, 0, 0, 2, 2])
    total = 0.0
    for row in range(3):
        own = math.exp(cosine(x[row], y[row]) / 0.1)
        hard = [math.exp(cosine(x[row], h[j]) / 0.1) for j in range(5) if owners[j] == row]
        total -= math.log(own / (own + sum(hard)))
    assert float(split_softmax(x, y, h, owners, temperature=0.1)) == pytest.approx(
        total / 3, abs=1e-12
    )


def test_split_softmax_by_hand():
    # cosines 1 with the positive, 0 with one hard negative: log(1 + e^(-1 / 0.5)); the other query
    # has none
    x, y = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    found = split_softmax(x, y, torch.tensor([[0.0, 3.0]]), torch.tensor([0]), temperature=0.5)
    assert float(found) == pytest.approx(math.log1p(math.exp(-2)) / 2)


def test_split_softmax_at_a_tiny_temperature_is_finite():
    x = torch.tensor([[1.0, 0.0]])
    found = split_softmax(x, -x, x, torch.tensor([0]), temperature=1e-3)
    assert float(found) == pytest.approx(2000, rel=1e-5)
    assert float(split_softmax(x, x, -x, torch.tensor([0]), temperature=1e-3)) == 0


def test_gradients():
    s, z, h = (draw(3, 4, seed=seed).requires_grad_() for seed in range(3))
    owners = torch.tensor([0, 2, 2])
    assert torch.autograd.gradcheck(
        lambda a, b, c: split_softmax(a, b, c, owners, temperature=0.3), (s, z, h)
    )
    assert torch.autograd.gradcheck(lambda a: squared_distance(a, z.detach()), (s,))
    positives, bank = (
        draw(3, seed=4).tanh().requires_grad_(),
        draw(3, 5, seed=5).tanh().requires_grad_(),
    )
    teacher = draw(3, 5, seed=6).tanh()
    excluded = torch.zeros(3, 5, dtype=torch.bool)
    excluded[0, 0] = True
    assert torch.autograd.gradcheck(
        lambda a, b: contrast_with_bank(a, b, temperature=0.3, excluded=excluded), (positives, bank)
    )
    assert torch.autograd.gradcheck(
        lambda a, b: soft_labels(a, b, teacher, temperature=0.3, excluded=excluded),
        (positives, bank),
    )


@pytest.mark.parametrize("term", ["contrast", "soft", "split"])
def test_a_temperature_of_zero_is_an_error(term):
    row = torch.zeros(2, 2)
    calls = {
        "contrast": lambda: contrast_with_bank(row[0], row, temperature=0.0),
        "soft": lambda: soft_labels(row[0], row, row, temperature=0.0),
        "split": lambda: split_softmax(row, row, row, torch.tensor([0, 1]), temperature=0.0),
    }
    with pytest.raises(ValueError, match="temperature"):
        calls[term]()


def test_components_of_a_plane_explain_all_of_it():
    rows = draw(50, 2) @ draw(2, 5, seed=1)
    covariance = rows.T @ rows
    basis, explained = principal_components(covariance, 2)
    assert explained == pytest.approx(1)
    torch.testing.assert_close(rows @ basis @ basis.T, rows)
    torch.testing.assert_close(basis.T @ basis, torch.eye(2, dtype=torch.float64))
    assert (basis.gather(0, basis.abs().argmax(dim=0, keepdim=True)) > 0).all()


def test_components_by_hand():
    # variances 3 and 1 along the axes: the first is the second axis, and holds three quarters
    basis, explained = principal_components(torch.diag(torch.tensor([1.0, 3.0])), 1)
    assert basis.tolist() == [[0.0], [1.0]]
    assert explained == pytest.approx(0.75)


def test_more_components_than_there_are_is_an_error():
    with pytest.raises(ValueError, match="width 2"):
        principal_components(torch.eye(2), 3)
