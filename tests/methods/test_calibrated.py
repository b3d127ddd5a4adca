"""Calibrated similarity: the loss by a loop, the teacher by its recurrence, and what a run's length
does."""

import math

import pytest
import torch

from interlingua.batches.tokens import ParallelBatch
from interlingua.errors import DataError
from interlingua.methods.calibrated import Calibrated, CalibratedConfig
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import tiny_batch, tiny_objective, training


def apart(**options):
    """Build an objective with a student that has moved away from its teacher."""
    objective = tiny_objective("calibrated", options)
    with torch.no_grad():
        for weight in objective.encoder.parameters():
            weight.add_(0.1 * torch.randn_like(weight))
    return objective


def squared_error(student, teacher):
    """Compute the mean over pairs and coordinates."""
    rows = [
        (s - t) ** 2
        for x, y in zip(student.tolist(), teacher.tolist(), strict=True)
        for s, t in zip(x, y, strict=True)
    ]
    return sum(rows) / len(rows)


def test_the_loss_is_that_of_a_loop():
    objective, batch = apart(), tiny_batch("calibrated")
    output = objective(batch)
    expected = squared_error(objective.encoder(batch.a), objective.teacher.encoder(batch.b))
    assert output.loss.item() == pytest.approx(expected, rel=1e-5)
    assert set(output.terms) == {"distillation"}


def test_english_through_the_student_is_a_term_of_its_own():
    objective, batch = (
        apart(english_through_student=True, english_weight=0.5),
        tiny_batch("calibrated"),
    )
    terms = objective(batch).terms
    teacher = objective.teacher.encoder(batch.b)
    assert terms["distillation"].item() == pytest.approx(
        squared_error(objective.encoder(batch.a), teacher), rel=1e-5
    )
    assert terms["english"].item() == pytest.approx(
        0.5 * squared_error(objective.encoder(batch.b), teacher), rel=1e-5
    )


def test_the_teacher_reads_english_whichever_side_it_is_stored_on():
    objective, batch = apart(), tiny_batch("calibrated")
    turned = ParallelBatch(batch.b, batch.a, batch.step)
    assert objective(turned).loss.item() == pytest.approx(objective(batch).loss.item(), rel=1e-6)
    assert (
        objective(batch).loss
        != apart(pivot="deu_Latn")(tiny_pairs(6, languages=("deu_Latn",))).loss
    )


def test_a_pair_without_the_pivot():
    batch = tiny_batch("calibrated")
    with pytest.raises(DataError, match=r"no side in .*eng_Latn"):
        tiny_objective("calibrated")(ParallelBatch(batch.a, batch.a, 0))


def test_no_gradient_reaches_the_teacher():
    objective = apart()
    objective(tiny_batch("calibrated")).loss.backward()
    assert all(weight.grad is None for weight in objective.teacher.parameters())


def test_the_student_starts_as_its_own_teacher():
    objective, batch = tiny_objective("calibrated"), tiny_batch("calibrated")
    same = ParallelBatch(batch.b, batch.b, 0)
    assert objective(same).loss.item() == pytest.approx(0.0, abs=1e-12)


def test_teacher_and_student_drop_out_as_asked():
    for dropout in (False, True):
        objective = tiny_objective("calibrated", {"teacher_dropout": dropout}, dropout=0.3)
        batch = tiny_batch("calibrated").b
        repeats = torch.equal(objective.teacher.encoder(batch), objective.teacher.encoder(batch))
        assert repeats != dropout
        assert not torch.equal(objective.encoder(batch), objective.encoder(batch))
        objective.eval()
        assert torch.equal(objective.teacher.encoder(batch), objective.teacher.encoder(batch))


@pytest.mark.parametrize("schedule", ["cosine", "constant"])
def test_the_teacher_follows_the_updated_student_by_the_recurrence(schedule):
    objective = tiny_objective(
        "calibrated", {"decay": 0.9, "decay_steps": 0, "decay_schedule": schedule}
    )
    expected = [weight.detach().clone() for weight in objective.encoder.parameters()]
    for step, _ in enumerate(training(objective, "calibrated", steps=range(5))):
        rising = (
            1 - 0.1 * (math.cos(math.pi * step / 20) + 1) / 2
        )  # step before it is counted up, K = 20
        tau = rising if schedule == "cosine" else 0.9
        expected = [
            tau * t + (1 - tau) * s.detach()
            for t, s in zip(expected, objective.encoder.parameters(), strict=True)
        ]
        for weight, other in zip(objective.teacher.parameters(), expected, strict=True):
            torch.testing.assert_close(weight, other, rtol=1e-5, atol=1e-7)


def test_a_frozen_teacher_stays():
    objective = tiny_objective("calibrated", {"teacher": "frozen"})
    before = [weight.clone() for weight in objective.teacher.parameters()]
    list(training(objective, "calibrated", steps=range(3)))
    assert all(
        torch.equal(a, b) for a, b in zip(objective.teacher.parameters(), before, strict=True)
    )


@pytest.mark.parametrize(
    ("decay", "kept"),
    [(0.9999, 10.5), (0.99999, 1.05), (0.999999, 0.105)],
    ids=["faster", "main", "slower"],
)
@pytest.mark.parametrize("steps", [105_000, 2000, 100])
def test_each_arm_keeps_its_own_product_in_a_shorter_run(decay, kept, steps):
    objective = tiny_objective("calibrated", {"decay": decay})
    objective.total_steps = steps
    assert (1 - objective.decay) * steps == pytest.approx(kept)
    assert f"= {kept:.4g} is kept" in objective.notes()[0]


def test_numbers_are_the_paper_s():
    config = CalibratedConfig()
    assert (config.teacher, config.decay, config.decay_steps) == ("ema", 0.99999, 105_000)
    assert (config.teacher_dropout, config.english_through_student) == (False, False)


def test_the_rule_can_be_switched_off():
    objective = tiny_objective("calibrated", {"decay": 0.9999, "decay_steps": 0})
    objective.total_steps = 100
    assert objective.decay == 0.9999
    assert objective.notes() == ["teacher: decay 0.9999 is unchanged, (1 - decay) * steps = 0.01"]


def test_a_run_too_short_for_its_product_has_the_student_for_teacher():
    objective = tiny_objective("calibrated", {"decay": 0.9999})
    objective.total_steps = 5
    assert objective.decay == 0.0
    assert objective.notes()[0].endswith("becomes 0 for 5 (not below 0)")


def test_an_unknown_pivot():
    with pytest.raises(DataError, match="unknown language"):
        Calibrated(CalibratedConfig(pivot="Nonesuch"), tiny_encoder())
