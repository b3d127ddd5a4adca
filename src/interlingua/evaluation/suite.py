"""Runs tasks over one encoder; each text is embedded once however many tasks and language pairs it is in."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.config import apply_override, from_mapping
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.vectors import PRECOMPUTED
from interlingua.encoder.model_info import ModelInfo, describe, prompt_text
from interlingua.encoder.protocol import TextEncoder
from interlingua.encoder.roles import Role
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.budget import Budget
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.kept import vector_places
from interlingua.evaluation.narrowing import narrowed
from interlingua.evaluation.parts import evaluate_within
from interlingua.evaluation.provenance import provenance
from interlingua.evaluation.results import write_result
from interlingua.evaluation.sanity import check_encoder, cut_note
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.shards import checked_shard, embed_shard
from interlingua.evaluation.task import Progress, Task, silent
from interlingua.files import PathLike
from interlingua.registry import SUITES, TASKS, check_choice, did_you_mean, resolve

log = logging.getLogger("interlingua")
ORDER = "the order is evaluate(encoder, suite, data)"
LATE = "late"
"""A warning shown with the first result: an encoder that fails for good says the same by its error."""


def evaluate(
    encoder: TextEncoder | PathLike,
    suite: str | Sequence[str | Task],
    data: PathLike | None = None,
    *,
    languages: Sequence[str] | None = None,
    compare: str = "index",
    prompt: str | None = None,
    role_prompts: Mapping[Role, str] | None = None,
    batch_tokens: int = 16_384,
    output: PathLike | None = None,
    cache: PathLike | None = None,
    budget: Budget | None = None,
    check: bool = False,
    shard: str | None = None,
    model: ModelInfo | None = None,
    progress: Progress = silent,
) -> list[TaskResult]:
    """Scores an encoder on local folders.

    Args:
        encoder: what to score: an encoder, or a model's folder or ``hf:owner/name``.
        suite: see ``build_tasks``.
        data: a data set's folder, or one that holds several under their usual names; default: ``$INTERLINGUA_DATA``.
        languages: languages in any code or name, or a task's groups; for the tasks given by name.
        compare: ``index``, or ``text`` to forgive duplicates; for the tasks given by name.
        prompt: put before every text, or the name of one of the model's own prompts; its default prompt if none.
        role_prompts: put before questions and passages instead of the model's own prompts for these.
        batch_tokens: token budget of a batch.
        output: gets each result as its task ends, and the vectors of a suite that is stopped, which then goes on there.
        cache: a folder that keeps all vectors for further calls with the same model and settings.
        budget: embed no more texts after this time; it tells what was left out.
        check: try first whether pooling, prompt and scale look right, and warn where not.
        shard: ``2/8``: embed the second of eight parts of the passages into the cache, and score nothing.
        model: how results name the encoder; read off the encoder by default.
        progress: called after each language pair, with the sentences done and to be done in the whole suite.

    Returns:
        One result per task, in the suite's order, but for those that the budget left out; none of a shard.

    Raises:
        ConfigError: a name or option is unknown, or vectors can't be kept; nothing has been run.
        DataError: files are missing, broken or misaligned, or a language is not among them.
        TaskError: the encoder gave no usable vectors.
    """
    folder = _data_folder(data, encoder, suite)
    encoder, model = _loaded(encoder, model)
    tasks = build_tasks(suite, languages=languages, compare=compare, data=folder)
    part = None if shard is None else checked_shard(shard, tasks, cache)
    before = prompt_text(encoder, prompt)
    model = _with_prompts(model or describe(encoder), before if prompt is not None else None, role_prompts or {})
    how: dict[str, Any] = {"prompt": prompt, "role_prompts": role_prompts, "batch_tokens": batch_tokens}
    how |= vector_places(model, encoder, before, output, cache)
    sanity = _checked(encoder, model, prompt, tasks) if check else None
    with CachedEncoder(encoder, **how, budget=budget) as cached:
        if part is not None:
            embed_shard(cached, tasks, folder, part, progress)
            return []
        record = functools.partial(_recorded, cached=cached, model=model, prompt=before, sanity=sanity, output=output)
        return _results(tasks, cached, folder, budget, progress, record)


def _results(
    tasks: Sequence[Task],
    cached: CachedEncoder,
    data: Path,
    budget: Budget | None,
    progress: Progress,
    record: Callable[[TaskResult], TaskResult],
) -> list[TaskResult]:
    """Scores the tasks one after the other, and records each result as it comes."""
    shown = _SuiteProgress(progress, len(tasks))
    results = []
    for task in tasks:
        cached.start_counting()
        result = evaluate_within(budget, task, cached, data, progress=shown.of(task.name))
        if result is not None:
            results.append(record(result))
    return results


def _data_folder(data: PathLike | None, encoder: Any, suite: Any) -> Path:
    """Where the data are, once it is clear that the arguments are in their order."""
    if not isinstance(suite, str) and callable(getattr(suite, "encode", None)):
        raise ConfigError(f"evaluate takes an encoder first, got {type(encoder).__name__}; {ORDER}")
    given = data if data is not None else os.environ.get("INTERLINGUA_DATA")
    if given is None:
        raise DataError("no data: name the folder of the data sets, or set INTERLINGUA_DATA")
    return Path(given).expanduser()


def _loaded(encoder: TextEncoder | PathLike, model: ModelInfo | None) -> tuple[TextEncoder, ModelInfo | None]:
    """The encoder, read from its folder where it is named, and what results say about it."""
    if isinstance(encoder, str | os.PathLike):
        loaded, info = load_encoder(os.fspath(encoder))
        return loaded, model or info
    if not callable(getattr(encoder, "encode", None)):
        raise ConfigError(
            f"evaluate takes an encoder (interlingua.load) or a model's folder first, got {type(encoder).__name__};"
            f" {ORDER}"
        )
    return encoder, model


def _with_prompts(model: ModelInfo, prompt: str | None, role_prompts: Mapping[Role, str]) -> ModelInfo:
    """The model's facts with the prompts that the user gave."""
    given = {"prompt": prompt, **{f"{role}_prompt": text for role, text in role_prompts.items()}}
    return model.with_overrides(tuple(f"{name}={text!r}" for name, text in given.items() if text is not None))


def _recorded(
    result: TaskResult,
    cached: CachedEncoder,
    model: ModelInfo,
    prompt: str,
    sanity: dict[str, Any] | None,
    output: PathLike | None,
) -> TaskResult:
    """The result with all that its numbers depend on besides the task; written, if it is to be."""
    if sanity and (late := sanity.pop(LATE, None)):
        log.warning("%s", late)
    counts: dict[str, Any] = cached.counts()
    measured = {**counts, "wall_seconds": result.seconds, "role_prompts": cached.used_prompts, "sanity": sanity}
    cut = cut_note(counts["texts"], counts["truncated_texts"], model.max_tokens)
    facts = provenance(model, prompt, measured)
    result = dataclasses.replace(result, notes=(*result.notes, *cut), provenance=facts)
    if output is not None:
        write_result(result, output)
    return result


def _checked(
    encoder: TextEncoder, model: ModelInfo, prompt: str | None, tasks: Sequence[Task]
) -> dict[str, Any] | None:
    """What the probe says; its warnings are shown, except a ``LATE`` one; none of vectors that were computed before."""
    if model.library == PRECOMPUTED:
        return None
    by_dot = [task.name for task in tasks if getattr(task, "similarity", None) == "dot"]
    try:
        found = check_encoder(encoder, model, prompt=prompt, dot_tasks=by_dot)
    except Exception as error:  # a function may know no text but its own; a try is no reason to stop
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
        untried = f"the sentences to try the model on could not be embedded ({reason})"
        return {"warnings": [untried], LATE: untried}
    for warning in found.warnings:
        log.warning("%s", warning)
    return {"warnings": list(found.warnings), **found.measured}


class _SuiteProgress:
    """One count of sentences over all tasks; those to come are taken to be as long as those known."""

    def __init__(self, progress: Progress, tasks: int) -> None:
        self._progress = progress
        self._tasks = tasks
        self._totals: list[int] = []

    def of(self, task: str) -> Progress:
        """The progress to hand to the next task."""
        number = len(self._totals)
        self._totals.append(0)

        def tell(label: str, done: int, total: int) -> None:
            self._totals[number] = total
            known = sum(self._totals)
            expected = round(known * self._tasks / len(self._totals))
            self._progress(f"{task} {label}", known - total + done, expected)

        return tell


def build_tasks(
    suite: str | Sequence[str | Task],
    *,
    languages: Sequence[str] | None = None,
    compare: str = "index",
    settings: Sequence[str] = (),
    data: PathLike | None = None,
) -> list[Task]:
    """The tasks of a suite; those given by name are built with these options, each with those that it has.

    Args:
        suite: names of tasks or of several (``sts``, ``retrieval``), in a list or with commas; ``mteb:`` with the name
            of a task of mteb, or tasks built with options of their own.
        languages: see ``evaluate``.
        compare: see ``evaluate``.
        settings: ``task.option=value`` with the value in TOML, e.g. ``stsb.split=dev`` or ``retrieval.bm25=true``.
        data: of a name for several tasks, those without data here are left out, with a warning; so are languages that
            some of the tasks lack.

    Raises:
        ConfigError: a task's name is unknown (the nearest one is offered), or an option is, or what it is set to;
            or no task or language is named.
        DataError: of several tasks under one name none has data here; or no task has a language.
    """
    check_choice("compare", compare, ("index", "text"))
    if isinstance(suite, str):
        suite = [name.strip() for name in suite.split(",") if name.strip()]
    if not suite:
        raise ConfigError("the suite is empty; name tasks, e.g. tatoeba,xsim")
    if languages is not None and not languages:
        raise ConfigError("no language is named; name some, e.g. de,sw, or leave the choice out")
    options = {**({} if languages is None else {"languages": languages}), "compare": compare}
    options_of = settings_table(settings)
    named = [member for name in suite if isinstance(name, str) for member in SUITES.get(name, (name,))]
    names = [TASKS.label(name) for name in named]
    for name in options_of:
        if not set(SUITES.get(name, (name,))) & set(names):
            raise ConfigError(f"--set {name}.…: the suite has no task {name!r}{did_you_mean(name, names)}")
    tasks: list[Task] = []
    for item in suite:
        if not isinstance(item, str):
            tasks.append(item)
            continue
        members = {name: _build(name, options_of, options) for name in SUITES.get(item, (item,))}
        tasks += _with_data(item, members, data) if item in SUITES and data is not None else members.values()
    return tasks if languages is None or data is None else narrowed(tasks, Path(data))


def settings_table(settings: Sequence[str]) -> dict[str, dict[str, Any]]:
    """``["stsb.split=dev"]`` -> ``{"stsb": {"split": "dev"}}``.

    Raises:
        ConfigError: one is no ``task.option=value``.
    """
    table: dict[str, dict[str, Any]] = {}
    for setting in settings:
        if "." not in setting.partition("=")[0]:
            raise ConfigError(f"--set {setting!r}: expected task.option=value, e.g. stsb.split=dev")
        apply_override(table, setting)
    return table


def _build(name: str, options_of: Mapping[str, Mapping[str, Any]], options: Mapping[str, Any]) -> Task:
    """One task with the options of its own; what is set for a name of several goes to those that have it."""
    family = name
    of_family = ""
    if not TASKS.is_place(name):
        family, _, of_family = name.partition(":")  # mteb:STS17
    kind = resolve(TASKS, family)
    label = TASKS.label(name)
    known = {field.name for field in dataclasses.fields(kind)}
    groups = [group for group, members in SUITES.items() if name in members and group in options_of]
    for group in groups:
        fields = {key for member in SUITES[group] for key in _fields_of(member)}
        unknown = [key for key in options_of[group] if key not in fields]
        if unknown:
            raise ConfigError(f"--set {group}.{unknown[0]}: no task of {group} has that option")
    for_all = {key: value for group in groups for key, value in options_of[group].items()}
    own = {**{key: value for key, value in for_all.items() if key in known}, **options_of.get(label, {})}
    if of_family:
        own["task"] = of_family
    task: Task = from_mapping(kind, own, where=f"--set {label}")
    return dataclasses.replace(task, **{key: value for key, value in options.items() if key in known})


def _fields_of(name: str) -> set[str]:
    family = name.partition(":")[0]  # mteb:STS17
    return {field.name for field in dataclasses.fields(resolve(TASKS, family))}


def _with_data(group: str, members: Mapping[str, Any], data: PathLike) -> list[Task]:
    if not Path(data).is_dir():
        raise DataError("no such folder; check the path", path=data)
    here = {}
    for name, task in members.items():
        with contextlib.suppress(DataError):
            task.find(Path(data))
            here[name] = task
    if not here:
        raise DataError(f"none of the sets of {group} is here ({', '.join(members)}); see docs/data.md", path=data)
    if absent := [name for name in members if name not in here]:
        log.warning("%s: no data for %s, left out", group, ", ".join(absent))
    return list(here.values())
