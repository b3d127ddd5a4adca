"""Runs tasks over one encoder; each text is embedded once however many tasks and language pairs it is in."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from interlingua.encoder.encoder import EmbedsText
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.provenance import ModelInfo, describe, prompt_text, provenance
from interlingua.evaluation.results import write_result
from interlingua.evaluation.task import Progress, Task, TaskResult, check_choice, silent
from interlingua.files import PathLike
from interlingua.registry import TASKS, resolve


def evaluate(
    encoder: EmbedsText,
    suite: Sequence[str | Task],
    data: PathLike,
    *,
    languages: Sequence[str] | None = None,
    compare: str = "index",
    prompt: str | None = None,
    batch_tokens: int = 16_384,
    output: PathLike | None = None,
    model: ModelInfo | None = None,
    progress: Progress = silent,
) -> list[TaskResult]:
    """Scores an encoder on local folders.

    Args:
        encoder: what to score.
        suite: names of tasks, or tasks built with options of their own.
        data: a data set's folder, or the folder that holds the data sets under their usual names.
        languages: languages in any code or name, or a task's groups; for the tasks given by name.
        compare: ``index``, or ``text`` to forgive duplicates; for the tasks given by name.
        prompt: put before every text, or the name of one of the model's own prompts; its default prompt if none.
        batch_tokens: token budget of a batch.
        output: write each result below this folder as soon as its task ends.
        model: how results name the encoder; read off the encoder by default.
        progress: told after each language pair.

    Returns:
        One result per task, in the suite's order.

    Raises:
        ConfigError: a name or option is unknown; nothing has been run.
        DataError: files are missing, broken or misaligned, or a language is not among them.
        TaskError: the encoder gave no usable vectors.
    """
    tasks = build_tasks(suite, languages=languages, compare=compare)
    model = model or describe(encoder)
    if prompt is not None:
        model = dataclasses.replace(model, overrides=(*model.overrides, f"prompt={prompt!r}"))
    results = []
    with CachedEncoder(encoder, prompt=prompt, batch_tokens=batch_tokens) as cached:
        for task in tasks:
            encoded, reused, seconds = cached.encoded_texts, cached.reused_texts, cached.encode_seconds
            result = task.evaluate(cached, Path(data), progress=progress)
            measured = {
                "encoded_texts": cached.encoded_texts - encoded,
                "reused_texts": cached.reused_texts - reused,
                "encode_seconds": cached.encode_seconds - seconds,
                "wall_seconds": result.seconds,
            }
            result = dataclasses.replace(result, provenance=provenance(model, prompt_text(encoder, prompt), measured))
            if output is not None:
                write_result(result, output)
            results.append(result)
    return results


def build_tasks(
    suite: Sequence[str | Task], *, languages: Sequence[str] | None = None, compare: str = "index"
) -> list[Task]:
    """The tasks of a suite; those given by name are built with these options.

    Raises:
        ConfigError: a task's name is unknown (the nearest one is offered), or ``compare`` is.
    """
    check_choice("compare", compare, ("index", "text"))
    return [
        resolve(TASKS, task)(languages=languages, compare=compare) if isinstance(task, str) else task for task in suite
    ]
