"""``interlingua.calibrate`` and ``interlingua calibrate``: what a mining score is worth."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from interlingua.config import AtLeast
from interlingua.config.options import FILTERING, INPUT, Names, filled, function_of, option
from interlingua.mining import defaults
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    REQUIRED,
    TwoTextsOptions,
    as_text,
    joined,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.mining.calibration.calibrate import LearnedCalibration


@dataclass(frozen=True)
class CalibrateOptions(TwoTextsOptions):
    """Options of ``calibrate``."""

    output: PathLike = output_option(
        "The calibration, .json; other language pairs in it stay.", REQUIRED
    )
    parallel: PathLike | None = option(
        None,
        "Held-out translations of the same kind of text, any format of bitext; mixed in.",
        group=INPUT,
        reads="bitext",
    )
    labels: PathLike | None = option(
        None,
        "Mined pairs that someone has judged: 1 or 0 TAB source TAB target.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    gold: PathLike | None = option(
        None,
        "All pairs that are right, id TAB id or text TAB text; given with another source, it only"
        " measures.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    drop: Names | Mapping[str, float | None] = option(
        defaults.DROPPED_OF_PAIR,
        "Checks that leave out pairs before anything is learned, as in mine; or none.",
        group=FILTERING,
    )
    probes: Annotated[int, AtLeast(80)] = option(
        defaults.PROBES, "Held-out pairs taken at most.", group=INPUT
    )
    seed: int = option(0, "Of the draw of held-out pairs.")


def run_calibrate(options: CalibrateOptions, progress: Progress = SILENT) -> LearnedCalibration:
    """Learn what a mining score is worth: the probability that a pair is a translation.

    Args:
        options: what to do.
        progress: shows how far the work is.

    Returns:
        The calibration, which is also in the file, and the report.

    Raises:
        ConfigError: an option is wrong.
        DataError: there are too few pairs of which the answer is known, or a file can't be read.
    """
    check_inputs(options)
    from interlingua.mining.calibration.calibrate import CalibrateJob
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.mine import parsed_config
    from interlingua.verbs.parts.sources import two_texts

    job = filled(
        CalibrateJob,
        options,
        config=parsed_config(options),
        parallel=as_text(options.parallel),
        checks=CheckPlan.parse("", joined(options.drop)),
    )
    # Held-out pairs are embedded even where the vectors of both texts are given.
    source, target, model = two_texts(options, job.folder, always_load=options.parallel is not None)
    return job.run(source, target, model, progress=progress)


calibrate = function_of(CalibrateOptions, run_calibrate, "calibrate")
