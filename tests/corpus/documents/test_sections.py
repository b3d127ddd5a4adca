"""Sections of Markdown, HTML and text: headings, places, and hostile input."""

from __future__ import annotations

import time

import pytest

from interlingua.corpus.documents.sections import DocumentSection, read_sections
from interlingua.errors import DataError


def sections(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return list(read_sections(path))


def named(found):
    return [(one.title, one.headings, one.text.strip()) for one in found]


MARKDOWN = """intro

# Guide #

first

## Install

```
# no heading
```

Setext
------

last

### Deep

deep

## Empty
"""


def test_markdown_has_titles_headings_and_places(tmp_path):
    found = sections(tmp_path, "a.md", MARKDOWN)
    assert named(found) == [
        ("Guide", (), "intro"),
        ("Guide", (), "first"),
        ("Guide", ("Install",), "```\n# no heading\n```"),
        ("Guide", ("Setext",), "last"),
        ("Guide", ("Setext", "Deep"), "deep"),
        ("Guide", (), "## Empty"),
    ]
    for one in found:
        assert MARKDOWN[one.offset :].startswith(one.text)


@pytest.mark.parametrize(
    ("content", "title", "text"),
    [
        ("---\ntitle: 'A: b'\ntags: [x]\n---\ntext\n", "A: b", "text"),
        ("---\r\nlayout: x\r\n---\r\ntext\r\n", "", "text"),
        ("---\nno end of it\n", "", "---\nno end of it"),
        ("\ufeff# C# and C++\n\ntext", "C# and C++", "text"),
        ("#no heading\n####### nor this", "", "#no heading\n####### nor this"),
    ],
)
def test_front_matter_and_marks(tmp_path, content, title, text):
    assert named(sections(tmp_path, "a.markdown", content)) == [(title, (), text)]


def test_html_is_what_a_browser_shows(tmp_path):
    content = (
        "<!doctype html><html><head><title>A &amp; B</title><style>p {}</style></head><body>"
        "<p>one <b>two</b>\n three</p><h1>A &amp; B</h1><h2>Fer<i>ries</i></h2><ul><li>x<li>y</ul>"
        "<pre>a\n  b</pre><script>'<h2>no</h2>'</script><h3>End</h3></body></html>"
    )
    assert named(sections(tmp_path, "a.html", content)) == [
        ("A & B", (), "one two three"),
        ("A & B", ("Ferries",), "x\ny\na\n  b"),
        ("A & B", ("Ferries",), "End"),
    ]


def test_text_is_one_section(tmp_path):
    assert sections(tmp_path, "a.txt", "# one\n\ntwo\n") == [DocumentSection("# one\n\ntwo\n", 0)]


@pytest.mark.parametrize("name", ["a.md", "a.html", "a.txt"])
@pytest.mark.parametrize("content", ["", " \n\t\n", "\n" * 1000])
def test_blank_documents_have_no_section(tmp_path, name, content):
    assert sections(tmp_path, name, content) == []


@pytest.mark.parametrize("name", ["a.md", "a.html"])
@pytest.mark.parametrize("content", [b"%PDF-1.7\n", b"caf\xe9 text\n"])
def test_what_is_no_text_is_refused(tmp_path, name, content):
    with pytest.raises(DataError, match=name):
        sections(tmp_path, name, content)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.md", "# " + " #" * 100_000 + "x"),
        ("a.md", "```\n" * 50_001 + "# in a fence"),
        ("a.md", "---\n" + "title:\n" * 100_000),
        ("a.md", "a\n===\n\n" * 20_000),
        ("a.html", "<div>" * 100_000 + "x"),
        ("a.html", "<h1>x" * 20_000),
        ("a.html", "<h1>" + "word " * 100_000),
        ("a.html", "<b" * 50_000),
        ("a.html", "<title>" * 50_000),
        ("a.html", "&" * 100_000 + "<!--" * 1000),
    ],
)
def test_hostile_documents_take_little_time_and_lose_nothing(tmp_path, name, content):
    begin = time.process_time()
    found = sections(tmp_path, name, content)
    assert time.process_time() - begin < 5
    # Tags and titles contain no text.
    if "x" in content and not content.startswith("<title>"):
        assert any("x" in " ".join((one.title, *one.headings, one.text)) for one in found)


def test_a_long_heading_is_text(tmp_path):
    found = sections(tmp_path, "a.html", "<h1>" + "word " * 100)
    assert [one.headings for one in found] == [()]
    assert found[0].text.split() == ["word"] * 100
