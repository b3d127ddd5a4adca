"""Runs of verbs, for tests that look below a verb: each option that is not given is the verb's
default."""

from __future__ import annotations

from interlingua.encoder.files.embed_files import embed_files, vector_output
from interlingua.runtime.progress import SILENT
from interlingua.verbs import align, calibrate, mine, score
from interlingua.verbs.align import AlignOptions
from interlingua.verbs.calibrate import CalibrateOptions
from interlingua.verbs.mine import MineOptions
from interlingua.verbs.score import ScoreOptions


class MineRun:
    """Mining with the options of the verb, of sides that are read already."""

    def __init__(self, options):
        self.options = options
        self.folder = mine.mining_folder(options)
        mine.check_mine(options)

    def run(self, source, target, model, *, progress=SILENT):
        return mine.mine_texts(self.options, source, target, model, self.folder, progress)

    def plan(self, source, target, model):
        return mine.plan_mining(self.options, source, target, self.folder)


def mine_job(*, check="", drop="", **options) -> MineRun:
    """Build a mining job without checks unless a test names them, unlike the verb."""
    return MineRun(MineOptions("mini", "a.de", "a.en", checks=check, drop=drop, **options))


def calibrated(source, target, model="m", **options):
    """Return the calibration of sides that were read already."""
    given = CalibrateOptions("mini", "a.de", "a.en", **options)
    return calibrate.calibrate_texts(given, source, target, model)


def embedded(encode, files, output, *, model="m", **options):
    """Return the report of embedding files."""
    return embed_files(encode, vector_output(files, output), model=model, **options)


def aligned(encode, *, model="m", **options):
    """Return the links of documents in files."""
    given = AlignOptions("mini", **options)
    return align.align_files(given, encode, model)


class ScoreRun:
    """Scoring of a file, or of pairs, with the options of the verb."""

    def __init__(self, options):
        self.options = options
        score.check_score(options)

    def open(self):
        return score.open_bitext(self.options)

    def run(self, stream, encode, *, stdout=None, progress=SILENT):
        return score.write_scored(
            self.options, stream, encode, "model", stdout=stdout, progress=progress
        )


def score_job(bitext="a.tsv", *, drop="none", **options) -> ScoreRun:
    """Build a scoring job that rejects nothing unless a test names checks, unlike the verb."""
    return ScoreRun(ScoreOptions("mini", bitext, drop=drop, **options))
