"""``interlingua.mine`` and ``interlingua mine``: translations in two texts that are not aligned."""

from __future__ import annotations

import contextlib
import os
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
    function_of,
    listed,
    option,
)
from interlingua.config.registry import CHECKS
from interlingua.errors import ConfigError, require_extra
from interlingua.mining.defaults import CHEAP, DEFAULT_CHECKS
from interlingua.mining.pair_cut import PairCut
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.storage.remote import is_remote, name_of
from interlingua.verbs.parts.input_checks import check_inputs, check_packages_of_checks
from interlingua.verbs.parts.shared_options import (
    BadLineOptions,
    RayOptions,
    TwoTextsOptions,
    as_path,
    join_names,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.mine import MinedPairs
    from interlingua.mining.pipeline import TextFile
    from interlingua.retrieval.topk.approximate import Approximate


@dataclass(frozen=True)
class MineOptions(TwoTextsOptions, PairCut, RayOptions, BadLineOptions):
    """Options of ``mine``."""

    # Only Python may do without: there the pairs come back.
    output: PathLike | None = output_option(
        "The pairs: .tsv, .jsonl, .csv, .xlsx or .tmx; s3://bucket/name.tsv.",
        kind=str,
        is_required=True,
    )
    # Which pairs are kept, besides ``PairCut``.
    calibration: PathLike | None = option(
        None,
        "From interlingua calibrate: gives each pair its probability.",
        group=FILTERING,
        kind=Path,
        reads="file",
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
        f" {DEFAULT_CHECKS}, and none with --check none.",
        group=FILTERING,
    )
    # Further outputs.
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

    @property
    def approximation(self) -> Approximate | None:
        """The approximate search; None = exact."""
        if not self.approximate:
            return None
        from interlingua.retrieval.topk.approximate import Approximate

        return Approximate.parse(self.approximate)

    @property
    def is_like_laser(self) -> bool:
        """True if pairs are found as by LASER's script."""
        return self.laser

    @property
    def least_score(self) -> float | None:
        """The threshold, or that of LASER's script."""
        if not self.laser:
            return self.threshold
        # The script uses the threshold only in this retrieval, and its default is 0.
        if self.retrieval == "max":
            return self.threshold or 0.0
        return None


def run_mine(options: MineOptions, progress: Progress = SILENT) -> MinedPairs:
    """Find translations in two texts.

    The method is margin-based mining (Artetxe and Schwenk 2019). Each side is a file, or a list of
    sentences; equal sentences count once, blank ones not at all. Empty ``checks`` measure nothing
    and, unless ``drop`` names some, reject nothing. An interrupted run with an output resumes.
    With two lists and neither an output nor a work folder, no file is written.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

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
        folder = mining_folder(options)
        check_mine(options)
        if folder is None and not is_in_memory(options):
            # The pairs come back in memory, and nothing is left to resume.
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-mine-")
            folder = Path(stack.enter_context(temporary))
        both = two_texts(options, folder, elsewhere=options.ray is not None)
        if options.plan:
            return MinedPairs(lines=plan_mining(options, *both[:2], folder))
        return mine_texts(options, *both, folder, progress=progress)


def is_in_memory(options: TwoTextsOptions) -> bool:
    """Return whether both sides are lists of sentences, so that nothing is read from files."""
    sides = (options.source, options.target)
    return not any(isinstance(side, str | os.PathLike) for side in sides)


def mining_folder(options: MineOptions) -> Path | None:
    """Return the work folder: the one of the options, or one next to the output, if there is any.

    Of a remote output it is in the working directory.
    """
    return as_path(options.work) or _next_to_output(options, ".work")


def _next_to_output(options: MineOptions, ending: str) -> Path | None:
    """Return a local file next to the output, or in the working directory if that is remote."""
    if options.output is None:
        return None
    here = Path(options.output)
    if is_remote(options.output):
        here = Path(name_of(options.output))
    return here.with_name(f"{here.name}{ending}")


def _bad_lines(options: MineOptions) -> BadLines:
    """Return how lines that can't be read are handled, and the file for them."""
    from interlingua.corpus.formats.bad_lines import BadLines

    return BadLines(options.on_error, _next_to_output(options, ".bad-lines.tsv"))


def check_mine(options: MineOptions) -> CheckPlan:
    """Return the plan of checks and filters, after checking all options.

    Raises:
        ConfigError: an option has a wrong value, or does not go with another.
    """
    from interlingua.mining.filter import check_output
    from interlingua.mining.mine import parse_shard

    checks = _check_plan(options)
    options.check_cut()
    options.check_search()
    columns = listed(options.columns)
    if options.output is not None:
        check_output(options.output, columns, checks)
    elif columns is not None or options.report is not None:
        raise ConfigError("--columns and --report require --output; add --output, or remove them")
    _bad_lines(options)
    if options.calibration is None and (
        options.precision is not None or "probability" in (columns or ())
    ):
        raise ConfigError(
            "--precision and the column probability require --calibration; create one with"
            " `interlingua calibrate`"
        )
    if options.shard is not None and options.work is None:
        raise ConfigError(
            "--shard requires --work; pass a folder that all shards share, or that is copied"
            " together afterwards"
        )
    if options.shard is not None:
        parse_shard(options.shard)
    return checks


def _check_plan(options: MineOptions) -> CheckPlan:
    """Return the checks that measure and those that reject a pair; LASER's script has none."""
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.mine import refuse_unlike_laser

    checks = join_names(options.checks)
    if options.drop is not None:
        drop = join_names(options.drop)
    elif checks in ("", "none"):  # without checks nothing is rejected
        drop = "none"
    else:
        drop = DEFAULT_CHECKS
    if options.laser:
        refuse_unlike_laser(
            precision=options.precision, check=checks, drop=drop, glossary=options.glossary
        )
        return CheckPlan((), {})
    return CheckPlan.parse(checks, drop, as_path(options.glossary))


def plan_mining(
    options: MineOptions, source: TextFile, target: TextFile, folder: Path | None
) -> list[str]:
    """Estimate time, disk and memory of a run, in lines; see ``mine_texts``."""
    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.mining.mine import check_places
    from interlingua.mining.pipeline import with_lines
    from interlingua.mining.plan import estimate
    from interlingua.retrieval.topk.tiles import tiles_for
    from interlingua.runtime.workers import Workers, connected

    read = (as_path(options.gold), as_path(options.calibration))
    check_places((options.output, options.report), (source, target), read)
    # A plan writes nothing, so that bad lines are judged and go into no file.
    sides = []
    for side in (source, target):
        sides.append(with_lines(side._replace(bad=BadLines(options.on_error)), folder))
    with connected(options.ray, cores=options.ray_cores) as workers:
        slots = (workers or Workers()).slots
        tiles = tiles_for(workers)
    expected = estimate(sides[0], sides[1], options, folder, least_tiles=tiles, at_once=slots)
    return expected.lines()


def mine_texts(
    options: MineOptions,
    source: TextFile,
    target: TextFile,
    model: str,
    folder: Path | None,
    progress: Progress = SILENT,
) -> MinedPairs:
    """Find the pairs of two sides that are read already; see ``run_mine``.

    Args:
        options: of the verb.
        source: the one side.
        target: the other.
        model: identity of the model and its settings.
        folder: the work folder; None = both sides are in memory, and no file is written.
        progress: receives the progress of the work.
    """
    from interlingua.mining.gold import read_gold
    from interlingua.mining.mine import calibration_for, check_places, mine_pairs, parse_shard
    from interlingua.mining.pipeline import with_lines
    from interlingua.mining.work_folder import at_work
    from interlingua.runtime.workers import connected

    checks = check_mine(options)
    # All options are checked before the folder is claimed and the work starts.
    gold = as_path(options.gold)
    calibration = as_path(options.calibration)
    check_places((options.output, options.report), (source, target), (gold, calibration))
    found_calibration = None
    if calibration is not None:
        languages = (source.language, target.language)
        found_calibration = calibration_for(calibration, languages, model, options)
    gold_pairs = read_gold(gold) if gold is not None else None
    shard = parse_shard(options.shard) if options.shard else None
    # Without an output the folder is the user's, or temporary.
    keep = options.work is not None or options.output is None
    with contextlib.ExitStack() as stack:
        work = None
        if folder is not None:
            work = stack.enter_context(at_work(folder, shard, keep=keep, options=options))
        bad = stack.enter_context(_bad_lines(options))
        sides = [with_lines(side._replace(bad=bad), folder) for side in (source, target)]
        found = mine_pairs(
            sides[0],
            sides[1],
            options,
            options,
            checks,
            work,
            model=model,
            calibration=found_calibration,
            gold=gold_pairs,
            output=options.output,
            columns=listed(options.columns),
            report=options.report,
            shard=shard,
            workers=stack.enter_context(connected(options.ray, cores=options.ray_cores)),
            progress=progress,
        )
        found.lines += bad.lines()
        return found


mine = function_of(MineOptions, run_mine, "mine")
