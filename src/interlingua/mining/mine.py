"""The whole of ``interlingua mine``: a request that is checked first, then done and reported.

The request is checked before anything is loaded. The steps that take time keep their results in a
work folder (``pipeline.mine_files``). Then the pairs are filtered and written, and at last compared
with gold pairs and shown on a page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from interlingua.config.options import Options, filled
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.encoder.encoder import choose_device
from interlingua.errors import ConfigError
from interlingua.mining.calibration.calibration import Calibration, load_calibration
from interlingua.mining.checks import Checker, CheckPlan
from interlingua.mining.defaults import CHEAP, DROPPED
from interlingua.mining.documents import DocumentMatch
from interlingua.mining.filter import (
    Selection,
    Written,
    check_output,
    interval_in_words,
    rejected_in_words,
    write_mined,
)
from interlingua.mining.gold import judged, read_gold
from interlingua.mining.page import write_page
from interlingua.mining.pipeline import (
    MineConfig,
    Mined,
    TextFile,
    mine_files,
    with_lines,
)
from interlingua.mining.plan import estimate
from interlingua.mining.work_folder import at_work
from interlingua.report.rows import RowList
from interlingua.retrieval.topk.approximate import Approximate
from interlingua.retrieval.topk.tiles import tiles_for
from interlingua.runtime.progress import Progress
from interlingua.runtime.workers import Workers, connected
from interlingua.storage.files import PathLike
from interlingua.storage.remote import check_writable, destination, is_remote, keep_inputs, name_of
from interlingua.storage.workspace import Workspace

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SHOWN_PRECISIONS = (0.5, 0.8, 0.9, 0.95, 0.99)
"""Precisions that are printed."""
_DEFAULTS = {"precision": (None,), "check": ("", ",".join(CHEAP)), "drop": ("", "none", DROPPED)}
"""Values of options that LASER's script knows nothing of, where they are not given."""


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
    """The pairs of a run, best first; none where they were written to a file.

    Args:
        pairs: those that are kept.
        lines: the report of the run.
        columns: of each pair all that is known of it: cosine, origins, checks, probability.
        written: counts, cuts and samples.
    """

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

    def records(self) -> list[dict[str, Any]]:
        """Return the pairs with all that is known of them."""
        if len(self.columns) != len(self):
            return super().records()
        return [
            {**pair._asdict(), **columns} for pair, columns in zip(self, self.columns, strict=True)
        ]


def parse_size(text: str | int) -> int:
    """Bytes of ``4GiB``, ``800M`` or ``1000000``; a number is in bytes.

    Raises:
        ConfigError: it is not a size.
    """
    text = str(text)
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if not found:
        raise ConfigError(f"not a size: {text!r}; give a number with a unit, e.g. 4GiB or 800MiB")
    size = int(float(found[1]) * UNITS[found[2].upper()])
    if size < 1:
        raise ConfigError(
            f"{text!r} leaves no memory to work in; give a size above 0, e.g. 4GiB or 800MiB"
        )
    return size


def parse_shard(text: str) -> tuple[int, int]:
    """``2/8`` as numbers.

    Raises:
        ConfigError: it is not a part of a whole.
    """
    found = re.fullmatch(r"(\d+)/(\d+)", text.strip())
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ConfigError(
            f"shard {text!r}: not a part of a whole; give which of how many, e.g. 2/8"
        )
    return int(found[1]), int(found[2])


def parsed_config(options: Options, approximate: str | None = None, **more: Any) -> MineConfig:
    """How pairs are found, by the options of a verb that have the names of ``MineConfig``.

    Args:
        options: of the verb, with ``documents``, ``memory`` and ``device`` as texts.
        approximate: see ``Approximate.parse``.
        more: fields that are not options.
    """
    given: Any = options
    match = None
    if given.documents:
        match = DocumentMatch.parse(given.documents)
    search = None
    if approximate:
        search = Approximate.parse(approximate)
    return filled(
        MineConfig,
        options,
        documents=match,
        approximate=search,
        memory=parse_size(given.memory),
        device=str(choose_device(given.device)),
        **more,
    )


def laser_selection(
    *, retrieval: str, threshold: float | None, **others: str | float | None
) -> Selection:
    """Which pairs are kept as LASER's script does it.

    Args:
        retrieval: see ``MineConfig``.
        threshold: least score.
        others: options that the script does not know, which must be left at their defaults.

    Raises:
        ConfigError: one of them is set.
    """
    for name, value in others.items():
        if value not in _DEFAULTS[name]:
            raise ConfigError(
                f"LASER's script knows no --{name}; leave out one of --laser and --{name}"
            )
    # The script looks at the threshold in this retrieval alone, and its own is 0.
    least = None
    if retrieval == "max":
        least = threshold or 0.0
    return Selection(threshold=least, checks=CheckPlan((), {}), like_laser=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class MineJob:
    """What ``interlingua mine`` does: how pairs are found, which are kept, and what is written.

    Without an output the pairs come back in memory, and ``work`` has to be given.
    """

    config: MineConfig
    selection: Selection
    output: PathLike | None = None
    calibration: Path | None = None
    columns: Sequence[str] | None = None
    report: PathLike | None = None
    gold: Path | None = None
    work: Path | None = None
    shard: str | None = None
    ray: str | None = None
    ray_cores: int
    on_error: str

    def __post_init__(self) -> None:
        if self.output is not None:
            check_output(self.output, self.columns, self.selection.checks)
        elif self.columns is not None or self.report is not None:
            raise ConfigError("columns and a report need an output, the file of the pairs")
        self._bad_lines()
        if self.calibration is None and (
            self.selection.precision is not None or "probability" in (self.columns or ())
        ):
            raise ConfigError(
                "a precision or a column of probabilities needs --calibration; make one with"
                " interlingua calibrate"
            )
        if self.shard is not None and self.work is None:
            raise ConfigError(
                "a shard needs --work, the folder that all shards share or that is copied together"
            )
        if self.shard is not None:
            parse_shard(self.shard)

    @property
    def folder(self) -> Path:
        """The work folder, of all that is made on the way.

        By default it is next to the output, or in the working directory where that is elsewhere.
        """
        folder = self.work or self._next_to_output(".work")
        if folder is None:
            raise ConfigError("mining without an output needs a work folder")
        return folder

    def _next_to_output(self, ending: str) -> Path | None:
        """A local file next to the output, or in the working directory where that is elsewhere."""
        if self.output is None:
            return None
        here = Path(self.output)
        if is_remote(self.output):
            here = Path(name_of(self.output))
        return here.with_name(f"{here.name}{ending}")

    def _bad_lines(self) -> BadLines:
        """What becomes of lines that can't be read, with the file for them."""
        return BadLines(self.on_error, self._next_to_output(".bad-lines.tsv"))

    def plan(self, source: TextFile, target: TextFile, model: str) -> list[str]:
        """What it will take, in lines."""
        self._check_places(source, target)
        # A plan writes nothing, so that bad lines are judged and go into no file.
        source, target = (side._replace(bad=BadLines(self.on_error)) for side in (source, target))
        source, target = (with_lines(side, self.folder) for side in (source, target))
        with connected(self.ray, cores=self.ray_cores) as workers:
            slots = (workers or Workers()).slots
            tiles = tiles_for(workers)
        expected = estimate(
            source, target, self.config, self.folder, least_tiles=tiles, at_once=slots
        )
        return expected.lines()

    def run(
        self, source: TextFile, target: TextFile, model: str, *, progress: Progress
    ) -> MinedPairs:
        """Find the pairs, and write them or give them back."""
        # All that can be refused is looked at before the folder is claimed and the work begins.
        self._check_places(source, target)
        languages = source.language, target.language
        calibration = self._calibration(languages, model)
        gold = read_gold(self.gold) if self.gold else None
        shard = parse_shard(self.shard) if self.shard else None
        with (
            at_work(self.folder, shard, keep=self.work is not None) as work,
            self._bad_lines() as bad,
        ):
            source, target = (
                with_lines(side._replace(bad=bad), self.folder) for side in (source, target)
            )
            found = self._run(source, target, model, work, calibration, gold, shard, progress)
            found.lines += bad.lines()
            return found

    def _run(
        self,
        source: TextFile,
        target: TextFile,
        model: str,
        work: Workspace,
        calibration: Calibration | None,
        gold: Sequence[tuple[str, str]] | None,
        shard: tuple[int, int] | None,
        progress: Progress,
    ) -> MinedPairs:
        """Mine, write the pairs, and gather what there is to tell."""
        languages = source.language, target.language
        with connected(self.ray, cores=self.ray_cores) as workers:
            checks = self.selection.checks
            folder = self.folder / "seen"
            # Pairs that will be rejected for what they are take no text from others in the
            # retrieval.
            refuses = None
            if checks.limits:
                refuses = Checker(checks, languages, folder).refuses
            mined = mine_files(
                source,
                target,
                self.config,
                work,
                model=model,
                shard=shard,
                workers=workers,
                refuses=refuses,
                progress=progress,
            )
        # A shard has done its part, and there are no pairs before all others have.
        if mined is None:
            return MinedPairs(lines=[shard_state(self.folder, shard or (1, 1))])
        # A local file, which goes to its remote place at the end.
        place: AbstractContextManager[Path | None] = nullcontext()
        if self.output is not None:
            place = destination(self.output, self.folder / "made")
        with place as path:
            written = write_mined(
                mined,
                path,
                self.selection,
                languages=languages,
                columns=self.columns,
                calibration=calibration,
                folder=folder,
                progress=progress,
            )
        lines = [*mined.notes, *summary(self.output, mined, written)]
        if calibration is not None:
            lines += written.advice
        if gold is not None:
            lines += judged(mined, gold, written.threshold)
        if self.report is not None and self.output is not None:
            with destination(self.report, self.folder / "made") as path:
                write_page(
                    path, mined, written, self.output, languages, self.config.scoring, calibration
                )
            lines.append(f"{self.report}: best, borderline and rejected pairs")
        pairs = [
            MinedPair(row.columns["score"], row.pair.source, row.pair.target, *row.lines)
            for row in written.kept
        ]
        return MinedPairs(
            pairs, lines=lines, columns=[row.values for row in written.kept], written=written
        )

    def _check_places(self, source: TextFile, target: TextFile) -> None:
        """Refuse outputs that can't be written, or would replace what is read."""
        for output in (self.output, self.report):
            if output is not None:
                check_writable(output)
        read: list[PathLike] = []
        for file in (source, target):
            read += [file.path, *file.parts, *file.vectors]
        keep_inputs((self.output, self.report), (*read, self.gold, self.calibration))

    def _calibration(self, languages: tuple[str, str], model: str) -> Calibration | None:
        """What the scores are worth, if a file of that is given."""
        if self.calibration is None:
            return None
        # Known vectors do not say which model they are of: then any calibration will do.
        known_model = None
        if not model.startswith("vectors of "):
            known_model = model
        return load_calibration(
            self.calibration, *languages, model=known_model, scoring=self.config.scoring
        )


def shard_state(folder: Path, shard: tuple[int, int]) -> str:
    """What is to be done after a shard."""
    # A shard has a folder of neighbors once all vectors were there; before, it embedded alone.
    searched = folder.glob(f"neighbors-*/{shard[0]}of{shard[1]}")
    if any(searched):
        return (
            f"shard {shard[0]}/{shard[1]} is done; when all are, run the command without --shard"
            " to join them"
        )
    return (
        f"shard {shard[0]}/{shard[1]}: its vectors are done, those of other shards are not; run"
        " the same command again when they are"
    )


def summary(path: PathLike | None, mined: Mined, written: Written) -> list[str]:
    """What was written and what was not."""
    lines = [f"{path or 'mined'}: {written.pairs:,} pairs of {len(mined.pairs):,} found"]
    if written.rejected:
        lines[0] += rejected_in_words(written.rejected)
    if written.threshold is not None:
        lines.append(f"threshold {written.threshold:.4f}")
        if written.interval is not None and np.isfinite(written.threshold):
            lines[-1] += f", {interval_in_words(written.interval)}"
    if written.prior is not None:
        right = written.prior * written.accepted
        lines.append(
            f"translations among the {written.accepted:,} pairs that no check rejects:"
            f" {written.prior:.1%}, about {right:,.0f}"
        )
        for cut in written.cuts:
            if cut.precision in SHOWN_PRECISIONS:
                lines.append(
                    f"precision {cut.precision:.2f}: {cut.pairs:,} pairs, from score"
                    f" {cut.score:.4f} on; {cut.right / max(right, 1e-9):.0%} of the translations"
                )
    return lines
