"""Grouping of results: into columns (one model each), and into tables (comparable ones).

A column holds the results of one model, or of the seeds of one training configuration. A section
holds, for each column, the results on one task with one choice of its settings, so that its numbers
can be compared. If data, protocol versions or settings differ nevertheless,
``column_differences`` finds the columns that can't be compared.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from interlingua.config.registry import TASKS, did_you_mean, resolve_name
from interlingua.errors import ConfigError
from interlingua.evaluation.scores import TaskResult

BY_CONFIG = "config"
"""Value of ``group`` for models that were trained with configs that differ only in the seed."""
ChosenResults = list[list[TaskResult]]
"""Results of each column, one per seed, that a row is made from."""


class Column(NamedTuple):
    """The results of one model, or of several seeds.

    Attributes:
        name: the name in tables; it has the revision and settings if labels are equal otherwise,
            and the number of seeds if there are several.
        label: the model's name, or what its seeds' names share.
        revision: of the model; empty for several seeds.
        overrides: settings that differ from those of the model and of the task.
        results: one per task and seed.
    """

    name: str
    label: str
    revision: str
    overrides: tuple[str, ...]
    results: list[TaskResult]

    @property
    def seeds(self) -> int:
        """The number of models in the column."""
        models = [stated_model(result) for result in self.results]
        return len({(model["name"], model["revision"]) for model in models})

    @property
    def trainings(self) -> list[dict[str, Any]]:
        """The training records of each model; empty if the results have none."""
        # by revision, as each of a model's results repeats its training
        models = [stated_model(result) for result in self.results]
        return list({model["revision"]: model.get("training") or {} for model in models}.values())


class Section(NamedTuple):
    """A task with one choice of its settings.

    ``chosen`` is empty for columns that were not measured with these settings.
    """

    task: str
    settings: str
    chosen: ChosenResults


def group_columns(
    results: Sequence[TaskResult], group: str | None = None, *, by_settings: bool = True
) -> list[Column]:
    """Group results into columns.

    Args:
        results: of any tasks.
        group: see ``comparison.compare_results``.
        by_settings: whether results with other settings of a task get another column.

    Raises:
        ConfigError: the pattern is not a regular expression, or a group's model was measured twice
            on a task.
    """
    label_of = _labels(results, group)
    found: dict[tuple[str, str, tuple[str, ...]], list[TaskResult]] = {}
    times: Counter[tuple[str, ...]] = Counter()
    first_of: dict[tuple[str, ...], TaskResult] = {}
    if group is not None:
        results = with_most_metrics(results)
    for index, result in enumerate(results):
        # the same file was named twice
        if result in results[:index]:
            continue
        model = stated_model(result)
        # options that only add metrics separate neither seeds nor rows of a joint table
        settings = compared_settings(result)
        if by_settings and group is None:
            settings = settings_of(result)
        overrides = [*model["overrides"]]
        if by_settings and settings:
            overrides.append(settings)
        measurement = [result.task, model["name"], model["revision"], settings, *model["overrides"]]
        if not by_settings:
            # in a joint table, results on another data set of the same name have their own section
            measurement.append(result.data_sha256)
        measured = tuple(measurement)
        first = first_of.setdefault(measured, result)
        times[measured] += 1
        # the same model measured once more is not another seed, so it gets a column of its own
        if times[measured] > 1:
            if group is not None:
                again = (
                    f"{model['name']} {model['revision']} was measured {times[measured]} times on"
                    f" {result.task}"
                )
                raise ConfigError(f"{again}; pass only one of these results, or remove --group")
            if result.dataset and first.data_sha256 != result.data_sha256:
                overrides.append(result.dataset)
            overrides.append(f"result {times[measured]}")
        # seeds differ in their revision, so a column of several has none
        revision = "" if group is not None else model["revision"]
        found.setdefault((label_of(result), revision, tuple(overrides)), []).append(result)
    unnamed = [Column("", *key, same) for key, same in found.items()]
    labels = Counter(column.label for column in unnamed)
    return [column._replace(name=_name(column, labels[column.label] > 1)) for column in unnamed]


def _name(column: Column, is_ambiguous: bool) -> str:
    parts = [column.label]
    if is_ambiguous and column.revision:
        parts.append(column.revision)
    if is_ambiguous and column.overrides:
        parts.append(f"({', '.join(column.overrides)})")
    if column.seeds > 1:
        parts.append(f"({column.seeds} seeds)")
    # a label may be empty, if a pattern cuts all of it away
    return " ".join(filter(None, parts))


def column_index(columns: Sequence[Column], name: str | None) -> int | None:
    """Return the index of the column of that name; None without a name.

    Raises:
        ConfigError: there is no such column.
    """
    return column_indices([columns], name)[0]


def column_indices(tables: Sequence[Sequence[Column]], name: str | None) -> list[int | None]:
    """Return the index of the column of that name in each table; None if a table lacks it.

    Raises:
        ConfigError: no table has such a column.
    """
    found: list[int | None] = []
    for columns in tables:
        same = [
            index for index, column in enumerate(columns) if name in (column.name, column.label)
        ]
        found.append(same[0] if same else None)
    if name is not None and all(index is None for index in found):
        names = list(dict.fromkeys(column.name for columns in tables for column in columns))
        raise ConfigError(f"unknown column {name!r}{did_you_mean(name, names)}")
    return found


def settings_of(result: TaskResult) -> str:
    """Return the options that differ from the task's defaults, in words."""
    written = []
    for option in result.changed:
        value: Any = result.settings[option]
        if isinstance(value, list):
            value = "+".join(map(str, value))
        written.append(f"{option}={value}")
    return ", ".join(written)


def compared_settings(result: TaskResult) -> str:
    """Return ``settings_of`` without the options that only add metrics, which change no score.

    A field of a task with ``{"adds": True}`` in its metadata is such an option.
    """
    name = protocol_of(result.task)
    if name is None or not result.changed:
        return settings_of(result)
    added = _added_metrics(name)
    changed = tuple(option for option in result.changed if option not in added)
    return settings_of(dataclasses.replace(result, changed=changed))


def with_most_metrics(results: Sequence[TaskResult]) -> list[TaskResult]:
    """Drop results that another one repeats with more metrics.

    For example, if a task was measured with and without BM25, a group or a row of a joint table
    contains only the result with BM25. Results with equal options are all kept.
    """
    most: dict[tuple[str, ...], tuple[str, ...]] = {}
    keys = []
    for result in results:
        model = stated_model(result)
        key = (
            *(result.task, model["name"], model["revision"], compared_settings(result)),
            *(result.data_sha256, *model["overrides"]),
        )
        keys.append(key)
        options = tuple(result.changed)
        if key not in most or len(options) > len(most[key]):
            most[key] = options
    return [
        result
        for key, result in zip(keys, results, strict=True)
        if tuple(result.changed) == most[key]
    ]


@functools.cache
def _added_metrics(protocol: str) -> frozenset[str]:
    """Return the options of a task that only add metrics."""
    fields = dataclasses.fields(resolve_name(TASKS, protocol))
    return frozenset(field.name for field in fields if field.metadata.get("adds"))


def brief(settings: str) -> str:
    """Shorten long lists to their length: ``languages=deu+fra+ita+spa`` is 4 languages."""

    def count_items(option: re.Match[str]) -> str:
        return f"{option[2].count('+') + 1} {option[1]}"

    # four items or more: name=a+b+c+d
    return re.sub(r"(\w+)=([^,+]+(?:\+[^,+]+){3,})", count_items, settings)


def stated_model(result: TaskResult) -> dict[str, Any]:
    """Return the model's properties in the result."""
    model: Any = result.provenance["model"]
    return dict(model)


def pattern(text: str | None) -> re.Pattern[str]:
    """Compile a regular expression; without one, return a pattern that every text contains.

    Raises:
        ConfigError: the text is not a regular expression.
    """
    try:
        return re.compile(text or "")
    except re.error as error:
        raise ConfigError(f"{text!r}: not a regular expression: {error}") from error


def tasks_of(results: Sequence[TaskResult]) -> list[str]:
    """Return the tasks of some results in the registry's order.

    The registry lists tasks of one kind next to each other. Tasks that are not in it (mteb's own
    files) come last, in the order of their results.
    """
    known = list(TASKS)

    def place_in_registry(task: str) -> int:
        name = protocol_of(task)
        return known.index(name) if name else len(known)

    # a stable sort, so tasks of one protocol keep the order of their results
    return sorted(dict.fromkeys(result.task for result in results), key=place_in_registry)


def protocol_of(task: str) -> str | None:
    """Return a task's name in the registry: ``tatoeba_heldout`` -> ``tatoeba``.

    None for a task that is not in the registry.
    """
    names = [name for name in TASKS if task == name or task.startswith(f"{name}_")]
    # the longest one: xsim_pp_heldout starts with xsim_ too
    return max(names, key=len, default=None)


def sections(results: Sequence[TaskResult], columns: Sequence[Column]) -> Iterator[Section]:
    """Yield a section for each task and each choice of its settings.

    If two data sets have the same name, each has its own section.

    Args:
        results: of any tasks.
        columns: of these results, grouped without regard to settings.
    """
    for task in tasks_of(results):
        of_task = [result for result in results if result.task == task]
        for settings in dict.fromkeys(map(compared_settings, of_task)):
            same_settings = [_with_settings(column, task, settings) for column in columns]
            for data, name in _sets_of_one_name(same_settings).items():
                label = ", ".join(filter(None, (settings, name)))
                yield Section(task, label, [_on_data(own, data) for own in same_settings])


def _with_settings(column: Column, task: str, settings: str) -> list[TaskResult]:
    return [
        result
        for result in column.results
        if result.task == task and compared_settings(result) == settings
    ]


def _on_data(results: Sequence[TaskResult], data: str) -> list[TaskResult]:
    """Return the results on the set with that digest; all of them without a digest."""
    return [result for result in results if data in ("", result.data_sha256)]


def digests_of(results: Sequence[TaskResult]) -> set[str]:
    """Return the digests of the results' data."""
    return {result.data_sha256 for result in results}


def _sets_of_one_name(chosen: ChosenResults) -> dict[str, str]:
    """Return digest -> display name if a model was measured on several sets with one task name.

    Otherwise return one entry of empty strings, which selects all results whatever their data.
    """
    digests = list(map(digests_of, chosen))
    if all(len(own) < 2 for own in digests):
        return {"": ""}
    folders = {result.data_sha256: result.dataset for own in chosen for result in own}
    counts = Counter(folders.values())
    names = {}
    for data, folder in folders.items():
        names[data] = folder
        # two versions of a set in folders of one name
        if counts[folder] > 1:
            names[data] = f"{folder} {data[:8]}"
    return names


def column_differences(chosen: ChosenResults) -> tuple[list[bool], list[str]]:
    """Return whether each column can be compared with the first, and the differences.

    Raises:
        ConfigError: the seeds of one column can't be compared with each other.
    """
    parts: dict[str, Callable[[TaskResult], str]] = {
        "protocol versions": lambda result: result.version,
        "data": lambda result: result.data_sha256[:12],
        "settings": lambda result: compared_settings(result) or "the protocol's own",
    }
    comparable = [True] * len(chosen)
    notes = []
    for what, part_of in parts.items():
        # None for a column without results, which differs from nothing
        values = [_part_of_seeds(results, what, part_of) if results else None for results in chosen]
        measured = [value for value in values if value is not None]
        if len(set(measured)) > 1:
            notes.append(
                f"the columns differ in {what} ({', '.join(measured)}) and cannot be compared"
                " directly"
            )
        for index, value in enumerate(values):
            if value not in (None, measured[0]):
                comparable[index] = False
    return comparable, notes


def _part_of_seeds(
    results: Sequence[TaskResult], what: str, part_of: Callable[[TaskResult], str]
) -> str:
    """Return the value that all seeds of a column agree on."""
    values = [part_of(result) for result in results]
    if len(set(values)) > 1:
        seeds = ", ".join(
            f"{stated_model(result)['name']}: {value}"
            for result, value in zip(results, values, strict=True)
        )
        raise ConfigError(
            f"{results[0].task}: the results of one group differ in {what} ({seeds}); use the same"
            f" {what}"
        )
    return values[0]


def _labels(results: Sequence[TaskResult], group: str | None) -> Callable[[TaskResult], str]:
    """Return a function that computes the label of a result's column."""
    if group is None:
        return _model_name
    if group != BY_CONFIG:
        cut = pattern(group)
        # separators that remain at the ends are removed too, unless nothing would be left
        return lambda result: cut.sub("", _model_name(result)).strip("-_./ ") or _model_name(result)
    trained: dict[str, list[str]] = {}
    for result in results:
        trained.setdefault(_config(result), []).append(_model_name(result))
    shared = {config: _shared(found) for config, found in trained.items()}
    return lambda result: shared[_config(result)]


def _shared(names: list[str]) -> str:
    """Return the common start and end of names: ``a-s1-best``, ``a-s2-best`` -> ``a-best``."""
    if len(set(names)) == 1:
        return names[0]
    start = _common_start(names)
    # the end is taken after the start; otherwise, both could share letters in short names
    end = _common_start([name[len(start) :][::-1] for name in names])[::-1]
    # "-s", "-seed" and digits at the end of the start belong to the seed: s11 and s12 share s1
    start = re.sub(r"[-_.](seed|s)?[-_.]?\d*$", "", start)
    return f"{start}{end}".strip("-_. ") or names[0]


def _common_start(texts: list[str]) -> str:
    equal = itertools.takewhile(lambda letters: len(set(letters)) == 1, zip(*texts, strict=False))
    return "".join(letters[0] for letters in equal)


def _config(result: TaskResult) -> str:
    """Return a key of the config that the model was trained with, without its seed."""
    training = stated_model(result).get("training") or {}
    # a model of unknown training is a column of its own
    return str(training.get("arm") or f"{_model_name(result)} {stated_model(result)['revision']}")


def _model_name(result: TaskResult) -> str:
    return str(stated_model(result)["name"])
