"""One text with several translations: streams of two pairs of which the second is reported, and of
which it must not be, in many languages."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.mining.checks import Pairs
from interlingua.mining.rules.consistency import OneSource, OneTranslation

# A text, and two translations that differ.
DIFFERENT = [
    ("Open", "Öffnen", "Offen"),
    ("Save", "Enregistrer", "Sauvegarder"),
    ("File", "Файл", "Папка"),
    ("Close", "閉じる", "終了"),
    ("Search", "搜索", "查找"),
    ("Help", "도움말", "도움"),
    ("Print", "طباعة", "اطبع"),
    ("Back", "חזרה", "אחורה"),
    ("Book", "किताब", "कताब"),  # only a vowel sign
    ("Exit", "Çıkış", "Çıkıs"),  # only a cedilla
    ("Delete {0}", "Poista {0}", "Poista {1}"),
    ("Price", "5 €", "5 $"),
    ("Options", "ตัวเลือก", "ตัวเลือด"),
    ("Error 404", "Σφάλμα 404", "Σφάλμα 405"),
    ("Size", "1.5 MB", "15 MB"),
    ("Time", "1:30 h", "130 h"),
    ("Share", "5 %", "5"),
    ("Pages", "3-5", "35"),
    ("Cold", "-5 °C", "5 °C"),
    ("Part", "1/2", "12"),
]
# Two pairs that are the same for a reader, or have different texts.
CONSISTENT = [
    (("Open", "Öffnen"), ("Open", "Öffnen")),
    (("Open", "Öffnen"), ("open.", "öffnen!")),  # case and punctuation
    (("Café", "Cafe\u0301"), ("Cafe\u0301", "Café")),  # composed and decomposed
    (("Street", "STRASSE"), ("street", "Straße")),
    (("ABC", "ＡＢＣ"), ("ABC", "ABC")),  # full width
    (("Name:", "שם:"), ("Name", "שם\u200f")),  # a directional mark
    (("Search ...", "搜索……"), ("Search", "搜索")),
    (("Delete 3 files", "Usuń 3 pliki"), ("Delete 5 files", "Usuń 5 plików")),
    (("C", "Cé"), ("C++", "Cé++")),
    (("Save", "保存"), ("Store", "保管")),
    (("Yes", "हाँ"), ("No", "नहीं")),
    (("Help", ""), ("Help", "Помощь")),  # no translation before
    (("Help", "Помощь"), ("Help", "...")),  # none after
    (("", "مساعدة"), ("?", "خروج")),  # no source
    (("Size", "1.5 MB"), ("Size", "1,5 MB")),
    (("Version 1.5", "Version 1.5"), ("Version 15", "Version 15")),
    (("Size", "1.500 MB"), ("Size", "1500 MB")),
    (("Size", "1,234,567 B"), ("Size", "1’234’567 B")),
    (("Pages", "3-5"), ("Pages", "3 – 5")),
    (("Version 2.", "Версия 2."), ("Version 2", "Версия 2")),
    (("{0} files", "{0} ไฟล์"), ("{1} files", "{1} ไฟล์")),
]
CHECKS = {"translations": OneTranslation, "sources": OneSource}


def second_score(name, first, second):
    """Return what a check finds in the second of two pairs, which it sees one after the other."""
    check = CHECKS[name](("", ""), None)
    scores = []
    for source, target in (first, second):
        # The other check gets the sides in the other order.
        sides = ([source], [target]) if name == "translations" else ([target], [source])
        scores.append(check.score(Pairs(*sides, np.zeros(1))).item())
    assert scores[0] == 0
    return scores[1]


@pytest.mark.parametrize("name", CHECKS)
def test_a_second_translation_is_reported(name):
    assert len(DIFFERENT) >= 12
    missed = [
        case for case in DIFFERENT if not second_score(name, (case[0], case[1]), (case[0], case[2]))
    ]
    assert missed == []


@pytest.mark.parametrize("name", CHECKS)
def test_the_same_translation_and_other_texts_are_not_reported(name):
    assert len(CONSISTENT) >= 12
    assert [case for case in CONSISTENT if second_score(name, *case)] == []
