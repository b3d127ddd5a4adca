"""``interlingua.calibrate`` and ``interlingua calibrate``: probabilities from mining scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interlingua.config import AtLeast
from interlingua.config.options import FILTERING, INPUT, Names, function_of, option
from interlingua.mining import defaults
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    REQUIRED,
    TwoTextsOptions,
    as_path,
    join_names,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.mining.calibration.calibrate import LearnedCalibration
    from interlingua.mining.pipeline import TextFile


@dataclass(frozen=True)
class CalibrateOptions(TwoTextsOptions):
    """Options of ``calibrate``."""

    output: PathLike = output_option(
        "File for the calibration, .json; calibrations of other language pairs in it are kept.",
        REQUIRED,
    )
    parallel: PathLike | None = option(
        None,
        "Held-out translations of the same kind of text, in any format of bitext. They are"
        " mixed into the texts, and their ranks calibrate the scores.",
        group=INPUT,
        reads="bitext",
    )
    labels: PathLike | None = option(
        None,
        "Judged mined pairs: a review sheet of interlingua score, or a table with the columns 1 or"
        " 0 TAB source TAB target.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    gold: PathLike | None = option(
        None,
        "File of all right pairs, id TAB id or text TAB text. With --parallel or --labels, this"
        " file is used only to measure the calibration.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    drop: Names | Mapping[str, float | None] = option(
        defaults.DROPPED_OF_PAIR,
        "Checks that remove pairs before the calibration is learned, in the form of --drop of"
        " interlingua mine; or none.",
        group=FILTERING,
    )
    probes: Annotated[int, AtLeast(80)] = option(
        defaults.PROBES, "Maximum number of held-out pairs to use.", group=INPUT
    )
    seed: int = option(0, "Seed of the choice of held-out pairs.")


def run_calibrate(options: CalibrateOptions, progress: Progress = SILENT) -> LearnedCalibration:
    """Learn to convert mining scores to probabilities of being a translation.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The calibration, which is also written to the output, and the report.

    Raises:
        ConfigError: an option is wrong.
        DataError: there are too few pairs with a known answer, or a file can't be read.
    """
    check_inputs(options)
    from interlingua.verbs.parts.sources import two_texts

    check_calibrate(options)
    # Held-out pairs are embedded even if the vectors of both texts are known.
    source, target, model = two_texts(
        options, calibration_folder(options), always_load=options.parallel is not None
    )
    return calibrate_texts(options, source, target, model, progress)


def calibration_folder(options: CalibrateOptions) -> Path:
    """Return the work folder: the one of the options, or one next to the output."""
    output = Path(options.output)
    return as_path(options.work) or output.with_name(f"{output.name}.work")


def check_calibrate(options: CalibrateOptions) -> None:
    """Check all options.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
    """
    from interlingua.mining.calibration.calibrate import check_calibration
    from interlingua.mining.checks import CheckPlan

    options.check_search()
    # A name that is unknown is refused here, and not after the work.
    CheckPlan.parse("", join_names(options.drop))
    check_calibration(
        Path(options.output),
        options,
        parallel=options.parallel,
        labels=options.labels,
        gold=options.gold,
    )


def calibrate_texts(
    options: CalibrateOptions,
    source: TextFile,
    target: TextFile,
    model: str,
    progress: Progress = SILENT,
) -> LearnedCalibration:
    """Learn a calibration from two sides that were already read; see ``run_calibrate``.

    Args:
        options: of the verb.
        source: the source side.
        target: the target side.
        model: identity of the model and its settings.
        progress: receives the progress of the work.
    """
    from interlingua.mining.calibration.calibrate import (
        KnownAnswers,
        learn_from_mining,
        read_probes,
    )
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.gold import read_gold
    from interlingua.mining.pipeline import with_lines
    from interlingua.mining.review import read_labels
    from interlingua.mining.work_folder import at_work

    check_calibrate(options)
    # All inputs are read before the long work starts, so that a bad input is reported at once.
    probes = labels = gold = None
    if options.parallel is not None:
        languages = (source.language, target.language)
        probes = read_probes(str(options.parallel), languages, options.probes, seed=options.seed)
    if options.gold is not None:
        gold = read_gold(Path(options.gold))
    if options.labels is not None:
        labels = read_labels(Path(options.labels))
    known = KnownAnswers(probes, labels, as_path(options.labels), gold)
    folder = calibration_folder(options)
    with at_work(folder, keep=options.work is not None, options=options) as work:
        return learn_from_mining(
            with_lines(source, folder),
            with_lines(target, folder),
            options,
            known,
            CheckPlan.parse("", join_names(options.drop)),
            work=work,
            output=Path(options.output),
            model=model,
            seed=options.seed,
            progress=progress,
        )


calibrate = function_of(CalibrateOptions, run_calibrate, "calibrate")
