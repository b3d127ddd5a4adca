"""The same document in every kind and in many languages has the same units."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import read_document
from tests.corpus.documents.made import (
    html_of,
    markdown_of,
    write_docx,
    write_epub,
    write_odt,
)

TEXTS = {
    "de": "Die Bücherei ist im Sommer länger geöffnet.",
    "fr": "La bibliothèque est ouverte à midi.",
    "ar": "المكتبة مفتوحة في الصيف حتى المساء.",
    "he": "הספרייה פתוחה בקיץ עד הערב.",
    "fa": "کتابخانه در تابستان باز است.",
    "zh-Hans": "图书馆夏天开放到晚上八点，欢迎大家来。",
    "ja": "図書館は夏の間、夜まで開いています。",
    "ko": "도서관은 여름에 저녁까지 문을 엽니다.",
    "th": "ห้องสมุดเปิดถึงเย็นในฤดูร้อน",
    "hi": "पुस्तकालय गर्मियों में शाम तक खुला रहता है।",
    "el": "Η βιβλιοθήκη είναι ανοιχτή το καλοκαίρι.",
    "ru": "Летом библиотека открыта до вечера.",
    "am": "ቤተ መጻሕፍቱ በበጋ ክፍት ነው።",
    "my": "စာကြည့်တိုက်ကို ညနေအထိ ဖွင့်ထားသည်။",
}
CODES = {
    "de": "deu_Latn", "fr": "fra_Latn", "ar": "arb_Arab", "he": "heb_Hebr", "fa": "pes_Arab",
    "zh-Hans": "zho_Hans", "ja": "jpn_Jpan", "ko": "kor_Hang", "th": "tha_Thai", "hi": "hin_Deva",
    "el": "ell_Grek", "ru": "rus_Cyrl", "am": "amh_Ethi", "my": "mya_Mymr",
}  # fmt: skip


def blocks_of(text):
    return [
        ("heading", 1, text[:12].strip()),
        ("paragraph", 0, text),
        ("item", 1, text[:-1]),
        ("item", 2, text[1:].strip()),
        ("heading", 2, text[:8].strip()),
        ("cell", 0, f"{text} & <1>"),
        ("paragraph", 0, f"2. {text}"),
    ]


def write(kind, path, blocks, title, language):
    if kind == "docx":
        return write_docx(path, blocks, title, language)
    if kind == "odt":
        return write_odt(path, blocks, title, language)
    if kind == "epub":
        # Two pages, each with a part of the text.
        pages = [html_of(blocks[:3]), html_of(blocks[3:])]
        return write_epub(path, pages, title, language)
    text = markdown_of if kind == "md" else html_of
    path.write_text(text(blocks, title, language), encoding="utf-8")
    return path


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("kind", ["docx", "odt", "epub", "html"])
def test_units_title_and_language(tmp_path, kind, language):
    blocks = blocks_of(TEXTS[language])
    path = write(kind, tmp_path / f"a.{kind}", blocks, TEXTS[language][:9], language)
    document = read_document(path)
    assert [(unit.kind, unit.level, unit.text) for unit in document.units] == blocks
    assert document.title == TEXTS[language][:9].strip()
    assert document.language == CODES[language]
    assert document.notes == ()


@pytest.mark.parametrize("language", TEXTS)
def test_markdown(tmp_path, language):
    # A paragraph that starts with a number is an item there.
    blocks = blocks_of(TEXTS[language])[:5]
    document = read_document(write("md", tmp_path / "a.md", blocks, "T", language))
    assert [(unit.kind, unit.level, unit.text) for unit in document.units] == blocks
    assert document.language == CODES[language]


@pytest.mark.parametrize("kind", ["docx", "odt", "epub", "html", "md"])
def test_a_language_in_another_script_is_not_taken(tmp_path, kind):
    blocks = blocks_of(TEXTS["ru"])[:5]
    document = read_document(write(kind, tmp_path / f"a.{kind}", blocks, "T", "en"))
    assert document.language == ""
    assert "declares the language en" in document.notes[0]
