"""``interlingua.mine`` and ``interlingua mine``: translations in two texts that are not aligned."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.config.options import (
    FILTERING,
    OUTPUT,
    SEARCH,
    Names,
    filled,
    function_of,
    listed,
    option,
)
from interlingua.config.registry import CHECKS
from interlingua.errors import require_extra
from interlingua.mining.defaults import CHEAP, DROPPED
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs, check_packages_of_checks
from interlingua.verbs.parts.shared_options import (
    BadLineOptions,
    RayOptions,
    TwoTextsOptions,
    as_path,
    joined,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.mining.mine import MinedPairs, MineJob


@dataclass(frozen=True)
class MineOptions(TwoTextsOptions, RayOptions, BadLineOptions):
    """Options of ``mine``."""

    # Only Python may do without: there the pairs come back.
    output: PathLike | None = output_option(
        "The pairs: .tsv, .jsonl, .csv, .xlsx or .tmx; s3://bucket/name.tsv.",
        kind=str,
        is_required=True,
    )
    # Which pairs are kept.
    threshold: float | None = option(
        None, "Least score, in the margin's unit.", group=FILTERING, unit="that of the margin"
    )
    calibration: PathLike | None = option(
        None,
        "From interlingua calibrate: gives each pair its probability.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )
    precision: float | None = option(
        None, "Keep as many pairs as are expected to be this precise, 0 to 1.", group=FILTERING
    )
    checks: Names = option(
        ",".join(CHEAP),
        f"Columns: all, none, or some of {', '.join(CHECKS)}, package.module:Class.",
        group=FILTERING,
        flags=("--check",),
    )
    drop: Names | Mapping[str, float | None] | None = option(
        None,
        "Checks that reject pairs, with their limits or without: length=2,hub; or none. By default"
        f" {DROPPED}, and none with --check none.",
        group=FILTERING,
    )
    # What is written besides.
    columns: Names | None = option(
        None,
        "Of .tsv, .csv, .xlsx: score, source, target, probability, cosine, source_origins,"
        " checks ...",
        group=OUTPUT,
    )
    report: PathLike | None = option(
        None, "Page with the best, borderline and rejected pairs.", group=OUTPUT
    )
    gold: PathLike | None = option(
        None,
        "Pairs that are right, id TAB id or text TAB text: prints precision and F1.",
        group=OUTPUT,
        kind=Path,
        reads="file",
    )
    # How pairs are searched, and how the work is cut.
    laser: bool = option(
        False, "As LASER's mine_bitexts.py does it: no checks, no --precision.", group=SEARCH
    )
    approximate: str | None = option(
        None,
        "Search by FAISS (ivf, hnsw) or codes (binary, int8); ivf:64 = more effort; prints the"
        " recall.",
        group=SEARCH,
    )
    shard: str | None = option(
        None, "Do the second of eight parts, 2/8; a run without it joins them. Needs --work."
    )
    plan: bool = option(False, "Only say what time, disk and memory it will take.")


def run_mine(options: MineOptions, progress: Progress = SILENT) -> MinedPairs:
    """Find translations in two texts.

    The method is margin-based mining (Artetxe and Schwenk 2019). Each side is a file, or a list of
    sentences; equal sentences count once, blank ones not at all. Empty ``checks`` measure nothing
    and, unless ``drop`` names some, reject nothing. A run with an output that was stopped goes on
    where it was.

    Args:
        options: what to do.
        progress: shows how far the work is.

    Returns:
        The pairs, best first. With an output they are written there, and the list is empty.

    Raises:
        ConfigError: an option is wrong.
        DataError: a side has no sentence, or a file can't be read.
    """
    check_inputs(options)
    check_packages_of_checks(options.checks, options.drop)
    if options.approximate is not None and options.approximate.startswith(("ivf", "hnsw")):
        require_extra("faiss", package="faiss-cpu", extra="faiss")
    from interlingua.mining.mine import MinedPairs
    from interlingua.verbs.parts.sources import two_texts

    with contextlib.ExitStack() as stack:
        work = as_path(options.work)
        if options.output is None and work is None and options.shard is None:
            # The pairs come back in memory, and nothing is left that could go on.
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-mine-")
            work = Path(stack.enter_context(temporary))
        job = mine_job(options, work)
        both = two_texts(options, job.folder, elsewhere=options.ray is not None)
        if options.plan:
            return MinedPairs(lines=job.plan(*both))
        return job.run(*both, progress=progress)


def mine_job(options: MineOptions, work: Path | None) -> MineJob:
    """The checked job that the options describe, with the folder of all that is made on the way."""
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.filter import Selection
    from interlingua.mining.mine import MineJob, laser_selection, parsed_config

    checks = joined(options.checks)
    if options.drop is not None:
        drop = joined(options.drop)
    elif checks in ("", "none"):  # without checks nothing is rejected
        drop = "none"
    else:
        drop = DROPPED
    if options.laser:
        selection = laser_selection(
            retrieval=options.retrieval,
            threshold=options.threshold,
            precision=options.precision,
            check=checks,
            drop=drop,
        )
    else:
        selection = filled(Selection, options, checks=CheckPlan.parse(checks, drop))
    return filled(
        MineJob,
        options,
        config=parsed_config(options, options.approximate, like_laser=options.laser),
        selection=selection,
        columns=listed(options.columns),
        work=work,
    )


mine = function_of(MineOptions, run_mine, "mine")
