import unicodedata

import pytest

from interlingua.config import languages
from interlingua.corpus.cleaning.scripts import (
    BLOCKS,
    OTHER,
    letter_widths,
    script_numbers,
    scripts_of,
)

SAMPLES = {
    "eng_Latn": "Latin łżü ệ", "rus_Cyrl": "Привет ё", "ell_Grek": "Γειά σου ἄ", "heb_Hebr": "שלום",
    "arb_Arab": "مرحبا", "hin_Deva": "नमस्ते", "tha_Thai": "สวัสดี", "kor_Hang": "안녕",
    "zho_Hans": "你好", "jpn_Jpan": "こんにちはカタカナ漢字", "zho_Hant": "漢語", "amh_Ethi": "ሰላም",
    "kat_Geor": "გამარჯობა", "hye_Armn": "բարև", "tam_Taml": "வணக்கம்", "mya_Mymr": "မင်္ဂလာပါ",
    "khm_Khmr": "សួស្តី", "bod_Tibt": "བོད", "srp_Cyrl": "Zdravo Здраво",
}  # fmt: skip
NAMES = {
    "Latn": "LATIN", "Cyrl": "CYRILLIC", "Grek": "GREEK", "Arab": "ARABIC", "Deva": "DEVANAGARI",
    "Thai": "THAI", "Hebr": "HEBREW", "Ethi": "ETHIOPIC", "Geor": "GEORGIAN", "Tibt": "TIBETAN",
    "Khmr": "KHMER",
}  # fmt: skip


@pytest.mark.parametrize("code", SAMPLES)
def test_every_letter_of_a_sample_is_in_its_languages_script(code):
    numbers = script_numbers()[[ord(c) for c in SAMPLES[code] if c != " "]]
    assert (numbers > 0).all()
    assert scripts_of(code)[numbers].all()


def test_other_scripts_are_not():
    cyrillic = script_numbers()[ord("Ж")]
    assert not scripts_of("eng_Latn")[cyrillic]
    assert not scripts_of("jpn_Jpan")[cyrillic]
    assert not scripts_of("zho_Hans")[script_numbers()[ord("カ")]]
    assert not scripts_of("eng_Latn")[OTHER]


def test_what_is_no_letter_has_no_script():
    assert not script_numbers()[[ord(c) for c in " 0.,%-—»€😀\n"]].any()


def test_blocks_agree_with_the_names_of_their_letters():
    number = {script: i for i, script in enumerate(BLOCKS, start=1)}
    table = script_numbers()
    for script, name in NAMES.items():
        letters = [
            c
            for c in range(0x3000)
            if unicodedata.name(chr(c), "").startswith(f"{name} ") and chr(c).isalpha()
        ]
        share = sum(table[c] == number[script] for c in letters) / len(letters)
        assert share > 0.97, script


def test_every_script_of_the_language_table_is_known_or_lets_everything_pass():
    for language in languages.known():
        assert scripts_of(language.code).any()
    assert scripts_of("xxx_Zzzz").all()


def test_widths_are_those_measured_on_parallel_text():
    widths = letter_widths()
    table = script_numbers()
    assert [widths[table[ord(c)]] for c in "aЖ字かカ한ሰ "] == [1, 1, 3, 2, 2, 2, 1.5, 1]
