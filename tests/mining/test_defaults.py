from __future__ import annotations

from dataclasses import fields, replace

import pytest

from interlingua.alignment.sentence_alignment import AlignConfig
from interlingua.config.options import filled
from interlingua.mining import defaults
from interlingua.mining.mine import parsed_config
from interlingua.mining.pipeline import MineConfig
from interlingua.mining.score import ScoreConfig
from interlingua.verbs.align import AlignOptions
from interlingua.verbs.calibrate import CalibrateOptions
from interlingua.verbs.mine import MineOptions
from interlingua.verbs.score import ScoreOptions


@pytest.mark.parametrize(
    "options",
    [MineOptions("mini", "a", "b"), CalibrateOptions("mini", "a", "b", output="c.json")],
    ids=["mine", "calibrate"],
)
def test_a_search_by_options_is_the_search_by_default(options):
    found = parsed_config(options)
    assert replace(found, device="cpu") == MineConfig()
    assert (found.k, found.memory) == (defaults.K, 4 * 2**30)


def test_scores_and_links_by_options_are_those_by_default():
    assert filled(ScoreConfig, ScoreOptions("mini", "a.tsv")) == ScoreConfig()
    assert filled(AlignConfig, AlignOptions("mini", "a", "b")) == AlignConfig()


@pytest.mark.parametrize(
    ("config", "options"), [(MineConfig, MineOptions), (ScoreConfig, ScoreOptions)]
)
def test_no_default_of_a_verb_is_stated_a_second_time(config, options):
    own = {field.name: field.default for field in fields(options)}
    for field in fields(config):
        if field.name in own and field.name not in ("memory", "device"):
            assert field.default is own[field.name], field.name
