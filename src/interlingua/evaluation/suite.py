"""Runs of several tasks over one encoder; each text is embedded once.

Within a budget a task is scored whole if possible, else on the parts for which all texts were
embedded in time.

The passages of retrieval tasks can be embedded in parts, each by a process of its own; a later run
joins the parts. The vectors of all parts are in one cache, in which each process writes a file of
its own and reads those of the others (``VectorFiles``). So the parts need no other exchange: the
run that scores finds all passages there. Parts consist of the same portions of passages that the
scoring run asks for, so that batches, and with them vectors, are the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.vectors import PRECOMPUTED
from interlingua.encoder.model_info import ModelInfo, describe_encoder, prompt_text
from interlingua.encoder.protocol import TextEncoder
from interlingua.encoder.query_and_passage import Role
from interlingua.errors import ConfigError, DataError, InterlinguaError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.cache import CachedEncoder, vector_places
from interlingua.evaluation.provenance import provenance
from interlingua.evaluation.results import write_result
from interlingua.evaluation.sanity import check_sanity, cut_note
from interlingua.evaluation.scores import TaskResult
from interlingua.evaluation.task import Task
from interlingua.evaluation.time_limit import Budget, BudgetUsed
from interlingua.mining.mine import parse_shard
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
ORDER = "the order is evaluate(encoder, suite, data)"
_LATE = "late"
"""Key of a warning that is shown only with the first result: if the encoder fails on all texts,
there is no result, and the encoder's own error already reports the problem."""


def evaluate_suite(
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
    progress: Progress = SILENT,
) -> list[TaskResult]:
    """Score an encoder on local folders.

    Args:
        encoder: an encoder, a model's folder or ``hf:owner/name``.
        suite: see ``build_tasks``.
        data: a data set's folder, or one that holds several under their usual names; default:
            ``$INTERLINGUA_DATA``.
        languages: languages in any code or name, or a task's groups; for tasks that are passed by
            name.
        compare: ``index``, or ``text`` to accept duplicates; for tasks that are passed by name.
        prompt: a text to put before every text, or the name of one of the model's own prompts; by
            default, the model's default prompt.
        role_prompts: put before questions and passages instead of the model's own prompts for
            these.
        batch_tokens: token budget of a batch.
        output: a folder for the result of each task, written when the task ends, and for the
            vectors of an interrupted suite, with which a later run resumes.
        cache: a folder that keeps all vectors for further calls with the same model and settings.
        budget: embed no more texts after this time; it records the skipped ones.
        check: test first whether pooling, prompt and scale look right, and warn if not.
        shard: ``2/8``: embed the second of eight parts of the passages into the cache, and score
            nothing.
        model: the description of the encoder in results; by default, it is determined from the
            encoder.
        progress: reports progress.

    Returns:
        One result per task, in the suite's order, without tasks that the budget left out; an empty
        list for a shard.

    Raises:
        ConfigError: a name or option is unknown, or vectors can't be kept; nothing has been run.
        DataError: files are missing, broken or misaligned, or a language is not among them.
        TaskError: the encoder gave no usable vectors.
    """
    # errors in names and options are reported before a text is embedded
    folder = _data_folder(data, encoder, suite)
    encoder, model = _loaded(encoder, model)
    tasks = build_tasks(suite, languages=languages, compare=compare, data=folder)
    part: tuple[int, int] | None = None
    if shard is not None:
        part = checked_shard(shard, tasks, cache)
    before = prompt_text(encoder, prompt)
    model = _with_prompts(model or describe_encoder(encoder), encoder, prompt, role_prompts or {})
    places = vector_places(model, encoder, before, output, cache)
    sanity: dict[str, Any] | None = None
    if check:
        sanity = _checked(encoder, model, prompt, tasks)
    how: dict[str, Any] = {"prompt": prompt, "role_prompts": role_prompts, **places}
    with CachedEncoder(encoder, batch_tokens=batch_tokens, budget=budget, **how) as cached:
        if part is not None:
            sharded: Sequence[Any] = tasks
            for task in sharded:
                task.embed_shard(cached, folder, part, progress=progress)
            return []
        record = functools.partial(
            _recorded, cached=cached, model=model, prompt=before, sanity=sanity, output=output
        )
        return _results(tasks, cached, folder, budget, progress, record)


def _results(
    tasks: Sequence[Task],
    cached: CachedEncoder,
    data: Path,
    budget: Budget | None,
    progress: Progress,
    record: Callable[[TaskResult], TaskResult],
) -> list[TaskResult]:
    """Score the tasks one after the other, and record each result when it is complete."""
    shown = _SuiteProgress(progress, len(tasks))
    results = []
    for task in tasks:
        # a text counts for each task that it is in, although it is embedded once
        cached.start_counting()
        result = evaluate_within(budget, task, cached, data, progress=shown.of(task.name))
        if result is not None:
            results.append(record(result))
    return results


def _data_folder(data: PathLike | None, encoder: Any, suite: Any) -> Path:
    """Return the data's folder, after checking that the arguments are in the right order."""
    if not isinstance(suite, str) and callable(getattr(suite, "encode", None)):
        raise ConfigError(
            f"the first argument: expected an encoder, found {type(encoder).__name__}; {ORDER}"
        )
    if data is None:
        data = os.environ.get("INTERLINGUA_DATA")
    if data is None:
        raise DataError(
            "no folder of data sets is set; pass the folder, or set the variable INTERLINGUA_DATA"
        )
    return Path(data).expanduser()


def _loaded(
    encoder: TextEncoder | PathLike, model: ModelInfo | None
) -> tuple[TextEncoder, ModelInfo | None]:
    """Return the encoder, loaded if a folder is named, and its facts for results."""
    if isinstance(encoder, str | os.PathLike):
        loaded, info = load_encoder(os.fspath(encoder))
        return loaded, model or info
    if not callable(getattr(encoder, "encode", None)):
        raise ConfigError(
            "the first argument: expected an encoder (interlingua.load) or a model's folder,"
            f" found {type(encoder).__name__}; {ORDER}"
        )
    return encoder, model


def _with_prompts(
    model: ModelInfo, encoder: TextEncoder, prompt: str | None, role_prompts: Mapping[Role, str]
) -> ModelInfo:
    """Return the model's facts with the user's prompts, as texts."""
    overrides = []
    # the model's own default prompt is not an override
    if prompt is not None:
        overrides.append(f"prompt={prompt_text(encoder, prompt)!r}")
    for role, text in role_prompts.items():
        if text is not None:
            overrides.append(f"{role}_prompt={text!r}")
    return model.with_overrides(tuple(overrides))


def _recorded(
    result: TaskResult,
    cached: CachedEncoder,
    model: ModelInfo,
    prompt: str,
    sanity: dict[str, Any] | None,
    output: PathLike | None,
) -> TaskResult:
    """Return the result with all facts that its numbers depend on; write it if requested."""
    # pop: the warning is shown once, and is not part of the record
    if sanity and (late := sanity.pop(_LATE, None)):
        log.warning("%s", late)
    # counts restart with each task, so they are taken before the next one starts
    counts: dict[str, Any] = cached.counts()
    measured = {
        **counts,
        "wall_seconds": result.seconds,
        "role_prompts": cached.used_prompts,
        "sanity": sanity,
    }
    cut = cut_note(counts["texts"], counts["truncated_texts"], model.max_tokens)
    facts = provenance(model, prompt, measured)
    result = dataclasses.replace(result, notes=(*result.notes, *cut), provenance=facts)
    if output is not None:
        write_result(result, output)
    return result


def _checked(
    encoder: TextEncoder, model: ModelInfo, prompt: str | None, tasks: Sequence[Task]
) -> dict[str, Any] | None:
    """Run the probe and return its findings; show its warnings, except a ``_LATE`` one.

    Return None for vectors that were computed before.
    """
    # a file of vectors has none for the texts of the probe
    if model.library == PRECOMPUTED:
        return None
    # unequal lengths matter only if a task uses inner products
    by_dot = [task.name for task in tasks if getattr(task, "similarity", None) == "dot"]
    try:
        found = check_sanity(encoder, model, prompt=prompt, dot_tasks=by_dot)
    # any exception: an encoder that is a function may know only certain texts, and a failed check
    # is not a reason to stop
    except Exception as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:100]
        untried = (
            "the checks of the model were skipped, because their sentences could not be"
            f" embedded ({reason})"
        )
        return {"warnings": [untried], _LATE: untried}
    for warning in found.warnings:
        log.warning("%s", warning)
    return {"warnings": list(found.warnings), **found.measured}


class _SuiteProgress(Progress):
    """One count of sentences over all tasks.

    Each task that has not started counts as the mean of the known tasks.
    """

    def __init__(self, outer: Progress, tasks: int) -> None:
        self._outer = outer
        self._tasks = tasks
        self._task = ""
        self._totals: list[float] = []

    def of(self, task: str) -> Progress:
        """Return this progress, for the next task."""
        self._task = task
        self._totals.append(0)
        return self

    def start(
        self, total: float | None = None, unit: str = "", label: str = "", *, done: float = 0
    ) -> None:
        """Start the task, or correct its total, which may grow while it runs."""
        before = sum(self._totals[:-1])
        self._totals[-1] = total or 0
        expected = round(sum(self._totals) * self._tasks / len(self._totals))
        self._outer.start(expected, "sentences", "evaluating", done=before + done)
        self._outer.note(self._task)

    def advance(self, count: float = 1) -> None:
        """Count sentences."""
        self._outer.advance(count)

    def note(self, text: str) -> None:
        """Show the current step of the task."""
        self._outer.note(f"{self._task} {text}")


def evaluate_within(
    budget: Budget | None, task: Task, encoder: CachedEncoder, data: Path, *, progress: Progress
) -> TaskResult | None:
    """Score a task, or the part of it that the budget allows.

    A task with a method ``parts(data)``, which lists the possible values of its ``languages``, is
    scored on the parts that were embedded in time. The name of a group contains the number of its
    members, and a note names the missing parts. A task without that method is left out, and so is
    a task that would start after the time is over. A part counts as embedded if it can be scored.
    A task with slow scoring, or with scores over several parts, has a method
    ``embed(encoder, data)``, which is called for this check instead of the scoring.

    Args:
        budget: records the skipped texts; None for no limit.
        task: the task to score.
        encoder: with that budget.
        data: the data's folder.
        progress: reports progress.

    Returns:
        None if nothing could be scored.
    """
    if budget is None:
        return task.evaluate(encoder, data, progress=progress)
    if not budget.is_used:
        with contextlib.suppress(BudgetUsed):
            return task.evaluate(encoder, data, progress=progress)
        return _scored_parts(budget, task, encoder, data, progress)
    budget.left_out[task.name] = "all"
    return None


def _scored_parts(
    budget: Budget, task: Any, encoder: CachedEncoder, data: Path, progress: Progress
) -> TaskResult | None:
    """Score the task on the parts that were embedded in time, with a note on the others."""
    parts: Sequence[str] = ()
    if hasattr(task, "parts"):
        parts = task.parts(data)
    result: TaskResult | None = None
    # trying a part embeds nothing, so it costs no more than its scoring
    with encoder.only_kept():
        embedded = [
            part
            for part in parts
            if _is_embedded(dataclasses.replace(task, languages=[part]), encoder, data)
        ]
        if embedded:
            of_embedded = dataclasses.replace(task, languages=embedded)
            result = _scored(of_embedded, encoder, data, progress)
    if result is None:
        budget.left_out[task.name] = "all"
        return None
    absent = [part for part in parts if part not in embedded]
    names = ", ".join(absent)
    budget.left_out[result.task] = f"{len(absent)} of {len(parts)} ({names})"
    note = (
        f"the budget of {budget} is used up: {len(embedded)} of {len(parts)} were scored,"
        f" skipped: {names}"
    )
    return dataclasses.replace(result, notes=(*result.notes, note))


def _scored(task: Any, encoder: CachedEncoder, data: Path, progress: Progress) -> TaskResult | None:
    """Return the task's result; None if its parts do not suffice.

    For example, there is only one language but pairs are scored, or there is no language to learn
    from.
    """
    # the embedded parts may be too few for the protocol, which then raises a DataError
    with contextlib.suppress(BudgetUsed, DataError):
        result: TaskResult = task.evaluate(encoder, data, progress=progress)
        return result
    return None


def _is_embedded(task: Any, encoder: CachedEncoder, data: Path) -> bool:
    """Return whether a part can be scored from the available vectors."""
    check = getattr(task, "embed", task.evaluate)
    with contextlib.suppress(BudgetUsed, InterlinguaError):
        check(encoder, data)
        return True
    return False


def checked_shard(shard: str, tasks: Sequence[Task], cache: PathLike | None) -> tuple[int, int]:
    """Parse and check a shard; return its number and the number of shards.

    Args:
        shard: ``2/8``.
        tasks: of the suite.
        cache: the folder that all parts share.

    Raises:
        ConfigError: the shard is not valid, there is no cache, or a task is not embedded in parts.
    """
    found = parse_shard(shard)
    if cache is None:
        raise ConfigError(
            "--shard and --devices require --cache; pass the folder in which all parts store"
            " their vectors"
        )
    # checked before anything is embedded
    whole = [task.name for task in tasks if not hasattr(task, "embed_shard")]
    if whole:
        raise ConfigError(
            f"--shard and --devices: expected retrieval tasks, found {', '.join(whole)}; remove"
            " these tasks"
        )
    return found
