from __future__ import annotations

import re
from html.parser import HTMLParser

import numpy as np
import pytest

from interlingua.mining.calibration import Bin, Calibration
from interlingua.mining.checks import CheckPlan
from interlingua.mining.found import FOUND
from interlingua.mining.output import Selection, write_mined
from interlingua.mining.page import histogram, reliability, write_page
from interlingua.mining.pipeline import Mined
from interlingua.mining.texts import Line, build_side

LANGUAGES = ("arb_Arab", "eng_Latn")


class Tags(HTMLParser):
    """Complains of tags that are not closed, and collects texts and links."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.links = [], [], []

    def handle_starttag(self, tag, attrs):
        self.links += [value for key, value in attrs if key in ("src", "href")]
        if tag not in ("meta", "rect", "circle", "path", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag not in ("rect", "circle", "path"):
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


@pytest.fixture
def page(tmp_path):
    sources = [Line(f"نص <script>{n}</script>", f"https://a.org/{n}") for n in range(60)]
    x = build_side(tmp_path / "x", lambda: sources, what="")
    y = build_side(
        tmp_path / "y", lambda: [Line(f"text & {n} {'x' * 90 * (n == 7)}", str(n)) for n in range(60)], what=""
    )
    pairs = np.zeros(60, FOUND)
    pairs["score"], pairs["x"], pairs["y"] = np.linspace(1.3, 0.9, 60), range(60), range(60)
    mined = Mined(x, y, pairs, ["60 lines"])
    curve = Calibration(
        source_language="arb_Arab", target_language="eng_Latn", model="m", scoring="s", basis="probes",
        shape="logistic", scores=(1.0, 1.2), log_odds=(-3.0, 3.0), fitted_prior=0.5, prior=0.5, pairs=9,
        measures={"ece": 0.0123}, bins=(Bin(0.2, 0.3, 10, 1.0), Bin(0.9, 0.8, 10, 1.1)),
    )  # fmt: skip
    selection = Selection(threshold=1.1, checks=CheckPlan.parse("length", "length=2"))
    written = write_mined(mined, tmp_path / "p.tsv", selection, languages=LANGUAGES, calibration=curve,
                          folder=tmp_path / "seen")  # fmt: skip
    write_page(tmp_path / "p.html", mined, written, tmp_path / "p.tsv", LANGUAGES, "mine ratio", curve)
    return (tmp_path / "p.html").read_text(encoding="utf-8")


def test_the_page_is_whole_and_escaped_and_needs_no_network(page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.links == []
    assert "<script" not in page
    assert "نص &lt;script&gt;0&lt;/script&gt;" in page
    assert "text &amp; 0" in page
    assert page.count('dir="auto"') == 2 * page.count('class="pair"')
    assert "prefers-color-scheme: dark" in page
    assert "$" not in page


def test_it_shows_best_borderline_and_rejected_pairs_with_reasons(page):
    heads = re.findall("<h2>(.*?)</h2>", page)
    assert heads == ["Best pairs", "Borderline", "Rejected: lengths differ"]
    best, borderline, rejected = (part.split("<footer>")[0] for part in page.split("<h2>")[1:])
    assert "below the threshold" not in best
    assert borderline.count("<span class=chip>below the threshold</span>") == 12
    assert borderline.count('class="pair"') == 24
    assert rejected.count('class="pair"') == 1
    assert "<span class=chip>lengths differ</span>" in rejected
    assert "https://a.org/7" in rejected


def test_it_shows_numbers(page):
    assert "Arabic and English" in page or "Standard Arabic and English" in page
    assert "pairs of 60 found" in page
    assert "ece 0.0123" in page
    assert page.count("<circle") == 2
    assert "<th>precision</th>" in page
    assert "The threshold is 1.1000." in page


def test_bars_by_hand():
    scores = np.array([1.0] * 3 + [2.0])
    bars = histogram(scores, 1.5)
    assert 'class="left" x="0" y="0.0" width="9" height="100.0"' in bars
    assert histogram(np.ones(3), None) == ""
    assert '"left"' not in histogram(scores, None)


def test_dots_by_hand():
    curve = Calibration(
        source_language="a", target_language="b", model="m", scoring="s", basis="gold", shape="logistic",
        scores=(0.0, 1.0), log_odds=(0.0, 1.0), fitted_prior=0.5, prior=0.5, pairs=9, bins=(Bin(0.5, 0.25, 4, 1.0),),
    )  # fmt: skip
    assert 'cx="120.0" cy="160.0"' in reliability(curve)
