"""Who starts the processes: the environments are those that Slurm, torchrun and this command
set."""

from __future__ import annotations

import os

import pytest
from lightning_fabric.plugins.environments import LightningEnvironment, TorchElasticEnvironment

from interlingua.errors import ConfigError
from interlingua.training.machine.launch import find_launch

JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_NTASKS": "4",
    "SLURM_NNODES": "2",
    "SLURM_TASKS_PER_NODE": "2(x2)",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
}
STEP = JOB | {"SLURM_STEP_ID": "0", "SLURM_NODEID": "0", "SLURM_NODELIST": "node[1-2]"}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "x", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "0",
    "RANK": "2", "MASTER_ADDR": "a", "MASTER_PORT": "1",
}  # fmt: skip


def launch(monkeypatch, devices, environ):
    monkeypatch.setattr(os, "environ", dict(environ))
    return find_launch(devices)


@pytest.mark.parametrize(
    ("devices", "environ", "per_node", "nodes", "by"),
    [
        (1, {}, 1, 1, LightningEnvironment),
        (2, {}, 2, 1, LightningEnvironment),
        (
            2,
            {"WORLD_SIZE": "2", "LOCAL_RANK": "1"},
            2,
            1,
            LightningEnvironment,
        ),  # started by this command
        (2, JOB, 2, 1, LightningEnvironment),  # the job's script, without srun
        (
            2,
            STEP | {"SLURM_NTASKS": "1", "SLURM_NNODES": "1"},
            2,
            1,
            LightningEnvironment,
        ),  # srun --ntasks=1
        (1, STEP, 2, 2, LightningEnvironment),
        (4, STEP | {"SLURM_NNODES": "1", "SLURM_TASKS_PER_NODE": "4"}, 4, 1, LightningEnvironment),
        (4, STEP, 2, 2, LightningEnvironment),
        (1, TORCHRUN, 2, 2, TorchElasticEnvironment),
        (4, STEP | TORCHRUN, 2, 2, TorchElasticEnvironment),  # srun starts a torchrun on each node
    ],
)
def test_processes_and_who_starts_them(monkeypatch, devices, environ, per_node, nodes, by):
    found = launch(monkeypatch, devices, environ)
    assert (found.per_node, found.nodes, found.processes) == (per_node, nodes, per_node * nodes)
    assert isinstance(found.environment, by)


def test_a_task_of_srun_hands_its_place_on(monkeypatch):
    second = STEP | {
        "SLURM_PROCID": "3",
        "SLURM_LOCALID": "1",
        "SLURM_NODEID": "1",
        "SLURM_JOB_ID": "1234567",
    }
    environment = launch(monkeypatch, 4, second).environment
    assert (environment.node_rank(), environment.local_rank(), os.environ["RANK"]) == (1, 1, "3")
    assert (environment.main_address, environment.main_port) == ("node1", 15_000 + 4567)
    assert environment.creates_processes_externally


@pytest.mark.parametrize(
    ("devices", "environ", "named"),
    [
        (2, STEP, "--ntasks of srun"),
        (8, TORCHRUN, "--nproc-per-node of torchrun"),
        (1, STEP | {"SLURM_NTASKS": "3", "SLURM_TASKS_PER_NODE": "2,1"}, "--ntasks-per-node"),
        (1, STEP | {"SLURM_TASKS_PER_NODE": "3,1"}, "3,1 per node.*--ntasks-per-node"),
        (
            6,
            STEP | {"SLURM_NTASKS": "6", "SLURM_NNODES": "3", "SLURM_TASKS_PER_NODE": "1(x2),4"},
            "--ntasks-per-node",
        ),
        (1, {"WORLD_SIZE": "2", "RANK": "0"}, "LOCAL_RANK"),
    ],
)
def test_another_number_of_processes_is_refused(monkeypatch, devices, environ, named):
    with pytest.raises(ConfigError, match=named):
        launch(monkeypatch, devices, environ)


@pytest.mark.parametrize(
    ("devices", "environ", "remedy"),
    [
        (8, {}, "lower devices"),
        (1, STEP, "--gpus-per-node=2 .*--gpus-per-task"),
        (1, TORCHRUN, "--nproc-per-node of torchrun"),
    ],
)
def test_more_processes_than_gpus_are_refused(monkeypatch, devices, environ, remedy):
    found = launch(monkeypatch, devices, environ)
    found.require_gpus(found.per_node)
    with pytest.raises(ConfigError, match=f"only 1 .*{remedy}"):
        found.require_gpus(1)


WORKER = """
import torch
from pathlib import Path
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine
with Engine(RunConfig(output=Path("x"), max_steps=1, device="cpu", threads=1)) as engine:
    print(engine.rank, engine.world_size, engine.mean(torch.tensor(float(engine.rank))).item())
"""
