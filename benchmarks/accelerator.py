"""Comparison of a GPU's results with the CPU's, and speed, in one command of ten minutes.

    python benchmarks/accelerator.py                          # on a machine with a CUDA GPU
    python benchmarks/accelerator.py --json gpu.json --only encode,mining
    python benchmarks/accelerator.py --device cpu --tiny      # small, where there is none

Checks, each on the device and on the CPU with the same weights:

- ``methods``: loss and gradients of every training method, in float32 and under bfloat16;
- ``compile``: the same with ``run.compile`` as without;
- ``resume``: six steps, and three steps, a checkpoint and three more, end with the same bytes
  (``run.deterministic``);
- ``attention``: contexts and gradients of packed sentences in each dtype, with FlashAttention and
  without, against SDPA in float32 sentence by sentence;
- ``encode``: vectors in float32, bfloat16 and TF32;
- ``topk``: exact neighbors, to the bit.

Measures, with random weights in XLM-R's base and large shape:

- ``attention``: a layer's attention of packed sentences, forward and backward, next to groups of
  equal length;
- ``encode``: sentences and tokens per second of mixed lengths, next to sentence-transformers in
  bfloat16 with SDPA;
- ``train``: tokens per second of steps of MEXMA, InfoNCE and LaBSE with their papers' batches,
  without and with ``run.compile``;
- ``mining``: neighbors of a million vectors among a million, both ways, next to plain torch
  products and top-k, which finds approximate values and one way at a time.

``utilization`` is a share of the rate of a large product, which is measured here; ``of_peak``, the
model-FLOPs utilization of papers, is one of the rate that the maker gives. The targets come last.

Each part is independent: a failure is reported, and the others continue. Each has its share of
the time, and what one leaves goes to those that follow; a part is stopped when its share is over.
Nothing is downloaded. It needs the repository's tests, and pytest, for the small objectives. Exit
code 1: a check failed; 2: there is no CUDA device.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gc
import itertools
import json
import math
import os
import platform
import random
import re
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
SHAPES = {
    "base": {
        "hidden_size": 768,
        "num_hidden_layers": 12,
        "num_attention_heads": 12,
        "intermediate_size": 3072,
    },
    "large": {
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
    },
    "tiny": {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
    },
}
XLMR_WORDS = 250_002
SMALL_WORDS = 46
"""Size of the small vocabulary; its words start at ``FIRST_WORD``."""
FIRST_WORD = 6
TEXTS = {"base": 40_000, "large": 16_000, "tiny": 60}
BATCHES: dict[str, tuple[int, int | None]] = {
    "mexma": (150, None),
    "infonce": (128, None),
    "labse": (4096, 256),
}
"""Pairs of a step by method, as in the papers: MEXMA's of each GPU, mSimCSE's, and LaBSE's of all
accelerators; and sentences that are computed at a time, as in ``experiments``."""
TINY_BATCH = (4, 2)
STEPS = 8
"""Number of timed steps; fewer of larger batches, with as many pairs."""
LONGEST = 256
WITHOUT_DROPOUT = {"cross_encoder": {"head_dropout": 0.0}}
"""Options of methods that drop elements by default: no two devices draw the same ones."""
LOSS_TOLERANCE = 1e-4
GRADIENT_TOLERANCE = 1e-3
"""Tolerance of float32, relative to the norm of all gradients: sums in another order."""
ROUNDING_TIMES = 3
ROUNDING_FLOOR = 2**-5
"""Limits of bfloat16's change of the loss, and of the gradients by their norm: a multiple of the
change on the CPU, and a floor. Each number is rounded by up to 2^-9, and a gradient results from
some dozens in a row: 1 % on the CPU, more if a maximum falls on another token. The device rounds at
other places, so its change differs, but has the same size. A wrong kernel changes a tenth or
more."""
PEAKS = {
    r"NVIDIA H100 .*HBM3": 989.4e12,
    r"NVIDIA H200": 989.4e12,
    r"NVIDIA A100.*": 312e12,
}
"""Products in bfloat16, dense, a second, as NVIDIA gives them: of the whole name of a device."""
ATTENTION_TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Relative to the largest number of what is compared."""
VECTOR_TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 3e-2}


@dataclass
class Report:
    """Results so far.

    Attributes:
        device: where.
        tiny: whether sizes are those of a test.
        peak: operations a second in bfloat16, as the maker gives them; None where it is not known.
        checks: whether each check held, with a number or a reason.
        measures: numbers by part and name.
        stopped: parts that had too little time.
    """

    device: Any
    tiny: bool
    peak: float | None = None
    checks: dict[str, tuple[bool, str]] = field(default_factory=dict)
    measures: dict[str, dict[str, float]] = field(default_factory=dict)
    stopped: list[str] = field(default_factory=list)

    def check(self, name: str, *, holds: bool, found: str) -> None:
        """Record a check and show it."""
        self.checks[name] = (holds, found)
        print(f"{'ok    ' if holds else 'FAILED'} {name}: {found}", flush=True)

    def measure(self, part: str, **numbers: float) -> None:
        """Record measurements and show them."""
        self.measures.setdefault(part, {}).update(numbers)
        for name, number in numbers.items():
            print(f"       {part} | {name} = {number:,.4g}", flush=True)

    @property
    def shapes(self) -> list[str]:
        """The encoders to measure, first those with targets."""
        return ["tiny"] if self.tiny else ["large", "base"]

    def shares(self, flops_a_second: float, rate: float) -> dict[str, float]:
        """Return the shares of the device's rates that are used.

        Args:
            flops_a_second: operations of the model.
            rate: of a large product here.
        """
        found = {"utilization": flops_a_second / rate}
        if self.peak is not None:
            found["of_peak"] = flops_a_second / self.peak
        return found


class OutOfTimeError(BaseException):
    """The time of a part is over; no part may take it for a mistake of its own."""


def methods(report: Report) -> None:
    """Compare loss and gradients of every method, in float32 and under bfloat16."""
    from interlingua.config.registry import METHODS

    for method in sorted(METHODS)[: 3 if report.tiny else None]:
        try:
            expected = _gradients(method, "cpu")
            found = _gradients(method, report.device)
            _check_gradients(report, f"methods {method}", expected, found)
            rounded = _gradients(method, "cpu", bf16=True)
            found = _gradients(method, report.device, bf16=True)
            _check_gradients(report, f"methods {method} bfloat16", expected, found, rounded)
        except Exception as error:
            report.check(f"methods {method}", holds=False, found=_first_line(error))


def compiled(report: Report) -> None:
    """Compare loss and gradients with and without ``run.compile``."""
    from interlingua.runtime.fusion import switch

    for method in ("infonce",) if report.tiny else ("infonce", "mexma", "ems"):
        expected = _gradients(method, "cpu")
        rounded = _gradients(method, "cpu", bf16=True)
        switch.set(on=True, device=report.device)
        try:
            found = _gradients(method, report.device)
            found_bf16 = _gradients(method, report.device, bf16=True)
        finally:
            switch.set(on=False, device=report.device)
        _check_gradients(report, f"compile {method}", expected, found)
        _check_gradients(report, f"compile {method} bfloat16", expected, found_bf16, rounded)


Gradients = tuple[float, dict[str, Any]]
"""A loss, and the gradients of the weights by name, on the CPU."""


def _gradients(method: str, device: Any, *, bf16: bool = False) -> Gradients:
    """Return loss and gradients of a small objective, which is the same on every device."""
    import torch
    from tests.methods.harness import tiny_batch, tiny_objective

    device = torch.device(device)
    objective = tiny_objective(method, WITHOUT_DROPOUT.get(method, {})).to(device)
    batch = tiny_batch(method)
    torch.manual_seed(0)
    parts = objective.parts or (None,)
    loss = 0.0
    for part in parts:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=bf16):
            output = objective(batch) if part is None else objective(batch, part=part)
        output.loss.backward()
        loss += output.loss.item()
    weights = objective.named_parameters()
    return loss, {
        name: weight.grad.detach().cpu() for name, weight in weights if weight.grad is not None
    }


def _check_gradients(
    report: Report,
    name: str,
    expected: Gradients,
    found: Gradients,
    rounded: Gradients | None = None,
) -> None:
    """Check a loss and its gradients.

    Args:
        report: receives the check.
        name: of the check.
        expected: the CPU's in float32.
        found: the device's.
        rounded: the CPU's under bfloat16, where the device's are.
    """
    of_loss, of_gradients = _apart(expected, found)
    loss_tolerance, gradient_tolerance = LOSS_TOLERANCE, GRADIENT_TOLERANCE
    if rounded is not None:
        loss_tolerance, gradient_tolerance = (
            ROUNDING_TIMES * apart + ROUNDING_FLOOR for apart in _apart(expected, rounded)
        )
    report.check(
        name,
        # A comparison with NaN is false.
        holds=of_loss <= loss_tolerance and of_gradients <= gradient_tolerance,
        found=f"loss {found[0]:.5f}, gradients apart by {of_gradients:.1e}",
    )


def _apart(expected: Gradients, found: Gradients) -> tuple[float, float]:
    """Return the distances of losses and gradients, relative to the first loss and norm."""
    loss, gradients = expected
    other_loss, other_gradients = found
    differences = [other_gradients[name] - gradients[name] for name in gradients]
    apart = _norm(differences) / _norm(gradients.values())
    return abs(other_loss - loss) / abs(loss), apart


def _norm(tensors: Iterable[Any]) -> float:
    return math.sqrt(sum(float(tensor.double().square().sum()) for tensor in tensors))


def resume(report: Report) -> None:
    """Check that an interrupted and resumed run ends with the bytes of an uninterrupted one."""
    from interlingua.training.config import RunConfig
    from interlingua.training.machine.engine import Engine

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = RunConfig(output=folder, max_steps=6, device=report.device.type, deterministic=True)
        with Engine(run) as engine:
            whole = _digest_after(engine, folder / "whole", stops_after=None)
            cut = _digest_after(engine, folder / "cut", stops_after=3)
    report.check(
        "resume",
        holds=whole == cut,
        found=f"{whole[:12]} and {cut[:12]}, precision {run.precision}",
    )


def _digest_after(engine: Any, folder: Path, *, stops_after: int | None) -> str:
    """Return the digest of the weights after six steps of MEXMA with dropout."""
    from tests.methods.harness import tiny_batch, tiny_objective

    from interlingua.encoder.modeling.weights import weights_digest
    from interlingua.training.checkpoint import TrainState, load_checkpoint, save_checkpoint
    from interlingua.training.config import OptimizerConfig
    from interlingua.training.optimization.optim import build_optimizer
    from interlingua.training.step import gradients

    def built() -> tuple[Any, Any, Any]:
        objective = tiny_objective("mexma", dropout=0.1).to(engine.device)
        model = engine.setup(objective)
        config = OptimizerConfig(learning_rate=1e-3)
        return objective, model, build_optimizer(objective, config, sparse_gradients=False)

    objective, model, optimizer = built()
    for step in range(6):
        if step == stops_after:
            place = save_checkpoint(folder, objective, optimizer, TrainState(step=step))
            objective, model, optimizer = built()
            load_checkpoint(place, objective, optimizer)
        batch = tiny_batch("mexma", step=step, seed=step)
        gradients(model, objective, [batch], engine, seed=0, step=step)
        optimizer.step()
        optimizer.zero_grad()
        objective.after_step(step)
    return weights_digest(objective.state_dict())


def topk(report: Report) -> None:
    """Compare exact neighbors of the device's own search with the CPU's."""
    from interlingua.retrieval.topk.device_scanner import DeviceScanner
    from interlingua.retrieval.topk.exact import make_frame, mutual_topk, read_block
    from interlingua.retrieval.topk.lists import NeighborLists

    n, m, width = (300, 500, 40) if report.tiny else (20_000, 30_000, 384)
    x, y = (_unit_vectors(size, width, seed) for seed, size in enumerate((n, m)))
    expected = mutual_topk(x, y, k=4, device="cpu")
    scanner = DeviceScanner(make_frame(x, y), device=report.device)
    found = NeighborLists.empty(n, 4), NeighborLists.empty(m, 4)
    left = scanner.prepare(read_block(x, 0, n), of_x=True)
    scanner.scan(left, scanner.prepare(read_block(y, 0, m), of_x=False), *found)
    pairs = zip(found, expected, strict=True)
    differ = sum(
        int((a.values != b.similarities.numpy()).sum() + (a.indices != b.indices.numpy()).sum())
        for a, b in pairs
    )
    report.check(
        "topk", holds=differ == 0, found=f"{differ} of {8 * (n + m):,} values and neighbors differ"
    )


def attention(report: Report) -> None:
    """Measure packed attention in every dtype: FlashAttention, another kernel, or groups.

    It is compared with SDPA in float32, sentence by sentence, of the same rounded numbers.
    """
    import torch

    from interlingua.encoder.modeling import efficient_attention
    from interlingua.encoder.modeling.attention import Layout, flash_available

    heads, head_width = (2, 16) if report.tiny else (16, 64)
    draw = random.Random(0)
    lengths = [_length(draw) for _ in range(10 if report.tiny else 400)]
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    torch.manual_seed(0)
    numbers = torch.randn(sum(lengths), 3 * heads * head_width)
    by_length = Layout.of(bounds, device=report.device)
    packed = Layout.of(bounds, flash=True, device=report.device)
    for name, tolerance in ATTENTION_TOLERANCE.items():
        dtype = getattr(torch, name)
        qkv = numbers.to(report.device).to(dtype)
        expected = _attended_by_sdpa(qkv, bounds.tolist(), heads)
        layouts = {"": by_length}
        if flash_available(report.device, dtype, head_width):
            layouts[" flash"] = packed
        for label, layout in layouts.items():
            arranged = layout.arrange(qkv)
            how = "FlashAttention"
            if layout is by_length:
                is_one = efficient_attention.can_use_efficient_attention(arranged, head_width)
                how = "one kernel" if is_one else "groups of equal length"
            found = _attended(arranged, layout, heads)
            apart = max(
                float((layout.restore(one).float() - other).abs().max() / other.abs().max())
                for one, other in zip(found, expected, strict=True)
            )
            report.check(
                f"attention {name}{label}",
                holds=apart <= tolerance,
                found=f"{how}, apart by {apart:.1e}",
            )
            if how != "groups of equal length":
                run = functools.partial(_attended, arranged, layout, heads)
                groups = functools.partial(_attended, by_length.arrange(qkv), by_length, heads)
                _measure_packed(report, f"{name}{label}", run, groups)


def _measure_packed(
    report: Report, name: str, run: Callable[[], Any], groups: Callable[[], Any]
) -> None:
    """Measure the seconds of one layer's attention, and its speed relative to groups."""
    from unittest import mock

    from interlingua.encoder.modeling import efficient_attention

    run()
    packed = _seconds(report, run)
    with mock.patch.object(efficient_attention, "can_use_efficient_attention", return_value=False):
        groups()
        by_groups = _seconds(report, groups)
    report.measure(f"attention {name}", seconds=packed, times_groups=by_groups / packed)


def _attended(qkv: Any, layout: Any, heads: int) -> list[Any]:
    """Return contexts, and gradients of queries, keys and values, in the layout's order."""
    import torch

    from interlingua.encoder.modeling.attention import attend

    x = qkv.detach().requires_grad_()
    context = attend(x, layout, heads=heads)
    upstream = layout.arrange(_upstream(context))
    return [context.detach(), *torch.autograd.grad(context, x, upstream)]


def _attended_by_sdpa(qkv: Any, bounds: list[int], heads: int) -> list[Any]:
    """Return the same in float32, one sentence after another, in the order of the batch."""
    import torch
    from torch.nn import functional

    x = qkv.detach().float().requires_grad_()
    contexts = []
    for first, last in itertools.pairwise(bounds):
        # (heads, length, head width) each.
        q, k, v = x[first:last].unflatten(1, (3, heads, -1)).permute(1, 2, 0, 3).unbind(0)
        context = functional.scaled_dot_product_attention(q, k, v)
        contexts.append(context.transpose(0, 1).flatten(1))
    context = torch.cat(contexts)
    return [context.detach(), *torch.autograd.grad(context, x, _upstream(context))]


def _upstream(context: Any) -> Any:
    """Return a gradient in the batch's order. Dtypes change only its rounding."""
    import torch

    numbers = torch.arange(context.numel(), device=context.device)
    return (numbers % 7 - 3).view_as(context).to(context.dtype)


def encode(report: Report) -> None:
    """Compare vectors in every dtype with float32 on the CPU, and measure each shape's speed."""
    small = _encoder("tiny", words=SMALL_WORDS)
    texts = _texts(200, seed=0)
    expected = small.encode(texts)
    on_gpu = report.device.type == "cuda"
    small = small.to(report.device)
    for dtype, tolerance in VECTOR_TOLERANCE.items():
        if dtype == "tf32" and not on_gpu:
            continue
        apart = float(np.abs(small.encode(texts, dtype=dtype) - expected).max())
        report.check(
            f"encode {dtype}", holds=apart <= tolerance, found=f"largest difference {apart:.1e}"
        )
    rate = _product_rate(report)
    for shape in report.shapes:
        texts = _texts(TEXTS[shape], seed=1)
        encoder = _encoder(shape, words=_words(report)).to(report.device)
        tokens = sum(len(text.split()) for text in texts)
        flops = _forward_flops(SHAPES[shape], texts)
        encoder.encode(texts[: len(texts) // 8], dtype="bfloat16", batch_tokens=65_536)
        encode = functools.partial(encoder.encode, texts, dtype="bfloat16", batch_tokens=65_536)
        seconds = _seconds(report, encode)
        report.measure(
            f"encode {shape}",
            sentences_a_second=len(texts) / seconds,
            tokens_a_second=tokens / seconds,
            **report.shares(flops / seconds, rate),
        )
        if (theirs := _sentence_transformers(report, encoder, texts)) is not None:
            report.measure(f"encode {shape}", times_sentence_transformers=theirs / seconds)


def _sentence_transformers(report: Report, encoder: Any, texts: list[str]) -> float | None:
    """Return the seconds of sentence-transformers in bfloat16 with SDPA; None if not installed."""
    try:
        from sentence_transformers import SentenceTransformer
    except ImportError:
        print("       sentence-transformers is not installed", flush=True)
        return None
    with tempfile.TemporaryDirectory() as folder:
        encoder.save(folder)
        options = {"dtype": "bfloat16", "attn_implementation": "sdpa"}
        device = str(report.device)
        peer = SentenceTransformer(
            folder, device=device, model_kwargs=options, trust_remote_code=False
        )
        peer.encode(texts[: len(texts) // 8], batch_size=128)
        return _seconds(report, lambda: peer.encode(texts, batch_size=128))


def train(report: Report) -> None:
    """Measure tokens per second of steps in bfloat16, optimizer included.

    As they are, and with ``run.compile``.
    """
    import torch

    rate = _product_rate(report)
    for shape in report.shapes:
        for method in BATCHES:
            try:
                _measure_steps(report, method, shape, rate)
            except torch.OutOfMemoryError:
                print(f"       train {method} {shape} does not fit into memory", flush=True)
            _free(report)


def _measure_steps(report: Report, method: str, shape: str, rate: float) -> None:
    from torch.utils.flop_counter import FlopCounterMode

    from interlingua.errors import ConfigError
    from interlingua.runtime.fusion import switch

    step = Step(report, method, shape)
    with FlopCounterMode(display=False) as counter:
        step()
    # In parts each sentence's vector is computed twice, and a backward pass costs two forward
    # passes: a quarter of the work is none of the model's.
    flops = counter.get_total_flops() * (0.75 if step.in_parts else 1)
    count = max(1, STEPS * BATCHES["mexma"][0] // step.pairs)
    if report.tiny:
        count = 1
    name = f"train {method} {shape}"
    seconds = {}
    try:
        for is_compiled in (False, True):
            switch.set(on=is_compiled, device=report.device)
            step()
            taken = _seconds(report, lambda: [step() for _ in range(count)])
            seconds[is_compiled] = taken / count
            report.measure(
                name + is_compiled * ", compiled",
                seconds_a_step=seconds[is_compiled],
                tokens_a_second=step.tokens / seconds[is_compiled],
                **report.shares(flops / seconds[is_compiled], rate),
            )
        report.measure(f"{name}, compiled", times_as_it_is=seconds[False] / seconds[True])
    except ConfigError as error:  # nothing compiles here
        print(f"       {_first_line(error)}", flush=True)
    finally:
        switch.set(on=False, device=report.device)


class Step:
    """Training steps of a method on the same pairs.

    Args:
        report: where, and how large.
        method: its name.
        shape: of the encoder.
    """

    def __init__(self, report: Report, method: str, shape: str) -> None:
        from interlingua.batches.tokens import TokenBatch
        from interlingua.config import from_mapping
        from interlingua.config.registry import METHODS, resolve_name
        from interlingua.training.config import OptimizerConfig
        from interlingua.training.optimization.optim import build_optimizer

        self.pairs, parts = BATCHES[method]
        if report.tiny:
            self.pairs, parts = TINY_BATCH[0], parts and TINY_BATCH[1]
        self.in_parts = parts is not None
        options: dict[str, Any] = {"pooling": "any"} if method == "mexma" else {}
        if report.tiny and method == "mexma":
            options["head"] = {"layers": 1, "heads": 2, "intermediate_size": 32}
        factory = resolve_name(METHODS, method)
        self.device = report.device
        encoder = _encoder(shape, words=_words(report))
        self.objective = (
            factory(from_mapping(factory.Config, options), encoder).to(self.device).train()
        )
        self.objective.encoder.gradcache_sentences = parts
        self.optimizer = build_optimizer(
            self.objective, OptimizerConfig(learning_rate=1e-5), sparse_gradients=False
        )
        draw = random.Random(0)
        self.sides = []
        for language in ("deu_Latn", "eng_Latn"):
            lengths = [_length(draw) for _ in range(self.pairs)]
            sentences = [
                [draw.randrange(FIRST_WORD, SMALL_WORDS) for _ in range(length)]
                for length in lengths
            ]
            self.sides.append(TokenBatch.from_lists(sentences, [language] * len(sentences)))
        self.tokens = sum(len(side.input_ids) for side in self.sides)
        self.number = 0

    def __call__(self) -> None:
        """Run one training step."""
        import torch

        from interlingua.batches.tokens import ParallelBatch

        batch = ParallelBatch(*self.sides, step=self.number)
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            loss = self.objective(batch).loss
        loss.backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.number += 1


def mining(report: Report) -> None:
    """Find four neighbors of each vector, in both directions.

    The peer takes bfloat16 products, and one way at a time.
    """
    import torch

    from interlingua.retrieval.topk.exact import mutual_topk

    n = 2000 if report.tiny else 1_000_000
    width = 64 if report.tiny else 1024
    x, y = (_unit_vectors(n, width, seed) for seed in range(2))
    seconds = _seconds(report, lambda: mutual_topk(x, y, k=4, device=report.device))
    report.measure("mining", vectors=n, seconds=seconds, pairs_a_second=n * n / seconds)

    def plain() -> None:
        for one, other in ((x, y), (y, x)):
            candidates = torch.from_numpy(other).to(report.device, torch.bfloat16)
            for start in range(0, n, 4096):
                queries = torch.from_numpy(one[start : start + 4096]).to(
                    report.device, torch.bfloat16
                )
                torch.cat(
                    [(queries @ part.T).topk(4).values for part in candidates.split(2**18)], dim=1
                ).topk(4)

    report.measure("mining", times_plain_torch=_seconds(report, plain) / seconds)


PARTS: dict[str, Callable[[Report], None]] = {
    "methods": methods,
    "compile": compiled,
    "resume": resume,
    "topk": topk,
    "attention": attention,
    "encode": encode,
    "train": train,
    "mining": mining,
}
SHARES = {
    "methods": 60,
    "compile": 60,
    "resume": 15,
    "topk": 30,
    "attention": 15,
    "encode": 100,
    "train": 160,
    "mining": 100,
}
"""Shares of the time, in seconds of the nine minutes."""


class Target(NamedTuple):
    """Expected value of a measure."""

    words: str
    part: str
    names: tuple[str, ...]
    """Names of the measure; the first that exists counts."""
    limit: float
    most: bool = False
    """True if the limit is an upper one."""


TARGETS = (
    *(
        Target(f"{part}: share of the rate", part, ("of_peak", "utilization"), 0.45)
        for method in BATCHES
        for part in (f"train {method} large", f"train {method} large, compiled")
    ),
    *(
        Target(
            f"encode {shape} / sentence-transformers",
            f"encode {shape}",
            ("times_sentence_transformers",),
            2.0,
        )
        for shape in ("large", "base")
    ),
    Target("mining a million by a million: seconds", "mining", ("seconds",), 60.0, most=True),
)


def show_targets(report: Report) -> None:
    """Print a line for each target that was measured at its sizes."""
    if report.tiny:
        return
    for target in TARGETS:
        measured = report.measures.get(target.part, {})
        name = next((name for name in target.names if name in measured), None)
        if name is None:
            continue
        value = measured[name]
        is_met = value <= target.limit if target.most else value >= target.limit
        print(
            f"{target.words:<52}{value:9.4g}   target {'<=' if target.most else '>='}"
            f" {target.limit:<5g} {'met' if is_met else 'MISSED'}"
            f"{', of the measured rate' * (name == 'utilization')}"
        )


def _words(report: Report) -> int:
    return SMALL_WORDS if report.tiny else XLMR_WORDS


def _encoder(shape: str, *, words: int) -> Any:
    """Build an encoder of XLM-R's shape with random weights and forty words."""
    import torch
    from tests.methods.conftest import tiny_vocabulary

    from interlingua.encoder.encoder import Encoder
    from interlingua.encoder.modeling.backbone import BackboneConfig

    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=words, max_position_embeddings=514, model_type="xlm-roberta", **SHAPES[shape]
    )
    return Encoder.from_scratch(config, tiny_vocabulary(), initialization="bert").eval()


def _length(draw: random.Random) -> int:
    """Draw a sentence length in tokens: many short ones and a long tail, as in web text."""
    return min(LONGEST, 4 + int(draw.lognormvariate(3.0, 0.7)))


def _texts(count: int, *, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"w{draw.randrange(40)}" for _ in range(_length(draw))) for _ in range(count)]


def _unit_vectors(count: int, width: int, seed: int) -> Any:
    """Draw unit vectors around a common mean, like a sentence encoder's."""
    draw = np.random.default_rng(seed)
    center = np.random.default_rng(99).standard_normal(width, dtype=np.float32)
    vectors = draw.standard_normal((count, width), dtype=np.float32)
    vectors += center
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _forward_flops(shape: dict[str, int], texts: list[str]) -> float:
    """Count the multiplications of a forward pass.

    Matrices for each token, and attention for each pair of tokens of a sentence.
    """
    width = shape["hidden_size"]
    matrices = 2 * (4 * width * width + 2 * width * shape["intermediate_size"])
    lengths = np.array([len(text.split()) for text in texts], dtype=np.float64)
    return float(
        shape["num_hidden_layers"] * (matrices * lengths.sum() + 4 * width * (lengths**2).sum())
    )


def _product_rate(report: Report) -> float:
    """Measure operations per second of a large bfloat16 product, the base of utilization."""
    import torch

    size = 128 if report.tiny else 8192
    x = torch.randn(size, size, device=report.device, dtype=torch.bfloat16)
    x @ x
    rounds = 2 if report.tiny else 20
    seconds = _seconds(report, lambda: [x @ x for _ in range(rounds)]) / rounds
    report.measure("device", product_flops_a_second=2 * size**3 / seconds)
    return 2 * size**3 / seconds


def _seconds(report: Report, run: Callable[[], Any]) -> float:
    import torch

    wait = torch.cuda.synchronize if report.device.type == "cuda" else lambda: None
    wait()
    start = time.perf_counter()
    run()
    wait()
    return time.perf_counter() - start


def _peak(name: str) -> float | None:
    """Look up the maker's bfloat16 operations per second of a device by its full name."""
    return next((peak for known, peak in PEAKS.items() if re.fullmatch(known, name)), None)


def _free(report: Report) -> None:
    """Return unused memory to the device."""
    import torch

    gc.collect()
    if report.device.type == "cuda":
        torch.cuda.empty_cache()


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise ``OutOfTimeError`` in this block when the time is over."""

    def stop(*_: object) -> None:
        raise OutOfTimeError

    before = signal.signal(signal.SIGALRM, stop)
    # And again every few seconds, as what is raised in a destructor is lost.
    signal.setitimer(signal.ITIMER_REAL, seconds, 5.0)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _run_parts(report: Report, parts: list[str], seconds: float) -> None:
    """Run parts one after another, each in its share of the remaining time."""
    until = time.perf_counter() + seconds
    for number, part in enumerate(parts):
        left = until - time.perf_counter()
        if left <= 0:
            report.stopped.append(part)
            print(f"       {part} is left out: the time is over", flush=True)
            continue
        share = left * SHARES[part] / sum(SHARES[one] for one in parts[number:])
        try:
            with _deadline(share):
                PARTS[part](report)
        except OutOfTimeError:
            report.stopped.append(part)
            print(f"       {part} is stopped: its {share:.0f} s are over", flush=True)
        except Exception as error:
            traceback.print_exc()
            report.check(part, holds=False, found=_first_line(error))
        _free(report)


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


@contextlib.contextmanager
def _repository() -> Iterator[None]:
    """Make this repository's tests importable. They build every method's objective."""
    sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT))


def main(arguments: list[str] | None = None) -> int:
    """Run the parts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu with --tiny")
    parser.add_argument("--tiny", action="store_true", help="sizes of a test")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--seconds", type=float, default=540, help="for all parts together")
    parser.add_argument("--json", type=Path, help="file for all that was found")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.only.split(",") if name not in PARTS]:
        parser.error(f"no part {unknown[0]!r}; there are: {', '.join(PARTS)}")
    os.environ.setdefault(
        "CUBLAS_WORKSPACE_CONFIG", ":4096:8"
    )  # before the first product, for the part resume
    import torch

    if options.device != "cpu" and not torch.cuda.is_available():
        print("no CUDA device here", file=sys.stderr)
        return 2
    report = Report(torch.device(options.device), options.tiny)
    name = platform.processor()
    if report.device.type == "cuda":
        name = torch.cuda.get_device_name(report.device)
        report.peak = _peak(name)
    print(f"{name}, torch {torch.__version__}")
    with _repository():
        _run_parts(report, options.only.split(","), options.seconds)
    show_targets(report)
    if options.json is not None:
        found = {
            "device": name,
            "torch": torch.__version__,
            "checks": report.checks,
            "measures": report.measures,
            "stopped": report.stopped,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    failed = [check for check, (holds, _) in report.checks.items() if not holds]
    print(
        f"{len(report.checks) - len(failed)} checks hold, {len(failed)}"
        f" fail{': ' if failed else ''}{', '.join(failed)}"
        f"{'; too little time for ' * bool(report.stopped)}{', '.join(report.stopped)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
