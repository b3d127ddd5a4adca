from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest

from interlingua.analysis import plots


def parsed(html):
    return ET.fromstring(f"<div>{html}</div>")


def test_a_scale():
    dots = [plots.Dot(0.5, "half", "m0", 0.25, 0.75), plots.Dot(9, "far & out", "ideal")]
    html = plots.scale(dots, low=0, high=1)
    parsed(html)
    assert 'class="m0" style="left:50.00%"' in html
    assert 'class="m0" style="left:25.00%;width:50.00%"' in html
    assert 'class="ideal" style="left:100.00%" title="far &amp; out"' in html
    assert plots.scale([plots.Dot(1, "", "m0")], low=1, high=1)


def test_bars():
    html = plots.bars([("A & B", [(0.5, "50"), (-1.0, "-1")])], highest=2)
    parsed(html)
    assert re.findall(r"width:([\d.]+)%", html) == ["25.0", "0.0"]
    assert "A &amp; B" in html


def test_stacks():
    html = plots.stacked([("m", {"same_sentence": 0.25, "other": 0.75})])
    parsed(html)
    assert re.findall(r"width:([\d.]+)%", html) == ["25.00", "75.00"]
    assert "same sentence" in html


def test_a_heat_map():
    html = plots.heat_map({"a-b": 1.0, "b-a": 0.25}, ["a", "b"], title="t")
    tree = parsed(html)
    assert len(tree.findall(".//rect")) == 2
    assert [t.text for t in tree.findall(".//title")] == ["a to b: 100.0 %", "b to a: 25.0 %"]


@pytest.mark.parametrize(("start", "end", "inner"), [(0, 3, "The"), (3, 7, "cat"), (8, 9, "&lt;")])
def test_marked_text(start, end, inner):
    html = plots.marked_text("The cat <", start, end, "query")
    parsed(html)
    assert f'<mark class="query">{inner}</mark>' in html


def test_long_texts_are_cut_around_the_mark():
    html = plots.marked_text("a" * 50 + "X" + "b" * 50, 50, 51, "query", around=3)
    assert html == '…aaa<mark class="query">X</mark>bbb…'


def test_attention():
    html = plots.attention([("<s>", 0.9, True), ("big", 0.08, False), ("small", 0.02, False)])
    parsed(html)
    assert [float(w) for w in re.findall(r"--w:([\d.]+)", html)] == [1.0, 1.0, 0.25]
    assert "&lt;s&gt;" in html
    assert html.count("special") == 1
    assert plots.attention([("<s>", 1.0, True)])


def test_heads():
    html = plots.heads(["<s>", "a"], [[0.9, 0.1], [0.1, 0.9]])
    assert len(parsed(html).findall(".//td")) == 4
