from __future__ import annotations

import pytest
import torch

from interlingua.methods.teachers.ema import EmaTeacher


def test_a_tiny_update_is_not_lost(encoder):
    teacher = EmaTeacher(encoder)
    mine, students = (e.backbone.embedding_norm.weight for e in (teacher.encoder, encoder))
    with torch.no_grad():
        students += 1
    for _ in range(10):
        teacher.update(encoder, 0.99999)
    assert (mine - 1).mean().item() == pytest.approx(1e-4, rel=0.01)
    assert (students == 2).all()


@pytest.mark.parametrize("compensated", [True, False])
def test_a_compensated_average_is_that_of_float64(encoder, compensated):
    """Move by 1e-8 of the weight, below float32's resolution: the paper's decay, 0.1 % apart."""
    decay, steps = 0.99999, 400
    with torch.no_grad():
        for weight in encoder.parameters():
            weight.uniform_(1, 2)
    teacher = EmaTeacher(encoder, compensated=compensated)
    start = [weight.double() for weight in encoder.parameters()]
    with torch.no_grad():
        for weight in encoder.parameters():
            weight *= 1.001
    for _ in range(steps):
        teacher.update(encoder, decay)
    errors, distances, still = [], [], []
    for before, mine, weight in zip(
        start, teacher.encoder.parameters(), encoder.parameters(), strict=True
    ):
        exact = weight.double() + (before - weight.double()) * decay**steps
        errors.append((mine.double() - exact).abs().max())
        distances.append((exact - before).abs().max())
        still.append((mine.double() == before).double().mean())
    error, distance = max(errors) / max(distances), torch.stack(still).mean()
    assert (error < 0.05) == compensated
    assert (distance > 0.99) == (not compensated)  # nearly none of the weights has moved at all


def test_a_compensated_average_of_all_weights_is_that_of_each(encoder):
    """Compare with Kahan's sum, weight by weight, to the bit."""
    teacher = EmaTeacher(encoder, compensated=True)
    weights = [weight.clone() for weight in teacher.encoder.parameters()]
    losses = [torch.zeros_like(weight) for weight in weights]
    draw = torch.Generator().manual_seed(0)
    for decay in (0.9, 0.999, 0.99999):
        for student in encoder.parameters():
            with torch.no_grad():
                student += 0.1 * torch.randn(student.shape, generator=draw)
        teacher.update(encoder, decay)
        for weight, lost, student in zip(weights, losses, encoder.parameters(), strict=True):
            update = (student.detach() - weight) * (1 - decay) + lost
            moved = weight + update
            lost.copy_(update - (moved - weight))
            weight.copy_(moved)
    assert any(lost.any() for lost in losses)
    for found, expected in ((teacher.encoder.parameters(), weights), (teacher.lost, losses)):
        for one, other in zip(found, expected, strict=True):
            assert torch.equal(one.view(torch.int32), other.view(torch.int32))


def test_the_teacher_of_a_half_precision_student_moves_in_float32(encoder):
    teacher = EmaTeacher(encoder.bfloat16())
    assert {weight.dtype for weight in teacher.parameters()} == {torch.float32}
    with torch.no_grad():
        encoder.backbone.embedding_norm.weight += 1
    teacher.update(encoder, 0.9999)
    assert teacher.encoder.backbone.embedding_norm.weight[0].item() == pytest.approx(
        1.0001, abs=1e-6
    )


def test_teacher_never_trains(encoder, random_batch):
    encoder.train()
    teacher = EmaTeacher(encoder).train()
    batch = random_batch([4, 6])
    assert not teacher.encoder.training
    assert torch.equal(teacher.encoder(batch), teacher.encoder(batch))
    assert not teacher.encoder(batch).requires_grad
    assert all(not parameter.requires_grad for parameter in teacher.parameters())
    assert all(parameter.requires_grad for parameter in encoder.parameters())
    assert teacher.encoder.vocabulary is encoder.vocabulary


def test_a_teacher_that_drops_out_with_its_parent(encoder, random_batch):
    teacher = EmaTeacher(encoder, dropout=True).train()
    batch = random_batch([4, 6])
    assert teacher.encoder.training
    assert not torch.equal(teacher.encoder(batch), teacher.encoder(batch))
    assert not teacher.eval().encoder.training
