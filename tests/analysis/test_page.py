from __future__ import annotations

import re
from html.parser import HTMLParser

from interlingua.analysis.page import render, write_page
from interlingua.analysis.run import analyse
from interlingua.encoder.backends.own import OwnEncoder
from tests.analysis.test_record import analysis
from tests.analysis.test_sections import ALL

VOID = {"meta", "link", "br", "img", "input"}


class Balanced(HTMLParser):
    """Fails at a tag that closes another one than was opened."""

    def __init__(self):
        super().__init__()
        self.open = []

    def handle_starttag(self, tag, attrs):
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_it_is_self_contained(folder, framed_encoder, tmp_path):
    both = [analyse(OwnEncoder(framed_encoder, name=name), ALL, folder) for name in ("first", "sec/ond")]
    path = write_page(both, tmp_path)
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
    html = render([[analysis("a", task="x")], [analysis("b", task="x"), extra]])
    assert html.count("<section>") == 2
    assert "a and b" in html


def test_chosen_analyses_have_a_page_of_their_own(tmp_path):
    found = [[analysis("a", task="x")]]
    write_page(found, tmp_path)
    write_page(found, tmp_path, only=["word_order"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["analysis-a-word_order.html", "analysis-a.html"]


def test_one_model():
    assert "<title>a: analysis</title>" in render([[analysis("a", task="x")]])
