from __future__ import annotations

from dataclasses import fields
from typing import get_args

import pytest

from interlingua.alignment.sentence_alignment import AlignConfig
from interlingua.config.options import filled
from interlingua.functional.margin import MARGINS
from interlingua.mining import defaults
from interlingua.mining.pair_search import PairSearch
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
    options.check_search()
    default = PairSearch()
    names = [field.name for field in fields(PairSearch)]
    assert [getattr(options, name) for name in names] == [getattr(default, name) for name in names]
    assert (options.k, options.memory_bytes) == (defaults.K, 4 * 2**30)
    assert (options.approximation, options.is_like_laser) == (None, False)
    assert options.scoring == default.scoring


def test_the_choices_of_options_are_those_of_the_functions():
    assert get_args(defaults.Margin) == MARGINS


@pytest.mark.parametrize("name", [field.name for field in fields(MineOptions)])
def test_one_class_declares_each_option_of_mine(name):
    """Check the classes that make up the options, and all dataclasses of mining."""
    declaring = [one for one in MineOptions.__mro__ if name in vars(one).get("__annotations__", {})]
    assert len(declaring) == 1


def test_scores_and_links_by_options_are_those_by_default():
    assert filled(ScoreConfig, ScoreOptions("mini", "a.tsv")) == ScoreConfig()
    assert filled(AlignConfig, AlignOptions("mini", "a", "b")) == AlignConfig()


@pytest.mark.parametrize(
    ("config", "options"), [(PairSearch, MineOptions), (ScoreConfig, ScoreOptions)]
)
def test_no_default_of_a_verb_is_stated_a_second_time(config, options):
    own = {field.name: field.default for field in fields(options)}
    for field in fields(config):
        if field.name in own and field.name not in ("memory", "device"):
            assert field.default is own[field.name], field.name
