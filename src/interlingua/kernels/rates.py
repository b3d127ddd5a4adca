"""How fast several ways to the same result are here: measured once, and remembered.

Which way is fastest depends on the processor, the dtype and the widths, and no rule that was
written down has been right everywhere. So the ways take turns in a short trial, and their rates are
kept in the user's cache folder. A way that stands earlier keeps its place unless a later one is
faster by ``MARGIN``.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import platform
import sys
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from interlingua import __version__
from interlingua.errors import InterlinguaError
from interlingua.files import atomic_write
from interlingua.kernels import digest, variant
from interlingua.storage.json_text import parse_json

VARIABLE = "INTERLINGUA_EXECUTOR"
FIRST = "first"
"""Value of the variable: the first way that can, without any measurement."""
MARGIN = 1.05
"""A later way is taken when it is so many times as fast."""
ROUNDS = 12
TRIAL_SECONDS = 0.3
"""A trial ends after so many rounds, or with the round in which this time is over."""
LEAST_ROUNDS = 3
"""However long they take: what interrupts one of them seldom interrupts all."""
# What other processes do on the machine hardly moves the processor time of this thread. Windows
# counts it in steps of 16 milliseconds, which are too coarse.
CLOCK = time.perf_counter if sys.platform == "win32" else time.thread_time
# Two threads that need the same rates would slow each other's trials.
_LOCK = threading.Lock()
_MEASURED: dict[str, dict[str, float]] = {}
"""Of this process, for when the cache folder can't be written."""


def fastest(rates: Mapping[str, float]) -> str:
    """The first name, or a later one that is faster by ``MARGIN`` than the best before it."""
    best = next(iter(rates))
    for name, rate in rates.items():
        if rate > MARGIN * rates[best]:
            best = name
    return best


def measured(
    source: str,
    facts: Sequence[str],
    names: Sequence[str],
    measure: Callable[[], Mapping[str, float]],
) -> dict[str, float]:
    """Rates in the order of the names: remembered, or measured now.

    Args:
        source: of the kernel that is one of the ways.
        facts: all that a speed depends on but for the machine and the versions.
        names: of the ways.
        measure: gives the rate of each.
    """
    key = " | ".join((_machine(source), *facts))
    with _LOCK:
        rates = _MEASURED.get(key) or remembered().get(key, {})
        # Other names than those remembered: a kernel may have been built meanwhile.
        if rates.keys() != set(names):
            rates = dict(measure())
            _remember(key, rates)
        _MEASURED[key] = rates
    return {name: rates[name] for name in names}


def known(source: str, first_fact: str) -> dict[str, dict[str, float]]:
    """Rates that were measured on this machine already, by the facts that they depend on.

    Args:
        source: of the kernel that is one of the ways.
        first_fact: how the facts begin.
    """
    start = f"{_machine(source)} | {first_fact}"
    by_facts = {}
    for key, rates in {**remembered(), **_MEASURED}.items():
        if key.startswith(start):
            by_facts[key.removeprefix(f"{_machine(source)} | ")] = rates
    return by_facts


def _machine(source: str) -> str:
    """What every speed depends on: the machine, the kernel and the versions."""
    kernel = variant(source) or "no kernel"
    # Rates of an older source of the same version would be wrong now.
    code = f"{digest(Path(__file__).with_name(f'{source}.c')):08x}"
    # A home folder may be shared by machines of several kinds.
    # Rates by another clock are not comparable.
    # Torch may be kept from instructions that the processor has.
    used = torch.backends.cpu.get_cpu_capability()
    parts = (processor(), used, kernel, code, torch.__version__, __version__, CLOCK.__name__)
    return " | ".join(parts)


def least_seconds(
    ways: Mapping[str, Callable[[], object]], *, trial_seconds: float | None = None
) -> dict[str, float]:
    """Of each way the best of some rounds, on one thread.

    Processor time counts, where the system measures it finely. They take turns, so that what else
    slows the machine slows all of them.

    Args:
        ways: by name.
        trial_seconds: the last round ends after so many; default: ``TRIAL_SECONDS``.
    """
    if trial_seconds is None:
        trial_seconds = TRIAL_SECONDS
    threads = torch.get_num_threads()
    seconds = dict.fromkeys(ways, float("inf"))
    begin = CLOCK()
    try:
        torch.set_num_threads(1)
        for done in range(1, ROUNDS + 1):
            for name, way in ways.items():
                start = CLOCK()
                way()
                # The best round, since what else goes on can only add time.
                seconds[name] = min(seconds[name], CLOCK() - start)
            if done >= LEAST_ROUNDS and CLOCK() - begin > trial_seconds:
                break
    finally:
        torch.set_num_threads(threads)
    return seconds


def cache_file() -> Path:
    """Where rates are remembered: ``executors.json`` in interlingua's cache folder of the user."""
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(folder).expanduser() / "interlingua" / "executors.json"


def remembered() -> dict[str, dict[str, float]]:
    """Rates by processor, versions and what else they depend on.

    There are none where the file is missing or damaged.
    """
    known = {}
    try:
        content = parse_json(cache_file().read_text(encoding="utf-8"))
        for key, rates in content.items():
            known[str(key)] = {str(name): float(rate) for name, rate in rates.items()}
        return known
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


def _remember(key: str, rates: dict[str, float]) -> None:
    """Adds rates to the file.

    A folder that can't be written costs one more measurement in the next process.
    """
    content = {**remembered(), key: rates}
    with contextlib.suppress(OSError, InterlinguaError), atomic_write(cache_file()) as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")


@functools.cache
def processor() -> str:
    """Name of the processor, with a checksum of what it can do."""
    name = platform.processor() or platform.machine()
    flags = ""
    # Linux alone has this file. The checksum tells virtual machines apart that hide instructions.
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                flags = " ".join(sorted(value.split()))
    return f"{name} {zlib.crc32(flags.encode()):08x}"
