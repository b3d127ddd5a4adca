"""OpenDocument: what is shown, and notes."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents.opendocument import read_open_document
from interlingua.corpus.documents.units import units_of
from interlingua.errors import DataError
from tests.corpus.documents.made import odt_content, write_zip

STYLES = (
    '<office:document-styles xmlns:office="o" xmlns:style="s" xmlns:fo="f"><office:styles>'
    '<style:default-style style:family="paragraph"><style:text-properties fo:language="{}"'
    ' fo:country="CH"/></style:default-style></office:styles></office:document-styles>'
)


def read(tmp_path, body, **members):
    path = write_zip(tmp_path / "a.odt", {"content.xml": odt_content(body), **members})
    return read_open_document(path)


@pytest.mark.parametrize(
    ("body", "units"),
    [
        ("<text:p>a<text:s/>b<text:tab/>c<text:line-break/>d <text:span>e</text:span>f</text:p>", [("a b c d ef", "paragraph", 0)]),
        ("<text:tracked-changes><text:p>x</text:p></text:tracked-changes><text:p>a</text:p>", [("a", "paragraph", 0)]),
        ("<text:p>a<office:annotation><text:p>x</text:p></office:annotation>b</text:p>", [("ab", "paragraph", 0)]),
        ("<text:p>a<text:note><text:note-citation>1</text:note-citation><text:note-body><text:p>note</text:p></text:note-body></text:note>.</text:p>", [("a.", "paragraph", 0), ("note", "paragraph", 0)]),
        ("<text:table-of-content><text:p>x 3</text:p></text:table-of-content><text:section><text:p>a</text:p></text:section>", [("a", "paragraph", 0)]),
        ('<text:p text:style-name="P1">T</text:p><text:p text:style-name="Title">U</text:p>', [("T", "heading", 1), ("U", "heading", 1)]),
        ('<text:h text:outline-level="9">a</text:h><text:h text:outline-level="x">b</text:h><text:h>c</text:h>', [("a", "heading", 6), ("b", "heading", 1), ("c", "heading", 1)]),
        ("<table:table><table:table-row><table:table-cell><text:list><text:list-item><text:p>x</text:p></text:list-item></text:list></table:table-cell></table:table-row></table:table>", [("x", "cell", 0)]),
    ],
)  # fmt: skip
def test_blocks(tmp_path, body, units):
    assert [tuple(unit) for unit in units_of(read(tmp_path, body).blocks)] == units


@pytest.mark.parametrize(("language", "code"), [("de", "deu_Latn"), ("none", "")])
def test_the_language_of_the_default_style(tmp_path, language, code):
    found = read(tmp_path, "<text:p>a</text:p>", **{"styles.xml": STYLES.format(language)})
    assert found.language == code


def test_a_spreadsheet_is_no_document(tmp_path):
    content = odt_content("").replace("office:text", "office:spreadsheet")
    with pytest.raises(DataError, match=r"a\.odt"):
        read_open_document(write_zip(tmp_path / "a.odt", {"content.xml": content}))
