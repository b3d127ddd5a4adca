"""The tasks of a suite, built from names and options.

Each task is limited to the requested languages that its data set has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.config import (
    apply_override,
    from_mapping,
    train_key_hint,
    train_key_hint_of,
)
from interlingua.config.registry import SUITES, TASKS, check_choice, did_you_mean, resolve_name
from interlingua.errors import ConfigError, DataError, LanguageAbsentError
from interlingua.evaluation.task import Task
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")


def build_tasks(
    suite: str | Sequence[str | Task],
    *,
    languages: Sequence[str] | None = None,
    compare: str = "index",
    settings: Sequence[str] = (),
    data: PathLike | None = None,
) -> list[Task]:
    """Build the tasks of a suite.

    Settings of a group of tasks apply to each of its tasks that has such an option.

    Args:
        suite: names of tasks or of groups of tasks (``sts``, ``retrieval``), as a list or separated
            by commas; ``mteb:`` followed by the name of a task of mteb; or task objects with
            options of their own.
        languages: see ``evaluate``.
        compare: see ``evaluate``.
        settings: ``task.option=value`` with the value in TOML, e.g. ``stsb.split=dev`` or
            ``retrieval.bm25=true``.
        data: the folder of the data sets. Tasks of a group without data in it are left out, with a
            warning; so are languages that some of the tasks lack.

    Raises:
        ConfigError: the name of a task is unknown (the error suggests the nearest one), an option
            or its value is unknown, or the list of tasks or languages is empty.
        DataError: no task of a group has data in the folder, or all tasks lack a requested
            language.
    """
    check_choice("compare", compare, ("index", "text"))
    if isinstance(suite, str):
        suite = [name.strip() for name in suite.split(",") if name.strip()]
    if not suite:
        raise ConfigError("the suite is empty; pass tasks, for example tatoeba,xsim")
    if languages is not None and not languages:
        raise ConfigError(
            "the list of languages is empty; pass languages, for example de,sw, or remove the"
            " option"
        )
    options: dict[str, Any] = {"compare": compare}
    if languages is not None:
        options["languages"] = languages
    options_of = settings_table(settings)
    # a wrong name in a setting is refused before any task is built
    _check_settings_are_of(suite, options_of)
    tasks: list[Task] = []
    for item in suite:
        if not isinstance(item, str):
            tasks.append(item)
            continue
        members = {name: _build(name, options_of, options) for name in SUITES.get(item, (item,))}
        if item in SUITES and data is not None:
            tasks += _with_data(item, members, data)
        else:
            tasks += members.values()
    if languages is None or data is None:
        return tasks
    return narrowed(tasks, Path(data))


def _check_settings_are_of(suite: Sequence[str | Task], options_of: Mapping[str, Any]) -> None:
    """Refuse settings of a task, or of a group of tasks, that is not in the suite."""
    members = [SUITES.get(item, (item,)) for item in suite if isinstance(item, str)]
    names = [TASKS.label(name) for name in itertools.chain.from_iterable(members)]
    for name, values in options_of.items():
        if not set(SUITES.get(name, (name,))) & set(names):
            hint = train_key_hint(name, values) or did_you_mean(name, names)
            raise ConfigError(f"--set {name}.…: the suite contains no task {name!r}{hint}")


def settings_table(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Parse settings: ``["stsb.split=dev"]`` -> ``{"stsb": {"split": "dev"}}``.

    Raises:
        ConfigError: a setting does not have the form ``task.option=value``.
    """
    table: dict[str, dict[str, Any]] = {}
    for setting in settings:
        # a value may hold dots, so only what is before the first = is looked at
        if "." not in setting.partition("=")[0]:
            raise ConfigError(
                f"--set {setting!r}: expected task.option=value, for example"
                f" stsb.split=dev{train_key_hint_of(setting)}"
            )
        apply_override(table, setting)
    return table


def _build(
    name: str, options_of: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]
) -> Task:
    """Build one task with its own options.

    Settings of a group apply to each of its tasks that has such an option.
    """
    family = name
    of_family = ""
    # "package.module:Class" is the place of a class; any other name with a colon has the form of
    # mteb:STS17
    if not TASKS.is_place(name):
        family, _, of_family = name.partition(":")
    kind = resolve_name(TASKS, family)
    label = TASKS.label(name)
    known = {field.name for field in dataclasses.fields(kind)}
    groups = [group for group, members in SUITES.items() if name in members and group in options_of]
    for group in groups:
        fields = {key for member in SUITES[group] for key in _fields_of(member)}
        unknown = [key for key in options_of[group] if key not in fields]
        if unknown:
            raise ConfigError(
                f"--set {group}.{unknown[0]}: no task of {group} has this option; remove it"
            )
    # options of the task override options of its group
    for_all = {key: value for group in groups for key, value in options_of[group].items()}
    own = {key: value for key, value in for_all.items() if key in known}
    own |= options_of.get(label, {})
    if of_family:
        own["task"] = of_family
    task: Task = from_mapping(kind, own, where=f"--set {label}")
    # of the options that apply to all tasks, use the options that this task has
    common = {key: value for key, value in options.items() if key in known}
    return dataclasses.replace(task, **common)


def _fields_of(name: str) -> set[str]:
    family = name.partition(":")[0]  # mteb:STS17
    return {field.name for field in dataclasses.fields(resolve_name(TASKS, family))}


def _with_data(group: str, members: Mapping[str, Any], data: PathLike) -> list[Task]:
    if not Path(data).is_dir():
        raise DataError("folder not found; check the path", path=data)
    present = {}
    for name, task in members.items():
        # find() raises DataError where a task's folder or files are absent
        with contextlib.suppress(DataError):
            task.find(Path(data))
            present[name] = task
    if not present:
        raise DataError(
            f"no data set of {group} found ({', '.join(members)}); see docs/data.md",
            path=data,
        )
    if absent := [name for name in members if name not in present]:
        log.warning("%s: skipped, because their data are missing: %s", group, ", ".join(absent))
    return list(present.values())


def narrowed(tasks: Sequence[Task], data: Path) -> list[Task]:
    """Return the tasks without the languages that their data sets lack, and warn about these.

    A task without any language left is dropped. If there is only one task, or if the data have
    another fault, this function raises no error; the run of the task raises it.

    Args:
        tasks: with the requested languages in ``languages``.
        data: the folder that holds the data sets.

    Raises:
        LanguageAbsentError: all tasks lack a requested language, or no task is left.
    """
    if len(tasks) < 2:
        return list(tasks)
    kept: list[Task] = []
    lacks: list[dict[str, LanguageAbsentError]] = []
    for task in tasks:
        left, absent = _of_its_own(task, data)
        what = " with the whole task"
        if left is not None:
            kept.append(left)
            what = ""
        lacks.append(absent)
        if absent:
            log.warning("%s: no data in %s, skipped%s", task.name, ", ".join(absent), what)
    # the first task also lacks any language that all tasks lack, so only its languages are checked
    for item, error in lacks[0].items():
        if not kept or all(item in absent for absent in lacks):
            raise error
    return kept


def _of_its_own(task: Any, data: Path) -> tuple[Task | None, dict[str, LanguageAbsentError]]:
    """Return the task restricted to its available languages, or None, and the absent languages."""
    absent: dict[str, LanguageAbsentError] = {}
    # parts() names one absent language at a time, so it is called again without that one
    while getattr(task, "languages", None) is not None and hasattr(task, "parts"):
        try:
            task.parts(data)
            break
        except LanguageAbsentError as error:
            left = [item for item in task.languages if item != error.item]
            # the absent item is a language pair, or comes from another option, so dropping a
            # language can't help
            if len(left) == len(task.languages):
                break
            absent[error.item] = error
            if not left:
                return None, absent
            task = dataclasses.replace(task, languages=left)
        except DataError:
            # if no language was dropped, the run itself reports the fault; if some were dropped,
            # the remaining languages can't be measured
            return (None if absent else task), absent
    return task, absent
