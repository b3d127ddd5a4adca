from __future__ import annotations

import pytest

from interlingua.corpus.formats.xml_stream import _MAX_DEPTH, xml_events
from interlingua.errors import DataError
from tests.corpus.conftest import write


def test_each_entry_is_whole_when_its_end_comes(tmp_path):
    path = write(
        tmp_path / "a.xml", "<l>" + "".join(f"<i><t>{n}</t></i>" for n in range(50_000)) + "</l>"
    )
    found = [
        element.findtext("t")
        for event, element in xml_events(path, "i")
        if (event, element.tag) == ("end", "i")
    ]
    assert found == [str(n) for n in range(50_000)]


def test_entries_before_are_let_go(tmp_path):
    path = write(tmp_path / "a.xml", "<l>" + "<i><t>x</t></i>" * 50_000 + "</l>")
    root = None
    for event, element in xml_events(path, "i"):
        root = element if root is None else root
        if (event, element.tag) == ("start", "i"):
            assert len(root) < 10_000  # those of one block


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("<l><i>", "not well-formed"),
        ('<?xml version="1.0" encoding="utf-7"?><l/>', "encoding"),
        ('<?xml version="1.0" encoding="nothing"?><l/>', "encoding"),
        ("<a>" * (_MAX_DEPTH + 1) + "</a>" * (_MAX_DEPTH + 1), "nested elements"),
    ],
)
def test_what_can_not_be_read_is_one_line(text, what, tmp_path):
    with pytest.raises(DataError, match=what):
        list(xml_events(write(tmp_path / "a.xml", text), "i"))


def test_an_entry_has_a_limit_and_the_file_has_none(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLINGUA_MAX_LINE", "200000")
    many = write(tmp_path / "a.xml", "<l>" + "<i>x</i>" * 100_000 + "</l>")
    assert sum(event == "end" for event, _ in xml_events(many, "i")) == 100_001
    with pytest.raises(DataError, match="--max-line"):
        list(xml_events(write(tmp_path / "a.xml", "<l><i>" + "x" * 400_000 + "</i></l>"), "i"))
