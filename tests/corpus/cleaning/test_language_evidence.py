"""Languages against the scripts and words of texts, for bitexts and for texts of one language."""

from __future__ import annotations

import pytest

from interlingua.corpus.cleaning.language_evidence import contradicting_script
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.monolingual import language_of
from interlingua.errors import DataError, LanguageError
from tests.corpus.conftest import write

KOREAN = "안녕하세요 여러분, 오늘은 날씨가 좋습니다."
CHINESE = "今天天气很好，我们一起去公园吧。你好吗？"
JAPANESE = "こんにちは、今日はいい天気ですね。"
RUSSIAN = "Добрый день, дорогие друзья, как дела?"
GREEK = "Καλημέρα, αγαπητοί φίλοι, τι κάνετε;"
SERBIAN = "Dobar dan dragi prijatelji kako ste danas"
SWEDISH = "Det är en bok som jag inte har läst och det är bra att du har"
ESTONIAN = "See on hea raamat ja ta ei ole kodus, aga mis oli siin ning kas"
PORTUGUESE = "Não sei se isso é para você, mas são mais que uma para nós"
SLOVENIAN = "To je knjiga za nas in ne vem, da se to na ta dan ni"
MALAY = "Buku ini untuk saya dan yang itu tidak di sini dengan dia dari sana"
ENGLISH = "The house is at the end of the street and that was for this man."


@pytest.mark.parametrize(
    ("text", "code", "script"),
    [
        (KOREAN, "knc_Latn", "Hang"),
        (KOREAN, "kor_Hang", None),
        (KOREAN, "jpn_Jpan", "Hang"),
        (CHINESE, "zho_Hans", None),
        (CHINESE, "zho_Hant", None),
        (CHINESE * 2, "jpn_Jpan", "Hani"),
        (CHINESE * 2, "kor_Hang", "Hani"),
        ("日本語", "jpn_Jpan", None),
        (JAPANESE, "zho_Hans", "Kana"),
        (JAPANESE, "jpn_Jpan", None),
        (RUSSIAN, "deu_Latn", "Cyrl"),
        (SERBIAN, "srp_Cyrl", None),  # it has two scripts
        (ENGLISH, "hin_Deva", "Latn"),
        ("iPhone 15", "zho_Hans", None),  # too little to decide
        (f"{RUSSIAN} {ENGLISH}", "rus_Cyrl", None),
        (f"{KOREAN} {KOREAN} Ur", "knc_Latn", "Hang"),  # 3 % Latin letters, as Wikipedia has them
        (f"{RUSSIAN * 3} Microsoft", "eng_Latn", "Cyrl"),
        (f"{RUSSIAN} {ENGLISH}", "eng_Latn", None),
        (f"{JAPANESE} 東京", "kor_Hang", "Kana"),
    ],
)
def test_a_script_that_contradicts_a_language(text, code, script):
    assert contradicting_script([text], code) == script


NAMES = {
    "kr": (KOREAN, "kor_Hang"), "cz": ("Dobrý den, jak se máte, přátelé?", "ces_Latn"),
    "cn": (CHINESE, "zho_Hans"), "dk": ("Hej med dig, hvordan går det?", "dan_Latn"),
    "gr": (GREEK, "ell_Grek"), "ua": ("Доброго дня, як справи, друзі?", "ukr_Cyrl"),
    "vn": ("Xin chào các bạn, hôm nay trời đẹp.", "vie_Latn"), "jp": (JAPANESE, "jpn_Jpan"),
    "se": (SWEDISH, "swe_Latn"), "ee": (ESTONIAN, "est_Latn"), "br": (PORTUGUESE, "por_Latn"),
    "si": (SLOVENIAN, "slv_Latn"), "my": (MALAY, "zsm_Latn"), "tw": (CHINESE, "zho_Hant"),
    "sg": (ENGLISH, "eng_Latn"), "za": (ENGLISH, "eng_Latn"),
    "am": ("Բարեւ ձեզ, ինչպես եք այսօր?", "hye_Armn"),
    "in": ("नमस्ते दोस्तों, आज मौसम अच्छा है।", "hin_Deva"), "cy": (GREEK, "ell_Grek"),
    "ch": ("Das ist ein Haus, und der Mann ist nicht von hier, auch die Frau", "deu_Latn"),
    "pt-br": (PORTUGUESE, "por_Latn"), "zh-tw": (CHINESE, "zho_Hant"),
    "sr-Latn": (SERBIAN, "srp_Latn"),
    "zh-CHS": (CHINESE, "zho_Hans"), "kg": ("Саламатсызбы, достор, кандайсыздар?", "kir_Cyrl"),
    "la": ("ສະບາຍດີ ເພື່ອນໆ ມື້ນີ້ອາກາດດີ", "lao_Laoo"), "en-us": (ENGLISH, "eng_Latn"),
    "ar": ("Los niños que están con una amiga por la calle, pero las casas del", "spa_Latn"),
    "sa": ("مرحبا أصدقائي، كيف حالكم اليوم؟", "arb_Arab"),
    "kz": ("Сәлем достар, қалайсыздар?", "kaz_Cyrl"),
}  # fmt: skip


@pytest.mark.parametrize("name", list(NAMES))
def test_the_name_of_a_country_is_read_as_its_language(tmp_path, name):
    text, code = NAMES[name]
    assert language_of(write(tmp_path / f"faq.{name}.txt", f"{text}\n")) == code
    if "-" not in name:
        path = write(tmp_path / f"x.{name}-fr.tsv", f"{text}\tCeci est une phrase.\n")
        assert next(read_pairs(path)).source_language == code


def test_a_language_of_a_country_is_found_by_few_frequent_words(tmp_path):
    """Use news with 9 % of the words, which are rarer there than in speech."""
    lines = (
        "Valitsus teatas esmaspäeval, et uus seadus jõustub järgmise aasta alguses.",
        "Teadlased leidsid sügavast järvest haruldase kala, mis elab ainult külmas vees.",
        "Rong väljus jaamast täpselt õigel ajal ja jõudis hommikuks linna.",
        "Muuseumi külastajad saavad nüüd tutvuda vanade käsikirjadega.",
        "Keegi ei teadnud, miks tuled kogu linnas kustusid.",
    )
    path = write(tmp_path / "x.ee-en.tsv", "".join(f"{line}\t{ENGLISH}\n" for line in lines))
    assert next(read_pairs(path)).source_language == "est_Latn"


@pytest.mark.parametrize("name", ["se", "ee", "br", "si", "kr", "tw", "mar"])
def test_a_language_whose_code_is_a_countrys_is_itself_in_its_own_words(tmp_path, name):
    own = {"si": "ආයුබෝවන්, ඔබට කොහොමද අද දින", "mar": "नमस्कार मित्रांनो, आज हवामान छान आहे"}
    path = write(
        tmp_path / f"{name}.txt", f"{own.get(name, 'Dolot bures vuoi, mo manná otne du')}\n"
    )
    codes = {"se": "sme_Latn", "ee": "ewe_Latn", "br": "bre_Latn", "si": "sin_Sinh"}
    codes |= {"kr": "knc_Latn", "tw": "twi_Latn", "mar": "mar_Deva"}
    assert language_of(path) == codes[name]


@pytest.mark.parametrize("name", ["may", "run", "max", "us", "by", "ir"])
def test_a_word_or_a_country_is_no_language_in_a_name(tmp_path, name):
    path = write(tmp_path / f"{name}.txt", "Hello there, my friend.\n")
    with pytest.raises(DataError, match=r"--source-language.*_"):
        language_of(path)


@pytest.mark.parametrize("deep", [0, 300])
def test_a_contradiction_names_file_scripts_and_option(tmp_path, deep):
    rows = [f"{RUSSIAN} {number}\t{ENGLISH}\n" for number in range(deep + 3)]
    path = write(tmp_path / "x.de-en.tsv", "".join(rows))
    with pytest.raises(LanguageError, match=r"x\.de-en\.tsv: .*Latn.*Cyrl.*--source-language"):
        next(read_pairs(path))
    with pytest.raises(LanguageError, match="--target-language"):
        next(read_pairs(path, source_language="ru", target_language="zh"))
    assert next(read_pairs(path, source_language="deu_Cyrl")).source_language == "deu_Cyrl"
    text = write(tmp_path / "x.de.txt", "".join(rows).replace("\t", " ").replace(ENGLISH, ""))
    with pytest.raises(LanguageError, match="deu_Cyrl"):
        language_of(text)
    with pytest.raises(LanguageError, match="--language"):
        language_of(text, "ja", option="--language")


def test_a_language_that_is_given_is_never_replaced(tmp_path):
    path = write(tmp_path / "x.tsv", f"{KOREAN}\t{ENGLISH}\n")
    with pytest.raises(LanguageError, match="kor_Hang"):
        next(read_pairs(path, source_language="kr", target_language="en"))


@pytest.mark.parametrize(
    ("name", "row", "foreign"),
    [
        ("addr.en-ja.tsv", "1-1 Ichibancho, Chiyoda, Tokyo\t東京都千代田区一番町", 0),
        ("ui.en-ko.tsv", "Windows 10 setup\tWindows 10 설치", 2),
        ("copies.en-ru.tsv", f"{ENGLISH}\t{RUSSIAN}", 20),
    ],
)
def test_little_text_in_the_script_of_the_language_is_enough(tmp_path, name, row, foreign):
    """Use Han characters, which may also be Japanese, and other rows in foreign letters."""
    rows = [row, *["Microsoft Office\tMicrosoft Office"] * foreign] * 30
    assert len(list(read_pairs(write(tmp_path / name, "\n".join(rows) + "\n")))) == len(rows)


def test_a_sorted_file_that_begins_with_foreign_names_is_read(tmp_path):
    rows = [f"Windows Server {number}\tWindows Server {number}" for number in range(500)]
    rows += [f"{CHINESE}\t{ENGLISH}"] * 500
    path = write(tmp_path / "x.zh-en.tsv", "\n".join(rows) + "\n")
    assert len(list(read_pairs(path))) == 1000


def test_pairs_before_a_bad_line_come_first(tmp_path):
    path = write(tmp_path / "x.de-en.tsv", "eins\tone\nzwei\n")
    pairs = read_pairs(path)
    assert next(pairs)[:2] == ("eins", "one")
    with pytest.raises(DataError, match="1 column"):
        next(pairs)
