from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from interlingua.evaluation.page.data import page_data
from interlingua.evaluation.page.write import headline, render_page, summary
from tests.evaluation.page.made import all_pairs, make, panel

EVIL = '</script><script>alert("x")</script><!--'
VOID = {"meta", "input", "br", "link", "img"}


class Elements(HTMLParser):
    """What is in the page; complains where an element is not closed."""

    def __init__(self, html):
        super().__init__()
        self.open, self.ids, self.tags, self.attributes, self.scripts, self.texts = [], [], [], [], [], []
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
    results += [make("weak", 0.5, **pairs), make("strong", 0.9, seed=1, **pairs), make("b<script>", 0.7, task=EVIL)]
    return page_data(results, analyses=[panel("weak", 0.2), panel("strong", 0.6)])


def test_one_file_that_loads_nothing(data):
    html = render_page(data)
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
    page = Elements(render_page(data))
    assert len(page.scripts) == 3
    assert json.loads(page.scripts[1]) == data
    assert "<" not in page.scripts[1]
    assert any(EVIL in item["query"] for item in data["wrong"])
    assert any(EVIL in text for text in page.texts)


def test_what_the_script_looks_for_is_there(data):
    page = Elements(render_page(data))
    wanted = set(re.findall(r'\$\("([\w-]+)"\)', page.scripts[2])) | set(re.findall(r'"(e-\w+)"', page.scripts[2]))
    assert len(wanted) > 15
    assert wanted <= set(page.ids)
    links = {value[1:] for tag, name, value in page.attributes if (tag, name) == ("a", "href")}
    assert links <= set(page.ids)
    labelled = {value for _, name, value in page.attributes if name == "aria-labelledby"}
    assert labelled <= set(page.ids)


def test_empty_parts_are_left_out():
    html = render_page(page_data([make("a", 0.5, examples={})]))
    assert 'id="panel"' not in html
    assert re.search(r'id="errors"[^>]* hidden', html)
    assert 'href="#errors"' not in html
    assert "paired bootstrap" not in html


def test_headline_and_summary(data):
    assert headline(data) == "weak, strong and b<script>, side by side"
    assert summary(data) == "3 tasks, 4 languages. Best scores: strong in 2."
    assert headline(page_data([make("a", 0.5)])) == "a, measured"
    many = page_data([make(name, 0.5) for name in "abcd"])
    assert headline(many) == "4 models, side by side"


def test_two_hundred_languages_stay_small():
    from interlingua.languages import known

    pairs = [(language.code, "eng_Latn") for language in known()[:200] if language.code != "eng_Latn"]
    results = [make(name, 0.5, task=f"t{n}", pairs=pairs, items={}) for name in "abcde" for n in range(10)]
    html = render_page(page_data(results))
    assert 500_000 < len(html.encode()) < 3_000_000


BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.mark.slow
@pytest.mark.skipif(BROWSER is None, reason="needs Chromium")
def test_it_runs_in_a_browser(data, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(render_page(data), encoding="utf-8")
    shown = {}
    for view in ("", "#task=1&mode=difference", "#task=3&order=script"):
        how = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        how += ["--enable-logging=stderr", "--virtual-time-budget=5000", "--dump-dom"]
        command = [BROWSER, *how, path.as_uri() + view]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120)
        assert "CONSOLE" not in done.stderr
        shown[view] = done.stdout
    assert shown[""].count('class="card"') == 20
    assert "alert(" in shown[""]
    assert 'class="heat tile"' in shown[""]
    assert 'class="track bars"' in shown["#task=1&mode=difference"]
    assert 'aria-label="flores, weak"' in shown["#task=1&mode=difference"]
    assert "same-language bias" in shown["#task=3&order=script"]
