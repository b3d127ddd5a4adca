from __future__ import annotations

import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import pytest

from interlingua.evaluation.report.page import (
    comparison_headline,
    comparison_summary,
    page_data,
    render_comparison,
)
from interlingua.report.pages import resource
from tests.evaluation.page_made import all_pairs, make, panel

EVIL = '</script><script>alert("x")</script><!--'
VOID = {"meta", "input", "br", "link", "img"}


class Elements(HTMLParser):
    """Parser that collects the elements of the page, and fails if one is not closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.tags, self.attributes, self.scripts, self.texts = (
            [],
            [],
            [],
            [],
            [],
            [],
        )
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *pair) for pair in attrs]
        self.ids += [value for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, text):
        if self.open and self.open[-1] == "script":
            self.scripts[-1] += text
        else:
            self.texts.append(text)


@pytest.fixture(scope="module")
def data():
    pairs = {"task": "flores", "pairs": all_pairs()}
    results = [make("weak", 0.5), make("strong", 0.9, seed=1, query=EVIL + "{item}")]
    results += [
        make("weak", 0.5, **pairs),
        make("strong", 0.9, seed=1, **pairs),
        make("b<script>", 0.7, task=EVIL),
    ]
    return page_data(results, analyses=[panel("weak", 0.2), panel("strong", 0.6)])


def test_one_file_that_loads_nothing(data):
    html = render_comparison(data)
    page = Elements(html)
    loading = {"src", "href", "srcset", "action", "data", "poster"}
    targets = [value for _, name, value in page.attributes if name in loading]
    assert targets
    assert all(target.startswith("#") for target in targets)
    assert "link" not in page.tags
    assert "url(" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html
    assert len(page.ids) == len(set(page.ids))


def test_texts_can_be_anything(data):
    page = Elements(render_comparison(data))
    assert len(page.scripts) == 3
    assert json.loads(page.scripts[1]) == data
    assert "<" not in page.scripts[1]
    assert any(EVIL in item["query"] for item in data["wrong"])
    assert EVIL in "".join(page.texts)


def test_what_the_script_looks_for_is_there(data):
    page = Elements(render_comparison(data))
    wanted = set(re.findall(r'\$\("([\w-]+)"\)', page.scripts[2])) | set(
        re.findall(r'"(e-\w+)"', page.scripts[2])
    )
    assert len(wanted) > 15
    assert wanted <= set(page.ids)
    links = {value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert links <= set(page.ids)
    labeled = {value for _, name, value in page.attributes if name == "aria-labeledby"}
    assert labeled <= set(page.ids)


def test_empty_parts_are_left_out():
    html = render_comparison(page_data([make("a", 0.5, examples={})]))
    assert 'id="panel"' not in html
    assert re.search(r'id="errors"[^>]* hidden', html)
    assert 'href="#errors"' not in html
    assert "paired bootstrap" not in html


def test_headline_and_summary(data):
    assert comparison_headline(data) == "weak, strong and b<script>, side by side"
    assert comparison_summary(data) == "3 tasks, 4 languages. Best scores: strong in 2."
    assert comparison_headline(page_data([make("a", 0.5)])) == "a, measured"
    many = page_data([make(name, 0.5) for name in "abcd"])
    assert comparison_headline(many) == "4 models, side by side"


def test_how_error_rates_are_sorted_is_told_where_there_are_any():
    told = "an error rate counts as 100 % minus the error rate"
    assert told in render_comparison(page_data([make("a", 0.5, higher_is_better=False)]))
    assert told not in render_comparison(page_data([make("a", 0.5)]))


def test_two_hundred_languages_stay_small():
    from interlingua.config.languages import known

    pairs = [
        (language.code, "eng_Latn") for language in known()[:200] if language.code != "eng_Latn"
    ]
    results = [
        make(name, 0.5, task=f"t{n}", pairs=pairs, items={}) for name in "abcde" for n in range(10)
    ]
    html = render_comparison(page_data(results))
    assert 500_000 < len(html.encode()) < 3_000_000


BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)


needs_browser = pytest.mark.skipif(BROWSER is None, reason="needs Chromium")


def seen(path, view=""):
    """Return a page as rendered by a browser without warnings."""
    how = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        f"--user-data-dir={path.parent / 'profile'}",
    ]
    how += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
    command = [BROWSER, *how, path.as_uri() + view]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
    assert "CONSOLE" not in done.stderr
    return done.stdout


def said(html):
    """Return the result that a test's script left in the page."""
    return json.loads(unescape(re.search(r'<pre id="said">(.*?)</pre>', html, re.DOTALL)[1]))


LEAVE = "const leave = found => { const pre = document.createElement('pre'); pre.id = 'said'; "
LEAVE += "pre.textContent = JSON.stringify(found); document.body.append(pre); };"


@needs_browser
def test_it_runs_in_a_browser(data, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render_comparison(data), encoding="utf-8")
    shown = {
        view: seen(path, view) for view in ("", "#task=1&mode=difference", "#task=3&order=script")
    }
    assert shown[""].count('class="card"') == 20
    assert "alert(" in shown[""]
    assert 'class="heat tile"' in shown[""]
    assert 'class="track bars"' in shown["#task=1&mode=difference"]
    assert 'aria-label="flores, weak"' in shown["#task=1&mode=difference"]
    assert "same-language bias" in shown["#task=3&order=script"]


CLICKS = """
const order = () => [...document.querySelectorAll("#overview button.fold")].map(one => one.textContent);
const rows = () => [...document.querySelectorAll("#rows tbody th")].map(one => one.textContent);
const click = (where, column) => {
  document.querySelectorAll(`${where} button.sort`)[column].click();
  return document.querySelectorAll(`${where} button.sort`)[column].closest("th").getAttribute("aria-sort");
};
const found = [];
for (const column of [0, 0, 0, 1, 1]) found.push([click("#overview", column), order()]);
for (const column of [0, 0, 1, 1]) found.push([click("#rows", column), rows()]);
leave(found);
"""


@needs_browser
def test_texts_are_sorted_from_a_and_scores_from_the_best(tmp_path):
    def rates(task, *errors):
        subsets = make("weak", 0.5).subsets
        subsets = tuple(
            replace(one, scores={"accuracy": error})
            for one, error in zip(subsets, errors, strict=True)
        )
        changes = {"subsets": subsets, "items": {}, "examples": {}, "groups": {}, "members": {}}
        return make("weak", 0.5, task=task, higher_is_better=False, **changes)

    path = tmp_path / "page.html"
    results = [rates("high", 0.7, 0.8, 0.9), rates("low", 0.1, 0.1, 0.1), make("weak", 0.5)]
    page = render_comparison(page_data(results))
    path.write_text(f"{page}<script>{LEAVE}{CLICKS}</script>", encoding="utf-8")
    # The page starts with the tasks that every encoder is measured on, so "high" is its second
    # task.
    assert said(seen(path, "#task=1&order=none")) == [
        ["ascending", ["high", "low", "tatoeba"]],
        ["descending", ["tatoeba", "low", "high"]],
        ["none", ["tatoeba", "high", "low"]],
        ["descending", ["low", "tatoeba", "high"]],
        ["ascending", ["high", "tatoeba", "low"]],
        ["ascending", ["Arabic", "German", "Russian"]],
        ["descending", ["Russian", "German", "Arabic"]],
        ["ascending", ["German", "Russian", "Arabic"]],
        ["descending", ["Arabic", "Russian", "German"]],
    ]


MEASURES = """
addEventListener("load", () => {
  const wide = [...document.querySelectorAll(".pane")].filter(one => one.scrollWidth > one.clientWidth);
  const cut = [...document.querySelectorAll("#rows tbody th, #about th, #about td, #overview tbody th")];
  const parted = [...document.querySelectorAll(".named")].filter(one => {
    const [mark, name] = [...one.children].map(part => part.getClientRects()[0]);
    const hidden = getComputedStyle(one.lastChild).position === "absolute";
    return !hidden && (name.top >= mark.bottom || mark.right > name.left);
  });
  const figures = document.querySelector("#rows tbody tr:last-child").querySelectorAll("td.num");
  const edge = document.querySelector("#rows").getBoundingClientRect().right;
  parent.postMessage([innerWidth, wide.length, cut.filter(one => one.scrollWidth > one.clientWidth + 1).length,
    parted.length, [...figures].filter(one => one.getBoundingClientRect().right <= edge).length], "*");
});
"""
GATHERS = """
const all = [];
addEventListener("message", event => {
  all.push(event.data);
  if (all.length === 3) leave(all.sort((a, b) => a[0] - b[0]));
});
"""


@needs_browser
def test_nothing_is_cut_from_phone_to_projector(tmp_path):
    languages = [f"lan{n}_Latn" for n in range(12)]
    changes = {
        "settings": {"languages": languages},
        "changed": ("languages",),
        "dataset": "flores200_devtest",
    }
    names = ("all-MiniLM-L6-v2", "mUSE", "multilingual-e5-small")
    results = [
        make(
            name,
            0.3 * n + 0.1,
            seed=n,
            task=task,
            notes=("a remark, and a long one at that " * 8,),
            **changes,
        )
        for n, name in enumerate(names)
        for task in ("xsim_pp_generated", "senteval_senteval_cls")
    ]
    path, frames = tmp_path / "page.html", tmp_path / "frames.html"
    path.write_text(
        f"{render_comparison(page_data(results))}<script>{MEASURES}</script>", encoding="utf-8"
    )
    shown = "".join(
        f'<iframe src="page.html" width="{width}" height="900"></iframe>'
        for width in (390, 1100, 1920)
    )
    frames.write_text(
        f"<!doctype html><body><script>{LEAVE}{GATHERS}</script>{shown}", encoding="utf-8"
    )
    assert said(seen(frames)) == [[width, 0, 0, 0, 3] for width in (390, 1100, 1920)]


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.parametrize(
    ("rows", "words"),
    [(3, "one in 20, less than one of these 3,"), (20, "about 1 of 20"), (112, "about 6 of 112")],
)
def test_what_chance_marks_is_the_level_times_the_rows(rows, words):
    script = resource("compare.js")
    line = next(line for line in script.splitlines() if line.startswith("const byChance"))
    code = f"const LEVEL = 0.05; {line} console.log(byChance({rows}));"
    assert (
        subprocess.run(
            ["node", "-e", code], capture_output=True, text=True, check=True
        ).stdout.strip()
        == words
    )
