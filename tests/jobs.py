"""Runs of verbs, for tests that look below a verb: each option that is not given is the verb's
default."""

from __future__ import annotations

from dataclasses import fields

from interlingua.encoder.embed_files import EmbedJob
from interlingua.mining.score import ScoreJob
from interlingua.options import filled
from interlingua.runtime.progress import SILENT
from interlingua.verbs import mine
from interlingua.verbs.embed import EmbedOptions
from interlingua.verbs.mine import MineOptions
from interlingua.verbs.score import ScoreOptions


class MineRun:
    """Mining with the options of the verb, of sides that are read already."""

    def __init__(self, options):
        self.options = options
        self.folder = mine.work_folder(options)
        mine.check_mine(options)

    def run(self, source, target, model, *, progress=SILENT):
        return mine.mine_texts(self.options, source, target, model, self.folder, progress)

    def plan(self, source, target, model):
        return mine.plan_mining(self.options, source, target, self.folder)


def mine_job(*, check="", drop="", **options) -> MineRun:
    """Mining that, unlike the verb, checks nothing unless a test names checks."""
    return MineRun(MineOptions("mini", "a.de", "a.en", checks=check, drop=drop, **options))


def embed_job(**options) -> EmbedJob:
    return filled(EmbedJob, EmbedOptions("mini", options["files"], output=""), **options)


def score_job(**options) -> ScoreJob:
    own = {field.name for field in fields(ScoreOptions)}
    given = {name: value for name, value in options.items() if name in own}
    made = {name: value for name, value in options.items() if name not in own}
    return filled(ScoreJob, ScoreOptions("mini", "a.tsv", **given), **made)
