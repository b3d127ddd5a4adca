"""All kinds have a reader, and say what they need."""

from __future__ import annotations

import importlib
import sys

import pytest

from interlingua.corpus.documents.kinds import (
    DOCUMENT_SUFFIXES,
    OTHER_DOCUMENTS,
    SECTION_SUFFIXES,
)
from interlingua.corpus.documents.reading import read_blocks, read_document, remedy_of
from interlingua.errors import DataError, MissingExtraError


def test_every_kind_has_one_reader():
    assert set(SECTION_SUFFIXES) < set(DOCUMENT_SUFFIXES)
    assert not set(OTHER_DOCUMENTS) & set(DOCUMENT_SUFFIXES)
    for suffix in OTHER_DOCUMENTS:
        assert suffix in remedy_of(suffix)


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("a.docx", "docx"),
        ("a.pdf", "pdfminer.layout"),
        ("a.srt", "pysubs2"),
        ("a.txt", "charset_normalizer"),
    ],
)
def test_a_missing_package_is_named(tmp_path, monkeypatch, name, module):
    path = tmp_path / name
    path.write_bytes(b"%PDF-1.7 \xe4\xf6" if name == "a.pdf" else b"x")
    if name == "a.txt":
        path.write_bytes("Летом библиотека открыта".encode("cp1251"))
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtraError, match="pip install"):
        read_document(path)


def test_text_may_be_compressed(tmp_path):
    path = tmp_path / "a.html.gz"
    gzip = importlib.import_module("gzip")
    path.write_bytes(gzip.compress(b"<p>a</p>"))
    assert read_document(path).units == [("a", "paragraph", 0)]


def test_an_unknown_language_is_refused(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("x")
    with pytest.raises(DataError, match="klingonese"):
        read_document(path, "klingonese")
    assert read_blocks(path).blocks[0].text == "x"
