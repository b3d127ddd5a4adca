"""A task within a budget: whole if possible, else the parts for which all texts were embedded in time."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlingua.errors import DataError, InterlinguaError
from interlingua.evaluation.budget import Budget, BudgetUsed
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.task import Progress, Task


def evaluate_within(
    budget: Budget | None, task: Task, encoder: CachedEncoder, data: Path, *, progress: Progress
) -> TaskResult | None:
    """Scores a task, or as much of it as the budget allows.

    A task with a method ``parts(data)``, which names what its ``languages`` may hold, is scored on the parts that were
    embedded in time; groups carry the count of what is in them, and a note names the rest. One without, or one that
    would begin after the time is over, is left out. Which parts were embedded is found by scoring each, or, of a task
    with slow scoring or scores over several parts, by its method ``embed(encoder, data)``.

    Args:
        budget: records what was left out; None for no limit.
        task: what to score.
        encoder: with that budget.
        data: the data's folder.
        progress: called after each language pair.

    Returns:
        None where nothing could be scored.
    """
    if budget is None:
        return task.evaluate(encoder, data, progress=progress)
    if not budget.is_used:
        with contextlib.suppress(BudgetUsed):
            return task.evaluate(encoder, data, progress=progress)
        return _part(budget, task, encoder, data, progress)
    budget.left_out[task.name] = "all"
    return None


def _part(budget: Budget, task: Any, encoder: CachedEncoder, data: Path, progress: Progress) -> TaskResult | None:
    parts: Sequence[str] = task.parts(data) if hasattr(task, "parts") else ()
    with encoder.only_kept():
        done = [part for part in parts if _is_embedded(dataclasses.replace(task, languages=[part]), encoder, data)]
        result = _scored(dataclasses.replace(task, languages=done), encoder, data, progress) if done else None
    if result is None:
        budget.left_out[task.name] = "all"
        return None
    missing = [part for part in parts if part not in done]
    budget.left_out[result.task] = f"{len(missing)} of {len(parts)} ({', '.join(missing)})"
    note = f"the budget of {budget} was used: {len(done)} of {len(parts)} scored, left out: {', '.join(missing)}"
    return dataclasses.replace(result, notes=(*result.notes, note))


def _scored(task: Any, encoder: CachedEncoder, data: Path, progress: Progress) -> TaskResult | None:
    """None where the parts don't suffice: one language where pairs are scored, or none that is learnt from."""
    with contextlib.suppress(BudgetUsed, DataError):
        result: TaskResult = task.evaluate(encoder, data, progress=progress)
        return result
    return None


def _is_embedded(task: Any, encoder: CachedEncoder, data: Path) -> bool:
    """Whether a part can be scored from the vectors that are there."""
    with contextlib.suppress(BudgetUsed, InterlinguaError):
        (task.embed if hasattr(task, "embed") else task.evaluate)(encoder, data)
        return True
    return False
