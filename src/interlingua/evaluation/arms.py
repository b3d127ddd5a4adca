"""Which results belong in one column, those of one model or of the seeds of one arm, and what it is called."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from interlingua.errors import ConfigError
from interlingua.evaluation.scores import TaskResult

BY_CONFIG = "config"
"""Groups models that were trained by one config but for the seed."""


class Arm(NamedTuple):
    """A column.

    Attributes:
        label: the model's name, or what its seeds' names share.
        revision: of the model; empty for several seeds.
        overrides: settings that differ from those of the model and of the task.
        results: one per task and seed.
    """

    label: str
    revision: str
    overrides: tuple[str, ...]
    results: list[TaskResult]


def arms(results: Sequence[TaskResult], group: str | None = None, *, by_settings: bool = True) -> list[Arm]:
    """Sorts results into columns.

    Args:
        results: of any tasks.
        group: see ``comparison.compare``.
        by_settings: whether a task's other settings make another column.

    Raises:
        ConfigError: the pattern is no regular expression, or a model of an arm was measured twice on a task.
    """
    label_of = _labels(results, group)
    found: dict[tuple[str, str, tuple[str, ...]], list[TaskResult]] = {}
    times: Counter[tuple[str, ...]] = Counter()
    begun: dict[tuple[str, ...], TaskResult] = {}
    for place, result in enumerate(results):
        if result in results[:place]:  # the file was named twice
            continue
        label = label_of(result)
        model = model_of(result)
        settings = settings_of(result)
        overrides = (*model["overrides"], *([settings] if by_settings and settings else []))
        data = "" if by_settings else result.data_sha256  # another set of that name is a section of its own
        measured = (result.task, data, model["name"], model["revision"], settings, *model["overrides"])
        first = begun.setdefault(measured, result)
        times[measured] += 1
        if times[measured] > 1:  # the same once more is no seed
            if group is not None:
                again = f"{model['name']} {model['revision']} was measured {times[measured]} times on {result.task}"
                raise ConfigError(f"{again}; name one of these results, or compare without --group")
            is_other_set = first.data_sha256 != result.data_sha256
            overrides = (*overrides, f"{result.dataset}" if is_other_set else "", f"result {times[measured]}")
            overrides = tuple(filter(None, overrides))
        found.setdefault((label, "" if group is not None else model["revision"], overrides), []).append(result)
    return [Arm(*key, same) for key, same in found.items()]


def names(columns: Sequence[Arm]) -> list[str]:
    """The columns' names and their numbers of seeds, with revision and settings where two names would be the same."""
    labels = [arm.label for arm in columns]
    shown = []
    for arm in columns:
        overrides = f"({', '.join(arm.overrides)})" if arm.overrides else ""
        is_ambiguous = labels.count(arm.label) > 1
        seeds = seeds_of(arm)
        counted = f"({seeds} seeds)" if seeds > 1 else ""
        shown.append(" ".join(filter(None, [arm.label, *([arm.revision, overrides] if is_ambiguous else []), counted])))
    return shown


def seeds_of(arm: Arm) -> int:
    """How many models are in a column."""
    return len({(model_of(result)["name"], model_of(result)["revision"]) for result in arm.results})


def settings_of(result: TaskResult) -> str:
    """The task's options that are not its own, in words."""
    values: dict[str, Any] = {option: result.settings[option] for option in result.changed}
    return ", ".join(
        f"{option}={'+'.join(map(str, value)) if isinstance(value, list) else value}"
        for option, value in values.items()
    )


def model_of(result: TaskResult) -> dict[str, Any]:
    """What the result says of the model."""
    model: Any = result.provenance["model"]
    return dict(model)


def pattern(text: str | None) -> re.Pattern[str]:
    """A regular expression; one that every text contains for none.

    Raises:
        ConfigError: it is none.
    """
    try:
        return re.compile(text or "")
    except re.error as error:
        raise ConfigError(f"{text!r} is no regular expression: {error}") from error


def _labels(results: Sequence[TaskResult], group: str | None) -> Callable[[TaskResult], str]:
    if group is None:
        return _name
    if group != BY_CONFIG:
        cut = pattern(group)
        return lambda result: cut.sub("", _name(result)).strip("-_./ ") or _name(result)
    trained: dict[str, list[str]] = {}
    for result in results:
        trained.setdefault(_config(result), []).append(_name(result))
    shared = {config: _shared(found) for config, found in trained.items()}
    return lambda result: shared[_config(result)]


def _shared(found: list[str]) -> str:
    """The beginning and the end that the names share: ``ems-s1-best``, ``ems-s2-best`` -> ``ems-best``."""
    if len(set(found)) == 1:
        return found[0]
    start = _common_start(found)
    end = _common_start([name[len(start) :][::-1] for name in found])[::-1]
    start = re.sub(r"[-_.](seed|s)?[-_.]?\d*$", "", start)
    return f"{start}{end}".strip("-_. ") or found[0]


def _common_start(texts: list[str]) -> str:
    return "".join(
        letters[0] for letters in itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    )


def _config(result: TaskResult) -> str:
    training = model_of(result).get("training") or {}
    return str(training.get("arm") or f"{_name(result)} {model_of(result)['revision']}")


def _name(result: TaskResult) -> str:
    return str(model_of(result)["name"])
