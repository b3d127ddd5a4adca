"""The output of a run: a bar or plain lines, records in metrics.jsonl, TensorBoard files.

A record is one line of JSON. When a killed run resumes, records of steps after its last checkpoint
are dropped, as these steps are repeated. So the file is the same as that of a run that was not
killed.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Self

import torch
from jaxtyping import Float
from rich.console import Console
from torch import Tensor, nn

from interlingua.errors import DataError, InterlinguaError, import_extra
from interlingua.runtime import duration
from interlingua.runtime.processes import is_first_process
from interlingua.runtime.progress import Progress, TerminalProgress, TimeLeft
from interlingua.storage.files import atomic_write
from interlingua.storage.json_text import parse_json
from interlingua.training.checkpoint import TrainState, checkpoints_in
from interlingua.training.config import TrainConfig
from interlingua.training.machine.engine import Engine, local
from interlingua.training.run_folder import RunFolder

LATE_STEPS = 16
"""Number of steps after which a GPU's losses are read, so that it never waits for the CPU."""


class NotFiniteError(InterlinguaError):
    """A loss term, the gradient or a weight is NaN or infinite."""


class Meter:
    """Means of the loss terms since the last record.

    The first value that is not finite ends the run.

    Args:
        engine: averages over the processes.
        checkpoints: where they are, for the message.
    """

    def __init__(self, engine: Engine, checkpoints: Path) -> None:
        self._engine = engine
        self._checkpoints = checkpoints
        self._late = LATE_STEPS
        if engine.device.type == "cpu":
            self._late = 1
        self._waiting: list[tuple[int, Sequence[str], Float[Tensor, " k"]]] = []
        self._sums: dict[str, float] = {}
        self._counts: dict[str, int] = {}

    def add(self, step: int, measured: Mapping[str, Float[Tensor, ""]]) -> None:
        """Add a step's loss, terms and, if measured, gradient norm.

        Raises:
            NotFiniteError: a value is not finite (on a GPU the error is raised some steps later).
        """
        # one tensor a step: one copy from the device, and one average over the processes
        values = torch.stack([value.float() for value in measured.values()])
        self._waiting.append((step, tuple(measured), values))
        if len(self._waiting) >= self._late:
            self.flush()

    def flush(self) -> None:
        """Read the values that are still on the device.

        Raises:
            NotFiniteError: see ``add``.
        """
        waiting = self._waiting
        self._waiting = []
        for step, names, values in waiting:
            read = dict(zip(names, self._engine.mean(values).tolist(), strict=True))
            wrong = [name for name, value in read.items() if not math.isfinite(value)]
            if wrong:
                # the loss is the sum of the terms: name a term that is not finite, or else the loss
                name = next((name for name in wrong if name != "loss"), "loss")
                raise _not_finite(f"{name} is {read[name]} in step {step + 1}", self._checkpoints)
            # Counted by name: the gradient's norm, for example, is not measured in every step.
            for name, value in read.items():
                self._sums[name] = self._sums.get(name, 0.0) + value
                self._counts[name] = self._counts.get(name, 0) + 1

    def save(self, state: TrainState) -> None:
        """Save the values collected for the next record."""
        self.flush()
        # copies, because the meter continues to change its own
        state.sums, state.counts = dict(self._sums), dict(self._counts)

    def load(self, state: TrainState) -> None:
        """Restore the values that ``save`` stored."""
        self._sums, self._counts = dict(state.sums), dict(state.counts)

    def means(self) -> dict[str, float]:
        """Return the means since the last call."""
        self.flush()
        means = {name: value / self._counts[name] for name, value in self._sums.items()}
        self._sums = {}
        self._counts = {}
        return means


def require_finite(objective: nn.Module, engine: Engine, checkpoints: Path, step: int) -> None:
    """Check all weights for NaN and infinity before they are evaluated or saved.

    The loss was computed with the weights before the step, so it does not show how the step changed
    them.

    Args:
        objective: with whole or sharded weights; if they are sharded, all processes must call this
            function.
        engine: shares the results of the processes.
        checkpoints: where they are, for the message.
        step: optimizer steps done.

    Raises:
        NotFiniteError: a weight holds NaN or infinity.
    """
    names = [name for name, _ in objective.named_parameters()]
    shards = [local(weight.detach()) for weight in objective.parameters()]
    # The shard of a small weight may be empty in some processes, and then has no largest number.
    filled = [shard if shard.numel() else shard.new_zeros(1) for shard in shards]
    # The largest absolute value is NaN or infinite if any value is.
    largest = torch.stack([norm.float() for norm in torch._foreach_norm(filled, ord=math.inf)])
    wrong = engine.mean((~largest.isfinite()).float()) > 0
    if wrong.any():
        name = names[int(wrong.int().argmax())]
        raise _not_finite(f"the weight {name} is NaN or infinity after step {step}", checkpoints)


@contextlib.contextmanager
def in_words_of_training(checkpoints: Path, step: int) -> Iterator[None]:
    """Turn an error about vectors that are not finite into one about the run's settings.

    Args:
        checkpoints: where they are, for the message.
        step: optimizer steps done.

    Raises:
        NotFiniteError: the encoder gave NaN or infinity.
    """
    try:
        yield
    except InterlinguaError as error:
        if error.vectors_not_finite:
            raise _not_finite(
                f"the encoder returned NaN or infinity after step {step}", checkpoints
            ) from error
        raise


def _not_finite(what: str, checkpoints: Path) -> NotFiniteError:
    kept = checkpoints_in(checkpoints)
    good = "there is no checkpoint yet"
    if kept:
        good = f"the last good checkpoint is {kept[-1]}"
    return NotFiniteError(
        f"{what}; {good}; lower optimizer.learning_rate, or set run.max_grad_norm = 1.0 or"
        " run.precision = fp32"
    )


class RunLog:
    """Log that writes records and shows them.

    Only the log of the main process does anything, see ``SilentLog``.

    Args:
        metrics: the file of records.
        tensorboard: folder of its event files, or none.
        max_steps: length of the run.
        step: the first step; records of later steps, left by a run that was killed, are dropped.
        progress: whether to show anything but warnings.
        console: the output.
    """

    def __init__(
        self,
        metrics: Path,
        *,
        tensorboard: Path | None = None,
        max_steps: int,
        step: int = 0,
        progress: bool = True,
        console: Console | None = None,
    ) -> None:
        self._console = console or Console(stderr=True, highlight=False)
        self._metrics = metrics
        self._max_steps = max_steps
        self._shown = progress
        _drop_records_after(metrics, step)
        # unbuffered: closing the file does not try again to write data that a full disk refused
        self._file: IO[bytes] = metrics.open("ab", buffering=0)
        self._board: Any = None
        if tensorboard is not None:
            self._board = _summary_writer(tensorboard, step)
        self._time_left = TimeLeft()
        self._step = step
        self._bar: Progress | None = None
        if progress and self._console.is_terminal:
            self._bar = TerminalProgress(console=self._console, transient=True)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start(self._max_steps, "steps", "training", done=self._step)
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        if self._board is not None:
            self._board.close()
        self._file.close()

    def advance(self, step: int) -> None:
        """Advance the progress bar."""
        self._time_left(step, self._max_steps)
        if self._bar is not None:
            self._bar.advance(step - self._step)
            self._step = step

    def train(self, step: int, losses: Mapping[str, float], **rates: float) -> None:
        """Record and show the losses since the last record, learning rate and speed."""
        self._record("train", step, {**losses, **rates})
        left = self._time_left(step, self._max_steps)
        terms = [
            f"{name} {value:.3f}"
            for name, value in losses.items()
            if name not in ("loss", "grad_norm")
        ]
        loss = f"loss {losses['loss']:.3f}"
        if terms:
            loss += f" = {' + '.join(terms)}"
        line = f"{loss} | {rates['pairs_per_second']:,.0f} pairs/s"
        if self._bar is not None:
            self.advance(step)
            self._bar.note(line)
        elif self._shown:
            if left is not None:
                line += f" | {duration(left)} left"
            self._console.print(f"step {step}/{self._max_steps} | {line}", soft_wrap=True)

    def evaluation(
        self,
        step: int,
        metrics: Mapping[str, float],
        *,
        best: bool,
        term_grad_norms: Mapping[str, float] | None = None,
    ) -> None:
        """Record and show an evaluation."""
        norms = dict(term_grad_norms or {})
        values: dict[str, Any] = {**metrics, "best": best}
        if norms:
            values["term_grad_norms"] = norms
        self._record("evaluation", step, values)
        shown = ", ".join(f"{name} {format_metric(name, value)}" for name, value in metrics.items())
        self.say(f"step {step} | {shown}{' | best so far' if best else ''}")
        if len(norms) > 1:  # a single term cannot be compared
            shown = ", ".join(f"{name} {norm:.2g}" for name, norm in norms.items())
            self.say(f"step {step} | gradient norms: {shown}")

    def final(self, step: int, facts: Mapping[str, Any]) -> None:
        """Record how the run ended."""
        self._record("final", step, facts)

    def say(self, text: str) -> None:
        """Show a line above the bar."""
        if self._shown:
            self._console.print(text, soft_wrap=True, markup=False)

    def warn(self, text: str) -> None:
        """Show a warning, even in a quiet run."""
        self._console.print(f"warning: {text}", soft_wrap=True, markup=False, style="yellow")

    def _record(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        record = _strict({"kind": kind, "step": step, **values})
        line = f"{json.dumps(record, ensure_ascii=False)}\n".encode()
        try:
            # An unbuffered file may write only a part of its input.
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise DataError(
                f"cannot be written ({error.strerror or error}); free disk space and run the"
                " same command again",
                path=self._metrics,
            ) from error
        if self._board is None:
            return
        # TensorBoard stores only numbers: each number of the nested table gets its own name.
        norms = {
            f"term_grad_norms/{name}": norm
            for name, norm in values.get("term_grad_norms", {}).items()
        }
        for name, value in {**values, **norms}.items():
            if isinstance(value, int | float):
                self._board.add_scalar(f"{kind}/{name}", value, step)
        self._board.flush()


class SilentLog(RunLog):
    """The log of the processes that are not the main one."""

    def __init__(self) -> None:
        self._bar = None
        self._board = None
        self._shown = False

    def __exit__(self, *_: object) -> None:
        return

    def advance(self, step: int) -> None:
        """Do nothing."""

    def train(self, step: int, losses: Mapping[str, float], **rates: float) -> None:
        """Do nothing."""

    def warn(self, text: str) -> None:
        """Do nothing."""

    def _record(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        return


def open_log(
    folder: RunFolder, config: TrainConfig, engine: Engine, *, step: int, progress: bool
) -> RunLog:
    """Open the log of this process.

    Args:
        folder: of the run.
        config: of the run.
        engine: only its main process writes.
        step: the first step of the run.
        progress: whether to show anything but warnings.
    """
    if not engine.is_main:
        return SilentLog()
    return RunLog(
        folder.metrics,
        tensorboard=folder.tensorboard if config.run.tensorboard else None,
        max_steps=config.length,
        step=step,
        progress=progress,
    )


def say(text: str) -> None:
    """Print a line between the logs of two runs."""
    Console(stderr=True, highlight=False).print(text, soft_wrap=True, markup=False)


def warn(text: str) -> None:
    """Print a warning before there is a log."""
    if is_first_process():
        Console(stderr=True, highlight=False).print(
            f"warning: {text}", soft_wrap=True, markup=False, style="yellow"
        )


def _drop_records_after(metrics: Path, step: int) -> None:
    """Keep complete records up to ``step``.

    Later ones were not in the checkpoint and are computed again.
    """
    if not metrics.exists():
        return
    kept = []
    found = metrics.read_text(encoding="utf-8", errors="replace")
    for line in found.splitlines(keepends=True):
        try:
            record = parse_json(line)
        except ValueError:
            continue  # the run was killed in the middle of this line
        if line.endswith("\n") and record["step"] <= step and record["kind"] != "final":
            kept.append(line)
    if "".join(kept) != found:
        with atomic_write(metrics) as file:
            file.writelines(kept)


def _summary_writer(folder: Path, step: int) -> Any:
    library = import_extra("torch.utils.tensorboard", package="tensorboard", extra="tensorboard")
    return library.SummaryWriter(str(folder), purge_step=step + 1)


def format_metric(name: str, value: float) -> str:
    """Format a metric for people: accuracies in percent, as in the tables of ``evaluate``.

    ``metrics.jsonl`` and the records of a run hold fractions, like the result files of
    ``evaluate``.
    """
    if "accuracy" in name:
        return f"{100 * value:.1f} %"
    return f"{value:.4g}"


def _strict(value: Any) -> Any:
    """Replace NaN and infinity by null, because JSON cannot represent them."""
    if isinstance(value, Mapping):
        return {key: _strict(inner) for key, inner in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
