"""A suite's tasks, each on those of the wanted languages that its data set has."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlingua.errors import DataError, LanguageAbsentError
from interlingua.evaluation.task import Task

log = logging.getLogger("interlingua")


def narrowed(tasks: Sequence[Task], data: Path) -> list[Task]:
    """The tasks without the languages that their data sets lack, which a warning names; without any left, no task.

    A lone task, and any other fault of the data, is left to the run to refuse.

    Args:
        tasks: with the requested languages in ``languages``.
        data: the folder that holds the data sets.

    Raises:
        LanguageAbsentError: no task has a language, or none is left.
    """
    if len(tasks) < 2:
        return list(tasks)
    kept: list[Task] = []
    lacks: list[dict[str, LanguageAbsentError]] = []
    for task in tasks:
        left, absent = _of_its_own(task, data)
        kept += [] if left is None else [left]
        lacks.append(absent)
        if absent:
            what = "" if left is not None else " and so the whole task"
            log.warning("%s: nothing in %s here, left out%s", task.name, ", ".join(absent), what)
    for item, error in lacks[0].items():
        if not kept or all(item in absent for absent in lacks):
            raise error
    return kept


def _of_its_own(task: Any, data: Path) -> tuple[Task | None, dict[str, LanguageAbsentError]]:
    """The task on the languages that it has, if there are any, and those that it lacks."""
    absent: dict[str, LanguageAbsentError] = {}
    while getattr(task, "languages", None) is not None and hasattr(task, "parts"):
        try:
            task.parts(data)
            break
        except LanguageAbsentError as error:
            left = [item for item in task.languages if item != error.item]
            if len(left) == len(task.languages):  # of a pair, or of another option
                break
            absent[error.item] = error
            if not left:
                return None, absent
            task = dataclasses.replace(task, languages=left)
        except DataError:
            return (None if absent else task), absent
    return task, absent
