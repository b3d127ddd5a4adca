"""``interlingua.evaluate`` and ``interlingua evaluate``: scores of an encoder on local folders."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from interlingua.config import AtLeast
from interlingua.config.options import (
    FILTERING,
    INPUT,
    MODEL,
    OUTPUT,
    Names,
    argument,
    function_of,
    is_frame,
    listed,
    option,
)
from interlingua.corpus.frames import frame_pairs
from interlingua.encoder.texts import check_text
from interlingua.errors import ConfigError, DataError, with_article
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike, atomic_write
from interlingua.verbs.parts.input_checks import check_folder, check_inputs, check_packages_of_tasks
from interlingua.verbs.parts.shared_options import (
    BatchOptions,
    CacheOptions,
    DtypeOptions,
    LineOptions,
    Model,
    as_path,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.encoder.model_info import ModelInfo
    from interlingua.evaluation.scores import TaskResult
    from interlingua.evaluation.task import Task
    from interlingua.evaluation.time_limit import Budget

DataFrame = Any
"""A table of pandas, polars or Arrow, or a data set of ``datasets``."""
DATA_VARIABLE = "INTERLINGUA_DATA"
DEFAULT_SUITE = "standard"
FRAME_SUITE = "tatoeba"
"""Default suite if the data is a table of translations in memory."""
INDEX_TASK = "index"
"""Task of an index that is passed instead of a model."""


class Evaluated(RowList["TaskResult"]):
    """One result per task, in the suite's order, without the tasks that the budget excluded.

    It is empty after a run with a shard, because such a run only embeds.

    Args:
        results: of the tasks.
        left_out: line that names the tasks that the budget excluded, or None.
    """

    columns_if_empty = (
        "task",
        "source_language",
        "target_language",
        "pairs",
        "metric",
        "score",
    )

    def __init__(self, results: Iterable[TaskResult], left_out: str | None) -> None:
        super().__init__(results)
        self.left_out = left_out

    def records(self) -> list[dict[str, Any]]:
        """Return a row for each language pair of each task: its main score and all its scores."""
        return [
            {
                "task": result.task,
                "source_language": subset.languages[0],
                "target_language": subset.languages[1],
                "pairs": subset.pairs,
                "metric": result.main_metric,
                "score": subset.scores[result.main_metric],
                **subset.scores,
            }
            for result in self
            for subset in result.subsets
        ]

    def __repr__(self) -> str:
        """Return a line with the main score of each task."""
        scores = [f"{result.task} {result.main_metric} {result.main_score:.3f}" for result in self]
        return f"<Evaluated: {', '.join(scores) or 'no results'}>"


def data_option(*, is_positional: bool = False) -> Any:
    """Declare the option for the folder of the data sets."""
    return option(
        None,
        "Folder with tatoeba_laser/, sts17/ and so on, the folder of one data set, or a"
        " prepared corpus.",
        group=INPUT,
        kind=Path,
        envvar=DATA_VARIABLE,
        reads="folder",
        is_positional=is_positional,
    )


@dataclass(frozen=True)
class MeasuredModelOptions(BatchOptions, CacheOptions):
    """A model that is measured."""

    model: Model = argument(
        "Model folder, hf:owner/name, module:function, folder of vectors, or name of a model of"
        " an endpoint.",
        reads="model",
    )
    pooling: str | None = option(
        None, "Pooling in place of the model's own: cls, mean or max.", group=MODEL
    )


def data_folder(data: PathLike | None) -> Path:
    """Return the folder of the data sets, from the option or from the environment.

    Raises:
        DataError: neither of them names a folder.
    """
    if data is None:
        data = os.environ.get(DATA_VARIABLE)
    if data is None:
        raise DataError(
            "no folder of data sets is set; pass --data DIR, or set the variable INTERLINGUA_DATA"
        )
    return Path(data).expanduser()


def check_encoder_named(
    model: Model, call: str = "evaluate(model, [suite], [data], option=value)"
) -> None:
    """Check that a model is named, or is an encoder.

    Args:
        model: the first argument of a verb.
        call: the right call, which the error names.

    Raises:
        ConfigError: it is neither.
    """
    is_named = isinstance(model, str | os.PathLike)
    if not is_named and not callable(getattr(model, "encode", None)):
        raise ConfigError(
            "the first argument: expected an encoder (interlingua.load) or a model's folder,"
            f" found {with_article(type(model).__name__)}; call interlingua.{call}"
        )


def measured_model(
    model: Model, name: str | None, of_backend: Mapping[str, Any], **choices: Any
) -> tuple[Any, ModelInfo]:
    """Return the encoder, which is loaded if ``model`` is a name, and its description for results.

    Args:
        model: name of the model, or a loaded encoder, which accepts no choices.
        name: name of the model in results; None to use the model's own name.
        of_backend: options of the backend.
        choices: arguments of ``load_encoder``; None if unset.

    Raises:
        ConfigError: ``model`` is not an encoder, or a loaded encoder is combined with a choice.
    """
    from interlingua.encoder.backends.load import load_encoder
    from interlingua.encoder.model_info import describe_encoder

    if isinstance(model, str | os.PathLike):
        return load_encoder(os.fspath(model), **choices, name=name, options=of_backend)
    check_encoder_named(model)
    for choice, value in choices.items():
        if value not in (None, "interlingua"):
            raise ConfigError(
                f"{choice} can only be set for a model that is passed by its name; pass the name,"
                " or remove the option"
            )
    return model, describe_encoder(model, name=name)


@dataclass(frozen=True)
class EvaluateOptions(MeasuredModelOptions, DtypeOptions, LineOptions):
    """Options of ``evaluate``."""

    model: Model = argument(
        "Model folder, hf:owner/name, module:function, folder of vectors, name of a model of an"
        " endpoint, or folder of an index.",
        reads="model",
    )
    suite: str | Sequence[str | Task] = option(
        DEFAULT_SUITE,
        "Tasks, separated by commas: tatoeba, xsim, mteb:STS17, package.module:Class. Groups:"
        " standard (tatoeba, xsim, mixed_pool), sts, bucc, retrieval.",
        group=INPUT,
        is_positional=True,
    )
    data: PathLike | DataFrame | None = data_option(is_positional=True)
    languages: Names | None = option(
        None,
        "Languages in any code, pairs (de-fr), or groups (muse, xtreme, mexma), separated by"
        " commas.",
        group=FILTERING,
    )
    output: PathLike | None = output_option(
        "Folder for results/MODEL/REVISION/TASK.json.", default=Path()
    )
    settings: Sequence[str] | None = option(
        None,
        "Option of a task or a backend, TASK.OPTION=VALUE or BACKEND.OPTION=VALUE:"
        " stsb.split=dev, openai.dimensions=256; repeatable.",
        flags=("--set",),
    )
    query_prompt: str | None = option(
        None,
        "Prompt before the questions of a retrieval task; the model's own by default.",
        group=MODEL,
    )
    passage_prompt: str | None = option(
        None,
        "Prompt before the passages of a retrieval task; the model's own by default.",
        group=MODEL,
    )
    truncate_dim: Annotated[int, AtLeast(1)] | None = option(
        None,
        "Number of elements to keep of each vector, from the first.",
        group=MODEL,
        unit="elements",
    )
    name: str | None = option(
        None, "Name of the model in results; that of its folder by default.", group=OUTPUT
    )
    compare: str = option(
        "index",
        "How a match is decided: index (the sentence in the same row), or text (any equal"
        " sentence counts as right).",
        group=FILTERING,
    )
    # How much of the suite is done here, and by how many processes.
    budget: str | Budget | None = option(
        None, "Maximum time to embed: 90s, 10m or 2h; tasks beyond it are left out."
    )
    shard: str | None = option(
        None,
        "Embed only one part of the passages, without scoring: 2/8 is the second of eight"
        " parts. Needs --cache.",
    )
    devices: Annotated[int, AtLeast(1)] | None = option(
        None,
        "Number of processes that embed the passages, one per GPU or per group of cores. Needs"
        " --cache.",
    )
    check: bool = option(
        True, "Check pooling, prompt and scale of the vectors first, and warn about mistakes."
    )


def with_model_of_index(options: EvaluateOptions) -> EvaluateOptions:
    """Return options with the index's model and the task ``index``, if the model is an index.

    Args:
        options: of the verb; returned unchanged if the model is not the folder of an index.

    Raises:
        ConfigError: another task is named, which would not read the index.
        CheckpointError: the index is damaged.
    """
    if not isinstance(options.model, str | os.PathLike):
        return options
    from interlingua.retrieval.passage_index import SETTINGS_FILE, read_index_settings

    folder = Path(options.model).expanduser()
    if not (folder / SETTINGS_FILE).is_file():
        return options
    settings = read_index_settings(folder)
    if options.suite not in (DEFAULT_SUITE, INDEX_TASK):
        raise ConfigError(
            f"{folder} is an index, which only the task {INDEX_TASK} can measure, but the suite is"
            f" {options.suite!r}; remove --suite, or pass a model"
        )
    prompt = options.query_prompt
    if prompt is None:
        prompt = settings.question_prompt
    # The value of --set is TOML, in which a JSON string is also valid.
    own = f"{INDEX_TASK}.folder={json.dumps(str(folder.absolute()))}"
    return replace(
        options,
        model=settings.model,
        suite=INDEX_TASK,
        settings=[*(options.settings or ()), own],
        query_prompt=prompt,
    )


@dataclass(frozen=True, slots=True)
class Evaluation:
    """An evaluation with a loaded model and its tasks.

    Attributes:
        options: of the verb.
        encoder: the model.
        info: description of the model in results.
        tasks: the tasks to run.
        data: folder of the data sets.
        budget: time limit for all tasks together, or None.
    """

    options: EvaluateOptions
    encoder: Any
    info: ModelInfo
    tasks: list[Task]
    data: Path
    budget: Budget | None

    @classmethod
    def of(cls, options: EvaluateOptions) -> Evaluation:
        """Build the tasks, then load the model, so that a mistake shows at once."""
        options = with_model_of_index(options)
        check_encoder_named(options.model)
        check_inputs(options)
        check_packages_of_tasks(options.suite)
        check_folder(data_folder(options.data))
        from interlingua.encoder.backends.load import backend_settings
        from interlingua.evaluation.build import build_tasks
        from interlingua.evaluation.suite import checked_shard
        from interlingua.evaluation.time_limit import Budget
        from interlingua.verbs.parts.evaluate_parts import check_devices

        if options.devices is not None:
            check_devices(options)
        data = data_folder(options.data)
        # --set has options of the backend and of the tasks; the first part of a key is the name of
        # the backend or of a task.
        of_backend, of_tasks = backend_settings(options.settings or (), options.backend)
        suite: Sequence[str | Task] | None = options.suite
        if isinstance(options.suite, str):
            suite = listed(options.suite)
        tasks = build_tasks(
            suite or "",
            languages=listed(options.languages or None),
            compare=options.compare,
            settings=of_tasks,
            data=data,
        )
        if options.devices is not None:  # each process will embed a shard; see evaluate_parts
            checked_shard(f"1/{options.devices}", tasks, options.cache)
        budget = options.budget or None
        if isinstance(budget, str):
            budget = Budget.parse(budget)
        encoder, info = measured_model(
            options.model,
            options.name,
            of_backend,
            backend=options.backend,
            pooling=options.pooling,
            dtype=options.dtype,
            device=options.device,
            dim=options.truncate_dim,
        )
        return cls(options, encoder, info, tasks, data, budget)

    @property
    def keeps_vectors(self) -> bool:
        """True if vectors are kept, so that an interrupted run can resume.

        Vectors of a function are not kept, because a change of the function would not be noticed.
        """
        return self.info.identity is not None

    def run(self, progress: Progress = SILENT) -> Evaluated:
        """Run the tasks and write their results."""
        from interlingua.evaluation.suite import evaluate_suite
        from interlingua.retrieval.topk.exact import searching_on
        from interlingua.verbs.parts.evaluate_parts import embed_parts

        options = self.options
        if options.devices is not None:
            # After this the cache holds the passages' vectors, and the next steps only score.
            embed_parts(options, run_evaluate, progress)
        # None means the model's own prompt; an empty text means no prompt.
        roles = {"query": options.query_prompt, "passage": options.passage_prompt}
        how: Any = {
            "role_prompts": {role: text for role, text in roles.items() if text is not None}
        }
        with searching_on(options.device):
            found = evaluate_suite(
                self.encoder,
                self.tasks,
                self.data,
                prompt=options.prompt,
                batch_tokens=options.batch_tokens,
                output=options.output,
                cache=as_path(options.cache),
                budget=self.budget,
                check=options.check,
                shard=options.shard,
                model=self.info,
                progress=progress,
                **how,
            )
        left_out = None
        if self.budget:
            left_out = self.budget.report
        return Evaluated(found, left_out)


def run_evaluate(options: EvaluateOptions, progress: Progress = SILENT) -> Evaluated:
    """Evaluate an encoder on local data, and write the result of each task.

    With ``output=None`` no results are written. In Python the data may also be a table of sentences
    and their translations, in two columns that are named after their languages, for tasks such as
    tatoeba.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        One result per task.

    Raises:
        ConfigError: a name or option is unknown; nothing has been run.
        DataError: files are missing, broken or misaligned, or have no data in a language.
        TaskError: the encoder gave no usable vectors.
    """
    if not is_frame(options.data):
        return Evaluation.of(options).run(progress)
    with tempfile.TemporaryDirectory(prefix="interlingua-evaluate-") as folder:
        pairs = write_frame_pairs(options.data, Path(folder) / "pairs")
        suite = FRAME_SUITE if options.suite == DEFAULT_SUITE else options.suite
        return Evaluation.of(replace(options, data=pairs, suite=suite)).run(progress)


def write_frame_pairs(frame: Any, folder: Path) -> Path:
    """Write a table of translations as a file that tasks read, and return its folder.

    Args:
        frame: table with two columns that are named after their languages, in any code.
        folder: folder to create.

    Raises:
        DataError: the columns are not named after languages, there are no rows, or an element is
            not a text.
    """
    pairs, languages = frame_pairs(frame)
    if languages is None:
        raise DataError(
            "the columns of the table are not named after languages; rename them, for example"
            " table.rename(columns={'source': 'de', 'target': 'en'})"
        )
    rows = list(pairs)
    if not rows:
        raise DataError("data: the table is empty; expected one row for each pair of translations")
    folder.mkdir()
    name = "-".join(languages)
    with atomic_write(folder / f"{name}.tsv") as file:
        for row, sides in enumerate(rows):
            cells = [" ".join(check_text(side, row, "data").split()) for side in sides]
            file.write("\t".join(cells) + "\n")
    return folder


evaluate = function_of(EvaluateOptions, run_evaluate, "evaluate")
