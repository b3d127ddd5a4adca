"""PDF: lines joined to paragraphs, headers left out, right-to-left lines in reading order."""

from __future__ import annotations

import pytest

from interlingua.corpus.documents import pdf, read_document
from interlingua.errors import DataError
from tests.corpus.documents.made import pdf_of, stream, write_pdf


def page(*lines, header="", footer=""):
    found = [(50, 700 - 16 * number, 12, text) for number, text in enumerate(lines) if text]
    if header:
        found.insert(0, (50, 780, 8, header))
    if footer:
        found.append((290, 20, 8, footer))
    return found


def read(tmp_path, pages, **options):
    return read_document(write_pdf(tmp_path / "a.pdf", pages, **options))


def test_headers_numbers_hyphens_and_pages(tmp_path):
    headers = [f"Annual report {number}" for number in range(1, 5)]
    lines = ("A text about a well-known gar-", "den in the north of")
    first = page(*lines, header=headers[0], footer="1")
    second = ("the country.", "", "Its trees are well-", "known and old.")
    pages = [
        [(50, 740, 20, "The garden"), *first],
        page(*second, header=headers[1], footer="2"),
        page("The last page.", header=headers[2], footer="3"),
        page("", "", "One more.", header=headers[3], footer="iv"),
    ]
    document = read(tmp_path, pages, language="en-GB", title="The Gärden")
    assert [tuple(unit) for unit in document.units] == [
        ("The garden", "heading", 1),
        ("A text about a well-known garden in the north of the country.", "paragraph", 0),
        ("Its trees are well-known and old.", "paragraph", 0),
        ("The last page.", "paragraph", 0),
        ("One more.", "paragraph", 0),
    ]
    assert document.title == "The Gärden"
    assert document.language == "eng_Latn"


def test_levels_and_items(tmp_path):
    lines = [
        (50, 750, 24, "Part one"),
        (50, 700, 16, "First chapter"),
        (50, 660, 12, "Text of the chapter, which says a lot about it."),
        (50, 620, 12, "• an item of a list that"),
        (50, 606, 12, "goes on"),
        (50, 592, 12, "• another one"),
    ]
    assert [tuple(unit) for unit in read(tmp_path, [lines]).units] == [
        ("Part one", "heading", 1),
        ("First chapter", "heading", 2),
        ("Text of the chapter, which says a lot about it.", "paragraph", 0),
        ("an item of a list that goes on", "item", 1),
        ("another one", "item", 1),
    ]


@pytest.mark.parametrize(
    ("language", "lines", "text"),
    [
        ("de", ("Die Straße ist län-", "ger als gedacht."), "Die Straße ist länger als gedacht."),
        ("ru", ("Летом биб-", "лиотека открыта."), "Летом библиотека открыта."),
        ("el", ("Το καλοκαίρι η", "βιβλιοθήκη."), "Το καλοκαίρι η βιβλιοθήκη."),
        ("zh", ("图书馆夏天开放到", "晚上八点。"), "图书馆夏天开放到晚上八点。"),
        (
            "ja",
            ("図書館は夏の間、", "夜まで開いています。"),
            "図書館は夏の間、夜まで開いています。",
        ),
        ("ko", ("도서관은 여름에", "문을 엽니다."), "도서관은 여름에 문을 엽니다."),
        ("th", ("ห้องสมุดเปิดถึงเย็น",), "ห้องสมุดเปิดถึงเย็น"),
        ("hi", ("पुस्तकालय शाम तक", "खुला रहता है।"), "पुस्तकालय शाम तक खुला रहता है।"),
        ("he", ("בוט רפס הז ,םולש", ".(ABC 26) 15,5 ףוס"), "שלום, זה ספר טוב סוף 15,5 (ABC 26)."),
        ("ar", ("ﺔﺒﺘﻜﻤﻟا", ".2019 ﻲﻓ ﺔﺣﻮﺘﻔﻣ"), "المكتبة مفتوحة في 2019."),
        ("fr", ("Le ﬁlm oﬃciel est", "« bon »."), "Le film officiel est « bon »."),
    ],
)
def test_lines_are_joined_in_reading_order(tmp_path, language, lines, text):
    document = read(tmp_path, [page(*lines)], language=language)
    assert [unit.text for unit in document.units] == [text]
    assert document.language[:2] == {"zh": "zh", "ja": "jp"}.get(language, document.language[:2])


def test_a_hebrew_word_inside_of_a_left_to_right_line():
    assert pdf._in_reading_order("The word בוט םולש is Hebrew") == "The word שלום טוב is Hebrew"


def test_pages_without_text(tmp_path):
    with pytest.raises(DataError, match=r"a\.pdf.*ocrmypdf"):
        read(tmp_path, [[], []])


def test_glyphs_without_characters(tmp_path):
    font = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /M /Encoding /Identity-H /DescendantFonts [<<"
        b" /Type /Font /Subtype /CIDFontType2 /BaseFont /M /CIDSystemInfo << /Registry (Adobe)"
        b" /Ordering (Identity) /Supplement 0 >> >>] >>"
    )
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources << /Font"
        b" << /F1 5 0 R >> >> >>",
        stream(b"BT /F1 12 Tf 50 700 Td <00410042004300440045> Tj ET"),
        font,
    ]
    path = tmp_path / "a.pdf"
    path.write_bytes(pdf_of(objects))
    with pytest.raises(DataError, match=r"a\.pdf.*ocrmypdf"):
        read_document(path)
