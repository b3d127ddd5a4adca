import html.parser
import json
import re

import pytest

from interlingua.errors import TaskError
from interlingua.getting_started.report import (
    findings_headline,
    verdict,
    write_findings,
    write_html,
)
from tests.getting_started.findings import made_up

VOID = {"meta", "br", "line", "polyline", "link"}


class Checker(html.parser.HTMLParser):
    """Parser that collects text and attributes, and checks that tags are closed in order."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.attributes = [], [], []

    def handle_starttag(self, tag, attrs):
        self.attributes += attrs
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture
def page(tmp_path):
    write_html(made_up(), tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    return text, checker


def test_page_needs_nothing_beside_itself(page):
    text, checker = page
    assert not re.search(r"https?://|<script|@import|url\(", text)
    assert not [name for name, _ in checker.attributes if name in ("src", "href")]
    assert "prefers-color-scheme: dark" in text
    assert '<meta name="viewport"' in text


def test_page_says_what_was_found(page):
    _, checker = page
    said = " ".join(checker.text)
    for expected in (
        "Greek",
        "BSD-3-Clause",
        "1,234",
        "wagtail: no matching distribution",
        "Η σελίδα <b>",
        "page & more",
    ):
        assert expected in said
    assert "6.0x" in said
    widths = [
        value for name, value in checker.attributes if name == "style" and value.startswith("width")
    ]
    assert widths == ["width:60.0%"] * 3  # one bar per language with enough sentences


def test_verdict_is_as_frank_in_defeat():
    said = verdict(made_up())
    assert "Sentences in other scripts: P@1 0.60, ahead of character n-grams' 0.10." in said
    assert "Sentences in Latin script: P@1 0.60, not ahead of character n-grams' 0.70." in said
    assert findings_headline(made_up()).endswith(
        "finds 60% of the translations across scripts; character n-grams find 10%"
    )


def test_required_ratio():
    made_up(model=0.21, tfidf=0.1).require(2.0)
    with pytest.raises(TaskError, match=r"P@1 across scripts is 0\.190, 1\.90 times .* 2 times"):
        made_up(model=0.19, tfidf=0.1).require(2.0)


def test_json_holds_everything(tmp_path):
    write_findings(made_up(), tmp_path / "quickstart.json")
    found = json.loads((tmp_path / "quickstart.json").read_text(encoding="utf-8"))
    assert found["averages"][0] == {
        "script": "other",
        "kind": "sentences",
        "languages": 2,
        "random": 0.005,
        "tfidf": 0.1,
        "model": 0.6,
    }
    assert found["sources"][0]["license"] == "BSD-3-Clause"
    assert found["sources"][0]["skipped"] == {"x": 3}
