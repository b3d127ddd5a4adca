"""``interlingua.analyse`` and ``interlingua analyse``: analyses of an encoder's vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from interlingua.config.options import (
    FILTERING,
    INPUT,
    OUTPUT,
    Names,
    argument,
    function_of,
    listed,
    option,
)
from interlingua.errors import ConfigError
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.evaluate import (
    MeasuredModelOptions,
    check_encoder_named,
    data_folder,
    data_option,
    measured_model,
)
from interlingua.verbs.parts.input_checks import check_folder, check_inputs
from interlingua.verbs.parts.shared_options import Model, as_path, output_option

if TYPE_CHECKING:
    from interlingua.analysis.record import Analysis
    from interlingua.encoder.model_info import ModelInfo


class Analysed(list["list[Analysis]"]):
    """The analyses of each model, and the page that shows them.

    Args:
        found: the analyses of one model, or of two models.
        page: file of the page, or None if there is no output.
    """

    def __init__(self, found: Iterable[list[Analysis]], page: Path | None) -> None:
        super().__init__(found)
        self.page = page


@dataclass(frozen=True)
class AnalyseOptions(MeasuredModelOptions):
    """Options of ``analyse``."""

    other: Model = argument(
        "Second model to compare with the first, for example after training.",
        None,
        metavar="MODEL2",
        reads="model",
    )
    data: PathLike | None = data_option()
    only: Names | None = option(
        None,
        "Analyses to run, separated by commas: agnosticism, token_matching, attention_entropy,"
        " word_order, uniform_pooling; by default all except the last.",
        group=FILTERING,
    )
    languages: Names | None = option(
        None,
        "Languages in any code, or groups (muse, low_resource, mexma), separated by commas.",
        group=FILTERING,
    )
    output: PathLike | None = output_option(
        "Folder for the page and for results/MODEL/REVISION/ANALYSIS.analysis.json.", default=Path()
    )
    settings: Sequence[str] | None = option(
        None,
        "Option of an analysis, ANALYSIS.OPTION=VALUE: agnosticism.k=5, token_matching.seed=2;"
        " repeatable.",
        group=INPUT,
        flags=("--set",),
    )
    name: str | None = option(
        None,
        "Name of the model in files and tables; two names separated by a comma for two models.",
        group=OUTPUT,
    )


@dataclass(frozen=True, slots=True)
class ModelAnalysis:
    """A loaded model, and the analyses to run on it.

    Attributes:
        options: of the verb.
        encoder: the model.
        info: description of the model in result files.
        analyses: the analyses to run.
    """

    options: AnalyseOptions
    encoder: Any
    info: ModelInfo
    analyses: list[Any]

    @property
    def keeps_vectors(self) -> bool:
        """True if vectors are kept, so that an interrupted run can resume.

        Vectors of a function are not kept, because a change of the function would not be noticed.
        """
        return self.info.identity is not None

    def run(self, progress: Progress = SILENT) -> list[Analysis]:
        """Run the analyses and write their results."""
        from interlingua.analysis.run import run_analyses
        from interlingua.retrieval.topk.exact import searching_on

        options = self.options
        with searching_on(options.device):
            return run_analyses(
                self.encoder,
                self.analyses,
                data_folder(options.data),
                prompt=options.prompt,
                batch_tokens=options.batch_tokens,
                output=options.output,
                cache=as_path(options.cache),
                model=self.info,
                skip_unfit=listed(options.only or None) is None,
                progress=progress,
            )


def analyses_of(options: AnalyseOptions) -> Iterator[ModelAnalysis]:
    """Yield each model with its analyses; a model is loaded only when it is yielded.

    An error in the options is raised before the first model is loaded.
    """
    check_encoder_named(options.model, "analyse(model, [other], option=value)")
    check_inputs(options)
    check_folder(data_folder(options.data))
    from interlingua.analysis.run import build_analyses
    from interlingua.encoder.backends.load import backend_settings

    models = [options.model]
    if options.other is not None:
        models.append(options.other)
    names: Sequence[str | None] = listed(options.name or None) or [None] * len(models)
    if len(names) != len(models):
        raise ConfigError(
            f"--name: {len(names)} names for {len(models)} models; pass one name per model,"
            " separated by commas"
        )
    # --set has options of the backend and of the analyses; the first part of a key is the name of
    # the backend or of an analysis.
    of_backend, settings = backend_settings(options.settings or (), options.backend)
    analyses = build_analyses(
        listed(options.only or None), languages=listed(options.languages or None), settings=settings
    )
    for model, name in zip(models, names, strict=True):
        encoder, info = measured_model(
            model,
            name,
            of_backend,
            backend=options.backend,
            pooling=options.pooling,
            device=options.device,
        )
        yield ModelAnalysis(options, encoder, info, analyses)


def write_models_page(options: AnalyseOptions, found: list[list[Analysis]]) -> Analysed:
    """Write the page of all models."""
    from interlingua.analysis import page

    if options.output is None:
        return Analysed(found, None)
    only = listed(options.only or None) or []
    return Analysed(found, page.write_analysis_page(found, Path(options.output), only=only))


def run_analyse(options: AnalyseOptions, progress: Progress = SILENT) -> Analysed:
    """Analyze the vectors of an encoder, or compare those of two encoders.

    ``output=None`` writes no files.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The analyses of each model.

    Raises:
        ConfigError: a name or option is unknown, or a model is not fit for an analysis that was
            named.
        DataError: files are missing, broken or misaligned.
        TaskError: the encoder gave no usable vectors.
    """
    return write_models_page(options, [one.run(progress) for one in analyses_of(options)])


analyse = function_of(AnalyseOptions, run_analyse, "analyse")
