import pytest
import torch
from torch import nn

from interlingua.train.config import OptimizerConfig
from interlingua.train.optim import build_optimizer, parameter_groups, set_learning_rate


@pytest.fixture
def module():
    module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
    module[0].weight.data.fill_(2.0)
    return module


def one_step(module, **options):
    optimizer = build_optimizer(module, OptimizerConfig(learning_rate=0.1, **options))
    for parameter in module.parameters():
        parameter.grad = torch.full_like(parameter, 0.5)
    optimizer.step()
    return module[0].weight[0, 0].item()


def test_coupled_decay_goes_through_adam_by_hand(module):
    # the first step is the sign of the gradient, and the decay is part of the gradient: 0.5 - 0.5 * 2 < 0
    module[0].weight.data.fill_(-2.0)
    assert one_step(module, name="adam", weight_decay=0.5) == pytest.approx(-2.0 + 0.1)


def test_decoupled_decay_by_hand(module):
    # first 2 * (1 - 0.1 * 0.5), then a step of 0.1 along the gradient's sign
    assert one_step(module, name="adamw", weight_decay=0.5) == pytest.approx(1.9 - 0.1)


def test_amsgrad_never_forgets_a_large_gradient(module):
    steps = {}
    for amsgrad in (False, True):
        weight = nn.Parameter(torch.zeros(1))
        config = OptimizerConfig(name="adam", betas=(0.0, 0.5), weight_decay=0.0, amsgrad=amsgrad, learning_rate=1.0)
        optimizer = build_optimizer(nn.ParameterList([weight]), config)
        for gradient in (10.0, *[1.0] * 8):
            before = weight.item()
            weight.grad = torch.tensor([gradient])
            optimizer.step()
        steps[amsgrad] = before - weight.item()
    # v_9 = 100 / 2^9 + 1 - 2^-8, of which amsgrad keeps the largest, 50; bias correction 1 - 2^-9
    assert steps[False] == pytest.approx(((100 / 512 + 1 - 1 / 256) / (1 - 1 / 512)) ** -0.5, rel=1e-5)
    assert steps[True] == pytest.approx((50 / (1 - 1 / 512)) ** -0.5, rel=1e-5)


def test_bias_and_norm_can_be_spared(module):
    together = parameter_groups(module, OptimizerConfig(weight_decay=0.1))
    assert [len(group["params"]) for group in together] == [4]
    apart = parameter_groups(module, OptimizerConfig(weight_decay=0.1, decay_bias_and_norm=False))
    assert [(len(group["params"]), group["weight_decay"]) for group in apart] == [(1, 0.1), (3, 0.0)]


def test_frozen_weights_are_left_alone(module):
    module[1].requires_grad_(False)
    assert [len(group["params"]) for group in parameter_groups(module, OptimizerConfig())] == [2]


def test_learning_rate_of_all_groups(module):
    optimizer = build_optimizer(module, OptimizerConfig(decay_bias_and_norm=False))
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]
