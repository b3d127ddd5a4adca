"""Whether a GPU computes what the CPU computes, and how fast: one command of at most ten minutes.

    python benchmarks/accelerator.py                          # on a machine with a CUDA GPU
    python benchmarks/accelerator.py --json gpu.json --only encode,mining
    python benchmarks/accelerator.py --device cpu --tiny      # small, where there is none

Checks, each on the device and on the CPU with the same weights:

- ``methods``: loss and gradients of every training method;
- ``resume``: six steps, and three steps, a checkpoint and three more, end with the same bytes
  (``run.deterministic``);
- ``attention``: contexts and gradients of packed sentences in each dtype, without FlashAttention,
  against SDPA in float32 sentence by sentence;
- ``encode``: vectors in float32, bfloat16 and TF32;
- ``topk``: exact neighbors, to the bit.

Measures, with random weights in XLM-R's base and large shape:

- ``attention``: a layer's attention of packed sentences, forward and backward, next to groups of
  equal length;
- ``encode``: sentences and tokens per second of mixed lengths, and the share of the GPU's rate in
  large products that this is, next to sentence-transformers in bfloat16 with SDPA;
- ``train``: tokens per second of MEXMA and InfoNCE steps, and the same share, without and with
  ``run.compile``;
- ``mining``: neighbors of a million vectors among a million, both ways, next to plain torch
  products and top-k, which finds approximate values and one way at a time.

Each part stands alone: what fails in one is reported, and the others go on. Nothing is downloaded.
It needs the repository's tests, and pytest, for the small objectives. Exit code 1: a check failed;
2: there is no CUDA device.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import platform
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
"""Of the small vocabulary; its words begin at ``FIRST_WORD``."""
FIRST_WORD = 6
TEXTS = {"base": 40_000, "large": 16_000, "tiny": 60}
PAIRS = {"base": 150, "large": 150, "tiny": 4}
"""Of a micro-batch, as a GPU has in MEXMA's paper."""
STEPS = 8
LONGEST = 256
WITHOUT_DROPOUT = {"cross_encoder": {"head_dropout": 0.0}}
"""Options of methods that drop elements by default: no two devices draw the same ones."""
LOSS_TOLERANCE = 1e-4
GRADIENT_TOLERANCE = 1e-3
"""Of float32, relative to the largest gradient: sums in another order."""
ATTENTION_TOLERANCE = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Relative to the largest number of what is compared."""
VECTOR_TOLERANCE = {"float32": 1e-4, "tf32": 1e-2, "bfloat16": 3e-2}


@dataclass
class Report:
    """What was found so far.

    Attributes:
        device: where.
        tiny: whether sizes are those of a test.
        until: when no further part begins, of ``time.perf_counter``.
        checks: whether each check held, with a number or a reason.
        measures: numbers by part and name.
    """

    device: Any
    tiny: bool
    until: float
    checks: dict[str, tuple[bool, str]] = field(default_factory=dict)
    measures: dict[str, dict[str, float]] = field(default_factory=dict)

    def check(self, name: str, *, holds: bool, found: str) -> None:
        """Writes down a check and shows it."""
        self.checks[name] = (holds, found)
        print(f"{'ok    ' if holds else 'FAILED'} {name}: {found}", flush=True)

    def measure(self, part: str, **numbers: float) -> None:
        """Writes down measures and shows them."""
        self.measures.setdefault(part, {}).update(numbers)
        for name, number in numbers.items():
            print(f"       {part} | {name} = {number:,.4g}", flush=True)

    @property
    def shapes(self) -> list[str]:
        """Of the encoders to measure."""
        return ["tiny"] if self.tiny else ["base", "large"]


def methods(report: Report) -> None:
    """Loss and gradients of every method, in float32."""
    from tests.methods.harness import tiny_batch, tiny_objective

    from interlingua.registry import METHODS

    for method in sorted(METHODS)[: 3 if report.tiny else None]:
        try:
            batch = tiny_batch(method)
            found = [
                _gradients(
                    tiny_objective(method, WITHOUT_DROPOUT.get(method, {})).to(device), batch
                )
                for device in ("cpu", report.device)
            ]
        except Exception as error:
            report.check(f"methods {method}", holds=False, found=_first_line(error))
            continue
        (loss, expected), (other_loss, gradients) = found
        apart = max(float((gradients[name] - expected[name]).abs().max()) for name in expected)
        apart /= max(float(gradient.abs().max()) for gradient in expected.values())
        holds = abs(loss - other_loss) <= LOSS_TOLERANCE * abs(loss) and apart <= GRADIENT_TOLERANCE
        report.check(
            f"methods {method}",
            holds=holds,
            found=f"loss {other_loss:.5f}, gradients apart by {apart:.1e}",
        )


def _gradients(objective: Any, batch: Any) -> tuple[float, dict[str, Any]]:
    import torch

    torch.manual_seed(0)
    parts = objective.parts or (None,)
    loss = 0.0
    for part in parts:
        output = objective(batch) if part is None else objective(batch, part=part)
        output.loss.backward()
        loss += output.loss.item()
    weights = objective.named_parameters()
    return loss, {
        name: weight.grad.detach().cpu() for name, weight in weights if weight.grad is not None
    }


def resume(report: Report) -> None:
    """A run that a checkpoint cuts in two ends with the bytes of one that nothing stopped."""
    from interlingua.train.config import RunConfig
    from interlingua.train.engine import Engine

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
    """Of the weights after six steps of MEXMA with dropout."""
    from tests.methods.harness import tiny_batch, tiny_objective

    from interlingua.encoder.weights import weights_digest
    from interlingua.train.checkpoint import TrainState, load_checkpoint, save_checkpoint
    from interlingua.train.config import OptimizerConfig
    from interlingua.train.optim import build_optimizer
    from interlingua.train.step import gradients

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
    """Exact neighbors of the device's own search, and of the CPU's."""
    from interlingua.search.topk.device_scanner import DeviceScanner
    from interlingua.search.topk.exact import make_frame, mutual_topk, read_block
    from interlingua.search.topk.lists import NeighborLists

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
    """Packed attention where FlashAttention can't run, in every dtype.

    It is compared with SDPA in float32, sentence by sentence, of the same rounded numbers.
    """
    import torch

    from interlingua.encoder import efficient
    from interlingua.encoder.attention import Layout

    heads, head_width = (2, 16) if report.tiny else (16, 64)
    draw = random.Random(0)
    lengths = [_length(draw) for _ in range(10 if report.tiny else 400)]
    bounds = torch.tensor([0, *lengths]).cumsum(0).int()
    torch.manual_seed(0)
    numbers = torch.randn(sum(lengths), 3 * heads * head_width)
    layout = Layout.of(bounds, device=report.device)
    for name, tolerance in ATTENTION_TOLERANCE.items():
        qkv = layout.arrange(numbers.to(report.device, getattr(torch, name)))
        is_packed = efficient.available(qkv, head_width)
        found = _attended(qkv, layout, heads)
        expected = _attended_by_sdpa(qkv, layout, heads)
        apart = max(
            float((one.float() - other).abs().max() / other.abs().max())
            for one, other in zip(found, expected, strict=True)
        )
        how = "one kernel" if is_packed else "groups of equal length"
        report.check(
            f"attention {name}", holds=apart <= tolerance, found=f"{how}, apart by {apart:.1e}"
        )
        if is_packed:
            _measure_packed(report, name, functools.partial(_attended, qkv, layout, heads))


def _measure_packed(report: Report, name: str, run: Callable[[], Any]) -> None:
    """Of one layer's attention: seconds, and how many times faster than by groups."""
    from unittest import mock

    from interlingua.encoder import efficient

    run()
    packed = _seconds(report, run)
    with mock.patch.object(efficient, "available", return_value=False):
        run()
        by_groups = _seconds(report, run)
    report.measure(f"attention {name}", seconds=packed, times_groups=by_groups / packed)


def _attended(qkv: Any, layout: Any, heads: int) -> list[Any]:
    """Contexts, and gradients of queries, keys and values."""
    import torch

    from interlingua.encoder.attention import attend

    x = qkv.detach().requires_grad_()
    context = attend(x, layout, heads=heads)
    return [context.detach(), *torch.autograd.grad(context, x, _upstream(context))]


def _attended_by_sdpa(qkv: Any, layout: Any, heads: int) -> list[Any]:
    """The same in float32, one sentence after another."""
    import torch
    from torch.nn import functional

    x = qkv.detach().float().requires_grad_()
    contexts = []
    for group in layout.by_length.groups:
        for row in range(group.sequences):
            first = group.start + row * group.length
            sentence = x[first : first + group.length].unflatten(1, (3, heads, -1))
            # (heads, length, head width) each.
            q, k, v = sentence.permute(1, 2, 0, 3).unbind(0)
            context = functional.scaled_dot_product_attention(q, k, v)
            contexts.append(context.transpose(0, 1).flatten(1))
    context = torch.cat(contexts)
    return [context.detach(), *torch.autograd.grad(context, x, _upstream(context))]


def _upstream(context: Any) -> Any:
    """A gradient that is the same in every dtype but for its rounding."""
    import torch

    numbers = torch.arange(context.numel(), device=context.device)
    return (numbers % 7 - 3).view_as(context).to(context.dtype)


def encode(report: Report) -> None:
    """Vectors in every dtype against float32 on the CPU; then the speed of each shape."""
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
            utilization=flops / seconds / rate,
        )
        if (theirs := _sentence_transformers(report, encoder, texts)) is not None:
            report.measure(f"encode {shape}", times_sentence_transformers=theirs / seconds)


def _sentence_transformers(report: Report, encoder: Any, texts: list[str]) -> float | None:
    """Seconds of sentence-transformers in bfloat16 with SDPA; None where it is not installed."""
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
    """Tokens per second of steps in bfloat16, optimizer included.

    As they are, and with ``run.compile``.
    """
    from torch.utils.flop_counter import FlopCounterMode

    from interlingua.one_pass import switch

    rate = _product_rate(report)
    for shape in report.shapes:
        for method in ("mexma", "infonce"):
            step = Step(report, method, shape)
            with FlopCounterMode(display=False) as counter:
                step()
            count = 1 if report.tiny else STEPS
            each = {}
            for compiled in (False, True):
                switch.set(on=compiled, device=report.device)
                step()
                each[compiled] = _seconds(report, lambda: [step() for _ in range(count)]) / count  # noqa: B023
                report.measure(
                    f"train {method} {shape}" + compiled * ", compiled",
                    seconds_a_step=each[compiled],
                    tokens_a_second=step.tokens / each[compiled],
                    utilization=counter.get_total_flops() / each[compiled] / rate,
                )
            switch.set(on=False, device=report.device)
            report.measure(
                f"train {method} {shape}, compiled", times_as_it_is=each[False] / each[True]
            )


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
        from interlingua.registry import METHODS, resolve
        from interlingua.train.config import OptimizerConfig
        from interlingua.train.optim import build_optimizer

        options: dict[str, Any] = {"pooling": "any"} if method == "mexma" else {}
        if report.tiny and method == "mexma":
            options["head"] = {"layers": 1, "heads": 2, "intermediate_size": 32}
        factory = resolve(METHODS, method)
        self.device = report.device
        encoder = _encoder(shape, words=_words(report))
        self.objective = (
            factory(from_mapping(factory.Config, options), encoder).to(self.device).train()
        )
        self.optimizer = build_optimizer(
            self.objective, OptimizerConfig(learning_rate=1e-5), sparse_gradients=False
        )
        draw = random.Random(0)
        self.sides = []
        for language in ("deu_Latn", "eng_Latn"):
            lengths = [_length(draw) for _ in range(PAIRS[shape])]
            sentences = [
                [draw.randrange(FIRST_WORD, SMALL_WORDS) for _ in range(length)]
                for length in lengths
            ]
            self.sides.append(TokenBatch.from_lists(sentences, [language] * len(sentences)))
        self.tokens = sum(len(side.input_ids) for side in self.sides)
        self.number = 0

    def __call__(self) -> None:
        """Makes a step."""
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
    """Four neighbors of each vector, both ways.

    The peer takes bfloat16 products, and one way at a time.
    """
    import torch

    from interlingua.search.topk.exact import mutual_topk

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
    "resume": resume,
    "topk": topk,
    "attention": attention,
    "encode": encode,
    "train": train,
    "mining": mining,
}


def _words(report: Report) -> int:
    return SMALL_WORDS if report.tiny else XLMR_WORDS


def _encoder(shape: str, *, words: int) -> Any:
    """An encoder of XLM-R's shape with random weights; its tokenizer knows forty words."""
    import torch
    from tests.methods.conftest import tiny_vocabulary

    from interlingua.encoder.backbone import BackboneConfig
    from interlingua.encoder.encoder import Encoder

    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=words, max_position_embeddings=514, model_type="xlm-roberta", **SHAPES[shape]
    )
    return Encoder.from_scratch(config, tiny_vocabulary(), initialization="bert").eval()


def _length(draw: random.Random) -> int:
    """Of a sentence, in tokens: as in web text, many short ones and a long tail."""
    return min(LONGEST, 4 + int(draw.lognormvariate(3.0, 0.7)))


def _texts(count: int, *, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(f"w{draw.randrange(40)}" for _ in range(_length(draw))) for _ in range(count)]


def _unit_vectors(count: int, width: int, seed: int) -> Any:
    """Like a sentence encoder's: around a common mean, of length 1."""
    draw = np.random.default_rng(seed)
    center = np.random.default_rng(99).standard_normal(width, dtype=np.float32)
    vectors = draw.standard_normal((count, width), dtype=np.float32)
    vectors += center
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


def _forward_flops(shape: dict[str, int], texts: list[str]) -> float:
    """Products of a forward pass.

    Matrices for each token, and attention for each pair of tokens of a sentence.
    """
    width = shape["hidden_size"]
    matrices = 2 * (4 * width * width + 2 * width * shape["intermediate_size"])
    lengths = np.array([len(text.split()) for text in texts], dtype=np.float64)
    return float(
        shape["num_hidden_layers"] * (matrices * lengths.sum() + 4 * width * (lengths**2).sum())
    )


def _product_rate(report: Report) -> float:
    """Operations a second of a large product in bfloat16 here: what utilization is a share of."""
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


def _first_line(error: BaseException) -> str:
    return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0][:200]}"


@contextlib.contextmanager
def _repository() -> Iterator[None]:
    """Lets this repository's tests be imported, which build every method's objective."""
    sys.path.insert(0, str(ROOT))
    try:
        yield
    finally:
        sys.path.remove(str(ROOT))


def main(arguments: list[str] | None = None) -> int:
    """Runs the parts; see the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1; cpu with --tiny")
    parser.add_argument("--tiny", action="store_true", help="sizes of a test")
    parser.add_argument("--only", default=",".join(PARTS), help="parts, with commas between them")
    parser.add_argument("--seconds", type=float, default=540, help="no part begins later")
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
    report = Report(
        torch.device(options.device), options.tiny, time.perf_counter() + options.seconds
    )
    name = (
        torch.cuda.get_device_name(report.device)
        if report.device.type == "cuda"
        else platform.processor()
    )
    print(f"{name}, torch {torch.__version__}")
    with _repository():
        for part in options.only.split(","):
            if time.perf_counter() > report.until:
                print(f"       {part} is left out: the time is over", flush=True)
                continue
            try:
                PARTS[part](report)
            except Exception as error:
                traceback.print_exc()
                report.check(part, holds=False, found=_first_line(error))
    if options.json is not None:
        found = {
            "device": name,
            "torch": torch.__version__,
            "checks": report.checks,
            "measures": report.measures,
        }
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    failed = [check for check, (holds, _) in report.checks.items() if not holds]
    print(
        f"{len(report.checks) - len(failed)} checks hold, {len(failed)}"
        f" fail{': ' if failed else ''}{', '.join(failed)}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
