"""Jobs of verbs, for tests that look below a verb: each option that is not given is the verb's
default."""

from __future__ import annotations

from dataclasses import fields

from interlingua.config.options import filled
from interlingua.encoder.files.embed_files import EmbedJob
from interlingua.mining.mine import MineJob
from interlingua.mining.score import ScoreJob
from interlingua.verbs import mine
from interlingua.verbs.embed import EmbedOptions
from interlingua.verbs.mine import MineOptions
from interlingua.verbs.score import ScoreOptions


def mine_job(*, work=None, check="", drop="", **options) -> MineJob:
    """A job that, unlike the verb's, checks nothing unless a test names checks."""
    given = MineOptions("mini", "a.de", "a.en", checks=check, drop=drop, **options)
    return mine.mine_job(given, work)


def embed_job(**options) -> EmbedJob:
    return filled(EmbedJob, EmbedOptions("mini", options["files"], output=""), **options)


def score_job(**options) -> ScoreJob:
    own = {field.name for field in fields(ScoreOptions)}
    given = {name: value for name, value in options.items() if name in own}
    made = {name: value for name, value in options.items() if name not in own}
    return filled(ScoreJob, ScoreOptions("mini", "a.tsv", **given), **made)
