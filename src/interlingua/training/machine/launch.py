"""Launching of a run's processes by this command, torchrun or Slurm's srun.

Slurm sets the same variables in a job script as in the steps of the job, but only ``srun`` starts
processes. In the script itself this command starts the processes, as it does without Slurm.
Fabric's own class for Slurm refuses ``--ntasks``, so a task of srun passes its rank to Fabric in
torch's variables.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from lightning_fabric.plugins.environments.cluster_environment import ClusterEnvironment
from lightning_fabric.plugins.environments.lightning import LightningEnvironment
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from lightning_fabric.plugins.environments.torchelastic import TorchElasticEnvironment

from interlingua.errors import ConfigError
from interlingua.runtime.processes import is_task_of_srun

FIRST_PORT = 15_000
"""The processes of a job connect at this port plus the last four digits of the job's number."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The number of processes and their machines.

    Attributes:
        per_node: processes on each machine.
        nodes: machines.
        environment: where Fabric finds the ranks; it starts the processes that nothing else has
            started.
        remedy: what to do if a machine has fewer GPUs than processes.
    """

    per_node: int
    nodes: int
    environment: ClusterEnvironment
    remedy: str

    @property
    def processes(self) -> int:
        """Number of processes on all machines together."""
        return self.per_node * self.nodes

    def require_gpus(self, visible: int) -> None:
        """Refuse more processes on this machine than it has GPUs.

        Process n computes on the n-th GPU that it sees.

        Args:
            visible: GPUs that this process sees.

        Raises:
            ConfigError: with the remedy.
        """
        if self.per_node > visible:
            raise ConfigError(
                f"run: {self.per_node} processes on one machine require as many GPUs, but only"
                f" {visible} are visible; {self.remedy}"
            )


def find_launch(devices: int) -> Launch:
    """Return the launch for a number of processes, from this process's environment.

    Args:
        devices: the processes that the run asks for; 1 takes as many as torchrun or srun have
            started.

    Raises:
        ConfigError: another number was started.
    """
    if is_task_of_srun(os.environ):
        return _of_srun(devices)
    started = int(os.environ.get("WORLD_SIZE", "1"))
    if TorchElasticEnvironment.detect():
        per_node = int(os.environ.get("LOCAL_WORLD_SIZE", started))
        _refuse_other_number(devices, started, "torchrun", "--nproc-per-node")
        remedy = "lower --nproc-per-node of torchrun"
        return Launch(per_node, started // per_node, TorchElasticEnvironment(), remedy)
    if started > 1 and "LOCAL_RANK" not in os.environ:
        raise ConfigError(
            f"the environment has WORLD_SIZE={started} but no LOCAL_RANK; start the processes"
            " with torchrun"
        )
    # the processes that this command starts find the total number in the environment
    return Launch(max(started, devices), 1, LightningEnvironment(), "lower devices")


def _of_srun(devices: int) -> Launch:
    """Return the launch of a task of srun, and pass on its rank in torch's variables."""
    tasks = int(os.environ["SLURM_NTASKS"])
    nodes = int(os.environ.get("SLURM_NNODES", "1"))
    per_node = tasks // nodes
    # "2(x3)": three nodes with two tasks each; "3,1": nodes with three tasks and with one.
    by_node = os.environ.get("SLURM_TASKS_PER_NODE", str(per_node))
    if tasks % nodes or "," in by_node:
        raise ConfigError(
            f"srun started {tasks} tasks on {nodes} nodes unevenly ({by_node} per node); start"
            " the same number on every node: --ntasks-per-node"
        )
    _refuse_other_number(devices, tasks, "srun", "--ntasks")
    node = int(os.environ.get("SLURM_NODEID", "0"))
    local_rank = int(os.environ["SLURM_LOCALID"])
    # The processes meet on the first host. The port follows from the job's number: all tasks
    # compute the same port without communication, and two jobs on one machine hardly ever get the
    # same port.
    hosts = os.environ.get("SLURM_STEP_NODELIST", os.environ.get("SLURM_NODELIST", "127.0.0.1"))
    port = FIRST_PORT + int(os.environ.get("SLURM_JOB_ID", "0")[-4:])
    os.environ["WORLD_SIZE"] = str(tasks)
    os.environ["NODE_RANK"] = str(node)
    os.environ["LOCAL_RANK"] = str(local_rank)
    os.environ["RANK"] = str(node * per_node + local_rank)
    os.environ.setdefault("MASTER_ADDR", SLURMEnvironment.resolve_root_node_address(hosts))
    os.environ.setdefault("MASTER_PORT", str(port))
    # A task of --gpus-per-task sees only its own GPU, and NCCL has no direct way to the others.
    remedy = (
        f"make all GPUs of a node visible to every task with --gpus-per-node={per_node} instead"
        " of --gpus-per-task and --gpu-bind, or start fewer tasks with --ntasks-per-node"
    )
    return Launch(per_node, nodes, LightningEnvironment(), remedy)


def _refuse_other_number(devices: int, started: int, by: str, option: str) -> None:
    """Refuse another number of processes than was started; the default 1 accepts any."""
    if devices not in (1, started):
        raise ConfigError(
            f"run: devices is {devices}, but {by} started {started} processes; remove devices,"
            f" or change {option} of {by}"
        )
