import pytest
import torch
from torch import nn

from interlingua.errors import ConfigError
from interlingua.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
from interlingua.training.config import OptimizerConfig
from interlingua.training.optimization.optim import (
    build_optimizer,
    parameter_groups,
    set_learning_rate,
)


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
    # the first step is the sign of the gradient, and the decay is part of the gradient: 0.5 - 0.5 *
    # 2 < 0
    module[0].weight.data.fill_(-2.0)
    assert one_step(module, name="adam", weight_decay=0.5) == pytest.approx(-2.0 + 0.1)


def test_decoupled_decay_by_hand(module):
    # first 2 * (1 - 0.1 * 0.5), then a step of 0.1 along the gradient's sign
    assert one_step(module, name="adamw", weight_decay=0.5) == pytest.approx(1.9 - 0.1)


def test_amsgrad_never_forgets_a_large_gradient(module):
    steps = {}
    for amsgrad in (False, True):
        weight = nn.Parameter(torch.zeros(1))
        config = OptimizerConfig(
            name="adam", betas=(0.0, 0.5), weight_decay=0.0, amsgrad=amsgrad, learning_rate=1.0
        )
        optimizer = build_optimizer(nn.ParameterList([weight]), config)
        for gradient in (10.0, *[1.0] * 8):
            before = weight.item()
            weight.grad = torch.tensor([gradient])
            optimizer.step()
        steps[amsgrad] = before - weight.item()
    # v_9 = 100 / 2^9 + 1 - 2^-8, of which amsgrad keeps the largest, 50; bias correction 1 - 2^-9
    assert steps[False] == pytest.approx(
        ((100 / 512 + 1 - 1 / 256) / (1 - 1 / 512)) ** -0.5, rel=1e-5
    )
    assert steps[True] == pytest.approx((50 / (1 - 1 / 512)) ** -0.5, rel=1e-5)


def test_bias_and_norm_can_be_spared(module):
    together = parameter_groups(module, OptimizerConfig(weight_decay=0.1))
    assert [len(group["params"]) for group in together] == [4]
    apart = parameter_groups(module, OptimizerConfig(weight_decay=0.1, decay_bias_and_norm=False))
    assert [(len(group["params"]), group["weight_decay"]) for group in apart] == [
        (1, 0.1),
        (3, 0.0),
    ]


@pytest.mark.parametrize(
    ("name", "asked", "sparse"),
    [("adamw", True, True), ("adamw", False, False), ("adam", True, False), ("lars", True, False)],
)
def test_tables_have_sparse_gradients_where_the_optimizer_gains_by_it(name, asked, sparse):
    module = nn.Sequential(nn.Embedding(5, 3))
    optimizer = build_optimizer(module, OptimizerConfig(name=name), sparse_gradients=asked)
    module(torch.tensor([1, 3])).sum().backward()
    assert module[0].weight.grad.is_sparse == sparse
    optimizer.step()


def test_frozen_weights_are_left_alone(module):
    module[1].requires_grad_(False)
    assert [len(group["params"]) for group in parameter_groups(module, OptimizerConfig())] == [2]


def test_learning_rate_of_all_groups(module):
    optimizer = build_optimizer(module, OptimizerConfig(decay_bias_and_norm=False))
    set_learning_rate(optimizer, 0.25)
    assert [group["lr"] for group in optimizer.param_groups] == [0.25, 0.25]


def lars_step(weight, gradient, momentum, *, rate, decay, coefficient, share, adapted):
    """Compute one tensor's step, number by number."""
    flat, slopes = weight.flatten().tolist(), gradient.flatten().tolist()
    updates = [g + (decay * p if adapted else 0.0) for p, g in zip(flat, slopes, strict=True)]
    lengths = [sum(x * x for x in values) ** 0.5 for values in (flat, updates)]
    ratio = coefficient * lengths[0] / lengths[1] if adapted and all(lengths) else 1.0
    momentum = [share * m + ratio * u for m, u in zip(momentum, updates, strict=True)]
    return [p - rate * m for p, m in zip(flat, momentum, strict=True)], momentum


def test_lars_is_that_of_a_loop():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2), nn.LayerNorm(2)).double()
    config = OptimizerConfig(
        name="lars", learning_rate=0.5, weight_decay=0.1, momentum=0.8, trust_coefficient=0.02
    )
    optimizer = build_optimizer(module, config)
    momenta = {name: [0.0] * weight.numel() for name, weight in module.named_parameters()}
    for step in range(4):
        set_learning_rate(optimizer, rate := 0.5 - 0.1 * step)
        expected = {}
        for name, weight in module.named_parameters():
            weight.grad = torch.randn_like(weight)
            expected[name], momenta[name] = lars_step(
                weight.detach(),
                weight.grad,
                momenta[name],
                rate=rate,
                decay=0.1,
                coefficient=0.02,
                share=0.8,
                adapted=weight.ndim > 1,
            )
        optimizer.step()
        for name, weight in module.named_parameters():
            assert weight.flatten().tolist() == pytest.approx(expected[name], rel=1e-10)


def test_lars_does_not_see_the_size_of_the_gradient():
    steps = []
    for scale in (1.0, 1000.0):
        weight = nn.Parameter(torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        optimizer = build_optimizer(
            nn.ParameterList([weight]), OptimizerConfig(name="lars", weight_decay=0.0)
        )
        weight.grad = scale * torch.tensor([[0.5, -0.1], [0.2, 0.3]])
        optimizer.step()
        steps.append(weight.detach().clone())
    torch.testing.assert_close(*steps)


def test_lars_steps_plainly_where_a_norm_is_zero():
    zero, still = nn.Parameter(torch.zeros(2, 2)), nn.Parameter(torch.ones(2, 2))
    optimizer = build_optimizer(
        nn.ParameterList([zero, still]),
        OptimizerConfig(name="lars", learning_rate=0.5, weight_decay=0.0),
    )
    zero.grad, still.grad = torch.ones(2, 2), torch.zeros(2, 2)
    optimizer.step()
    assert torch.equal(zero, torch.full((2, 2), -0.5))
    assert torch.equal(still, torch.ones(2, 2))


def test_lars_leaves_weights_without_gradient(module):
    optimizer = build_optimizer(module, OptimizerConfig(name="lars"))
    module[0].weight.grad = torch.ones_like(module[0].weight)
    bias = module[0].bias.clone()
    optimizer.step()
    assert torch.equal(module[0].bias, bias)
    assert len(optimizer.state) == 1


def test_lars_spares_bias_and_norm_unless_asked(module):
    apart = parameter_groups(module, OptimizerConfig(name="lars", weight_decay=0.1))
    assert [(len(g["params"]), g["weight_decay"], g.get("adapted", True)) for g in apart] == [
        (1, 0.1, True),
        (3, 0.0, False),
    ]
    together = build_optimizer(
        module, OptimizerConfig(name="lars", decay_bias_and_norm=True)
    ).param_groups
    assert [(len(group["params"]), group["adapted"]) for group in together] == [(4, True)]


def test_momentum_goes_on_from_a_checkpoint(tmp_path):
    def steps(module, optimizer, numbers):
        for number in numbers:
            torch.manual_seed(number)
            for weight in module.parameters():
                weight.grad = torch.randn_like(weight)
            optimizer.step()

    def fresh():
        torch.manual_seed(7)
        module = nn.Sequential(nn.Linear(3, 2), nn.LayerNorm(2))
        return module, build_optimizer(module, OptimizerConfig(name="lars", learning_rate=5.0))

    straight, optimizer = fresh()
    steps(straight, optimizer, range(6))
    first, optimizer = fresh()
    steps(first, optimizer, range(3))
    path = save_checkpoint(tmp_path, first, optimizer, TrainState(step=3))
    resumed, optimizer = fresh()
    load_checkpoint(path, resumed, optimizer)
    steps(resumed, optimizer, range(3, 6))
    assert all(
        torch.equal(a, b) for a, b in zip(resumed.parameters(), straight.parameters(), strict=True)
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "lars", "amsgrad": True}, "amsgrad .*lars"),
        ({"name": "lars", "betas": (0.9, 0.95)}, "betas .*lars"),
        ({"name": "adamw", "momentum": 0.5}, "momentum .*adamw"),
        ({"name": "lars", "momentum": 1.0}, "momentum: expected"),
        ({"name": "lars", "trust_coefficient": 0.0}, "trust_coefficient: expected"),
        ({"learning_rate_steps": -1}, "learning_rate_steps: expected"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(ConfigError, match=message):
        OptimizerConfig(**options)
