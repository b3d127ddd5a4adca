"""``interlingua.mine`` and ``interlingua mine``: translations in two texts that are not aligned."""

from __future__ import annotations

import contextlib
import functools
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
from interlingua.storage.remote import is_remote, keep_inputs, name_of
from interlingua.verbs.parts.input_checks import check_inputs, check_packages_of_checks
from interlingua.verbs.parts.shared_options import (
    BadLineOptions,
    RayOptions,
    TwoTextsOptions,
    as_path,
    is_folder_or_pattern,
    is_output_folder,
    join_names,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.corpus.formats.bad_lines import BadLines
    from interlingua.mining.checks import CheckPlan
    from interlingua.mining.mine import MinedPairs
    from interlingua.mining.pipeline import TextFile
    from interlingua.retrieval.topk.approximate import Approximate
    from interlingua.verbs.parts.output_folder import OutputJob

_JOURNAL = "mine.journal"
_NOT_SETTINGS = (
    *("source", "target", "output", "work", "plan", "shard", "gold", "report", "device", "memory"),
    *("batch_tokens", "max_line", "ray", "ray_cores", "source_vectors", "target_vectors"),
)
"""Options that do not change what is written, and options that are only for two texts."""


@dataclass(frozen=True)
class MineOptions(TwoTextsOptions, PairCut, RayOptions, BadLineOptions):
    """Options of ``mine``."""

    # Optional only in Python, where the pairs are returned if there is no output.
    output: PathLike | None = output_option(
        "File for the pairs: .tsv, .jsonl, .csv, .xlsx or .tmx; also s3://bucket/name.tsv. Or a"
        " folder, which gets one .tsv for each pair of files with equal names.",
        kind=str,
        is_required=True,
    )
    # Which pairs are kept, in addition to the options of ``PairCut``.
    calibration: PathLike | None = option(
        None,
        "Calibration from interlingua calibrate, for the probability of each pair.",
        group=FILTERING,
        kind=Path,
        reads="file",
    )
    checks: Names = option(
        ",".join(CHEAP),
        "Checks to measure; each is in .jsonl, and a possible column of --columns: all (that can"
        f" run), none, or some of {', '.join(CHECKS)}, package.module:Class.",
        group=FILTERING,
        flags=("--check",),
    )
    drop: Names | Mapping[str, float | None] | None = option(
        None,
        "Checks that reject pairs, optionally with a limit: length=2,hub; or none. By default"
        f" {DEFAULT_CHECKS}; if --check is none, no check rejects pairs by default.",
        group=FILTERING,
    )
    # Further outputs.
    columns: Names | None = option(
        None,
        "Columns of .tsv, .csv and .xlsx, separated by commas: score, source, target,"
        " probability, cosine, source_origins, names of checks and others.",
        group=OUTPUT,
    )
    report: PathLike | None = option(
        None, "HTML page with the best, borderline and rejected pairs.", group=OUTPUT
    )
    gold: PathLike | None = option(
        None,
        "File of right pairs, id TAB id or text TAB text; prints precision and F1.",
        group=OUTPUT,
        kind=Path,
        reads="file",
    )
    # How pairs are searched, and how the work is cut.
    laser: bool = option(
        False,
        "Mine exactly as LASER's mine_bitexts.py does, without checks and without --precision.",
        group=SEARCH,
    )
    approximate: str | None = option(
        None,
        "Search approximately, with FAISS (ivf, hnsw) or compressed vectors (binary, int8), and"
        " print the recall. A number after a colon, as in ivf:64, sets the effort.",
        group=SEARCH,
    )
    shard: str | None = option(
        None,
        "Do one part of the work: 2/8 is the second of eight parts. A run without --shard joins"
        " the parts. Needs --work.",
    )
    plan: bool = option(
        False, "Print the estimated time, disk space and memory, and do nothing else."
    )

    @property
    def is_each(self) -> bool:
        """True if each pair of files is mined separately, to its own file in a folder."""
        output = self.output
        if output is None or is_remote(output) or not is_output_folder(output):
            return False
        return any(map(is_folder_or_pattern, (self.source, self.target)))

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
    """Find translation pairs in two texts that are not aligned.

    The method is margin-based mining (Artetxe and Schwenk 2019). Each side is a file, a folder or
    pattern of files, or a list of sentences; equal sentences count once, blank ones not at all.
    All files of a side are one text, unless the output is a folder: then files of equal names are
    mined with each other. If ``checks`` is empty, no
    check is measured, and no check rejects pairs unless ``drop`` names it. If there is an
    output, an interrupted run resumes. With two lists and neither an output nor a work folder, no
    file is written.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The pairs, best first. If there is an output, they are written to it, and the list is empty.

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

    if options.is_each:
        return _mine_each(options, progress)
    with contextlib.ExitStack() as stack:
        folder = mining_folder(options)
        check_mine(options)
        if folder is None and not is_in_memory(options):
            # Without an output the pairs are returned in memory, and the run cannot be resumed.
            temporary = tempfile.TemporaryDirectory(prefix="interlingua-mine-")
            folder = Path(stack.enter_context(temporary))
        both = two_texts(options, folder, elsewhere=options.ray is not None)
        if options.plan:
            return MinedPairs(lines=plan_mining(options, *both[:2], folder))
        return mine_texts(options, *both, folder, progress=progress)


def _mine_each(options: MineOptions, progress: Progress) -> MinedPairs:
    """Mine each pair of files that belong together by their names, to an output for each pair.

    Raises:
        ConfigError: an option is set that is only for two texts.
        DataError: files can't be paired by their names.
    """
    from interlingua.mining.filter import no_cut_line
    from interlingua.mining.mine import MinedPairs
    from interlingua.mining.pipeline import left_out_lines
    from interlingua.verbs.parts.models import open_model
    from interlingua.verbs.parts.output_folder import OutputFolder
    from interlingua.verbs.parts.sources import two_texts

    for name in ("gold", "report", "shard", "source_vectors", "target_vectors"):
        if getattr(options, name) is not None:
            option = name.replace("_", "-")
            raise ConfigError(f"--{option} requires one pair of texts; pass a file as --output")
    jobs, left_out = _jobs_of_files(options)
    # All options are checked before the first file is opened.
    for job in jobs:
        check_mine(job.options)
    checks = _check_plan(options)
    # The model is loaded once, when a finished output is compared or the first two files are read.
    opened = functools.cache(lambda: open_model(options, elsewhere=options.ray is not None))

    def mine_one(one: MineOptions) -> list[str]:
        folder = mining_folder(one)
        both = two_texts(one, folder, elsewhere=one.ray is not None, opened=opened)
        if one.plan:
            return plan_mining(one, *both[:2], folder)
        return mine_texts(one, *both, folder, progress=progress).lines

    found = MinedPairs(lines=left_out_lines(left_out))
    outputs = OutputFolder(
        options,
        journal=_JOURNAL,
        ignored=_NOT_SETTINGS,
        word="mined",
        lines=found.lines,
        failures=found.failures,
        model=lambda: opened()[1],
        # The checks of ``all`` depend on the installed packages.
        facts={"measured": list(checks.columns)},
        common=[
            no_cut_line("interlingua calibrate"),
            *checks.lines(),
            *_columns_line(options, checks, "tsv"),
        ],
    )
    if options.plan:
        for job in jobs:
            with outputs.noting_failure():
                outputs.report(job.label, mine_one(job.options))
    else:
        outputs.run(jobs, mine_one)
    outputs.report_all(len(jobs))
    return found


def _jobs_of_files(options: MineOptions) -> tuple[list[OutputJob], list[str]]:
    """Return a job for each pair of matching files, and why the other files are left out.

    Raises:
        ConfigError: a side is in memory, or an output is also an input.
        DataError: files can't be paired by their names.
    """
    from interlingua.verbs.parts.output_folder import OutputJob
    from interlingua.verbs.parts.sources import is_local
    from interlingua.verbs.parts.text_sides import (
        left_out_reasons,
        list_sides_of_text,
        pair_files_by_name,
    )

    source: Any = options.source
    target: Any = options.target
    if not all(text is None or is_local(text) for text in (source, target)):
        raise ConfigError(
            "a folder as --output requires both sides to be files on this machine; pass a file as"
            " --output"
        )
    given = (options.source_language, options.target_language)
    one, others, left_out = list_sides_of_text(source, target, given, split=options.split)
    folder = Path(os.fspath(options.output or ""))
    jobs = []
    for pair in pair_files_by_name(one, others, left_out):
        # Each pair of files has its own work folder.
        work = None
        if options.work is not None:
            work = Path(options.work) / pair.label
        made = replace(
            options,
            source=pair.source,
            target=pair.target,
            source_language=pair.languages[0] or None,
            target_language=pair.languages[1] or None,
            output=folder / f"{pair.label}.tsv",
            work=work,
        )
        jobs.append(OutputJob(pair.label, made, (pair.source, pair.target)))
    inputs = [path for job in jobs for path in job.inputs]
    keep_inputs([job.options.output for job in jobs], inputs)
    return jobs, left_out_reasons(left_out)


def is_in_memory(options: TwoTextsOptions) -> bool:
    """Return whether both sides are lists of sentences, so that nothing is read from files."""
    sides = (options.source, options.target)
    return not any(isinstance(side, str | os.PathLike) for side in sides)


def mining_folder(options: MineOptions) -> Path | None:
    """Return the work folder of the options, or one next to the output; None if there is neither.

    For a remote output, the folder is in the working directory.
    """
    return as_path(options.work) or _next_to_output(options, ".work")


def _next_to_output(options: MineOptions, ending: str) -> Path | None:
    """Return a file next to the output, or in the working directory if the output is remote."""
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
            "--shard requires --work; pass a folder that all shards share, or folders whose"
            " files are copied to one folder afterwards"
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
    # A plan writes nothing: bad lines are handled as in a run, but not written to a file.
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
    """Find the pairs of two sides that were already read; see ``run_mine``.

    Args:
        options: of the verb.
        source: the source side.
        target: the target side.
        model: identity of the model and its settings.
        folder: the work folder; None = both sides are in memory, and no file is written.
        progress: receives the progress of the work.
    """
    from interlingua.mining.filter import check_output
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
    # Without an output, the folder belongs to the user, or is a temporary one that the caller
    # removes. In both cases it is kept here.
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
        found.lines += [*bad.lines(), *checks.lines()]
        if options.output is not None:
            form = check_output(options.output, None, checks)
            found.lines += _columns_line(options, checks, form)
        return found


def _columns_line(options: MineOptions, checks: CheckPlan, format: str) -> list[str]:
    """Return a line if the requested checks are no columns of the output, otherwise none."""
    from interlingua.mining.writer import columns_of_checks_line

    # The default checks were not requested.
    if join_names(options.checks) == ",".join(CHEAP):
        return []
    return columns_of_checks_line(format, listed(options.columns), checks.requested)


mine = function_of(MineOptions, run_mine, "mine")
