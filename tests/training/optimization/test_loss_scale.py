"""Loss scaling against torch's GradScaler, and runs in fp16 that skip a step and resume where they
stopped."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch
from torch import nn

from interlingua.training.checkpoint import TrainState, checkpoints_in
from interlingua.training.loop import run_training
from interlingua.training.optimization.loss_scale import GROWTH_STEPS, LossScale
from tests.training.runs import losses, newest


def test_steps_and_numbers_are_those_of_torchs_scaler(monkeypatch):
    monkeypatch.setattr("interlingua.training.optimization.loss_scale.GROWTH_STEPS", 3)
    peer = torch.amp.GradScaler("cpu", growth_interval=3)
    own = LossScale(enabled=True)
    assert torch.amp.GradScaler("cpu").get_growth_interval() == GROWTH_STEPS
    nets = [nn.Linear(2, 1, bias=False) for _ in range(2)]
    nets[1].load_state_dict(nets[0].state_dict())
    optimizers = [torch.optim.Adam(net.parameters(), lr=0.1) for net in nets]
    inputs = [1.0, 2.0, float("inf"), 1.0, 3.0, 1.0, 2.0, float("inf"), float("inf"), 1.0]
    for value in inputs:
        row = torch.tensor([[value, 1.0]])
        own.scale(nets[0](row).sum()).backward()
        own.unscale(nets[0])
        finite = bool(nets[0].weight.grad.isfinite().all())
        if finite:
            optimizers[0].step()
        own.adapt(finite=finite)
        peer.scale(nets[1](row).sum()).backward()
        peer.step(optimizers[1])
        peer.update()
        for optimizer in optimizers:
            optimizer.zero_grad()
        assert own.value == peer.get_scale()
        assert torch.equal(nets[0].weight, nets[1].weight)


def test_without_fp16_nothing_is_scaled():
    scale, net = LossScale(enabled=False), nn.Linear(2, 1)
    loss = net(torch.ones(1, 2)).sum()
    assert scale.scale(loss) is loss
    loss.backward()
    before = net.weight.grad.clone()
    scale.unscale(net)
    scale.adapt(finite=False)
    assert torch.equal(net.weight.grad, before)
    state = TrainState()
    scale.save(state)
    assert state == TrainState()


def test_a_norm_that_is_not_finite_stops_a_step_in_fp16_alone():
    for enabled in (True, False):
        scale = LossScale(enabled=enabled)
        found = [scale.is_finite(torch.tensor(norm)) for norm in (1.0, float("inf"), float("nan"))]
        assert found == [True, not enabled, not enabled]


def test_a_sparse_gradient_is_unscaled():
    scale, table = LossScale(enabled=True), nn.Embedding(4, 2, sparse=True)
    scale.scale(table(torch.tensor([1, 1])).sum()).backward()
    scale.unscale(table)
    assert table.weight.grad.to_dense()[1].tolist() == [2.0, 2.0]


def test_a_run_in_fp16_has_the_losses_of_fp32(tiny_config, tmp_path):
    found = {}
    for precision in ("fp32", "fp16"):
        config = tiny_config(precision=precision, output=str(tmp_path / precision))
        run_training(config, progress=False)
        found[precision] = losses(config.run.output)
    assert found["fp16"] == pytest.approx(found["fp32"], rel=0.02)
    assert found["fp16"] != found["fp32"]


def test_a_run_that_skips_steps_is_repeated_by_a_resumed_one(tiny_config, tmp_path, monkeypatch):
    large = 2.0**30
    monkeypatch.setattr(
        "interlingua.training.loop.TrainState", partial(TrainState, loss_scale=large)
    )
    straight = tiny_config(precision="fp16", save_total_limit=9, output=str(tmp_path / "straight"))
    run_training(straight, progress=False)
    folders = checkpoints_in(straight.run.output / "checkpoints")
    states = [
        json.loads((folder / "state.json").read_text(encoding="utf-8"))["state"]
        for folder in folders
    ]
    assert states[0]["loss_scale"] == large / 2**4  # none of the first four steps was made
    assert states[-1]["loss_scale"] < large / 2**4
    resumed = tiny_config(precision="fp16", output=str(tmp_path / "resumed"))
    run_training(resumed, resume=folders[1], progress=False)
    ends = [folders[-1], newest(resumed.run.output)]
    assert len({(folder / "model.safetensors").read_bytes() for folder in ends}) == 1
