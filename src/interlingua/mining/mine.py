"""Mined pairs: found, filtered, and written or returned.

``mine_pairs`` finds pairs (``pipeline.mine_files``), filters and writes them. If requested, it
compares them with gold pairs and shows them on a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from interlingua.errors import ConfigError, count_of
from interlingua.mining.calibration.calibration import Calibration, load_calibration
from interlingua.mining.checks import Checker, CheckPlan
from interlingua.mining.defaults import CHEAP, DEFAULT_CHECKS
from interlingua.mining.filter import (
    SHOWN_PRECISIONS,
    Written,
    cut_line,
    interval_in_words,
    no_cut_line,
    rejected_in_words,
    share_line,
    write_mined,
)
from interlingua.mining.gold import judge_pairs
from interlingua.mining.page import write_mining_page
from interlingua.mining.pair_cut import PairCut
from interlingua.mining.pair_search import PairSearch
from interlingua.mining.pipeline import (
    Mined,
    TextFile,
    mine_files,
)
from interlingua.report.rows import RowList
from interlingua.runtime.progress import SILENT, Progress
from interlingua.runtime.workers import Workers
from interlingua.storage.files import PathLike
from interlingua.storage.remote import check_writable, destination, keep_inputs
from interlingua.storage.workspace import Workspace

_DEFAULTS = {
    "precision": (None,),
    "check": ("", ",".join(CHEAP)),
    "drop": ("", "none", DEFAULT_CHECKS),
    "glossary": (None,),
}
"""Default values of options that LASER's script does not have."""


class MinedPair(NamedTuple):
    """A pair that was found.

    Attributes:
        score: margin, or cosine.
        source: the text.
        target: the text.
        source_row: number, from 0, of the first source that is this text.
        target_row: number of the first target that is this text.
    """

    score: float
    source: str
    target: str
    source_row: int
    target_row: int


class MinedPairs(RowList[MinedPair]):
    """The pairs of a run, best first; none if they were written to a file.

    Args:
        pairs: those that are kept.
        lines: the report of the run.
        columns: all known values of each pair: cosine, origins, checks, probability.
        written: counts, cuts and samples.

    Attributes:
        failures: files of folders that could not be mined, with the reasons.
    """

    columns_if_empty = MinedPair._fields

    def __init__(
        self,
        pairs: Iterable[MinedPair] = (),
        *,
        lines: Sequence[str] = (),
        columns: Sequence[Mapping[str, Any]] = (),
        written: Written | None = None,
    ) -> None:
        super().__init__(pairs)
        self.lines = list(lines)
        self.columns = columns
        self.written = written
        self.failures: list[str] = []

    def records(self) -> list[dict[str, Any]]:
        """Return the pairs with all that is known of them."""
        if len(self.columns) != len(self):
            return super().records()
        return [
            {**pair._asdict(), **columns} for pair, columns in zip(self, self.columns, strict=True)
        ]


def parse_shard(text: str) -> tuple[int, int]:
    """Parse ``2/8`` into two numbers.

    Raises:
        ConfigError: it is not a part of a whole.
    """
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(
            f"--shard: expected a number and the number of shards, such as 2/8, found {text!r}"
        )
    return int(found[1]), int(found[2])


def refuse_unlike_laser(**values: PathLike | float | None) -> None:
    """Refuse options that LASER's script does not know.

    Args:
        values: by the name of the option.

    Raises:
        ConfigError: one of them is set.
    """
    for name, value in values.items():
        if value not in _DEFAULTS[name]:
            raise ConfigError(
                f"--laser and --{name} cannot be combined, because LASER's script has no"
                f" --{name}; remove one"
            )


def mine_pairs(
    source: TextFile,
    target: TextFile,
    config: PairSearch,
    cut: PairCut,
    checks: CheckPlan,
    work: Workspace | None = None,
    *,
    model: str,
    calibration: Calibration | None = None,
    gold: Sequence[tuple[str, str]] | None = None,
    output: PathLike | None = None,
    columns: Sequence[str] | None = None,
    report: PathLike | None = None,
    shard: tuple[int, int] | None = None,
    workers: Workers | None = None,
    progress: Progress = SILENT,
) -> MinedPairs:
    """Find the pairs of two sides, and write them or return them.

    Args:
        source: the one side.
        target: the other.
        config: how pairs are found.
        cut: which pairs are kept.
        checks: that measure and reject pairs.
        work: the work folder; None = both sides are in memory, and no file is written besides the
            output.
        model: identity of the model and its settings.
        calibration: gives probabilities.
        gold: right pairs, to measure precision and recall.
        output: file of the pairs, which requires a work folder; None = the pairs are returned.
        columns: of the output.
        report: file of the page.
        shard: see ``mine_files``.
        workers: who embeds and searches; this process by default.
        progress: receives the progress of the work.
    """
    languages = source.language, target.language
    seen = work.path / "seen" if work is not None else None
    # If a check of single pairs rejects a pair, other pairs may use its texts in the retrieval.
    checker = Checker(checks, languages, seen)
    mined = mine_files(
        source,
        target,
        config,
        work,
        model=model,
        shard=shard,
        workers=workers,
        refuses=checker.refuses if checks.limits else None,
        progress=progress,
    )
    # This shard has finished its part, and there are no pairs until all other shards have finished.
    if mined is None and work is not None:
        return MinedPairs(lines=[shard_state(work.path, shard or (1, 1))])
    assert mined is not None
    with _local_file(output, work) as path:
        written = write_mined(
            mined,
            path,
            cut,
            checks,
            languages=languages,
            columns=columns,
            calibration=calibration,
            folder=seen,
            progress=progress,
        )
    lines = [*mined.notes, *mining_summary(output, mined, written)]
    if calibration is not None:
        lines += written.advice
    if gold is not None:
        lines += judge_pairs(mined, gold, written.threshold)
    if report is not None and output is not None:
        with _local_file(report, work) as path:
            assert path is not None
            write_mining_page(path, mined, written, output, languages, config.scoring, calibration)
        lines.append(f"{report}: best, borderline and rejected pairs")
    return _kept_pairs(written, lines)


def _kept_pairs(written: Written, lines: list[str]) -> MinedPairs:
    """Return the pairs that are kept and were not written to a file, with the report."""
    pairs = [
        MinedPair(row.columns["score"], row.pair.source, row.pair.target, *row.lines)
        for row in written.kept
    ]
    columns = [row.values for row in written.kept]
    return MinedPairs(pairs, lines=lines, columns=columns, written=written)


def _local_file(
    path: PathLike | None, work: Workspace | None
) -> AbstractContextManager[Path | None]:
    """Return a context that gives a local file for an output, and sends the file when it ends."""
    if path is None or work is None:
        return nullcontext()
    return destination(path, work.path / "made")


def check_places(
    outputs: Sequence[PathLike | None],
    sides: tuple[TextFile, TextFile],
    others: Sequence[PathLike | None],
) -> None:
    """Refuse outputs that can't be written, or would replace a file that is read.

    Args:
        outputs: the pairs and the page.
        sides: source and target.
        others: further files that are read.
    """
    for output in outputs:
        if output is not None:
            check_writable(output)
    read: list[PathLike | None] = [*others]
    for file in sides:
        read += [file.path, *file.parts, *file.vectors]
    keep_inputs(outputs, read)


def calibration_for(
    path: Path, languages: tuple[str, str], model: str, config: PairSearch
) -> Calibration:
    """Load the calibration of a language pair, made with this model and scoring."""
    # The model of known vectors is unknown, so that a calibration of any model is accepted.
    known_model = None
    if not model.startswith("vectors of "):
        known_model = model
    return load_calibration(path, *languages, model=known_model, scoring=config.scoring)


def shard_state(folder: Path, shard: tuple[int, int]) -> str:
    """Return the remaining work after a shard."""
    # A shard has a folder of neighbors only if it has searched; before all vectors exist, it only
    # embeds.
    searched = folder.glob(f"neighbors-*/{shard[0]}of{shard[1]}")
    if any(searched):
        return (
            f"shard {shard[0]}/{shard[1]} is finished; after all shards are finished, run the"
            " command without --shard to join them"
        )
    return (
        f"shard {shard[0]}/{shard[1]}: its vectors are finished, those of other shards are not;"
        " run the same command again after they are finished"
    )


def mining_summary(path: PathLike | None, mined: Mined, written: Written) -> list[str]:
    """Return lines on the written and the omitted pairs."""
    lines = [f"{path or 'mined'}: {count_of(written.pairs, 'pairs')} of {len(mined.pairs):,} found"]
    if written.rejected:
        lines[0] += rejected_in_words(written.rejected)
    if written.threshold is not None:
        lines.append(f"threshold {written.threshold:.4f}")
        if written.interval is not None and np.isfinite(written.threshold):
            lines[-1] += f", {interval_in_words(written.interval)}"
    elif len(mined.pairs):
        lines.append(no_cut_line("interlingua calibrate"))
    if written.prior is not None:
        where = f"the {written.accepted:,} pairs that no check rejects"
        lines.append(share_line(where, written.prior, written.share_interval, written.accepted))
        for cut in written.cuts:
            if cut.precision in SHOWN_PRECISIONS:
                line = cut_line(cut, written.cut_intervals.get(cut.precision))
                if cut.pairs:
                    kept = cut.right / max(written.expected, 1e-9)
                    line += f"; keeps {kept:.0%} of the expected translations"
                lines.append(line)
    return lines
