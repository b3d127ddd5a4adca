from __future__ import annotations

from html import escape

import pytest

from interlingua.analysis.agnosticism import Agnosticism
from interlingua.analysis.attention_entropy import AttentionEntropy
from interlingua.analysis.run import analyse
from interlingua.analysis.sections import DRAWN, TABLE_9, section
from interlingua.analysis.token_matching import TokenMatching
from interlingua.analysis.uniform_pooling import UniformPooling
from interlingua.analysis.word_order import WordOrder
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.registry import ANALYSES

ALL = [Agnosticism(k=2), TokenMatching(), AttentionEntropy(), WordOrder(), UniformPooling(suite=("flores_p_at_1",))]


@pytest.fixture
def made(folder, framed_encoder):
    return analyse(OwnEncoder(framed_encoder, name="tiny <1>"), ALL, folder)


def test_every_analysis_has_its_section(made):
    assert list(DRAWN) == list(ANALYSES)
    for one in made:
        html = section([one])
        assert "&lt;1&gt;" in html or "tiny" not in html
        assert "tiny <1>" not in html
        assert html.count("<div") == html.count("</div>")
        for measure in one.measures:
            assert measure.title in html
            assert escape(measure.definition[1:]) in html


def test_the_papers_numbers_stand_beside(made):
    panel, tokens, attention, order, _ = (section([one]) for one in made)
    assert "MEXMA (paper)" in tokens
    assert "paper: MEXMA 2.5, LaBSE 3.4" in attention
    assert "LASER 0.9" in order
    assert "P@1 among the lines of all languages" in panel
    assert all(sum(shares) == pytest.approx(1, abs=2e-4) for shares in TABLE_9.values())


def test_two_models_side_by_side(made):
    html = section([made[0], made[0]])
    assert html.count('class="value v1"') == len(made[0].measures)
    assert html.count('class="verdict') == len(made[0].measures)
    assert html.count('class="m1"') > len(made[0].measures)
