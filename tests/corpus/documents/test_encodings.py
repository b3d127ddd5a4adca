"""Encodings: declared, marked and detected; what is not certain is refused."""

from __future__ import annotations

import codecs
import unicodedata

import pytest

from interlingua.corpus.documents import read_document
from interlingua.corpus.documents.encodings import decode_file, detect_charset
from interlingua.errors import DamagedFileError, DataError

GERMAN = (
    "Für die Übersetzung ist es nötig, dass alle Wörter in der richtigen Schrift stehen. Das ist"
    " nicht schwer, und es hilft auch den Menschen, die später daran arbeiten müssen."
)
TEXTS = {
    "cp1252": GERMAN,
    "iso8859-15": "Le café de la gare est ouvert à midi et il ferme à minuit, même pour les élèves"
    " qui arrivent très tard dans la soirée; le cœur de la ville est près de là.",
    "cp1250": "Książka nie jest na stole, ale w szafie, którą kupił mój brat; to jest bardzo dobre"
    " miejsce, bo się nie kurzy i do niej mam blisko, gdy chcę czytać przed snem.",
    "iso8859-2": "Kniha není na stole, ale ve skříni, kterou koupil můj bratr; je to velmi dobré"
    " místo, protože se to tam nepráší a já to mám blízko, když chci číst před spaním.",
    "cp1254": "Bu kitap çok güzel ve herkes için iyi bir şey, ama ben onu daha okumadım; bir gün"
    " ışık gelince oğlum ile birlikte okuyacağım ve ne olduğunu sana da anlatacağım.",
    "cp1257": "Knyga yra ne ant stalo, o spintoje, kurią nupirko mano brolis; tai labai gera vieta,"
    " nes ten nėra dulkių ir aš ją turiu šalia, kai noriu skaityti prieš miegą.",
    "cp1251": "Летом библиотека открыта до позднего вечера, и каждый может взять книгу домой.",
    "koi8-r": "Летом библиотека открыта до позднего вечера, и каждый может взять книгу домой.",
    "cp866": "Летом библиотека открыта до позднего вечера, и каждый может взять книгу домой.",
    "gb18030": "图书馆在夏天开放到晚上八点，我们欢迎大家带孩子来这里看书。这些书可以借回家。",
    "big5": "圖書館在夏天開放到晚上八點，我們歡迎大家帶孩子來這裡看書。這些書可以借回家。",
    "shift_jis": "図書館は夏の間、夜まで開いています。子どもたちと一緒に来てください。",
    "euc_jp": "図書館は夏の間、夜まで開いています。子どもたちと一緒に来てください。",
    "iso2022_jp": "図書館は夏の間、夜まで開いています。子どもたちと一緒に来てください。",
    "euc_kr": "도서관은 여름에 저녁까지 문을 엽니다. 아이들과 함께 오시면 좋겠습니다.",
    "iso8859-7": "Το καλοκαίρι η βιβλιοθήκη είναι ανοιχτή ως αργά το βράδυ. Άλλες μέρες κλείνει.",
    "cp1253": "Το καλοκαίρι η βιβλιοθήκη είναι ανοιχτή ως αργά το βράδυ. Άλλες μέρες κλείνει.",
    "cp1255": "בקיץ הספרייה פתוחה עד שעות הערב המאוחרות, וכל אחד יכול לקחת ספר הביתה.",
    "cp1256": "في الصيف تبقى المكتبة مفتوحة حتى وقت متأخر من المساء ويمكن للجميع أخذ الكتب.",
    "tis-620": "ในฤดูร้อนห้องสมุดเปิดถึงเย็น และทุกคนสามารถยืมหนังสือกลับบ้านได้",
}


@pytest.mark.parametrize("charset", TEXTS)
def test_detected_text_is_that_which_was_written(tmp_path, charset):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXTS[charset].encode(charset))
    document = read_document(path)
    assert [unit.text for unit in document.units] == [TEXTS[charset]]
    # Of ISO 2022 the escapes are a declaration.
    assert bool(document.notes) == (charset != "iso2022_jp")


@pytest.mark.parametrize("charset", ["utf-8-sig", "utf-16", "utf-16-be", "utf-16-le", "utf-32"])
@pytest.mark.parametrize("text", [GERMAN, TEXTS["shift_jis"], TEXTS["cp1251"]])
def test_unicode_with_and_without_mark(charset, text):
    assert decode_file(text.encode(charset), "a").text == text


def test_utf_16_of_both_orders_with_a_mark():
    for mark, charset in ((codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le")):
        assert decode_file(mark + "né".encode(charset), "a").text == "né"


@pytest.mark.parametrize(
    "head",
    [
        '<meta charset="{}">',
        "<META http-equiv='Content-Type' content='text/html; charset={}'>",
        '<?xml version="1.0" encoding="{}"?>',
    ],
)
@pytest.mark.parametrize("charset", ["windows-1251", "KOI8-R", "iso-8859-5"])
def test_the_declared_encoding_is_first(tmp_path, head, charset):
    path = tmp_path / "a.html"
    path.write_bytes((head.format(charset) + "<p>Да, нет").encode(charset))
    document = read_document(path)
    assert document.units[0].text == "Да, нет"
    assert document.notes == ()


def test_a_wrong_declaration_is_reported(tmp_path):
    path = tmp_path / "a.html"
    path.write_bytes(b'<meta charset="euc-kr"><p>' + GERMAN.encode("cp1252"))
    document = read_document(path)
    assert document.units[0].text == GERMAN
    assert "euc-kr" in document.notes[0]
    assert "cp1252" in document.notes[1]


def test_utf_8_under_another_declaration(tmp_path):
    path = tmp_path / "a.html"
    path.write_bytes(b'<meta charset="iso-8859-1"><p>' + GERMAN.encode())
    assert read_document(path).units[0].text == GERMAN


@pytest.mark.parametrize(
    "content",
    [
        b"caf\xe9 text\n",
        b"\xe4\xf6\xfc",
        b"abc \xff\xfe\xfd def \x81\x8d\n" * 20,
        bytes(range(128, 256)) * 10,
        b"plain ascii words in the text of a file \x93and quotes\x94 of the unknown xq\xd0zv" * 3,
    ],
)
def test_what_is_not_certain_is_refused(content):
    with pytest.raises(DataError, match=r"a\.txt.*UTF-8"):
        decode_file(content, "a.txt")


def test_utf_8_with_damaged_bytes_is_in_no_other_encoding():
    content = (GERMAN * 20).encode() + b"\n\xff\xfe kaputt"
    with pytest.raises(DamagedFileError, match=r"a\.txt:2:"):
        decode_file(content, "a.txt")


def test_a_given_language_decides():
    text = "Żółć i gęś"
    with pytest.raises(DataError, match="UTF-8"):
        detect_charset(text.encode("cp1250"), "a")
    assert detect_charset(text.encode("cp1250"), "a", "pol_Latn") == "cp1250"


def test_vietnamese_with_apart_tones():
    text = unicodedata.normalize("NFC", "Tiếng Việt là một ngôn ngữ, và tôi đang học nó.")
    parts = []
    for character in text:
        marks = unicodedata.normalize("NFD", character)
        tones = "".join(mark for mark in marks if mark in "\u0300\u0301\u0303\u0309\u0323")
        base = "".join(mark for mark in marks if mark not in tones)
        parts.append(unicodedata.normalize("NFC", base) + tones)
    content = "".join(parts).encode("cp1258")
    decoded = decode_file(content, "a", language="vie_Latn")
    assert unicodedata.normalize("NFC", decoded.text) == text
