"""Choose which executor computes layers, training passes or an exact search.

All executors of a computation give the same result up to rounding. Which one is fastest depends on
the processor, the dtype and the widths, and no fixed rule has been right on all processors. So the
candidates run in turns in a short trial on this machine, and their rates are stored in the user's
cache folder. Candidates are in order of preference: a later one is chosen only if it is faster by
``SPEED_MARGIN``, so that noise does not change the last digits of vectors. The variable
``INTERLINGUA_EXECUTOR`` names an executor instead.

No other module times executors to choose one (house rule ``executor-choice``). The candidates
and what they compute in a trial are in ``layers.py``, ``training_passes.py`` and
``retrieval/topk/scanner_choice.py``.
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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

import torch

from interlingua import __version__, kernels
from interlingua.config.registry import did_you_mean
from interlingua.errors import ConfigError, InterlinguaError
from interlingua.storage.files import atomic_write
from interlingua.storage.json_text import parse_json

EXECUTOR_VARIABLE = "INTERLINGUA_EXECUTOR"
FIRST = "first"
"""Value of the variable: the first candidate, without a measurement."""
_NAMES = ("kernel", "kernel-int16", "onednn", "torch")
"""Executors that the variable can name. Not all of them compute everything."""
SPEED_MARGIN = 1.05
"""Factor by which a later candidate has to be faster."""
MAX_ROUNDS = 12
MIN_ROUNDS = 3
"""Minimum number of rounds of a trial. An interruption seldom affects all of them."""
_TRIAL_SECONDS = 0.3
"""A trial ends after ``MAX_ROUNDS``, or with the round in which this time is over."""
# Other processes hardly change the processor time of this thread. Windows counts it in steps of 16
# milliseconds, which are too coarse.
CLOCK = time.perf_counter if sys.platform == "win32" else time.thread_time
# Two threads that need the same rates would slow each other's trials.
_LOCK = threading.Lock()
_MEASURED: dict[str, dict[str, float]] = {}
"""Rates of this process, in case the cache folder cannot be written."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choice:
    """An executor, and the reason for the choice."""

    executor: str
    reason: str
    rates: Mapping[str, float] = field(default_factory=dict)
    """Units of work per second, of each executor that was tried."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Reasons why other executors cannot compute this."""

    @property
    def rate(self) -> float:
        """Rate of the chosen executor; 0 if nothing was measured."""
        return self.rates.get(self.executor, 0.0)


class Trial(NamedTuple):
    """A computation that all candidates run.

    Attributes:
        runs: one run by each candidate.
        work: units of work in a run, for example tokens.
        seconds: the trial ends with the round in which this time is over.
    """

    runs: Mapping[str, Callable[[], object]]
    work: int
    seconds: float = _TRIAL_SECONDS


def choose_executor(
    candidates: Sequence[str],
    *,
    kernel: str,
    facts: Sequence[str],
    trial: Callable[[], Trial],
    decided: str | None = None,
    always_measure: bool = False,
) -> Choice:
    """Choose the named candidate, or the fastest one in a trial.

    Args:
        candidates: executors that can compute this, in order of preference.
        kernel: the compiled source that one of them uses.
        facts: everything that a rate depends on, except the machine and the versions.
        trial: makes the computation that is timed. It is not called if the rates are known.
        decided: reason to take the first candidate without a trial; None = no such reason.
        always_measure: measure even if the choice is clear, for a comparison with other rates.

    Raises:
        ConfigError: ``INTERLINGUA_EXECUTOR`` names no executor.
    """
    choice = choose_without_trial(candidates, decided)
    if choice is not None and not always_measure:
        return choice
    rates = executor_rates(candidates, kernel=kernel, facts=facts, trial=trial)
    if choice is not None:
        return replace(choice, rates=rates)
    executor = fastest(rates)
    reason = f"within {SPEED_MARGIN - 1:.0%} of the fastest"
    if rates[executor] == max(rates.values()):
        reason = "the fastest"
    return Choice(executor=executor, reason=reason, rates=rates)


def choose_without_trial(candidates: Sequence[str], decided: str | None = None) -> Choice | None:
    """Return the choice if it needs no trial, else None. See ``choose_executor``."""
    wanted = forced_name()
    if wanted in candidates:
        return Choice(executor=wanted, reason=f"{EXECUTOR_VARIABLE} requests it")
    if wanted == FIRST:
        decided = f"{EXECUTOR_VARIABLE} is {FIRST}"
    elif len(candidates) == 1:
        decided = "the only executor that can compute this"
    if decided is None:
        return None
    return Choice(executor=candidates[0], reason=decided)


def forced_name() -> str:
    """Return the value of ``INTERLINGUA_EXECUTOR``: an executor, ``first`` or "".

    Raises:
        ConfigError: it is none of these.
    """
    value = os.environ.get(EXECUTOR_VARIABLE, "")
    names = (*_NAMES, FIRST)
    if value and value not in names:
        hint = did_you_mean(value, names)
        raise ConfigError(f"{EXECUTOR_VARIABLE}: unknown executor {value!r}{hint}")
    return value


def is_variant_forced() -> bool:
    """Return whether ``INTERLINGUA_KERNELS`` names a variant, and so forces the kernel."""
    return os.environ.get(kernels.KERNELS_VARIABLE) in kernels.KERNEL_VARIANTS


def fastest(rates: Mapping[str, float]) -> str:
    """Return the first name, or a later one that beats the best before it by ``SPEED_MARGIN``."""
    best = next(iter(rates))
    for name, rate in rates.items():
        if rate > SPEED_MARGIN * rates[best]:
            best = name
    return best


def executor_rates(
    candidates: Sequence[str],
    *,
    kernel: str,
    facts: Sequence[str],
    trial: Callable[[], Trial],
) -> dict[str, float]:
    """Return the rate of each candidate, remembered or measured now. See ``choose_executor``."""
    key = " | ".join((_machine(kernel), *facts))
    with _LOCK:
        rates = _MEASURED.get(key) or remembered().get(key, {})
        # A kernel may have been built since the rates were stored.
        if rates.keys() != set(candidates):
            rates = trial_rates(trial)
            _remember(key, rates)
        _MEASURED[key] = rates
    return {name: rates[name] for name in candidates}


def known_rates(kernel: str, first_fact: str) -> dict[str, dict[str, float]]:
    """Return the rates measured on this machine so far, by the facts that they depend on.

    Args:
        kernel: the compiled source that one of the candidates uses.
        first_fact: text with which the facts of the returned rates start.
    """
    machine = f"{_machine(kernel)} | "
    by_facts = {}
    for key, rates in {**remembered(), **_MEASURED}.items():
        if key.startswith(machine + first_fact):
            by_facts[key.removeprefix(machine)] = rates
    return by_facts


def trial_rates(make_trial: Callable[[], Trial]) -> dict[str, float]:
    """Measure each candidate on one thread, in units of work per second in its best round.

    The candidates take turns, so that other work on the machine slows all of them. Processor time
    counts, if the system measures it finely enough.
    """
    threads = torch.get_num_threads()
    # A run's random numbers must not depend on whether there was a trial.
    with torch.random.fork_rng(devices=[]):
        trial = make_trial()
        seconds = dict.fromkeys(trial.runs, float("inf"))
        begin = CLOCK()
        try:
            torch.set_num_threads(1)
            for done in range(1, MAX_ROUNDS + 1):
                for name, run in trial.runs.items():
                    start = CLOCK()
                    run()
                    # Other work can only add to a time, so the shortest one is the best estimate.
                    seconds[name] = min(seconds[name], CLOCK() - start)
                if done >= MIN_ROUNDS and CLOCK() - begin > trial.seconds:
                    break
        finally:
            torch.set_num_threads(threads)
    return {name: round(trial.work / least, 1) for name, least in seconds.items()}


def _machine(kernel: str) -> str:
    """Return the facts that every rate depends on: the machine, the kernel and the versions."""
    variant = kernels.variant(kernel) or "no kernel"
    # Rates of an older source of the same version would be wrong now.
    code = f"{kernels.source_digest(Path(kernels.__file__).with_name(f'{kernel}.c')):08x}"
    # Torch may be configured not to use all instructions that the processor has.
    used = torch.backends.cpu.get_cpu_capability()
    # Several kinds of machines may share a home folder. Rates by another clock are not comparable.
    parts = (processor(), used, variant, code, torch.__version__, __version__, CLOCK.__name__)
    return " | ".join(parts)


def cache_file() -> Path:
    """Return where rates are stored: ``executors.json`` in interlingua's cache folder."""
    folder = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(folder).expanduser() / "interlingua" / "executors.json"


def remembered() -> dict[str, dict[str, float]]:
    """Return the stored rates, by processor, versions and facts.

    A missing or damaged file has none.
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
    """Add rates to the file.

    If the folder cannot be written, the next process measures again.
    """
    content = {**remembered(), key: rates}
    with contextlib.suppress(OSError, InterlinguaError), atomic_write(cache_file()) as file:
        json.dump(content, file, indent=1, sort_keys=True)
        file.write("\n")


@functools.cache
def processor() -> str:
    """Return the name of the processor, with a checksum of its features."""
    name = platform.processor() or platform.machine()
    flags = ""
    # Only Linux has this file. Virtual machines may hide instructions; the checksum differs then.
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                name = value.strip()
            if key.strip() in ("flags", "Features"):
                flags = " ".join(sorted(value.split()))
    return f"{name} {zlib.crc32(flags.encode()):08x}"
