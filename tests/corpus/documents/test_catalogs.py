"""One side of gettext and XLIFF as a document."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import read_document
from interlingua.errors import DataError, LanguageAbsentError

PO = (
    'msgid ""\nmsgstr "Language: ru\\nContent-Type: text/plain; charset=UTF-8\\n"\n\n'
    'msgid "Open"\nmsgstr "Открыть"\n\nmsgid "Save"\nmsgstr ""\n'
)
XLIFF = (
    '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file source-language="en"'
    ' target-language="el" original="a" datatype="plaintext"><body><trans-unit id="1">'
    "<source>Open <g id='1'>it</g></source><target>Άνοιγμα</target></trans-unit></body></file>"
    "</xliff>"
)


@pytest.mark.parametrize(
    ("name", "content", "texts", "code"),
    [
        ("a.po", PO, ("Open", "Открыть"), "rus_Cyrl"),
        ("a.xlf", XLIFF, ("Open it", "Άνοιγμα"), "ell_Grek"),
    ],
)
def test_sides(tmp_path, name, content, texts, code):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    target = read_document(path)
    assert target[0][0].text == texts[1]
    assert target.language == code
    assert read_document(path, code) == target
    source = read_document(path, "en")
    assert [unit.text for unit in source.units] == [texts[0]]
    assert source.language == "eng_Latn"
    with pytest.raises(LanguageAbsentError, match=name):
        read_document(path, "ja")


def test_untranslated_entries_are_counted(tmp_path):
    path = tmp_path / "a.po"
    path.write_text(PO)
    assert "1 entry" in read_document(path).notes[0]
    path.write_text(PO.replace("Открыть", ""))
    with pytest.raises(DataError, match=r"a\.po"):
        read_document(path)


def test_reasons_that_no_entry_has_are_not_noted(tmp_path):
    path = tmp_path / "a.xlf"
    path.write_text(XLIFF, encoding="utf-8")
    assert read_document(path, "el").notes == ()
