"""Documents that are archives: members, and what is no archive."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents.archives import open_document
from interlingua.errors import DataError
from interlingua.storage import limits
from tests.corpus.documents.made import write_zip


def test_members(tmp_path):
    path = write_zip(tmp_path / "a.odt", {"content.xml": "x"})
    with open_document(path, ".odt") as archive:
        assert "content.xml" in archive
        assert "meta.xml" not in archive
        assert archive.read("content.xml") == b"x"
        with pytest.raises(DataError, match=r"a\.odt!meta\.xml"):
            archive.read("meta.xml")


def test_a_member_that_is_too_large(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 10)
    path = write_zip(tmp_path / "a.odt", {"content.xml": "x" * 11})
    with open_document(path, ".odt") as archive, pytest.raises(DataError, match=r"content\.xml"):
        archive.read("content.xml")


@pytest.mark.parametrize("content", [b"", b"x", b"PK\x05\x06", b"PK\x03\x04" + b"\0" * 100])
def test_no_archive(tmp_path, content):
    path = tmp_path / "a.docx"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.docx"), open_document(path, ".docx"):
        pass
