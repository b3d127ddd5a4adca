from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser

import numpy as np
import pytest

from interlingua.config.registry import CHECKS
from interlingua.mining.calibration.calibration import Bin
from interlingua.mining.checks import CheckPlan, find_check
from interlingua.mining.filter import write_mined
from interlingua.mining.page import format_check_value, histogram_bars, write_mining_page
from interlingua.mining.review import read_labels
from interlingua.mining.texts import Line
from interlingua.report.pages import macro
from tests.mining.curves import calibration
from tests.mining.cuts import AnyCut
from tests.mining.two_sides import mined_lines

LANGUAGES = ("arb_Arab", "eng_Latn")
FAKE_PAGE = """
const listeners = {}, saved = [];
const elements = {};
for (const id of ["judged", "save-judged", "save-pairs"])
  elements[id] = { addEventListener: (_, act) => { listeners[id] = act; }, textContent: "" };
const pairs = ["s0", "s\\n 1", "s2", "s3"].map((source, n) => ({
  dataset: { kind: "Best", score: "1", reasons: "hub" }, classList: { toggle() {} },
  focus() { document.activeElement = this; }, closest() { return this; },
  querySelectorAll: (what) => what === "button" ? [] : [{ textContent: source }, { textContent: "t" + n }],
}));
const document = {
  activeElement: null, querySelectorAll: () => pairs, getElementById: (id) => elements[id],
  addEventListener: (_, act) => { listeners.key = act; },
  createElement: () => ({ click() { saved.push(this); } }),
};
const Blob = class { constructor(parts) { this.text = parts.join(""); } };
URL.createObjectURL = (blob) => blob.text;
"""
USE = """
for (const key of ["1", "0", "x", "1", "1", "1"]) listeners.key({ key });
listeners.key({ key: "1" });  // the last one is judged twice and once more: right, taken back, right
listeners.key({ key: "1" });
console.log(elements.judged.textContent);
listeners["save-judged"]();
listeners["save-pairs"]();
for (const file of saved) { require("fs").writeFileSync(file.download, file.href); console.log(file.download); }
"""


def histogram(scores, threshold):
    bars = histogram_bars(scores, threshold)
    return "" if bars is None else macro("histogram")(**bars)


class Tags(HTMLParser):
    """Complains of tags that are not closed, and collects texts and links."""

    def __init__(self):
        super().__init__()
        self.open, self.texts, self.links, self.scripts = [], [], [], 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
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
    targets = [Line(f"text & {n} {'x' * 90 * (n == 7)}", str(n)) for n in range(60)]
    mined = mined_lines(tmp_path, sources, targets, np.linspace(1.3, 0.9, 60))
    curve = calibration(
        source_language="arb_Arab",
        pairs=9,
        measures={"ece": 0.0123},
        bins=(Bin(0.2, 0.3, 10, 1.0), Bin(0.9, 0.8, 10, 1.1)),
        cuts=(),
    )
    cut = AnyCut(threshold=1.1)
    checks = CheckPlan.parse("length", "length=2")
    how = {"languages": LANGUAGES, "calibration": curve}
    written = write_mined(mined, tmp_path / "p.tsv", cut, checks, folder=tmp_path / "seen", **how)
    page = tmp_path / "p.html"
    write_mining_page(page, mined, written, tmp_path / "p.tsv", scoring="mine ratio", **how)
    return page.read_text(encoding="utf-8")


def test_the_page_is_whole_and_escaped_and_needs_no_network(page):
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    assert tags.links == []
    assert tags.scripts == page.count("<script") == 1
    assert "نص &lt;script&gt;0&lt;/script&gt;" in page
    assert "text &amp; 0" in page
    assert page.count('dir="auto"') == 2 * page.count('class="pair"')
    assert "prefers-color-scheme: dark" in page
    assert "$" not in page.replace("$script", "")


def test_it_shows_best_borderline_and_rejected_pairs_with_reasons(page):
    heads = re.findall("<h2>(.*?)</h2>", page)
    assert heads == ["Best pairs", "Borderline", "Rejected: lengths differ", "To judge"]
    best, borderline, rejected, judged = (
        part.split("<footer>")[0] for part in page.split("<h2>")[1:]
    )
    assert "below the threshold" not in best
    assert borderline.count("<span class=chip>below the threshold</span>") == 12
    assert borderline.count('class="pair"') == 24
    assert rejected.count('class="pair"') == 1
    assert judged.count('class="pair"') == 60  # all, as there are no more
    assert "<span class=chip>lengths differ</span>" in rejected
    assert "https://a.org/7" in rejected


def test_it_shows_numbers(page):
    assert "Arabic and English" in page or "Standard Arabic and English" in page
    assert "pairs of 60 found" in page
    assert "ece 0.0123" in page
    assert "By a calibration from 9 held-out pairs that were mixed in " in page
    assert page.count("<circle") == 2
    assert "<th>precision</th>" in page
    assert "The threshold is 1.1000." in page


def test_check_values_have_labels(page):
    assert '<span title="ratio of the longer to the shorter side">longer : shorter side 1.' in page
    assert "length 1." not in page
    assert format_check_value("script", 0.5)[1] == "letters in the right script 50 %"
    assert format_check_value("hub", 30.0)[1] == "texts that have one side as their nearest 30"
    assert all(find_check(name).label for name in CHECKS)


def test_reasons_are_a_table_with_what_rejects(page):
    rows = re.findall(
        r'<tr><td class="words">(.*?)</td><td>(.*?)</td><td>(.*?)</td><td class="words">(.*?)</td></tr>',
        page,
    )
    assert rows == [
        ("below the threshold", "30", "50.0%", "score: less than 1.1000"),
        ("lengths differ", "1", "1.7%", "ratio of the longer to the shorter side: 2 or more"),
    ]


def test_the_threshold_is_drawn_where_it_is():
    """Draw scores from 0 to 1 with a threshold of 0.25, and one outside without a line."""
    drawn = histogram(np.array([0.0, 1.0] * 500), 0.25)
    assert '<path class="threshold" d="M150.0 0V104"/>' in drawn
    assert "threshold 0.2500</text>" in drawn
    assert "threshold" not in histogram(np.linspace(0, 1, 1001), 2.0)
    assert "threshold" not in histogram(np.linspace(0, 1, 1001), None)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_two_keys_judge_and_the_file_is_what_calibrate_reads(page, tmp_path):
    script = re.search(r"<script>(.*)</script>", page, re.S)[1]
    (tmp_path / "run.js").write_text(FAKE_PAGE + script + USE, encoding="utf-8")
    run = subprocess.run(
        ["node", tmp_path / "run.js"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert run.stdout.splitlines() == ["2 right, 1 wrong", "judged.tsv", "pairs.tsv"]
    labels = read_labels(tmp_path / "judged.tsv").answers
    assert labels == {("s0", "t0"): True, ("s 1", "t1"): False, ("s2", "t2"): True}
    lines = (tmp_path / "pairs.tsv").read_text(encoding="utf-8").splitlines()
    assert lines[:2] == ["kind\tscore\tsource\ttarget\treasons", "Best\t1\ts0\tt0\thub"]


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs the browser chromium")
def test_no_table_is_cut_on_a_phone(page, tmp_path):
    """Check a frame of 390 pixels (windows have at least 500): nothing is wider."""
    measure = """<script>parent.postMessage([document.documentElement.scrollWidth - 390,
      ...[...document.querySelectorAll(".scroll")].map((pane) => pane.scrollWidth - pane.clientWidth),
      document.querySelector(".histogram text").getBoundingClientRect().height < 10 ? 1 : 0].join(" "), "*");
      </script>"""
    (tmp_path / "page.html").write_text(
        page.replace("</body>", f"{measure}</body>"), encoding="utf-8"
    )
    frame = (
        "<title>none</title><script>onmessage = (event) => { document.title = event.data;"
        " };</script>"
        '<iframe src="page.html" style="width:390px; height:900px; border:0"></iframe>'
    )
    (tmp_path / "frame.html").write_text(frame, encoding="utf-8")
    command = [
        "chromium",
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--virtual-time-budget=5000",
        "--dump-dom",
        f"--user-data-dir={tmp_path}/profile",
        (tmp_path / "frame.html").as_uri(),
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    title = re.search("<title>(.*?)</title>", run.stdout)
    assert title is not None
    beyond = [int(number) for number in title[1].split()]
    assert len(beyond) >= 4
    assert max(beyond) <= 0


def test_bars_by_hand():
    scores = np.array([1.0] * 3 + [2.0])
    bars = histogram(scores, 1.5)
    assert 'class="left" x="0" y="0.0" width="9" height="100.0"' in bars
    assert histogram(np.ones(3), None) == ""
    assert '"left"' not in histogram(scores, None)


def test_dots_by_hand():
    curve = calibration(bins=(Bin(0.5, 0.25, 4, 1.0),))
    assert 'cx="120.0" cy="160.0"' in macro("reliability")(curve)
