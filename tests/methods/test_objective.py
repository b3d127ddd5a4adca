"""Common behavior of all objectives: weights, the sum of the terms, the hook after a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from interlingua.errors import ConfigError
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True)
class Config:
    far_weight: float = 0.5


class Toy(Objective):
    Config = Config

    def forward(self, batch):
        return self.weighted(near=batch.sum(), far=batch.prod())


def test_terms_are_weighted_and_sum_to_the_loss(encoder):
    batch = torch.tensor([2.0, 3.0], requires_grad=True)
    output = Toy(Config(), encoder)(batch)
    assert isinstance(output, LossOutput)
    assert {name: float(term) for name, term in output.terms.items()} == {"near": 5.0, "far": 3.0}
    assert float(output.loss.detach()) == 8.0
    output.loss.backward()
    assert batch.grad.tolist() == [1 + 0.5 * 3, 1 + 0.5 * 2]


def test_terms_carry_no_gradient(encoder):
    output = Toy(Config(), encoder)(torch.tensor([2.0, 3.0], requires_grad=True))
    assert not any(term.requires_grad for term in output.terms.values())


def test_outside_of_a_run_gathering_is_the_identity_and_a_step_moves_nothing(encoder):
    objective = Toy(Config(), encoder)
    tensor = torch.ones(2)
    assert objective.all_gather(tensor) is tensor
    before = objective.encoder.digest()
    objective.after_step(1)
    assert objective.encoder.digest() == before


def test_processes_share_a_mean_over_tokens_however_many_each_has(encoder):
    """Average two processes with gradients of 1/4 per token, and compare with one process."""
    objective = Toy(Config(), encoder)
    here, there = torch.tensor([1.0, 2.0, 6.0]), torch.tensor([3.0])
    assert float(objective.mean_of_tokens(here)) == 3
    assert float(objective.mean_of_tokens(here[:0])) == 0
    objective.all_gather = lambda count: torch.tensor([3, 1])
    assert float(objective.mean_of_tokens(here)) == 2 * 9 / 4
    assert float(objective.mean_of_tokens(there)) == 2 * 3 / 4
    objective.all_gather = lambda count: torch.zeros(2, dtype=torch.long)
    assert float(objective.mean_of_tokens(here[:0])) == 0


class Wrong(Objective):
    Config = Config

    def forward(self, batch):
        return batch


@pytest.mark.parametrize(
    "output",
    [
        None,
        torch.ones(()),
        torch.ones(3),
        {"loss": torch.ones(())},
        (torch.ones(()), {}),
        LossOutput(1.0, {}),
        LossOutput(torch.ones(3), {}),
        LossOutput(torch.ones(()), {"near": torch.ones(2)}),
        LossOutput(torch.ones(()), {"near": 1.0}),
        LossOutput(torch.ones(()), None),
    ],
    ids=str,
)
def test_all_but_scalars_by_name_is_refused_with_the_way_to_return_them(output, encoder):
    with pytest.raises(ConfigError, match=r"Wrong.*self\.weighted"):
        Wrong(Config(), encoder)(output)


class Numbers(Objective):
    """Objective that passes ``weighted`` the test's values, for the term with a weight."""

    Config = Config

    def forward(self, batch):
        return self.weighted(far=batch)


@pytest.mark.parametrize(
    "loss", [1.0, 1, None, "1", np.float32(1), {64: 1.0}, {64: torch.ones(()), 32: None}], ids=repr
)
def test_a_term_that_is_no_tensor_is_refused_by_its_name(loss, encoder):
    with pytest.raises(ConfigError, match=r"Numbers.*far.*self\.weighted"):
        Numbers(Config(), encoder)(loss)


def test_the_option_that_weighs_a_term_is_known(encoder):
    objective = Toy(Config(far_weight=0.25), encoder)
    assert objective.weight_of("far") == ("method.far_weight", 0.25)
    assert objective.weight_of("near") is None
