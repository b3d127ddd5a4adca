from __future__ import annotations

import pytest

from interlingua.corpus.segments import abbreviations
from interlingua.corpus.segments.abbreviations import SAME_AS, words_of_language

TABLES = ["TITLES", "NUMBERED", "WEAK", "UNITS", "STARTERS"]


@pytest.mark.parametrize("name", TABLES)
def test_words_are_written_as_they_are_looked_up(name):
    for words in getattr(abbreviations, name).values():
        assert words == words.lower()
        assert not any(word.endswith(".") for word in words.split())


def test_a_language_has_its_own_words_and_those_of_all():
    german = words_of_language("deu")
    assert {"z.b", "dr"} <= german.titles
    assert "nr" in german.numbered
    assert "ст" not in german.units
    assert words_of_language("xyz").titles == words_of_language("xxx").titles


def test_an_unknown_language_is_judged_as_english_and_a_kin_as_its_kin():
    assert words_of_language("") == words_of_language("eng")
    for code, other in SAME_AS.items():
        assert words_of_language(code) == words_of_language(other)
