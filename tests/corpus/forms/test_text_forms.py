from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, normalizers

from interlingua.corpus.forms.text_forms import (
    IN_TOKENIZER_FILE,
    TEXT_FORMS,
    normalizers_of,
    undo_forms,
)

CASES = [
    ("invisible", "Bib\u00adlio\u00adthek", "Bibliothek"),
    ("invisible", "\ufeffa\u200bb\u2060c\u200e\u202bd\u2069", "abcd"),
    ("invisible", "a\u200cb\u200dc", "abc"),
    # Persian, Sinhala and emoji are written with joiners.
    ("invisible", "می\u200cخواهم", "می\u200cخواهم"),
    ("invisible", "ශ්\u200dරී", "ශ්\u200dරී"),
    ("invisible", "\U0001f469\u200d\U0001f52c", "\U0001f469\u200d\U0001f52c"),
    ("presentation", "ﻣﺮﺣﺒﺎ ﬁne Ａ１", "مرحبا fine A1"),
    ("presentation", "ｶﾞｷﾞ", "ガギ"),
    # Punctuation of Chinese, and what says something else in plain letters.
    ("presentation", "你好，世界！ 10⁵ ½", "你好，世界！ 10⁵ ½"),
    ("decomposed", unicodedata.normalize("NFD", "도서관 é й ờ"), "도서관 é й ờ"),
    ("points", "الْمَكْتَبَةُ مُغْلَقَةٌ", "المكتبة مغلقة"),
    ("points", "כתـاب مـــحمد", "כתاب محمد"),
    ("points", "שָׁלוֹם", "שלום"),
    # Alef with madda and with hamza are letters, and so are the marks of Hindi.
    ("points", "آن أخ हिन्दी", "آن أخ हिन्दी"),
    ("capitals", "БИБЛИОТЕКА ЗАКРЫТА. УВЫ! «ДА»", "Библиотека закрыта. Увы! «Да»"),
    ("capitals", "KÜTÜPHANE PAZAR GÜNLERİ KAPALIDIR.", "Kütüphane pazar günleri kapalıdır."),
    ("capitals", "THIS IS TITANIC", "This is titanic"),
    ("capitals", "ΟΙ ΚΥΡΙΑΚΕΣ", "Οι κυριακες"),
    ("capitals", "ᲡᲐᲥᲐᲠᲗᲕᲔᲚᲝ ᲥᲕᲔᲧᲐᲜᲐ", "საქართველო ქვეყანა"),
    ("capitals", "UNESCO", "UNESCO"),
    ("capitals", "IBM SAP AG", "IBM SAP AG"),
    ("capitals", "我在NASA和IBM工作", "我在NASA和IBM工作"),
    ("capitals", "LONDON (Reuters)", "LONDON (Reuters)"),
]


@pytest.mark.parametrize(("form", "text", "expected"), CASES)
def test_a_form_is_undone_and_nothing_else(form, text, expected):
    assert undo_forms([text], [form]) == [expected]
    others = [other for other in TEXT_FORMS if other != form]
    assert undo_forms([expected], [form]) == [expected]
    assert (
        undo_forms(undo_forms([text], others), [form])[0].casefold()
        == undo_forms([text], TEXT_FORMS)[0].casefold()
    )


def test_without_forms_texts_stay_as_they_are():
    texts = [text for _, text, _ in CASES]
    assert undo_forms(texts, ()) == texts


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_twice_is_once(text):
    once = undo_forms([text], TEXT_FORMS)
    assert undo_forms(once, TEXT_FORMS) == once


@given(st.text(alphabet="İIĞÜüßﬃŉΣ ΑBC.ᲡǅĲ", max_size=30))
def test_sentence_case_keeps_the_length(text):
    (written,) = undo_forms([text], ["capitals"])
    assert len(written) == len(text)


def test_a_tokenizer_file_undoes_what_it_can():
    steps = normalizers_of(TEXT_FORMS)
    assert [step["type"] for step in steps] == ["Replace", "NFC", "Replace"]
    made = [
        normalizers.NFC()
        if step["type"] == "NFC"
        else normalizers.Replace(Regex(step["pattern"]["Regex"]), step["content"])
        for step in steps
    ]
    normalizer = normalizers.Sequence(made)
    for _, text, _ in CASES:
        # Presentation forms of points are all that NFC and NFKC see differently.
        if not re.search("[\ufb1d-\ufdff\ufe70-\ufefc]", text):
            assert normalizer.normalize_str(text) == undo_forms([text], IN_TOKENIZER_FILE)[0]
    assert normalizers_of(["presentation", "capitals"]) == []
