from __future__ import annotations

import re
import xml.etree.ElementTree as ET

from interlingua.analysis.page import Dot
from interlingua.report.pages import macro


def parsed(html):
    return ET.fromstring(f"<div>{html}</div>")


def test_a_scale():
    dots = [Dot(50, "half", "m0", 25, 50), Dot(100, "far & out", "ideal")]
    html = macro("scale")(dots)
    parsed(html)
    assert 'class="m0" style="left:50.00%"' in html
    assert 'class="m0" style="left:25.00%;width:50.00%"' in html
    assert 'class="ideal" style="left:100.00%" title="far &amp; out"' in html


def test_bars():
    html = macro("bars")([("A & B", [(0.5, "50"), (-1.0, "-1")])], 2)
    parsed(html)
    assert re.findall(r"width:([\d.]+)%", html) == ["25.0", "0.0"]
    assert "A &amp; B" in html


def test_stacks():
    html = macro("stacked")([("m", {"same_sentence": 0.25, "other": 0.75})])
    parsed(html)
    assert re.findall(r"width:([\d.]+)%", html) == ["25.00", "75.00"]
    assert "same sentence" in html


def test_a_heat_map():
    html = macro("heat_map")({"a-b": 1.0, "b-a": 0.25}, ["a", "b"], "t")
    tree = parsed(html)
    assert len(tree.findall(".//rect")) == 2
    assert [t.text for t in tree.findall(".//title")] == ["a to b: 100.0 %", "b to a: 25.0 %"]


def test_attention():
    html = macro("attention")([("<s>", 0.9, True), ("big", 0.08, False), ("small", 0.02, False)])
    parsed(html)
    assert [float(w) for w in re.findall(r"--w:([\d.]+)", html)] == [1.0, 1.0, 0.25]
    assert "&lt;s&gt;" in html
    assert html.count("special") == 1
    assert macro("attention")([("<s>", 1.0, True)])


def test_heads():
    html = macro("heads")([("<s>", [0.9, 0.1]), ("a", [0.1, 0.9])])
    assert len(parsed(html).findall(".//td")) == 4


def test_attention_maps():
    maps = [[[0.0, 1.0], [0.25, 0.75]], [[0.5, 0.5], [0.75, 0.25]]]
    mean = [[0.25, 0.75], [0.5, 0.5]]
    tree = parsed(macro("attention_maps")(["<s>", "a & b"], mean, maps))
    of_mean, first, second = tree.findall(".//svg")
    titles = [title.text for title in of_mean.findall(".//title")]
    assert titles == [
        "<s> to <s>: 25.0 %",
        "<s> to a & b: 75.0 %",
        "a & b to <s>: 50.0 %",
        "a & b to a & b: 50.0 %",
    ]
    shown = [
        [(rect.get("x"), rect.get("y"), rect.get("fill-opacity")) for rect in one.findall("rect")]
        for one in (first, second)
    ]
    assert shown[0] == [("1", "0", "1.00"), ("0", "1", "0.25"), ("1", "1", "0.75")]
    assert len(shown[1]) == 4
