from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest
from markupsafe import escape

from interlingua.analysis.agnosticism import Agnosticism
from interlingua.analysis.attention_entropy import AttentionEntropy
from interlingua.analysis.page import DRAWN, TABLE_9, mark, render_analyses, write_analysis_page
from interlingua.analysis.run import run_analyses
from interlingua.analysis.token_matching import TokenMatching
from interlingua.analysis.uniform_pooling import UniformPooling
from interlingua.analysis.word_order import WordOrder
from interlingua.config.registry import ANALYSES
from interlingua.encoder.backends.own import OwnEncoder
from tests.analysis.test_record import analysis

ALL = [
    Agnosticism(k=2),
    TokenMatching(),
    AttentionEntropy(),
    WordOrder(),
    UniformPooling(suite=("flores_p_at_1",)),
]
VOID = {"meta", "link", "br", "img", "input"}


class Balanced(HTMLParser):
    """Parser that fails at a tag that closes another one than was opened."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_self_contained(folder, framed_encoder, tmp_path):
    both = [
        run_analyses(OwnEncoder(framed_encoder, name=name), ALL, folder)
        for name in ("first", "sec/ond")
    ]
    path = write_analysis_page(both, tmp_path)
    assert path.name == "analysis-first-sec_ond.html"
    html = path.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(html)
    assert parser.open == []
    assert re.findall(r"(?:src|href)=|url\(|@import|https?://|<script", html) == []
    assert "prefers-color-scheme: dark" in html
    assert "width=device-width" in html
    assert html.count("<section>") == len(ALL)
    assert "$" not in html.replace("interlingua analyse", "")


def test_what_one_model_lacks_stands_alone():
    extra = analysis("b", task="word_order", dataset="")
    html = render_analyses([[analysis("a", task="x")], [analysis("b", task="x"), extra]])
    assert html.count("<section>") == 2
    assert "a and b" in html


def test_chosen_analyses_have_a_page_of_their_own(tmp_path):
    found = [[analysis("a", task="x")]]
    write_analysis_page(found, tmp_path)
    write_analysis_page(found, tmp_path, only=["word_order"])
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "analysis-a-word_order.html",
        "analysis-a.html",
    ]


def test_one_model():
    assert "<title>a: analysis</title>" in render_analyses([[analysis("a", task="x")]])


@pytest.fixture
def made(folder, framed_encoder):
    return run_analyses(OwnEncoder(framed_encoder, name="tiny <1>"), ALL, folder)


def test_every_analysis_has_its_section(made):
    assert list(DRAWN) == list(ANALYSES)
    for one in made:
        html = render_analyses([[one]])
        assert "&lt;1&gt;" in html or "tiny" not in html
        assert "tiny <1>" not in html
        assert html.count("<div") == html.count("</div>")
        for measure in one.measures:
            assert measure.title in html
            assert escape(measure.definition[1:]) in html


def test_the_papers_numbers_stand_beside(made):
    panel, tokens, attention, order, _ = (render_analyses([[one]]) for one in made)
    assert "MEXMA (paper)" in tokens
    assert "paper: MEXMA 2.5, LaBSE 3.4" in attention
    assert "LASER 0.9" in order
    assert "P@1 among the lines of all languages" in panel
    assert all(sum(shares) == pytest.approx(1, abs=2e-4) for shares in TABLE_9.values())


def test_a_map_of_each_head_and_of_their_mean(folder, framed_encoder):
    options = AttentionEntropy(every_token=True, examples=1)
    (one,) = run_analyses(OwnEncoder(framed_encoder, name="tiny"), [options], folder)
    html = render_analyses([[one]])
    heads = len(one.examples[0]["maps"])
    # One of the mean over heads and one of each head, for each language of the line.
    assert html.count('class="heat map named"') == len(one.examples)
    assert html.count('class="heat map"') == heads * len(one.examples)
    weight = np.mean([head[0][1] for head in one.examples[0]["maps"]])
    texts = [token["text"] for token in one.examples[0]["tokens"]]
    assert f"{escape(texts[0])} to {escape(texts[1])}: {100 * weight:.1f} %" in html


def test_a_line_of_two_models_stands_next_to_itself(made):
    html = render_analyses([[made[2]], [made[2]]])
    titles = re.findall(r"<small>tiny &lt;1&gt; · (\w+ · line \d)</small>", html)
    assert titles[::2] == titles[1::2]
    assert len(set(titles)) == len(titles) / 2 == len(made[2].examples)


def test_two_models_side_by_side(made):
    html = render_analyses([[made[0]], [made[0]]])
    assert html.count('class="value v1"') == len(made[0].measures)
    assert html.count('class="verdict') == len(made[0].measures)
    assert html.count('class="m1"') > len(made[0].measures)


@pytest.mark.parametrize(("start", "end", "inner"), [(0, 3, "The"), (3, 7, "cat"), (8, 9, "<")])
def test_marked_text(start, end, inner):
    assert mark("The cat <", start, end, "query").marked == inner


def test_long_texts_are_cut_around_the_mark():
    found = mark("a" * 50 + "X" + "b" * 50, 50, 51, "query", around=3)
    assert (found.before, found.marked, found.after) == ("…aaa", "X", "bbb…")
