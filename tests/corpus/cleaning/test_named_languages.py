"""Names of files that are also English words: the text decides whether they are languages."""

from __future__ import annotations

import re

import pytest

from interlingua.config.languages import find_code
from interlingua.corpus.cleaning.named_languages import _WORDS, is_contradicted, is_supported
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.monolingual import find_language, language_of
from interlingua.errors import DataError, LanguageError
from interlingua.retrieval.passage_files import read_passages
from tests.corpus.conftest import write

ENGLISH = (
    "The program stops when the file is not there.\n"
    "It was said that this is one of the best things for them to have at home.\n"
    "No one will be able to read it in a day or two.\n"
)
GERMAN = (
    "Das ist ein Haus, und der Mann ist nicht von hier.\n"
    "Ich habe den Bericht auf dem Tisch gefunden, aber sie hat ihn nicht gelesen.\n"
)
NAMES = [
    "bug",
    "ext",
    "fur",
    "hat",
    "lug",
    "fin",
    "kin",
    "to",
    "so",
    "is",
    "may",
    "it",
    "no",
    "as",
    "in",
    "be",
    "he",
    "my",
    "am",
    "or",
    "run",
    "max",
    "min",
    "war",
    "sun",
    "son",
    "ton",
    "ban",
    "bar",
    "ace",
    "nap",
    "lad",
    "her",
    "mon",
    "sat",
    "nov",
    "mar",
    "cat",
    "bin",
    "sin",
    "got",
    "fat",
    "id",
    "io",
    "ml",
    "ps",
    "ts",
    "os",
    "ms",
    "ie",
    "mo",
    "pi",
    "na",
    "hi",
    "ho",
    "an",
    "pan",
    "pam",
    "pap",
    "din",
    "dag",
    "div",
    "doi",
    "fon",
    "gag",
    "ice",
    "jam",
    "lim",
    "lin",
    "lit",
    "mac",
    "mag",
    "mai",
    "mal",
    "nan",
    "nor",
    "per",
    "pol",
    "rum",
    "san",
    "som",
    "spa",
    "sot",
    "tam",
    "tel",
    "war",
    "wal",
    "wol",
    "us",
    "by",
]
"""Names from bug reports, and further ones."""
REAL = {
    "fin": (
        "fin_Latn",
        "Minä olen täällä, ja hän on kotona.\nTämä ei ole se kirja, että sinä tiedät.\n"
        "Tom oli sitä mieltä, että minun on mentävä kotiin.\n",
    ),
    "is": (
        "isl_Latn",
        "Ég er ekki heima og hún er það ekki heldur.\n"
        "Hann sagði að það væri gott að fara með þér.\n",
    ),
    "so": (
        "som_Latn",
        "Waxaa jiray nin ka yimid magaalada oo ku noolaa guri weyn.\n"
        "Dadka oo dhan waa ay u yimaadeen si ay u arkaan isaga iyo xaaskiisa.\n",
    ),
    "it": (
        "ita_Latn",
        "Non so che cosa sia, ma è una cosa molto bella per lui.\nIo non sono con lei.\n",
    ),
    "no": (
        "nob_Latn",
        "Jeg er ikke hjemme, og det er ikke han heller.\nDet var en fin dag for oss på fjellet.\n",
    ),
    "to": (
        "ton_Latn",
        "Ko e tangata naʻe ʻalu ki he fale ʻo ne maʻu ai ʻa e tohi.\n"
        "Naʻe ʻikai te ne ʻilo ko e hā e meʻa ke fai.\n",
    ),
    "may": ("zsm_Latn", "Saya tidak tahu apa yang ada di dalam rumah ini dengan dia.\nDia akan"
            " pergi ke sana dan saya juga untuk makan.\n"),
    "he": ("heb_Hebr", "אני לא יודע מה יש בבית הזה.\n"),
    "my": ("mya_Mymr", "ကျွန်တော် အိမ်မှာ ရှိပါတယ်။\n"),
    "am": ("amh_Ethi", "ሰላም ነው ወይ ጓደኛዬ፣ ዛሬ እንዴት ነህ?\n"),
    "be": ("bel_Cyrl", "Я не ведаю, што гэта такое.\n"),
    "kin": ("kin_Latn", "Uyu muntu ari mu rugo kandi ni umuntu mwiza cyane ku bantu.\nIyi nzu ya"
            " data ni nini, ariko ntabwo ari iya none.\n"),
    "cat": ("cat_Latn", "Això és una casa que no és per a ells.\nEls nens han anat al parc amb la"
            " mare i el pare.\n"),
    "hat": ("hat_Latn", "Mwen pa konnen ki sa ki gen nan kay la.\nLi se yon moun ki te vini pou nou"
            " ak tout fanmi li.\n"),
    "de": ("deu_Latn", GERMAN), "fr": ("fra_Latn", "Bonjour.\n"), "ru": ("rus_Cyrl", "Да.\n"),
}  # fmt: skip


COUNTRIES = {("in", ENGLISH), ("ie", ENGLISH), ("na", ENGLISH), ("be", GERMAN)}
"""Names of countries, and texts in a language of those, which is logged."""


@pytest.mark.parametrize("text", [ENGLISH, GERMAN, "Hello.\n", "1\n2\n3\n", ""])
@pytest.mark.parametrize("name", NAMES)
def test_no_word_becomes_a_wrong_language(tmp_path, name, text, caplog):
    """Check that the error explains how to specify the language."""
    path = write(tmp_path / f"{name}.txt", text)
    right = "deu_Latn" if text == GERMAN else "eng_Latn"
    if (name, text) in COUNTRIES:
        assert language_of(path, option="--language") == right
        assert f"{right} (" in caplog.text
        assert "--language" in caplog.text
        return
    with pytest.raises(DataError, match=r"--language") as caught:
        language_of(path, option="--language")
    assert "\n" not in str(caught.value)
    assert language_of(path, right) == right


@pytest.mark.parametrize("name", list(REAL))
def test_a_language_in_its_own_words_is_itself(tmp_path, name):
    code, text = REAL[name]
    assert language_of(write(tmp_path / f"{name}.txt", text)) == code
    assert language_of(write(tmp_path / f"news.{name}.txt.gz", text)) == code
    assert language_of(write(tmp_path / f"{name}.csv", f"text\n{text.replace(',', '')}")) == code


def test_all_words_are_codes():
    assert len(_WORDS) > 100
    assert all(map(find_code, _WORDS))


def test_another_part_of_the_name_is_the_language(tmp_path):
    assert find_language(write(tmp_path / "de.is.txt", GERMAN)) == "deu_Latn"
    assert find_language(write(tmp_path / "to.do.de.txt", GERMAN)) == "deu_Latn"


def test_passages_of_a_word_have_no_language_and_that_is_told(tmp_path, caplog):
    path = write(tmp_path / "to.txt", ENGLISH)
    assert {passage.language for passage in read_passages(path)} == {""}
    assert "--language ton_Latn" in caplog.text
    assert next(read_passages(path, language="en")).language == "eng_Latn"
    path = write(tmp_path / "is.txt", REAL["is"][1])
    assert {passage.language for passage in read_passages(path)} == {"isl_Latn"}


def rows(source, target):
    return "".join(
        f"{one} {number}\t{other} {number}\n"
        for number in range(3)
        for one, other in zip(source.splitlines(), target.splitlines(), strict=False)
    )


@pytest.mark.parametrize("name", ["is-it", "no-so", "he-is", "my-id", "to-be", "as-is", "max-min"])
def test_a_pair_of_words_is_no_pair_of_languages(tmp_path, name):
    path = write(tmp_path / f"x.{name}.tsv", rows(ENGLISH, GERMAN))
    with pytest.raises(DataError, match=r"language"):
        list(read_pairs(path))
    given = {"source_language": "en", "target_language": "de"}
    assert len(list(read_pairs(path, **given))) == 6


def test_a_word_next_to_a_language_must_not_contradict(tmp_path):
    path = write(tmp_path / "x.to-en.tsv", rows(GERMAN, ENGLISH))
    with pytest.raises(LanguageError, match=r"--source-language ton_Latn"):
        list(read_pairs(path))
    real = write(tmp_path / "x.it-en.tsv", rows(REAL["it"][1], ENGLISH))
    assert next(read_pairs(real)).source_language == "ita_Latn"
    # Too little to decide, and copies, which are no evidence.
    for text in ("ciao\thello\n", rows(ENGLISH, ENGLISH)):
        pairs = list(read_pairs(write(tmp_path / "y.it-en.tsv", text)))
        assert pairs[0].source_language == "ita_Latn"


def test_a_column_of_numbers_is_no_language(tmp_path):
    path = write(tmp_path / "x.csv", "id,en\n1,One day\n2,Two days\n3,Three days\n")
    with pytest.raises(LanguageError, match="--source-language ind_Latn"):
        list(read_pairs(path))


def test_a_word_as_the_folder_of_a_catalogue(tmp_path):
    entries = "".join(
        f'msgid "{number} {one}"\nmsgstr "{number} {other}"\n\n'
        for number in range(3)
        for one, other in zip(ENGLISH.splitlines(), GERMAN.splitlines(), strict=False)
    )
    (tmp_path / "may").mkdir()
    path = write(tmp_path / "may" / "app.po", entries)
    with pytest.raises(LanguageError, match="--target-language"):
        list(read_pairs(path))
    assert next(read_pairs(path, target_language="de")).target_language == "deu_Latn"


def test_uk_with_english_texts_names_english(tmp_path):
    """Read uk as the United Kingdom, which has the code GB."""
    path = write(tmp_path / "x.uk-en.tsv", rows(ENGLISH, ENGLISH.swapcase()))
    with pytest.raises(LanguageError, match=r"--source-language eng_Latn"):
        list(read_pairs(path))
    path = write(tmp_path / "x.uk-de.tsv", rows(ENGLISH, GERMAN))
    assert next(read_pairs(path)).source_language == "eng_Latn"


def test_evidence_of_words():
    assert is_supported(REAL["it"][1].splitlines(), "ita_Latn")
    assert not is_supported(
        ["Los niños que no están con la abuela, de la que me dijo él, un"], "ita_Latn"
    )
    assert is_contradicted([re.sub("[a-z]", "1", ENGLISH)], "ind_Latn")
    assert not is_contradicted(["ciao"], "ita_Latn")
