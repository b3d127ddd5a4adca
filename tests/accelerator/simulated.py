"""A simulated GPU: tensors that are on ``cuda:0`` as far as Python can see, with values that the
CPU computes.

Real autograd, autocast and values, on a machine without an accelerator. Three things are observed.
An operation that mixes tensors of both devices raises, as CUDA does. Whatever makes the host wait
for the device is written down with the line that does it. And tensors that go to the device are
known to be pinned or not.

How it works: a ``DeviceTensor`` wraps a CPU tensor. For C++ it is on the CPU, so autograd's engine
needs no driver; its Python attribute ``device`` is what this project's code reads. ``Device`` is a
dispatch mode that sees every operation below autograd and runs it on the wrapped tensors.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from interlingua import __file__ as package
from interlingua.encoder.modeling import efficient_attention

SOURCES = str(Path(package).parent)
CUDA = torch.device("cuda", 0)
WAITS_OF_OPERATIONS = {
    "aten::_local_scalar_dense": "item",
    "aten::nonzero": "nonzero",
    "aten::masked_select": "masked_select",
    "aten::_unique2": "unique",
    "aten::unique_consecutive": "unique",
    "aten::unique_dim": "unique",
    "aten::bincount": "bincount",
    "aten::equal": "equal",
}
"""Operations with a result, or a result's size, that the host has to know."""
INDEXING = (
    "aten::index",
    "aten::index_put",
    "aten::index_put_",
    "aten::_index_put_impl_",
    "aten::_unsafe_index",
)


class MismatchError(RuntimeError):
    """Error: an operation received tensors of both devices."""


class DeviceTensor(Tensor):
    """A tensor on the simulated device."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> DeviceTensor:
        made = Tensor._make_wrapper_subclass(
            cls,
            held.size(),
            strides=held.stride(),
            storage_offset=held.storage_offset(),
            dtype=held.dtype,
            device="cpu",
        )
        made.held = held
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(
        cls, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return Device.now.run(operation, args, kwargs or {})

    device = property(lambda self: CUDA)
    is_cuda = property(lambda self: True)
    is_cpu = property(lambda self: False)

    def to(self, *args: Any, **kwargs: Any) -> Tensor:
        """Convert like ``Tensor.to``. C++ would find the tensor on the CPU already."""
        if args and isinstance(args[0], Tensor):
            args = (args[0].device, args[0].dtype, *args[1:])
        device, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        moved: Tensor = self
        if device is not None and device.type == "cpu":
            if not non_blocking:
                Device.now.note("cpu")
            moved = _ToHost.apply(self)
        return moved if dtype is None else moved.type(dtype)

    def cpu(self) -> Tensor:
        """Return a copy on the CPU."""
        return self.to("cpu")

    def tolist(self) -> Any:
        """Convert like ``Tensor.tolist``, which reads the memory."""
        Device.now.note("tolist")
        return self.held.tolist()

    def new_tensor(self, data: Any, **kwargs: Any) -> Tensor:
        """Copy from the host like ``Tensor.new_tensor``."""
        Device.now.note("tensor")
        return DeviceTensor(self.held.new_tensor(data, **kwargs))

    def __deepcopy__(self, memo: Any) -> DeviceTensor:
        copied = on_device(self.held.detach().clone()).requires_grad_(self.requires_grad)
        if isinstance(self, nn.Parameter):
            copied._is_param = True
        return copied

    def __repr__(self, **_: Any) -> str:
        return f"DeviceTensor({self.held})"


class _ToHost(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, tensor: DeviceTensor) -> Tensor:
        return tensor.held.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return on_device(gradient)


def on_device(tensor: Tensor) -> DeviceTensor:
    """Return a tensor of the CPU as one of the device, without a record."""
    return tensor if isinstance(tensor, DeviceTensor) else DeviceTensor(tensor)


def host(value: Any) -> Any:
    """Return a nest of tensors with those of the device on the CPU, without a record."""
    return tree_map(lambda x: x.held if isinstance(x, DeviceTensor) else x, value)


def moved(module: nn.Module) -> nn.Module:
    """Return the module with its weights and buffers on the device.

    Weights that are shared stay shared.
    """
    known: dict[int, Tensor] = {}

    def place(tensor: Tensor) -> Tensor:
        if id(tensor) not in known:
            made = on_device(tensor.detach().clone())
            known[id(tensor)] = (
                nn.Parameter(made, tensor.requires_grad)
                if isinstance(tensor, nn.Parameter)
                else made
            )
        return known[id(tensor)]

    for part in module.modules():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and not isinstance(tensor, DeviceTensor):
                    tensors[name] = place(tensor)
        if isinstance(part, nn.LSTM):
            part._flat_weights = [getattr(part, name) for name in part._flat_weights_names]
    return module


class Device(TorchDispatchMode):
    """Dispatch mode that runs operations for the device, and records where the host waits.

    Attributes:
        waits: how often the host waited, by kind and line of this project's code.
        launches: operations on the device, by name.
        pinned: tensors in page-locked memory.
        differentiates_on_host: whether backward passes are of the CPU's tensors; false unless a
            test says so.
        events: what was done with each event, in order. A wait for one is none of ``waits``, as
            the host continues at once if enough work is queued before it.
        pins: how often the main thread brought one there, by file of this project's code.
    """

    now: Device

    def __init__(self) -> None:
        super().__init__()
        self.waits: Counter[tuple[str, str]] = Counter()
        self.launches: Counter[str] = Counter()
        self.pinned: list[Tensor] = []
        self.differentiates_on_host = False
        self.events: list[tuple[Event, str]] = []
        self.pins: Counter[str] = Counter()

    def note(self, kind: str) -> None:
        """Record a wait. A kernel's trial, once per process, does not count for a step."""
        if not (place := where()).startswith("encoder/modeling/efficient_attention.py"):
            self.waits[kind, place] += 1

    def is_pinned(self, tensor: Tensor) -> bool:
        """Return whether the memory is page-locked. A part of a pinned tensor is pinned too."""
        memory = tensor.untyped_storage().data_ptr()
        return any(one.untyped_storage().data_ptr() == memory for one in self.pinned)

    def pin(self, tensor: Tensor) -> Tensor:
        """Return a copy in page-locked memory, or the tensor itself if it is pinned."""
        if self.is_pinned(tensor):
            return tensor
        copied = tensor.clone()
        self.pinned.append(copied)
        file = where(skipped="runtime/devices.py").split(":")[0]
        # the trial of a kernel, once in a process, is none of a step's
        is_trial = file == "encoder/modeling/efficient_attention.py"
        if threading.current_thread() is threading.main_thread() and not is_trial:
            self.pins[file] += 1
        return copied

    @contextlib.contextmanager
    def recorded(self) -> Iterator[Counter[tuple[str, str]]]:
        """Run operations of this block on the device, and yield the waits of the block."""
        self.waits.clear()
        self.launches.clear()
        self.events.clear()
        self.pins.clear()
        with self:
            yield self.waits

    def __torch_dispatch__(
        self, operation: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        return self.run(operation, args, kwargs or {})

    def run(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one operation below autograd."""
        name = operation._schema.name
        tensors = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        ours = [tensor for tensor in tensors if isinstance(tensor, DeviceTensor)]
        to_device = (
            kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "cuda"
        )
        if to_device:
            kwargs = {**kwargs, "device": torch.device("cpu")}
        if name == "aten::_to_copy" and to_device and not ours:
            return self._upload(operation, args, kwargs)
        if name == "aten::copy_" and len(ours) == 1:
            self.note("copy_ between devices")
            host(args[0]).copy_(host(args[1]))
            return args[0]
        if not ours and not to_device:
            made = operation(*args, **kwargs)
            # where a result has no gradient, C++ makes zeros, on what it takes for the tensor's
            # device
            backward = torch._C._current_graph_task_id() != -1
            fills = name == "aten::zeros" and backward and not self.differentiates_on_host
            return DeviceTensor(made) if fills else made
        self.launches[name] += 1
        self._check(operation, name, args, kwargs, tensors)
        if name in ATTENTION:
            result = ATTENTION[name](*host(args), **host(kwargs))
        else:
            result = operation(*host(args), **host(kwargs))
        return self._wrapped(operation, args, kwargs, result)

    def _upload(self, operation: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
        source = args[0]
        if not kwargs.get("non_blocking"):
            self.note("copy to the device that blocks")
        elif not self.is_pinned(source):
            self.note("copy to the device from pageable memory")
        return DeviceTensor(operation(source, **kwargs).clone())

    def _check(
        self, operation: Any, name: str, args: Any, kwargs: Any, tensors: list[Tensor]
    ) -> None:
        index = name in INDEXING
        for tensor in tensors:
            if isinstance(tensor, DeviceTensor) or tensor.ndim == 0:
                continue
            if index and any(tensor is each for each in tree_leaves(args[1])):
                self.note("index on the host")
                continue
            raise MismatchError(
                f"{name} got a CPU tensor of shape {tuple(tensor.shape)} at {where()}"
            )
        if name in WAITS_OF_OPERATIONS:
            self.note(WAITS_OF_OPERATIONS[name])
        if (
            name == "aten::repeat_interleave"
            and operation._overloadname == "Tensor"
            and not kwargs.get("output_size")
        ):
            self.note("repeat_interleave without a size")
        if index and any(each is not None and each.dtype == torch.bool for each in args[1]):
            # with one value on the host CUDA's index_put is masked_fill
            fills = (
                name != "aten::index"
                and args[2].numel() == 1
                and not isinstance(args[2], DeviceTensor)
            )
            if not fills:
                self.note("boolean index")

    def _wrapped(self, operation: Any, args: Any, kwargs: Any, result: Any) -> Any:
        """Wrap the result as a tensor of the device. In-place operations return the same tensor."""
        schema = operation._schema
        given = (
            dict(zip((argument.name for argument in schema.arguments), args, strict=False)) | kwargs
        )
        changed = {
            tuple(sorted(argument.alias_info.before_set)): given.get(argument.name)
            for argument in schema.arguments
            if argument.alias_info is not None and argument.alias_info.is_write
        }
        writes = [
            item.alias_info
            for item in schema.returns
            if item.alias_info is not None and item.alias_info.is_write
        ]
        if writes:
            same = [changed[tuple(sorted(alias.before_set))] for alias in writes]
            return same[0] if len(same) == 1 else tuple(same)
        return tree_map(lambda x: DeviceTensor(x) if isinstance(x, Tensor) else x, result)


class Event:
    """A mark in the device's work, which is always done already."""

    def record(self) -> None:
        """Record the event, like ``torch.cuda.Event``."""
        Device.now.events.append((self, "recorded"))

    def synchronize(self) -> None:
        """Wait for the event, like ``torch.cuda.Event``."""
        Device.now.events.append((self, "awaited"))


def where(skipped: str = "") -> str:
    """Return the innermost line of this project that is being executed: file and source line.

    Args:
        skipped: a file to look further out from.
    """
    for frame in reversed(traceback.extract_stack()):
        if frame.filename.startswith(SOURCES):
            file = str(Path(frame.filename).relative_to(SOURCES))
            if file != skipped:
                return f"{file}: {frame.line}"
    return "outside of the project"


class _PackedAttention:
    """torch's attention of packed sentences, by the formulas: each sentence over itself, with
    dropout.

    Args:
        q: queries; keys and values as these.
        bounds: of the sentences.
        longest: length of a sentence, at most.
        rate: of the dropout.
        window: neighbors on either side that a token sees; negative = all.
        seed: of the dropout.
    """

    def __init__(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        bounds: Tensor,
        longest: int,
        rate: float,
        window: int,
        seed: int,
    ) -> None:
        if bounds.dtype != torch.int32:
            raise TypeError(f"packed attention got boundaries in {bounds.dtype}")
        self.spans = list(itertools.pairwise(bounds.tolist()))
        if self.spans[-1][1] != len(q) or max(last - first for first, last in self.spans) > longest:
            raise ValueError(
                "boundaries that do not fit the tokens, or a sentence longer than the longest"
            )
        self.inputs = [x.float().transpose(0, 1) for x in (q, k, v)]  # (heads, tokens, head width)
        self.scale = 1 / math.sqrt(q.shape[-1])
        self.rate = rate
        self.window = window
        self.draw = torch.Generator().manual_seed(seed)

    def weights(self, queries: Tensor, keys: Tensor) -> tuple[Tensor, Tensor]:
        """Return the softmax of a sentence, and the factors of dropout."""
        scores = queries @ keys.transpose(1, 2) * self.scale
        place = torch.arange(scores.shape[1])
        if self.window >= 0:
            scores = scores.masked_fill((place[:, None] - place).abs() > self.window, -torch.inf)
        kept = torch.rand(scores.shape, generator=self.draw) >= self.rate
        return scores.softmax(-1), kept / (1 - self.rate)

    def forward(self) -> Tensor:
        """Return the output of attention, (tokens, heads, head width)."""
        outputs = []
        for first, last in self.spans:
            queries, keys, values = (x[:, first:last] for x in self.inputs)
            softmax, kept = self.weights(queries, keys)
            outputs.append(softmax * kept @ values)
        return torch.cat(outputs, dim=1).transpose(0, 1)

    def backward(self, gradient: Tensor) -> tuple[Tensor, ...]:
        """Return the gradients of queries, keys and values."""
        found: tuple[list[Tensor], ...] = ([], [], [])
        for first, last in self.spans:
            queries, keys, values, upstream = (
                x[:, first:last] for x in (*self.inputs, gradient.float().transpose(0, 1))
            )
            softmax, kept = self.weights(queries, keys)
            of_weights = upstream @ values.transpose(1, 2) * kept
            of_scores = (
                softmax * (of_weights - (of_weights * softmax).sum(-1, keepdim=True)) * self.scale
            )
            found[0].append(of_scores @ keys)
            found[1].append(of_scores.transpose(1, 2) @ queries)
            found[2].append((softmax * kept).transpose(1, 2) @ upstream)
        return tuple(torch.cat(parts, dim=1).transpose(0, 1) for parts in found)


def _flash_forward(*args: Any, window_size_left: int | None = None, **_: Any) -> tuple[Tensor, ...]:
    q, k, v, bounds, _same, longest, _longest, rate, *_rest = args
    if q.dtype not in (torch.float16, torch.bfloat16):
        raise TypeError(f"FlashAttention got {q.dtype}")
    seed = torch.randint(2**31, ()) if rate else torch.zeros((), dtype=torch.long)
    window = -1 if window_size_left is None else window_size_left
    context = (
        _PackedAttention(q, k, v, bounds, longest, rate, window, int(seed)).forward().to(q.dtype)
    )
    return (
        context,
        q.new_zeros(q.shape[1], len(q), dtype=torch.float32),
        seed,
        torch.zeros(()),
        q.new_zeros(0),
    )


def _flash_backward(
    *args: Any, window_size_left: int | None = None, **_: Any
) -> tuple[Tensor, ...]:
    (
        gradient,
        q,
        k,
        v,
        _out,
        _normalizer,
        bounds,
        _same,
        longest,
        _longest,
        rate,
        _causal,
        seed,
        *_rest,
    ) = args
    if gradient.dtype != q.dtype:
        raise TypeError(
            f"FlashAttention's backward pass got a gradient in {gradient.dtype} for {q.dtype}"
        )
    window = -1 if window_size_left is None else window_size_left
    found = _PackedAttention(q, k, v, bounds, longest, rate, window, int(seed)).backward(gradient)
    return tuple(x.to(q.dtype) for x in found)


def _efficient_forward(*args: Any) -> tuple[Any, ...]:
    """Run torch's memory-efficient attention with its requirements for packed sentences.

    Its dropout is wrong there, so that nothing may ask for it.
    """
    q, k, v, bias, bounds, _same, longest, _longest, rate, mask, *given = args
    has_gradient = given == [True]
    if bias is not None or rate or mask:
        raise ValueError("packed memory-efficient attention got a bias, dropout or a mask")
    for x in (q, k, v):
        aligned = x.stride(2) % 4 == 0 and x.stride(1) % 4 == 0 and x.storage_offset() % 4 == 0
        if x.ndim != 4 or len(x) != 1 or x.stride(3) != 1 or not aligned:
            raise RuntimeError("cutlassF: no kernel found to launch!")
    if torch.cuda.get_device_capability() < (8, 0) and q.dtype == torch.bfloat16:
        raise RuntimeError("cutlassF: no kernel found to launch!")
    context = _PackedAttention(q[0], k[0], v[0], bounds, longest, rate, -1, 0).forward()
    rows = math.ceil(longest / 32) * 32 if has_gradient else 0
    sums = torch.zeros(len(bounds) - 1, q.shape[2], rows)
    unused = torch.zeros((), dtype=torch.long)
    return context[None].to(q.dtype), sums, unused, unused.clone(), longest, longest


def _efficient_backward(*args: Any, **_: Any) -> tuple[Any, ...]:
    gradient, q, k, v, _bias, _out, bounds, _same, longest, _longest, sums, *_rest = args
    if not sums.numel() or gradient.dtype != q.dtype:
        raise RuntimeError("the backward pass got no sums, or a gradient of another dtype")
    made = _PackedAttention(q[0], k[0], v[0], bounds, longest, 0.0, -1, 0).backward(gradient[0])
    return (*(x[None].to(q.dtype) for x in made), None)


ATTENTION = {
    "aten::_flash_attention_forward": _flash_forward,
    "aten::_flash_attention_backward": _flash_backward,
    "aten::_efficient_attention_forward": _efficient_forward,
    "aten::_efficient_attention_backward": _efficient_backward,
}
"""Operations without a kernel on the CPU."""


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Device:
    """A machine with the simulated device, according to torch's Python functions."""
    device = Device()
    Device.now = device
    efficient_attention.passes_trial.cache_clear()
    monkeypatch.setattr(torch.cuda, "_lazy_init", lambda: None)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda *_: (9, 0))
    monkeypatch.setattr(torch.backends.cuda, "is_flash_attention_available", lambda: True)
    monkeypatch.setattr(torch.backends.cudnn, "is_acceptable", lambda _: False)
    group = torch.nn.utils.clip_grad._group_tensors_by_device_and_dtype
    monkeypatch.setattr(
        torch.nn.utils.clip_grad, "_group_tensors_by_device_and_dtype", _grouped(group)
    )
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: None)
    # a build of torch for CUDA would ask the driver, which may be missing
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: False)
    monkeypatch.setattr(torch.cuda.amp.common, "amp_definitely_not_available", lambda: False)
    # inference mode would keep composite operations whole, and so hide what they wait for
    for method in ("__enter__", "__exit__"):
        monkeypatch.setattr(torch.inference_mode, method, getattr(torch.no_grad, method))
    monkeypatch.setattr(torch.inference_mode, "prev", False, raising=False)
    monkeypatch.setattr(nn.Module, "to", _module_to(nn.Module.to))
    monkeypatch.setattr(torch, "autocast", _autocast(torch.autocast))
    monkeypatch.setattr(torch, "tensor", _tensor(torch.tensor))
    monkeypatch.setattr(Tensor, "pin_memory", _pin_memory)
    monkeypatch.setattr(Tensor, "to", _tensor_to(Tensor.to))
    return device


def _module_to(to: Any) -> Any:
    def module_to(self: nn.Module, device: Any, *args: Any, **kwargs: Any) -> nn.Module:
        if isinstance(device, str | torch.device) and torch.device(device).type == "cuda":
            return moved(self)
        return to(self, device, *args, **kwargs)

    return module_to


def _tensor_to(to: Any) -> Any:
    def tensor_to(self: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        named = [x for x in (*args, *kwargs.values()) if isinstance(x, str | torch.device)]
        if not named or torch.device(named[0]).type != "cuda":
            return to(self, *args, **kwargs)
        _, dtype, non_blocking, _ = torch._C._nn._parse_to(*args, **kwargs)
        # with an index, as C++ would look for the current device
        return to(self, CUDA, dtype or self.dtype, non_blocking=non_blocking)

    return tensor_to


def _grouped(group: Any) -> Any:
    """Group tensors by the device that Python sees. torch's own function is in C++."""

    def grouped(tensors: Any, *rest: Any) -> Any:
        return {
            (found[0][0].device, dtype): (found, at)
            for (_, dtype), (found, at) in group(tensors, *rest).items()
        }

    return grouped


def _autocast(autocast: Any) -> Any:
    """Wrap autocast of the device as that of the CPU, as which C++ sees its tensors."""

    @contextlib.contextmanager
    def both(device_type: str, *args: Any, **kwargs: Any) -> Iterator[None]:
        with autocast(device_type, *args, **kwargs), contextlib.ExitStack() as stack:
            if device_type == "cuda":
                stack.enter_context(autocast("cpu", *args, **kwargs))
            yield

    return both


def _tensor(tensor: Any) -> Any:
    def made(data: Any, *args: Any, device: Any = None, **kwargs: Any) -> Tensor:
        built: Tensor = tensor(data, *args, **kwargs)
        if device is None or torch.device(device).type != "cuda":
            return built if device is None else built.to(device)
        Device.now.note("tensor")
        return DeviceTensor(built)

    return made


def _pin_memory(self: Tensor, *_: Any) -> Tensor:
    return Device.now.pin(self)
