"""The only calls that depend on devices, ranks and precision, built on Lightning Fabric.

All processes run the same program and make the same decisions, each on its own part of a step's
batch. DDP averages their gradients in the backward pass. A loss that compares rows of all processes
gathers the embeddings with gradients (``all_gather_grad``). Each process computes this loss on the
whole batch, so the average equals the gradient of a single process on the whole batch. With FSDP
each process holds a shard of every weight, and the main process gathers one whole copy on the CPU
to evaluate and to save.
"""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import datetime
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Literal, Self, TypeVar, cast

import torch
from jaxtyping import Float, Shaped
from lightning_fabric import Fabric
from lightning_fabric.plugins.precision.precision import Precision as FabricPrecision
from lightning_fabric.strategies.ddp import DDPStrategy
from lightning_fabric.strategies.model_parallel import ModelParallelStrategy
from lightning_utilities.core.apply_func import apply_to_collection
from torch import Tensor, nn
from torch import distributed as dist
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel
from torch.nn.utils import clip_grads_with_norm_, get_total_norm

from interlingua.encoder.executors.training_passes import (
    Executor,
    TrainingPrecision,
    computed_as,
    fastest_way,
)
from interlingua.encoder.modeling.layer import Layer
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective, itself
from interlingua.runtime.fusion import switch
from interlingua.runtime.processes import command_in_place_of_script
from interlingua.runtime.seeds import seed_for
from interlingua.training.config import RunConfig, TrainConfig
from interlingua.training.machine.launch import find_launch
from interlingua.training.machine.memory import use_expandable_segments

T = TypeVar("T")
TIMEOUT = datetime.timedelta(hours=6)
"""Time that processes wait for one another before they give up. All wait while the main process
evaluates. With FSDP it evaluates on its CPU, which may take hours, and Fabric's default time, half
an hour, would end such a run. With an even longer time, processes that wait for a dead one would
hold their GPUs."""
AGREE_EVERY_STEPS = 8
"""Steps between two checks of the other processes, see ``Engine.any_at``."""


class Engine:
    """Device, rank and precision of one process in a run, with the calls that depend on them.

    Args:
        config: the [run] section; ``devices`` processes are started unless torchrun or srun has
            started them.

    Raises:
        ConfigError: there is no such device, there are fewer GPUs than processes, or torchrun or
            srun has started another number of processes.
    """

    def __init__(self, config: RunConfig) -> None:
        # Fabric reports each process that it starts; the run's log has what a user needs.
        logging.getLogger("lightning_fabric").setLevel(logging.WARNING)
        self.device_kind = _device(config.device)
        launch = find_launch(config.devices)
        if self.device_kind == "cuda":
            launch.require_gpus(torch.cuda.device_count())
            use_expandable_segments()  # before anything is on the GPU
        way = fastest_way(config.precision, config.executor, self.device_kind)
        computation = _Computation(way.precision, self.device_kind)
        self.compares_rows = False
        """True if a loss has requested the embeddings of all processes."""
        if config.threads is not None:
            torch.set_num_threads(config.threads)
        self._until_the_end = contextlib.ExitStack()
        # before anything is multiplied on the GPU, see `same_bytes_each_time`
        if config.deterministic and self.device_kind == "cuda":
            self._until_the_end.enter_context(same_bytes_each_time())
        self.sharded = config.strategy == "fsdp" and launch.processes > 1
        self._fabric = Fabric(
            accelerator=self.device_kind,
            devices=launch.per_node,
            num_nodes=launch.nodes,
            strategy=_strategy(config.strategy, launch.processes),
            plugins=[launch.environment, computation],
        )
        # A later run of this process starts with the unchanged environment.
        self._until_the_end.callback(_restore_environment, dict(os.environ))
        with command_in_place_of_script():
            self._fabric.launch()
        # each machine has made its own measurement, but all must compute in the same way
        way = self._fabric.broadcast(way)
        self.precision: TrainingPrecision = way.precision
        self.executor: Executor = way.executor
        computation.chosen = self.precision
        self._averaged: list[DistributedDataParallel] = []
        switch.set(on=config.compile, device=self.device)
        self._until_the_end.enter_context(computed_as(self.executor))

    @property
    def rank(self) -> int:
        """Index of this process, from 0."""
        return int(self._fabric.global_rank)

    @property
    def world_size(self) -> int:
        """Number of processes."""
        return int(self._fabric.world_size)

    @property
    def is_main(self) -> bool:
        """True if this process writes files and messages."""
        return self.rank == 0

    @property
    def device(self) -> torch.device:
        """Device of this process."""
        device: torch.device = self._fabric.device
        return device

    @property
    def sparse_gradients(self) -> bool:
        """True if gradients of embedding tables may be sparse: in one process, on the CPU."""
        return self.world_size == 1 and self.device_kind == "cpu"

    def resolve_hardware(self, config: TrainConfig) -> TrainConfig:
        """Return the config with all values that depend on the machine written out.

        A run with the returned config repeats this run. The config includes the size of the
        validation batches, so that a run on another machine has comparable losses.
        """
        size = config.data.valid_batch_size or config.run.global_batch_size
        # "auto" and None are replaced by the values that they have on this machine.
        config = dataclasses.replace(
            config, data=dataclasses.replace(config.data, valid_batch_size=size)
        )
        return config.replace_run(
            device=self.device_kind,
            devices=self.world_size,
            precision=self.precision,
            executor=self.executor,
            threads=config.run.threads or torch.get_num_threads(),
        )

    def setup(self, objective: Objective) -> nn.Module:
        """Return the objective as training calls it: under autocast, with averaged gradients.

        With fsdp its weights are sharded from here on, so build the optimizer afterwards.
        """
        objective.all_gather = self.all_gather_grad
        model: nn.Module = self._fabric.setup_module(objective, move_to_device=False)
        self._averaged += [
            part for part in model.modules() if isinstance(part, DistributedDataParallel)
        ]
        return model

    def unsharded_copy(self, objective: Objective) -> Objective:
        """Return an objective that one process can call, evaluate and save by itself.

        Call it before ``setup``. It is the objective itself, or, in the main process of a sharded
        run, a whole copy of it on the CPU.
        """
        if self.sharded and self.is_main:
            return copy.deepcopy(objective).cpu()
        return objective

    def refresh(self, unsharded: Objective, objective: Objective) -> None:
        """Update the unsharded copy; all processes must call it."""
        if not self.sharded:
            return
        weights = gather_tensors(objective.state_dict().items(), keep=self.is_main)
        if self.is_main:
            unsharded.load_state_dict(weights, strict=False)

    def seed(self, seed: int, *purpose: str | int) -> None:
        """Seed torch's random numbers by the arguments and the rank only."""
        torch.manual_seed(seed_for(seed, *purpose, "rank", self.rank))

    def accumulate(self, model: nn.Module, *, more: bool) -> AbstractContextManager[None]:
        """Return a context without averaging if more micro-batches of the step follow."""
        return self._fabric.no_backward_sync(cast(Any, model), enabled=more)

    def backward(self, loss: Float[Tensor, ""]) -> None:
        """Add the gradients of the loss to the gradients of the weights."""
        self._fabric.backward(loss)

    def clip(self, objective: nn.Module, max_norm: float | None) -> Float[Tensor, ""]:
        """Return the norm of all gradients together.

        If the norm is larger than ``max_norm``, the gradients are scaled down to ``max_norm``.
        """
        weights = [weight for weight in objective.parameters() if weight.grad is not None]
        norm = get_total_norm([_numbers(weight.grad) for weight in weights])
        if max_norm is not None:
            clip_grads_with_norm_(weights, max_norm, norm)
        return gather_tensor(norm)

    @contextmanager
    def alone(self, objective: Objective) -> Iterator[None]:
        """Let one process call the objective while the others wait: nothing is gathered."""
        gather = objective.all_gather
        objective.all_gather = itself
        try:
            yield
        finally:
            objective.all_gather = gather

    def autocast(self) -> AbstractContextManager[Any]:
        """Return a context for forward passes outside of training, with training's precision."""
        return self._fabric.autocast()

    def all_gather_grad(self, tensor: Shaped[Tensor, "b ..."]) -> Shaped[Tensor, "w*b ..."]:
        """Concatenate the processes' tensors, of equal shape, in the order of ranks.

        Gradients flow back to each process. If every rank computes the whole loss over the gathered
        tensors, DDP's mean of the gradients equals the gradient that a single process would have on
        the concatenated batch.
        """
        if tensor.device != self.device and self.world_size > 1:
            # Keys of sentences are made on the host, but GPUs gather only tensors on GPUs.
            return self.all_gather_grad(tensor.to(self.device)).to(tensor.device)
        # Losses that compare no rows also gather tensors: counts of tokens, which have no gradient.
        self.compares_rows |= tensor.requires_grad
        if self.world_size == 1:
            return tensor
        gathered: Tensor = _Gather.apply(tensor)  # type: ignore[no-untyped-call]
        return gathered

    def mean(self, tensor: Tensor) -> Tensor:
        """Compute the mean over the processes, without gradient."""
        reduced = self._fabric.all_reduce(tensor.detach(), reduce_op="mean")
        assert isinstance(reduced, Tensor)
        return reduced

    def share(self, value: T) -> T:
        """Return the main process's value in all processes."""
        if self.world_size == 1:
            return value
        return self._fabric.broadcast(value)

    def any(self, flag: bool) -> bool:
        """Return whether the flag is true in any process."""
        if self.world_size == 1:
            return flag
        share = self.mean(torch.tensor(float(flag), device=self.device))
        return bool(share > 0)

    def any_at(self, flag: bool, step: int) -> bool:
        """Return ``any``, but check other processes only every few steps.

        A check makes the GPUs wait.
        """
        return (self.world_size == 1 or step % AGREE_EVERY_STEPS == 0) and self.any(flag)

    def barrier(self) -> None:
        """Wait until all processes are here."""
        self._fabric.barrier()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        """End the group of processes.

        Otherwise its threads would abort this process at the interpreter's end.

        All processes wait for each other first, unless this one met an error, which the others may
        not know of.
        """
        self._until_the_end.close()
        if self.world_size == 1:
            return
        if error is None:
            self.barrier()
        # DDP's models refer to the group, which can be ended only when nothing refers to it.
        for model in self._averaged:
            _let_go(model)
        dist.destroy_process_group()


@contextmanager
def same_bytes_each_time() -> Iterator[None]:
    """Make torch's GPU operations exactly repeatable in the block, or make them raise an error.

    cuBLAS reads the size of its workspace when it is first used, so the process must not have
    computed a matrix product on the GPU before.
    """
    before = torch.are_deterministic_algorithms_enabled()
    memory: Any = torch.utils.deterministic
    fills = memory.fill_uninitialized_memory
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    memory.fill_uninitialized_memory = False  # only costs time: nothing here reads such memory
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before)
        memory.fill_uninitialized_memory = fills


class _Gather(torch.autograd.Function):
    """Concatenation over the processes.

    In the backward pass, a rank's own part gets the sum of the gradients that all ranks have for
    it.
    """

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        parts = [
            torch.empty_like(tensor, memory_format=torch.contiguous_format)
            for _ in range(dist.get_world_size())
        ]
        dist.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].contiguous()
        dist.all_reduce(total)  # a sum, in place
        return total.chunk(dist.get_world_size())[dist.get_rank()]


def gather_tensor(tensor: Tensor) -> Tensor:
    """Join a tensor from the processes' shards; return it as it is if it is not sharded."""
    if isinstance(tensor, DTensor):
        return tensor.full_tensor()
    return tensor


def local(tensor: Tensor) -> Tensor:
    """Return this process's shard of a tensor, which may be empty, or the tensor if unsharded."""
    if isinstance(tensor, DTensor):
        return tensor.to_local()
    return tensor


def shared_out(tensor: Tensor, like: Tensor) -> Tensor:
    """Shard a whole tensor as its counterpart is sharded."""
    if isinstance(like, DTensor) and tensor.shape == like.shape:
        return distribute_tensor(tensor.to(like.device), like.device_mesh, like.placements)
    return tensor


def gather_tensors(tensors: Iterable[tuple[str, Tensor]], *, keep: bool) -> dict[str, Tensor]:
    """Join tensors from their shards one by one: no device holds two of them whole.

    All processes must call it.

    Args:
        tensors: with their names, in the same order everywhere.
        keep: whether this process gets them, in the memory of its CPU; the others get nothing.
    """
    kept: dict[str, Tensor] = {}
    for name, tensor in tensors:
        if keep:
            kept[name] = gather_tensor(tensor).cpu().contiguous()
        else:
            gather_tensor(tensor)  # the others wait for this process's shard
    return kept


def _numbers(gradient: Tensor | None) -> Tensor:
    """Return all numbers of a gradient, each row of a table once."""
    assert gradient is not None
    if gradient.is_sparse:
        return gradient.coalesce().values()  # rows that were looked up twice are added up
    return gradient


def _let_go(model: DistributedDataParallel) -> None:
    """Remove the group of processes from DDP; the model can't be called afterwards.

    If DDP's reducer had the last reference to the group, it would wait for the group's threads
    without releasing the interpreter's lock. These threads may need the same lock to free a tensor.
    """
    del model.reducer, model.logger, model.process_group


class _Averaging(DDPStrategy):
    """DDP that searches for weights without a gradient only if this is necessary.

    It is necessary if an objective does not read all its weights. The search takes time in every
    step. Without ids of devices DDP leaves batches on the host, see
    ``devices.py``. The model is on its device already.
    """

    def _determine_ddp_device_ids(self) -> None:
        """Return None, so that batches stay on the host."""

    def setup_module(self, module: nn.Module) -> DistributedDataParallel:
        """Wrap the model in DDP, see ``DDPStrategy``."""
        objectives = [part for part in module.modules() if isinstance(part, Objective)]
        self._ddp_kwargs["find_unused_parameters"] = not all(
            one.reads_all_weights for one in objectives
        )
        return super().setup_module(module)


def _restore_environment(before: Mapping[str, str]) -> None:
    """Remove the variables that Fabric has set for the processes that it starts."""
    for name in ("MASTER_ADDR", "MASTER_PORT", "NODE_RANK", "LOCAL_RANK", "WORLD_SIZE"):
        if name not in before:
            os.environ.pop(name, None)


def _strategy(strategy: str, processes: int) -> Any:
    """Return Fabric's strategy for a number of processes."""
    if processes == 1:
        return "auto"
    if strategy != "fsdp":
        # Buffers, such as a queue of keys, need no broadcast: all processes do the same to them.
        return _Averaging(timeout=TIMEOUT, broadcast_buffers=False, gradient_as_bucket_view=True)
    return ModelParallelStrategy(
        _shard, data_parallel_size=processes, tensor_parallel_size=1, timeout=TIMEOUT
    )


def _shard(objective: nn.Module, mesh: DeviceMesh) -> nn.Module:
    """Shard all weights with FSDP2.

    A layer's weights are gathered while the layer computes, and all other weights while the
    objective computes.

    Raises:
        ConfigError: this torch would add the processes' gradients and not average them.
    """
    if mesh.device_type == "cpu" and not _averages_on_cpu(mesh["data_parallel"]):
        raise ConfigError(
            f"run: torch {torch.__version__} computes wrong gradients with strategy 'fsdp' on a"
            " CPU (sums instead of means); use a newer torch, or run.strategy = 'ddp'"
        )
    # Layers are sharded first: they stay separate units when the objective is sharded.
    for module in list(objective.modules()):
        if isinstance(module, Layer):
            fully_shard(module, mesh=mesh["data_parallel"])
    fully_shard(objective, mesh=mesh["data_parallel"], reshard_after_forward=False)
    return objective


def _averages_on_cpu(mesh: DeviceMesh) -> bool:
    """Return whether Gloo's AVG, which FSDP2 uses, divides; in torch 2.7 it only adds."""
    mean = torch.empty(1)
    group = mesh.get_group()
    dist.reduce_scatter_tensor(mean, torch.ones(mesh.size()), dist.ReduceOp.AVG, group=group)
    return mean.item() == 1


def _device(device: str) -> Literal["cpu", "cuda"]:
    """Return the device to compute on: the requested one, or for "auto" a GPU if available."""
    available = torch.cuda.is_available()
    if device == "cuda" and not available:
        raise ConfigError("run: device 'cuda': no GPU found; pass --set run.device=cpu")
    if available and device != "cpu":
        return "cuda"
    return "cpu"


class _Computation(FabricPrecision):
    """Precision plug-in: float32, or 16 bits where little accuracy is lost; batches are unchanged.

    Fabric's own plug-in rounds all numbers of a batch, including labels of similarity, and visits
    each word of the batch for this. Its loss scaling needs Fabric's optimizer; see ``loss_scale``.

    Attributes:
        chosen: the precision, which may be set again when all processes have started.
    """

    def __init__(self, chosen: TrainingPrecision, device: str) -> None:
        self.chosen = chosen
        self.device = device

    def forward_context(self) -> AbstractContextManager[Any]:
        """Return autocast to the chosen precision."""
        if self.chosen == "fp32":
            return contextlib.nullcontext()
        dtype = torch.bfloat16 if self.chosen == "bf16" else torch.float16
        return torch.autocast(self.device, dtype=dtype)

    def convert_output(self, data: Any) -> Any:
        """Convert losses that were computed in 16 bits to float32."""
        if self.chosen == "fp32":
            return data
        return apply_to_collection(data, Tensor, _in_float32)


def _in_float32(tensor: Tensor) -> Tensor:
    """Return a floating-point tensor in float32, any other tensor unchanged."""
    return tensor.float() if tensor.is_floating_point() else tensor
