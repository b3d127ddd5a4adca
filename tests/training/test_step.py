import copy

import pytest
import torch
from torch import nn

from interlingua.methods.objective import LossOutput
from interlingua.training.step import gradients


class Square(nn.Module):
    """Mean over the batch of (w x)^2, with dropout on request: its gradient is the mean of the
    rows' gradients."""

    parts = ()

    def __init__(self, dropout=0.0):
        super().__init__()
        self.layer, self.dropout = nn.Linear(3, 2), nn.Dropout(dropout)

    def forward(self, batch):
        parts = self.dropout(self.layer(batch)).square().mean(0)
        return LossOutput(parts.sum(), {"first": parts[0].detach(), "second": parts[1].detach()})


def run(engine, module, batches, *, step=0):
    module = copy.deepcopy(module)
    model = engine.setup(module)
    measured = gradients(model, module, batches, engine, seed=3, step=step)
    return {name: value.item() for name, value in measured.items()}, module.layer.weight.grad


def test_accumulated_micro_batches_are_the_big_batch(engine):
    torch.manual_seed(0)
    module, batch = Square(), torch.randn(12, 3)
    whole, gradient = run(engine, module, [batch])
    parts, accumulated = run(engine, module, list(batch.split(4)))
    assert parts == pytest.approx(whole, rel=1e-6)
    assert whole["loss"] == pytest.approx(whole["first"] + whole["second"], rel=1e-6)
    torch.testing.assert_close(accumulated, gradient, rtol=1e-6, atol=1e-7)


def test_random_numbers_depend_on_the_step_alone(engine):
    torch.manual_seed(0)
    module, batch = Square(dropout=0.5), torch.randn(12, 3)
    first, _ = run(engine, module, [batch], step=7)
    torch.rand(5)  # whatever was drawn in between
    again, _ = run(engine, module, [batch], step=7)
    other, _ = run(engine, module, [batch], step=8)
    assert first == again
    assert first != other


def test_micro_batches_draw_different_numbers(engine):
    torch.manual_seed(0)
    module, batch = Square(dropout=0.5), torch.randn(64, 3)
    once, _ = run(engine, module, [batch])
    twice, _ = run(engine, module, [batch, batch])
    assert once["loss"] != pytest.approx(twice["loss"], rel=1e-6)


class TwoParts(Square):
    """The same loss, its two terms computed in turn."""

    parts = ("first", "second")

    def forward(self, batch, part=None):
        squares = self.layer(batch).square().mean(0)
        terms = {
            name: squares[place] for place, name in enumerate(self.parts) if part in (None, name)
        }
        return LossOutput(
            sum(terms.values()), {name: term.detach() for name, term in terms.items()}
        )


def test_parts_are_backpropagated_in_turn(engine):
    torch.manual_seed(0)
    module, batch = Square(), torch.randn(12, 3)
    parts = TwoParts()
    parts.load_state_dict(module.state_dict())
    (whole, gradient), (measured, summed) = (
        run(engine, each, list(batch.split(6))) for each in (module, parts)
    )
    assert measured == pytest.approx(whole, rel=1e-6)
    torch.testing.assert_close(summed, gradient, rtol=1e-6, atol=1e-7)
