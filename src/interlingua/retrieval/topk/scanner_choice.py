"""Choice of the scanner on the CPU: the compiled kernel, or plain torch.

Both find the same neighbors, so only time matters. Most variants of the kernel were timed on at
least one processor, but no variant was timed on all. So before a large search both scanners go
through a tile of random vectors of the real width (``encoder/executors/choice.py``). A search that
takes no longer than this trial runs without one, and uses the kernel if it is available.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.executors.choice import (
    Trial,
    choose_executor,
    choose_without_trial,
    fastest,
    is_variant_forced,
    known_rates,
)
from interlingua.kernels import KERNELS_VARIABLE
from interlingua.retrieval.topk.bounds import STAGE, Block, Frame, Scanner
from interlingua.retrieval.topk.kernel_scanner import CompiledScanner
from interlingua.retrieval.topk.lists import NeighborLists
from interlingua.retrieval.topk.torch_scanner import TorchScanner
from interlingua.storage.arrays import unit_rows

SCANNERS: dict[str, Callable[[Frame], Scanner[Any]]] = {
    "kernel": CompiledScanner,
    "torch": TorchScanner,
}
"""Scanners by their names in ``INTERLINGUA_EXECUTOR``; each on one thread of Python."""
TRIED_PAIRS = 2**30
"""Smallest number of pairs for which there is a trial before the search; a search of that
number of pairs takes some seconds."""
_ROWS = 1024
_COLUMNS = 2048
NEIGHBORS = 4
"""Sizes of the trial's tile: several rounds of it take less than a second."""
FACT = "neighbors"
"""Start of the key under which the rates are stored, not counting the name of the machine."""


def choose_scanner(frame: Frame, pairs: int) -> str:
    """Return the name of the scanner for a search.

    Args:
        frame: of both sides.
        pairs: number of pairs in the search.
    """
    scanners, decided = _candidates()
    if decided is None and pairs < TRIED_PAIRS:
        decided = f"{pairs:,} pairs take no longer than a trial"
    choice = choose_executor(
        scanners,
        kernel="neighbors",
        facts=[f"{FACT} width={len(frame.x)} stages={len(frame.stages)}"],
        trial=functools.partial(_trial, frame),
        decided=decided,
    )
    return choice.executor


def _candidates() -> tuple[list[str], str | None]:
    """Return the scanners that run here, and why the first one needs no trial, or None."""
    if not CompiledScanner.available():
        return ["torch"], None
    if is_variant_forced():
        return list(SCANNERS), f"{KERNELS_VARIABLE} names its variant"
    return list(SCANNERS), None


def describe_choices() -> list[str]:
    """Describe which scanner does exact searches on this CPU, why, and every measured rate."""
    title = "exact search on the CPU"
    choice = choose_without_trial(*_candidates())
    if choice is not None:
        return [f"{title}: {choice.executor}, {choice.reason}"]
    smaller = f"kernel for fewer than {TRIED_PAIRS:,} pairs, without a trial"
    by_facts = {}
    for facts, rates in known_rates("neighbors", FACT).items():
        # The user may have edited the file.
        if rates.keys() == SCANNERS.keys():
            # In the order of ``SCANNERS``: a later scanner must be faster by a margin.
            by_facts[facts] = {name: rates[name] for name in SCANNERS}
    if not by_facts:
        return [f"{title}: {smaller}; larger ones are not measured yet"]
    lines = [f"{title}: {smaller}; for more (pairs per second, on one thread):"]
    for facts, rates in by_facts.items():
        shown = ", ".join([f"{name} {rate:,.0f}" for name, rate in rates.items()])
        lines.append(f"  {facts.removeprefix(FACT).strip()}: {fastest(rates)}, measured: {shown}")
    return lines


def _trial(frame: Frame) -> Trial:
    """Return a scan of a tile by each scanner; a unit of work is a pair."""
    rng = np.random.default_rng(0)
    width = len(frame.x)
    x = _vectors(rng, _ROWS, width)
    y = _vectors(rng, _COLUMNS, width)
    axes = None
    # The coordinates are the axes already, those of largest variance first.
    if frame.axes is not None:
        axes = np.eye(width, dtype=np.float32)
    tile = Frame(x.mean(axis=0), y.mean(axis=0), axes)
    scans = {}
    for name, make in SCANNERS.items():
        scanner = make(tile)
        left = scanner.prepare(Block(x, 0), of_x=True)
        right = scanner.prepare(Block(y, 0), of_x=False)
        lists = NeighborLists.empty(_ROWS, NEIGHBORS), NeighborLists.empty(_COLUMNS, NEIGHBORS)
        scan = functools.partial(scanner.scan, left, right, *lists)
        # The lists are full from here on, as they are in nearly all of a large search.
        scan()
        scans[name] = scan
    return Trial(scans, work=_ROWS * _COLUMNS)


def _vectors(rng: np.random.Generator, count: int, width: int) -> Float32[ndarray, "count width"]:
    """Draw random vectors of length 1 with coordinates of decreasing variance."""
    spread = 1 / np.sqrt(1 + np.arange(width, dtype=np.float32) / STAGE)
    return unit_rows(rng.standard_normal((count, width), dtype=np.float32) * spread)
