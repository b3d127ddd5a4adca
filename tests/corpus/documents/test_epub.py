"""E-books: the order of the spine, encodings and addresses."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents.epub import read_epub
from interlingua.errors import DataError
from tests.corpus.documents.made import write_epub, write_zip

CONTAINER = '<container><rootfiles><rootfile full-path="{}"/></rootfiles></container>'
PACKAGE = (
    "<package><metadata><language>el</language></metadata><manifest>"
    '<item id="b" href="b%20b.xhtml#x" media-type="application/xhtml+xml"/>'
    '<item id="a" href="../a.html" media-type="text/html"/>'
    '<item id="c" href="cover.png" media-type="image/png"/></manifest>'
    '<spine><itemref idref="c"/><itemref idref="b"/><itemref idref="a"/><itemref idref="b"/>'
    "</spine></package>"
)
PAGE = '<?xml version="1.0" encoding="{0}"?><html><p>{1}</p></html>'


def members(**changed):
    found = {
        "META-INF/container.xml": CONTAINER.format("in/book.opf"),
        "in/book.opf": PACKAGE,
        "in/b b.xhtml": PAGE.format("iso-8859-7", "Πρώτο").encode("iso-8859-7"),
        "a.html": PAGE.format("utf-8", "Δεύτερο"),
    }
    return {**found, **changed}


def test_the_spine_is_the_order(tmp_path):
    book = read_epub(write_zip(tmp_path / "a.epub", members()))
    assert [block.text for block in book.blocks] == ["Πρώτο", "Δεύτερο"]
    assert book.language == "ell_Grek"


@pytest.mark.parametrize(
    "changed",
    [
        {"META-INF/container.xml": "<container/>"},
        {"META-INF/container.xml": CONTAINER.format("../../etc/passwd")},
        {"in/book.opf": PACKAGE.replace('idref="a"', 'idref="z"')},
        {"in/book.opf": PACKAGE.replace("../a.html", "../../../a.html")},
        {"in/book.opf": "<package>"},
    ],
)
def test_broken_books(tmp_path, changed):
    with pytest.raises(DataError, match=r"a\.epub"):
        read_epub(write_zip(tmp_path / "a.epub", members(**changed)))


def test_contents_are_no_text(tmp_path):
    book = read_epub(write_epub(tmp_path / "a.epub", ["<html><p>x</p></html>"]))
    assert [block.text for block in book.blocks] == ["x"]
