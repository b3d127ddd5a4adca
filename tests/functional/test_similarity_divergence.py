"""The ranking's divergence against a loop, by hand, at its limits, and its gradient."""

import math

import pytest
import torch

from interlingua.functional.distillation import similarity_divergence


def loop(student, teacher, temperature, teacher_temperature, excluded):
    rows = []
    for i in range(len(student)):
        seen = [j for j in range(len(student[i])) if not excluded[i][j]]
        if len(seen) < 2:
            continue
        p = [math.exp(teacher[i][j] / teacher_temperature) for j in seen]
        q = [math.exp(student[i][j] / temperature) for j in seen]
        p = [one / sum(p) for one in p]
        q = [one / sum(q) for one in q]
        rows.append(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    return sum(rows) / len(rows) if rows else 0.0


@pytest.mark.parametrize("seed", range(3))
def test_it_is_that_of_a_loop(seed):
    generator = torch.Generator().manual_seed(seed)
    student, teacher = (
        torch.rand(4, 7, generator=generator, dtype=torch.float64) for _ in range(2)
    )
    excluded = torch.rand(4, 7, generator=generator) < 0.4
    excluded[1, 1:] = True  # a single candidate is no ranking
    found = similarity_divergence(
        student, teacher, temperature=0.1, teacher_temperature=0.2, excluded=excluded
    )
    expected = loop(student.tolist(), teacher.tolist(), 0.1, 0.2, excluded.tolist())
    assert found.item() == pytest.approx(expected, rel=1e-10)


def test_two_candidates_by_hand():
    """Use 3/4 and 1/4 of the teacher, 1/2 twice of the student: 3/4 log 3/2 + 1/4 log 1/2."""
    teacher = torch.tensor([[math.log(3), 0.0]])
    found = similarity_divergence(
        torch.zeros(1, 2), teacher, temperature=1.0, teacher_temperature=1.0
    )
    assert found.item() == pytest.approx(0.75 * math.log(1.5) + 0.25 * math.log(0.5), rel=1e-6)


def test_equal_rankings_are_0_and_so_is_nothing_to_rank():
    similarities = torch.randn(3, 5)
    same = {"temperature": 0.05, "teacher_temperature": 0.05}
    assert similarity_divergence(similarities, similarities + 1, **same).item() == pytest.approx(
        0, abs=1e-5
    )
    excluded = torch.ones(3, 5, dtype=torch.bool)
    student = similarities.requires_grad_()
    loss = similarity_divergence(student, torch.randn(3, 5), excluded=excluded)
    loss.backward()
    assert loss.item() == 0
    assert student.grad.abs().max() == 0


def test_gradcheck():
    generator = torch.Generator().manual_seed(0)
    student = torch.rand(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    teacher = torch.rand(3, 4, generator=generator, dtype=torch.float64)
    excluded = torch.tensor([[False] * 4, [True, False, False, False], [True, True, True, False]])

    def divergence(x):
        return similarity_divergence(
            x, teacher, temperature=0.3, teacher_temperature=0.2, excluded=excluded
        )

    assert torch.autograd.gradcheck(divergence, student)
