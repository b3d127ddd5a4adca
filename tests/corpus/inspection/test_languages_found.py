from __future__ import annotations

import pytest

from interlingua.corpus.inspection.languages_found import (
    guess_language,
    script_shares,
    swapped_pairs,
)
from tests.corpus.inspection.made import german_english


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        ([english for _, english in german_english(50)], "eng_Latn"),
        (["Мы живём в этом большом городе", "Это был хороший день"], "rus_Cyrl"),
        (["Ми живемо в цьому великому місті", "Її дім дуже далеко"], "ukr_Cyrl"),
        (["مرحبا إلى المدينة الكبيرة"], "arb_Arab"),
        (["این شهر خیلی بزرگ است و پدر می‌گوید"], "pes_Arab"),
        (["これは日本語の文です"], "jpn_Jpan"),
        (["这是一个中文句子"], "zho_Hans"),
        (["이것은 문장입니다"], "kor_Hang"),
        (["Αυτή είναι μια πρόταση"], "ell_Grek"),
        (["12 34 5"], None),
        ([], None),
    ],
)
def test_languages(texts, code):
    assert guess_language(texts) == code


FEW_WORDS = {
    # Scots has as many or more of these words among its frequent ones.
    "It is an option on the page with the list in it": "eng_Latn",
    "Click on the name and on the picture with the mouse": "eng_Latn",
    "Het is de man die in de tuin zit en een boek leest": "nld_Latn",
}


@pytest.mark.parametrize("text", FEW_WORDS)
def test_few_words_are_of_the_common_language(text):
    assert guess_language([text]) == FEW_WORDS[text]


def test_many_words_of_a_rare_language_are_not_taken_for_its_common_relative():
    texts = ["It wad be braw tae gang wi the fowk that bide thair", "Whit wis it like, hae ye mair"]
    assert guess_language(texts * 5) == "sco_Latn"


def test_scripts_of_mixed_texts():
    assert script_shares(["abc", "абв"]) == {"Latn": 0.5, "Cyrl": 0.5}
    assert script_shares(["1"]) == {}


@pytest.mark.parametrize("swapped", [range(40, 60), range(30), range(250, 500), range(0)])
def test_swapped_pairs_are_found_and_no_others(swapped):
    pairs = german_english(500)
    for number in swapped:
        pairs[number] = pairs[number][::-1]
    marks = swapped_pairs(pairs)
    assert [number for number, mark in enumerate(marks) if mark] == list(swapped)


def test_two_columns_of_one_language_tell_nothing():
    english = [pair[1] for pair in german_english(600)]
    marks = swapped_pairs(list(zip(english[:300], english[300:], strict=True)))
    assert True not in marks


def test_scripts_without_spaces():
    pairs = [(f"これは{number}番目の文です", f"sentence number {number}") for number in range(300)]
    pairs[100:120] = [pair[::-1] for pair in pairs[100:120]]
    marks = swapped_pairs(pairs)
    assert [number for number, mark in enumerate(marks) if mark] == list(range(100, 120))
