from __future__ import annotations

import re
import tomllib
import unicodedata
from importlib import resources

import numpy as np
import pytest

from interlingua.config.languages import resolve_language
from interlingua.corpus.cleaning.codepoints import encode_codepoints
from interlingua.corpus.cleaning.scripts import script_numbers, scripts_of
from interlingua.corpus.negatives.contrasts import _KINDS, UNSPACED, contrasts, languages

RAW = tomllib.loads((resources.files("interlingua") / "data" / "contrasts.toml").read_text("utf-8"))
ENTRIES = [
    (code, kind, " ".join(entry.split()))
    for code, kinds in RAW.items()
    for kind, entries in kinds.items()
    for entry in entries.split(",")
]


def test_phrases_stand_for_each_other():
    english = contrasts("en")
    assert set(english["antonym"].table["old"]) == {"new", "young"}
    assert "large" in english["antonym"].table["small"]
    assert english["negation"].table["not"] == ("",)
    assert english["negation"].table["isn't"] == ("is",)
    assert english["negation"].table["is"] == ("is not",)
    assert [m[0] for m in english["negation"].pattern.finditer("It IS NOT, it isn\u2019t")] == [
        "IS NOT",
        "isn\u2019t",
    ]


def test_scripts_without_spaces_are_told_apart():
    assert not contrasts("zh")["antonym"].spaced
    assert contrasts("ko")["antonym"].spaced
    assert contrasts("zho-TW")["antonym"].table["增加"] == ("減少",)


def test_most_languages_have_none():
    assert contrasts("kab_Latn") == {}
    assert len(languages()) >= 45


def test_the_lexicon_is_sorted_and_in_known_languages():
    assert list(languages()) == sorted(set(languages()))
    assert all(resolve_language(code).code == code for code in languages())
    assert {kind for kinds in RAW.values() for kind in kinds} == set(_KINDS)
    assert all(set(kinds) == set(_KINDS) for kinds in RAW.values())


@pytest.mark.parametrize("code", languages())
def test_entries_are_clean(code):
    for kind, entry in ((kind, entry) for place, kind, entry in ENTRIES if place == code):
        first, _, second = entry.partition("|" if "|" in entry else ">")
        assert len(re.findall("[|>]", entry)) == 1, entry
        assert first, entry
        assert first != second, entry
        assert first.lower() == first, entry
        assert second.lower() == second, entry
        assert second or (kind == "negation" and ">" in entry), entry
        assert unicodedata.normalize("NFC", entry) == entry, entry
        expected, numbers = scripts_of(code), script_numbers()[encode_codepoints(first + second)]
        assert expected[numbers[numbers > 0]].all(), entry
        assert (np.count_nonzero(numbers) > 1) or code.endswith(("Hans", "Hant", "Hang")), entry


@pytest.mark.parametrize("code", languages())
def test_no_entry_comes_twice(code):
    for kind, opposites in contrasts(code).items():
        for phrase, others in opposites.table.items():
            assert len(set(others)) == len(others), (kind, phrase)
    assert sum(len(opposites.table) for opposites in contrasts(code).values()) >= 40
    assert contrasts(code)["antonym"].spaced == (resolve_language(code).script not in UNSPACED)
