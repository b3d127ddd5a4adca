"""Plain text: wrapped lines, headings and list items."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import read_document

WRAPPED = """\
The library
===========

The library is open in summer until the evening, and on each
Sunday there is a concert in the garden. Children may bring
their parents.

Hours
-----

1. Opening hours

- from Monday to Friday the doors are open from eight until
  six in the evening
- never on holidays

On other days a visit is possible, if you call us before and
say when.
"""


def units(tmp_path, content):
    path = tmp_path / "a.txt"
    path.write_text(content, encoding="utf-8", newline="")
    return [tuple(unit) for unit in read_document(path).units]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_wrapped_text(tmp_path, end):
    assert units(tmp_path, WRAPPED.replace("\n", end)) == [
        ("The library", "heading", 1),
        (
            "The library is open in summer until the evening, and on each Sunday there is a concert"
            " in the garden. Children may bring their parents.",
            "paragraph",
            0,
        ),
        ("Hours", "heading", 2),
        ("1. Opening hours", "heading", 1),
        ("from Monday to Friday the doors are open from eight until six in the evening", "item", 1),
        ("never on holidays", "item", 1),
        ("On other days a visit is possible, if you call us before and say when.", "paragraph", 0),
    ]


def test_a_sentence_a_line_is_a_paragraph_a_line(tmp_path):
    lines = [
        "It rains today.",
        "The sun shone all of yesterday.",
        "Tomorrow it snows.",
        "Maybe not",
    ]
    assert [unit[0] for unit in units(tmp_path, "\n".join(lines))] == lines


def test_an_address_is_no_sign_of_unwrapped_lines(tmp_path):
    line = "these are some words in a text that was wrapped at a width"
    content = "\n".join([line] * 60 + ["https://example.org/" + "a" * 150])
    assert len(units(tmp_path, content)) < 5


def test_chinese_lines_are_joined_without_spaces(tmp_path):
    found = units(
        tmp_path,
        "第一章 图书馆\n\n图书馆在夏天开放到晚上八点欢迎大\n家带孩子来这里看书。\n\n完。\n",
    )
    assert found[0] == ("第一章 图书馆", "heading", 1)
    assert found[1] == ("图书馆在夏天开放到晚上八点欢迎大家带孩子来这里看书。", "paragraph", 0)


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("Opening hours", "heading"),
        ("2.1 Opening hours", "heading"),
        ("IV. Opening hours", "heading"),
        ("第三节 时间", "heading"),
        ("제 2장 시간", "heading"),
        ("Ώρες λειτουργίας", "heading"),
        ("This is a short sentence.", "paragraph"),
        ("and so on", "paragraph"),
        ("他来了。", "paragraph"),
        ("Yours sincerely,", "paragraph"),
        ("• an item", "item"),
        ("a) an item", "item"),
    ],
)
def test_lines_between_blank_ones(tmp_path, line, kind):
    found = units(tmp_path, f"{line}\n\nA paragraph follows.\n")
    assert found[0][1] == kind


def test_the_last_line_is_no_heading(tmp_path):
    assert units(tmp_path, "A paragraph.\n\nThe End\n")[-1] == ("The End", "paragraph", 0)
