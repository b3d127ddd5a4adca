"""AdamW by rows against torch's over everything."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from interlingua.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from interlingua.training.config import OptimizerConfig
from interlingua.training.optimization.optim import build_optimizer, set_learning_rate
from interlingua.training.optimization.row_adamw import _MOST_ROWS, RowAdamW

WORDS = 4000


class Net(nn.Module):
    """A table, looked up and, on request, used for logits too."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.words, self.layer = nn.Embedding(WORDS, 16), nn.Linear(16, 16)

    def forward(self, ids, *, tell=False):
        states = self.layer(self.words(ids))
        return (
            F.cross_entropy(states @ self.words.weight.T, ids) if tell else states.square().mean()
        )


def steps(net, optimizer, numbers, *, words=20, tell=()):
    """Run steps with rates and tokens that depend on their numbers.

    Some tokens come twice, and in many steps.
    """
    for number in numbers:
        ids = torch.randint(
            0, words, (30,), generator=torch.Generator().manual_seed(number)
        ).square()
        set_learning_rate(optimizer, 0.01 * (1 + number % 3))
        for part in ids.split(15):  # two micro-batches
            net(part, tell=number in tell).backward()
        optimizer.step()
        optimizer.zero_grad()


def pair(**options):
    """Build the same net twice: by rows, and with torch's AdamW."""
    config = OptimizerConfig(learning_rate=0.01, **{"weight_decay": 0.1, **options})
    by_rows = Net()
    whole = copy.deepcopy(by_rows)
    numbers = {"weight_decay": config.weight_decay, "amsgrad": config.amsgrad, "fused": True}
    return (by_rows, build_optimizer(by_rows, config, sparse_gradients=True)), (
        whole,
        torch.optim.AdamW(whole.parameters(), **numbers),
    )


def assert_same(one, other):
    (net, optimizer), (expected, reference) = one, other
    for (name, weight), wanted in zip(net.named_parameters(), expected.parameters(), strict=True):
        torch.testing.assert_close(weight, wanted, rtol=1e-5, atol=1e-6, msg=name)
        for moment, value in reference.state[wanted].items():
            torch.testing.assert_close(optimizer.state[weight][moment], value, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize(
    "options", [{}, {"weight_decay": 0.0}, {"amsgrad": True}, {"betas": (0.5, 0.9)}]
)
def test_it_is_torchs_number_for_number(options):
    by_rows, whole = pair(**options)
    if "betas" in options:
        whole[1].param_groups[0]["betas"] = options["betas"]
    for net, optimizer in (by_rows, whole):
        steps(net, optimizer, range(12))
    assert (
        len(by_rows[1]._rows(by_rows[0].words.weight, _gradient(), by_rows[1].param_groups[0]))
        == 20
    )
    assert_same(by_rows, whole)


def _gradient():
    """Return the gradient of no row."""
    none = torch.zeros(1, 0, dtype=torch.long), torch.zeros(0, 16)
    return torch.sparse_coo_tensor(*none, (WORDS, 16), check_invariants=True).coalesce()


def test_rows_that_rest_still_move_as_their_moments_ask():
    by_rows, whole = pair(weight_decay=0.0)
    for net, optimizer in (by_rows, whole):
        steps(net, optimizer, range(3))
        optimizer.zero_grad()
    before = by_rows[0].words.weight[:400].clone()
    for net, optimizer in (by_rows, whole):
        net(torch.tensor([WORDS - 1])).backward()
        optimizer.step()
    moved = (by_rows[0].words.weight[:400] != before).any(1)
    assert 10 < int(moved.sum()) <= 20
    assert_same(by_rows, whole)


def test_most_of_a_table_is_gone_through_in_order(monkeypatch):
    by_rows, whole = pair()
    made, step_of = [], RowAdamW._step_of
    monkeypatch.setattr(
        RowAdamW, "_step_of", lambda *arguments: made.append(1) or step_of(*arguments)
    )
    for net, optimizer in (by_rows, whole):
        steps(net, optimizer, range(2))
        for number in range(8):
            net(torch.arange(100 * number, 100 * number + 100)).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert 20 + 3 * 100 < _MOST_ROWS * WORDS < 8 * 100
    assert 5 <= len(made) < 10
    assert_same(by_rows, whole)


def test_a_table_that_is_an_output_layer_too():
    by_rows, whole = pair()
    for net, optimizer in (by_rows, whole):
        steps(net, optimizer, range(9), tell=(3, 4))
    assert_same(by_rows, whole)


def test_a_resumed_run_is_the_run_bit_for_bit(tmp_path):
    (straight, optimizer), _ = pair(amsgrad=True)
    steps(straight, optimizer, range(8))
    (first, optimizer), _ = pair(amsgrad=True)
    steps(first, optimizer, range(3))
    path = save_checkpoint(tmp_path, first, optimizer, TrainState(step=3))
    (resumed, optimizer), _ = pair(amsgrad=True)
    steps(resumed, optimizer, range(20, 22))  # other rows have moved meanwhile
    load_checkpoint(path, resumed, optimizer)
    steps(resumed, optimizer, range(3, 8))
    assert all(
        torch.equal(a, b) for a, b in zip(resumed.parameters(), straight.parameters(), strict=True)
    )


def test_moments_are_told_by_their_names():
    """List the moments in any order, as a checkpoint may."""
    (net, optimizer), whole = pair(amsgrad=True)
    for one, other in ((net, optimizer), whole):
        steps(one, other, range(3))
    state = optimizer.state[net.words.weight]
    turned = dict(reversed(state.items()))
    state.clear()
    state.update(turned)
    for one, other in ((net, optimizer), whole):
        steps(one, other, range(3, 6))
    assert_same((net, optimizer), whole)
