import gzip

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlingua.corpus.formats import (
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

PAIRS = [
    TextPair("Guten Morgen, „Welt“!", "Good morning, “world”!", "deu_Latn", "eng_Latn"),
    TextPair("Ein <b>Tag</b> & eine Nacht", "A <b>day</b> & a night", "deu_Latn", "eng_Latn"),
    TextPair("Zeile\u2028mit Trenner", "line\u2028with separator", "deu_Latn", "eng_Latn"),
]
NAMES = [
    f"{name}{packed}"
    for name in ("x.de-en.tsv", "x.jsonl", "x.tmx", "x.de-en.po", "x.de-en")
    for packed in ("", ".gz", ".xz", ".zst")
]


@pytest.mark.parametrize("name", [*NAMES, "x.de-en.zip", "x.de-en.mo"])
def test_what_is_written_is_read_back(tmp_path, name):
    path = tmp_path / name
    given = (
        {"target_language": "en", "source_language": "de"}
        if ".po" in name or name.endswith(".mo")
        else {}
    )
    assert write_pairs(PAIRS, path) == 3
    if name.endswith(".mo"):  # entries of a compiled catalogue are in the order of their keys
        assert sorted(read_pairs(path, **given)) == sorted(PAIRS)
    else:
        assert list(read_pairs(path, **given)) == PAIRS
    if name.endswith(".gz") and "tsv" in name:
        assert gzip.decompress(path.read_bytes()).startswith(b"Guten")


@settings(
    max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(
    texts=st.lists(
        st.tuples(
            *[st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), min_size=1)]
            * 2
        )
    )
)
@pytest.mark.parametrize("name", ["x.de-en.tsv", "x.jsonl", "x.tmx"])
def test_any_text_survives(tmp_path, name, texts):
    pairs = [TextPair(a.strip() or "a", b.strip() or "b", "deu_Latn", "eng_Latn") for a, b in texts]
    pairs = [
        pair._replace(
            source=pair.source.replace("\ufffe", "").replace("\uffff", "") or "a",
            target=pair.target.replace("\ufffe", "").replace("\uffff", "") or "b",
        )
        for pair in pairs
    ]
    write_pairs(pairs, tmp_path / name)
    read = list(read_pairs(tmp_path / name))
    assert [(p.source.strip(), p.target.strip()) for p in read] == [
        (p.source.strip(), p.target.strip()) for p in pairs
    ]


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
    with pytest.raises(DataError, match=r"damaged or cut|is damaged"):
        list(read_pairs(path, source_language="de", target_language="en"))


def test_swapped():
    assert TextPair("a", "b", "deu_Latn", "eng_Latn", 0.5).swapped() == TextPair(
        "b", "a", "eng_Latn", "deu_Latn", 0.5
    )


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
    ],
)
def test_languages_from_name(name, found):
    assert languages_from_name(f"/data/fr-es/{name}") == found


def test_languages_can_be_given_and_must_be_known(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("eins\tone\n")
    assert (
        next(read_pairs(path, source_language="German", target_language="en")).source_language
        == "deu_Latn"
    )
    with pytest.raises(DataError, match=r"pairs\.tsv: its languages"):
        next(read_pairs(path))
    assert named_languages("a.de-en.tsv", "fra_Latn", None) == ("fra_Latn", "eng_Latn")


def test_guess_format(tmp_path):
    names = (
        "a.TSV.gz",
        "a.csv",
        "a.xlsx",
        "a.po",
        "a.de-en",
        "hf:x/y",
        tmp_path,
        "a.zip",
        "a.de-en.de.xz",
    )
    assert [guess_format(name) for name in names] == [
        "tsv",
        "csv",
        "xlsx",
        "gettext",
        "moses",
        "huggingface",
        "huggingface",
        "opus",
        "moses",
    ]


@pytest.mark.parametrize("name", ["a.docx", "a.xls", "a.json.gz", "a.npy", "folder/a.de-en.pdf"])
def test_a_suffix_of_no_format_is_refused(name):
    with pytest.raises(DataError, match=r"format of bitext; known are \.tsv.*\.xlsx"):
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
    with pytest.raises(DataError, match="no such file"):
        next(read_pairs(tmp_path / "a.de-en.tsv"))


def test_one_language_pair_refuses_a_second():
    with pytest.raises(DataError, match="one language pair"):
        list(one_language_pair([PAIRS[0], PAIRS[0].swapped()], "x.tsv"))


def test_small_helpers():
    assert one_line("a\tb\r\nc") == "a b  c"
    assert uncompressed_name("/x/a.tsv.ZST") == "/x/a.tsv"
    assert uncompressed_name("a.tsv") == "a.tsv"
