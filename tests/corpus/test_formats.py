import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.corpus.formats.bitext import (
    TextPair,
    guess_format,
    languages_from_name,
    named_languages,
    one_language_pair,
    one_line,
    read_pairs,
    uncompressed_name,
    write_pairs,
)
from interlingua.errors import ConfigError, DataError

from .conftest import texts, write

PAIRS = [
    TextPair("Guten Morgen, „Welt“!", "Good morning, “world”!", "deu_Latn", "eng_Latn"),
    TextPair("Ein <b>Tag</b> & eine Nacht", "A <b>day</b> & a night", "deu_Latn", "eng_Latn"),
    TextPair("Zeile\u2028mit Trenner", "line\u2028with separator", "deu_Latn", "eng_Latn"),
]
CHARACTERS = st.characters(
    codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufffe\uffff"
)
TEXT = st.text(CHARACTERS, min_size=1).filter(str.strip)
NAMES = [
    f"{name}{packed}"
    for name in ("x.de-en.tsv", "x.jsonl", "x.tmx", "x.de-en.po", "x.de-en")
    for packed in ("", ".gz", ".xz", ".zst")
]


@pytest.mark.parametrize("name", [*NAMES, "x.de-en.zip", "x.de-en.mo"])
def test_what_is_written_is_read_back(tmp_path, name):
    path = tmp_path / name
    given = {}
    if ".po" in name or name.endswith(".mo"):
        given = {"target_language": "en", "source_language": "de"}
    assert write_pairs(PAIRS, path) == 3
    expected = PAIRS
    if name.endswith(".mo"):  # entries of a compiled catalogue are in the order of their keys
        expected = sorted(PAIRS)
    assert list(read_pairs(path, **given)) == expected
    if name.endswith(".gz") and "tsv" in name:
        assert gzip.decompress(path.read_bytes()).startswith(b"Guten")


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(sides=st.lists(st.tuples(TEXT, TEXT)))
@pytest.mark.parametrize("name", ["x.de-en.tsv", "x.jsonl", "x.tmx"])
def test_any_text_survives(tmp_path, name, sides):
    # The first pair has most of the letters, in Latin script: readers refuse a file whose letters
    # contradict its languages. The other texts are bare, so that any character may be at an end.
    repeats = 1 + sum(len(a) + len(b) for a, b in sides)
    sides = [("Satz und Satz " * repeats, "one and another " * repeats), *sides]
    write_pairs([TextPair(*pair, "deu_Latn", "eng_Latn") for pair in sides], tmp_path / name)
    assert [(a.strip(), b.strip()) for a, b in texts(tmp_path / name)] == [
        (a.strip(), b.strip()) for a, b in sides
    ]


@pytest.mark.parametrize("name", ["x.de-en.tsv", "x.jsonl", "x.tmx"])
def test_texts_of_another_script_survive_with_a_pair_in_the_declared_one(tmp_path, name):
    sides = [("\u0627" * 40, "\u0628" * 40), ("漢" * 40, "\uac00" * 40)]
    test_any_text_survives.hypothesis.inner_test(tmp_path, name, sides)


def test_nothing_is_written_when_the_pairs_break_off(tmp_path):
    def broken():
        yield PAIRS[0]
        raise DataError("the reader failed")

    for name in ("x.tsv", "x.jsonl", "x.tmx", "x.po", "x", "x.zip", "x.parquet"):
        with pytest.raises(DataError, match="the reader failed"):
            write_pairs(broken(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith((".gz", ".xz", ".zst"))])
def test_damaged_files_are_told_in_one_line(tmp_path, name):
    path = tmp_path / name
    write_pairs(PAIRS * 50, path)
    for file in tmp_path.iterdir():
        file.write_bytes(file.read_bytes()[:-20])
    with pytest.raises(DataError, match=r"is damaged"):
        list(read_pairs(path, source_language="de", target_language="en"))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("de-en.tatoeba_challenge.tsv", ("deu_Latn", "eng_Latn")),
        ("WikiMatrix.de-en.tsv.gz", ("deu_Latn", "eng_Latn")),
        ("OpenSubtitles.pt_BR-en.pt_BR", ("por_Latn", "eng_Latn")),
        ("zh-Hant-en.tsv", ("zho_Hant", "eng_Latn")),
        ("en-zh-Hans.tsv", ("eng_Latn", "zho_Hans")),
        ("srp_Cyrl-eng_Latn.jsonl", ("srp_Cyrl", "eng_Latn")),
        ("well-known.tsv", None),
        ("German-English.tsv", None),
        ("corpus.tsv", None),
        ("pt-br.tsv", None),
        ("zh-tw.tsv", None),
        ("en_US-de_CH.tsv", ("eng_Latn", "deu_Latn")),
        ("pt-br-en.tsv", ("por_Latn", "eng_Latn")),
        ("zh-tw-en.tsv", ("zho_Hant", "eng_Latn")),
        ("corpus.en-cz.tsv", ("eng_Latn", "ces_Latn")),
        ("report.mar-may.tsv", None),
    ],
)
def test_languages_from_name(name, found):
    assert languages_from_name(f"/data/fr-es/{name}") == found


def test_languages_can_be_given_and_must_be_known(tmp_path):
    path = write(tmp_path / "pairs.tsv", "eins\tone\n")
    pair = next(read_pairs(path, source_language="German", target_language="en"))
    assert pair.source_language == "deu_Latn"
    with pytest.raises(DataError, match=r"pairs\.tsv: the languages"):
        next(read_pairs(path))
    assert named_languages("a.de-en.tsv", "fra_Latn", None) == ("fra_Latn", "eng_Latn")


def test_guess_format(tmp_path):
    formats = {
        "tsv": ("a.TSV.gz",),
        "csv": ("a.csv",),
        "xlsx": ("a.xlsx",),
        "gettext": ("a.po",),
        "moses": ("a.de-en", "a.de-en.de.xz"),
        "huggingface": ("hf:x/y", tmp_path),
        "opus": ("a.zip",),
    }
    for format, names in formats.items():
        assert {guess_format(name) for name in names} == {format}


@pytest.mark.parametrize("name", ["a.docx", "a.xls", "a.xml.gz", "a.npy", "folder/a.de-en.pdf"])
def test_a_suffix_of_no_format_is_refused(name):
    with pytest.raises(DataError, match=r"format of bitext .* \.tsv.*\.xlsx"):
        guess_format(name)
    with pytest.raises(DataError, match="format of bitext"):
        write_pairs(PAIRS, name)


def test_moses_files_of_any_name_are_found(tmp_path):
    for name in ("corpus.v2.de", "corpus.v2.en", "a.txt", "b.txt"):
        (tmp_path / name).write_text("x\n")
    assert guess_format(tmp_path / "corpus.v2") == "moses"
    assert guess_format(f"{tmp_path}/a.txt,{tmp_path}/b.txt") == "moses"
    assert guess_format("news.pt_BR") == "moses"


def test_unknown_format_and_missing_file(tmp_path):
    with pytest.raises(ConfigError, match="mean 'tmx'"):
        read_pairs(tmp_path / "a.tsv", format="tmxx")
    with pytest.raises(DataError, match="file not found"):
        next(read_pairs(tmp_path / "a.de-en.tsv"))


def test_one_language_pair_refuses_a_second():
    with pytest.raises(DataError, match="one language pair"):
        list(one_language_pair([PAIRS[0], PAIRS[0].swapped()], "x.tsv"))


def test_small_helpers():
    assert one_line("a\tb\r\nc") == "a b  c"
    assert uncompressed_name("/x/a.tsv.ZST") == "/x/a.tsv"
    assert uncompressed_name("a.tsv") == "a.tsv"
