"""``interlingua.calibrate`` and ``interlingua calibrate``: what a mining score is worth."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.files import PathLike
from interlingua.options import INPUT, OUTPUT, function_of, option
from interlingua.verbs.shared import Progress, TwoTextsOptions, as_path, as_text, silent

if TYPE_CHECKING:
    from interlingua.mining.calibrate import LearnedCalibration


@dataclass(frozen=True)
class CalibrateOptions(TwoTextsOptions):
    """Options of ``calibrate``."""

    output: PathLike = option(
        help="The calibration, .json; other language pairs in it stay.",
        group=OUTPUT,
        kind=Path,
        short="-o",
    )
    parallel: PathLike | None = option(
        None,
        "Held-out translations of the same kind of text, any format of bitext; mixed in.",
        group=INPUT,
    )
    labels: PathLike | None = option(
        None,
        "Mined pairs that someone has judged: 1 or 0 TAB source TAB target.",
        group=INPUT,
        kind=Path,
        flags=("--judged", "--labels"),
    )
    gold: PathLike | None = option(
        None,
        "All pairs that are right, id TAB id or text TAB text; given with another source, it only"
        " measures.",
        group=INPUT,
        kind=Path,
    )
    probes: int = option(2000, "Held-out pairs taken at most.", group=INPUT, minimum=80)
    seed: int = option(0, "Of the draw of held-out pairs.")


def run_calibrate(options: CalibrateOptions, progress: Progress = silent) -> LearnedCalibration:
    """Learns what a mining score is worth: the probability that a pair is a translation.

    Args:
        options: what to do.
        progress: called with the state of each step.

    Returns:
        The calibration, which is also in the file, and the report.

    Raises:
        ConfigError: an option is wrong.
        DataError: there are too few pairs of which the answer is known, or a file can't be read.
    """
    from interlingua.mining.calibrate import CalibrateJob
    from interlingua.mining.mine import mine_config, parse_size
    from interlingua.verbs.sources import two_texts

    config = mine_config(
        k=options.k,
        margin=options.margin,
        retrieval=options.retrieval,
        equal=options.equal,
        memory=parse_size(options.memory),
        documents=options.documents,
        background=options.background,
        device=options.device,
    )
    job = CalibrateJob(
        output=Path(options.output),
        config=config,
        parallel=as_text(options.parallel),
        labels=as_path(options.labels),
        gold=as_path(options.gold),
        probes=options.probes,
        seed=options.seed,
        work=as_path(options.work),
    )
    # Held-out pairs are embedded even where the vectors of both texts are given.
    source, target, model = two_texts(options, job.folder, always_load=options.parallel is not None)
    return job.run(source, target, model, progress=progress)


calibrate = function_of(CalibrateOptions, run_calibrate, "calibrate")
