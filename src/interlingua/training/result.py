"""The result of a run, and the clock that its figures come from.

The last record of metrics.jsonl holds the result, so that the result of a finished run can be read
again without computing anything.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from interlingua.batches.feeds import rows, token_batches
from interlingua.runtime import peak_rss_bytes
from interlingua.storage.json_text import parse_json
from interlingua.training.build import MicroBatches
from interlingua.training.checkpoint import TrainState
from interlingua.training.config import TrainConfig
from interlingua.training.run_folder import RunFolder


@dataclass(frozen=True, kw_only=True, slots=True)
class TrainResult:
    """The result of a run and the files that it wrote."""

    run: Path
    """Its folder."""
    step: int
    """Optimizer steps done."""
    max_steps: int
    """Optimizer steps requested."""
    interrupted: bool = False
    """True if Ctrl-C or SIGTERM ended it; the same command resumes it."""
    model: Path | None = None
    """Directory of the last model; none if interrupted."""
    best: Path | None = None
    """Directory of the model with the best evaluation; None without evaluations, or if the model is
    in the folder of an earlier run whose checkpoint this run continues."""
    best_step: int | None = None
    """Step of that evaluation."""
    best_metric: float | None = None
    """Value of the metric in that evaluation."""
    best_metric_name: str | None = None
    """Name of the metric that decides."""
    metrics: dict[str, float] = field(default_factory=dict)
    """The last evaluation."""
    cpu_seconds: float = 0.0
    """Processor time of all processes over all their steps, evaluations and checkpoints not
    counted."""
    seconds: float = 0.0
    """Wall time of the whole run, evaluations and checkpoints included."""
    tokens: int = 0
    """Tokens of both sides that all processes read in all their steps."""
    pairs_per_second: float = 0.0
    """Pairs per second over the steps of this call, evaluations and checkpoints not counted."""
    tokens_per_second: float = 0.0
    """Tokens of both sides, counted in the same way."""
    peak_rss_bytes: int = 0
    """Largest resident memory of the process."""
    exposure: dict[str, int] = field(default_factory=dict)
    """Pairs seen of each language pair, ``deu_Latn-eng_Latn``, or rows of another feed."""
    available: dict[str, int] = field(default_factory=dict)
    """Available pairs or rows of each."""
    already: bool = field(default=False, compare=False)
    """True if the run had ended before, so that nothing was computed now."""

    @property
    def best_when(self) -> str:
        """The step of the best evaluation, in words if it is the start."""
        if self.best_step == 0:
            return "step 0, before training: no later evaluation was better"
        return f"step {self.best_step}"

    def to_record(self) -> dict[str, Any]:
        """Return the result as JSON values, with paths as text."""
        values = dataclasses.asdict(self)
        return {
            name: str(value) if isinstance(value, Path) else value for name, value in values.items()
        }


class Clock:
    """Counts pairs, tokens and the time spent on steps.

    Args:
        state: of the run, with the figures before the checkpoint.
    """

    def __init__(self, state: TrainState) -> None:
        self.tokens = state.tokens
        self._before = state.seconds
        self._started = time.perf_counter()
        self.cpu_seconds = state.cpu_seconds
        self._cpu_mark = time.process_time()
        self._mark = self._started
        self._total = Count()  # of all steps made now
        self._window = Count()  # of those since the last record

    @property
    def seconds(self) -> float:
        """Seconds of the whole run so far, including evaluations and checkpoints."""
        return self._before + time.perf_counter() - self._started

    def count(self, micro_batches: Sequence[Any], world_size: int) -> None:
        """Add a step and the time since the last call of ``count`` or ``leave_out``."""
        now = time.perf_counter()
        pairs = sum(map(rows, micro_batches)) * world_size
        tokens = sum(len(batch.input_ids) for batch in token_batches(micro_batches)) * world_size
        for count in (self._total, self._window):
            count.add(pairs, tokens, now - self._mark)
        self._mark = now
        self.tokens += tokens
        # This process's time is used for all processes, because each has the same number of rows.
        cpu_now = time.process_time()
        self.cpu_seconds += (cpu_now - self._cpu_mark) * world_size
        self._cpu_mark = cpu_now

    def leave_out(self) -> None:
        """Exclude the time since ``count``."""
        self._mark = time.perf_counter()
        self._cpu_mark = time.process_time()

    def save(self, state: TrainState) -> None:
        """Write the run's figures into its state."""
        state.seconds = self.seconds
        state.cpu_seconds = self.cpu_seconds
        state.tokens = self.tokens

    def rates(self) -> dict[str, float]:
        """Return pairs and tokens per second since the last call."""
        rates = self._window.rates()
        self._window = Count()
        return rates

    def total_rates(self) -> dict[str, float]:
        """Return pairs and tokens per second over all steps since the start or resumption."""
        return self._total.rates()


@dataclass(slots=True)
class Count:
    """Pairs and tokens, and the time they took."""

    pairs: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def add(self, pairs: int, tokens: int, seconds: float) -> None:
        """Add to each number."""
        self.pairs += pairs
        self.tokens += tokens
        self.seconds += seconds

    def rates(self) -> dict[str, float]:
        """Return pairs and tokens per second; 0 if nothing was counted."""
        seconds = self.seconds or float("inf")  # x / inf = 0
        return {
            "pairs_per_second": self.pairs / seconds,
            "tokens_per_second": self.tokens / seconds,
        }


def result_of(
    folder: RunFolder,
    config: TrainConfig,
    state: TrainState,
    clock: Clock,
    batches: MicroBatches,
    metrics: dict[str, float],
    *,
    interrupted: bool = False,
) -> TrainResult:
    """Build the result of a run."""
    rates = clock.total_rates()
    # If a run continues another run's checkpoint, the best model may be in that run's folder.
    best: Path | None = None
    if state.best_step is not None and folder.best.is_dir():
        best = folder.best
    return TrainResult(
        run=folder.path,
        step=state.step,
        max_steps=config.length,
        interrupted=interrupted,
        model=None if interrupted else folder.model,
        best=best,
        best_step=state.best_step,
        best_metric=state.best_metric,
        best_metric_name=config.run.metric_for_best_model,
        metrics=metrics,
        seconds=clock.seconds,
        cpu_seconds=clock.cpu_seconds,
        tokens=clock.tokens,
        pairs_per_second=rates["pairs_per_second"],
        tokens_per_second=rates["tokens_per_second"],
        peak_rss_bytes=peak_rss_bytes(),
        exposure=batches.seen(state.step),
        available=batches.available,
    )


def read_run_result(folder: RunFolder) -> TrainResult | None:
    """Read the result of a run that has ended, from its last record.

    It is None if the run has not ended, or its model is gone.
    """
    if not folder.metrics.exists():
        return None
    lines = folder.metrics.read_text(encoding="utf-8").splitlines()
    if not lines:
        return None
    try:
        record = parse_json(lines[-1])
    except ValueError:
        return None  # the run was killed in the middle of a line
    if record.pop("kind", None) != "final" or not folder.model.is_dir():
        return None
    # JSON has the paths as text.
    for name in ("run", "model", "best"):
        if record[name] is not None:
            record[name] = Path(record[name])
    return TrainResult(**{**record, "already": True})
