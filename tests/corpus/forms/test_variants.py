from __future__ import annotations

import random
import unicodedata

import pytest

from interlingua.corpus.forms.text_forms import TEXT_FORMS, undo_forms
from interlingua.corpus.forms.variants import FORM_VARIANTS, check_variants
from interlingua.errors import ConfigError

GERMAN = "Die Müllabfuhr kommt heute, um 7.30 Uhr - nicht morgen: schade!"


def form(name, text, language="", seed=0):
    return FORM_VARIANTS[name](text, random.Random(seed), language)


@pytest.mark.parametrize(
    ("name", "language", "text", "expected"),
    [
        ("capitals", "deu_Latn", "Straße", "STRASSE"),
        ("capitals", "tur_Latn", "ılık iş", "ILIK İŞ"),
        ("capitals", "ell_Grek", "Η βιβλιοθήκη", "Η ΒΙΒΛΙΟΘΗΚΗ"),
        ("lower_case", "tur_Latn", "Işık İş", "ışık iş"),
        ("lower_case", "deu_Latn", "Der Hund", "der hund"),
        ("decomposed", "kor_Hang", "도서", unicodedata.normalize("NFD", "도서")),
        ("soft_hyphens", "deu_Latn", "Die Bibliothek", "Die Bib\u00adlio\u00adthek"),
        ("soft_hyphens", "deu_Latn", "Bahnhof", "Bah\u00adnhof"),
        ("soft_hyphens", "hin_Deva", "पुस्तकालय", "पुस्तकालय"),
        ("no_punctuation", "eng_Latn", "Don't - 3.5 km, please!", "Don't 3.5 km please"),
        ("no_punctuation", "zho_Hans", "你好，世界。", "你好 世界"),
        ("points", "eng_Latn", "no points", "no points"),
        ("typos", "eng_Latn", "a b c", "a b c"),
    ],
)
def test_forms_of_sentences(name, language, text, expected):
    assert form(name, text, language) == expected


@pytest.mark.parametrize("text", ["المكتبة مغلقة يوم الأحد.", "הספרייה סגורה בימי ראשון."])
def test_points_can_be_taken_away_again(text):
    pointed = form("points", text)
    assert len(pointed) > len(text)
    assert undo_forms([pointed], ["points"]) == [text]
    # Points that are there already do not add up.
    assert form("points", pointed) == pointed


def test_typos_are_drawn_and_few():
    found = {form("typos", GERMAN, seed=seed) for seed in range(50)}
    assert len(found) > 10
    for typed in found:
        words = zip(typed.split(), GERMAN.split(), strict=True)
        assert sum(typed_word != word for typed_word, word in words) <= 1
    assert form("typos", GERMAN, seed=3) == form("typos", GERMAN, seed=3)


@pytest.mark.parametrize("name", ["decomposed", "soft_hyphens", "points"])
def test_the_forms_of_typing_are_undone_before_tokens(name):
    for text in (GERMAN, "المكتبة مغلقة يوم الأحد.", "도서관은 일요일에"):
        assert undo_forms([form(name, text)], TEXT_FORMS) == [text]


def test_an_unknown_form_is_refused():
    check_variants(("capitals", "typos"), "forms")
    with pytest.raises(ConfigError, match=r"forms.*capitals"):
        check_variants(("capital",), "forms")
