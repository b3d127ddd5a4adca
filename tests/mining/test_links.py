from __future__ import annotations

import pytest

from interlingua.alignment.align import (
    DocumentPair,
    check_bitext_languages,
    link_line,
    list_document_pairs,
    pair_languages,
    read_document_sentences,
    read_links,
    read_list,
)
from interlingua.alignment.sentence_alignment import Link
from interlingua.errors import ConfigError, DataError


def written(path, text):
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def test_links_as_vecalign_writes_them(tmp_path):
    links = [Link((0, 1), (0,), 0.12), Link((), (1,), 0.0), Link((2,), (2, 3), 1.5)]
    lines = [link_line(link) for link in links]
    assert lines == ["[0, 1]:[0]:0.120000\n", "[]:[1]:0.000000\n", "[2]:[2, 3]:1.500000\n"]
    assert read_links(written(tmp_path / "a.align", "".join(lines))) == links


@pytest.mark.parametrize("name", ["a.csv", "a.XLSX", "a.tmx.gz"])
def test_links_under_the_name_of_a_bitext_are_refused(tmp_path, name):
    with pytest.raises(ConfigError, match=f"--texts {name}"):
        list_document_pairs("a.txt", "b.txt", output=name)
    listed = written(tmp_path / "list", f"a.txt\tb.txt\t{name}\n")
    with pytest.raises(ConfigError, match=f"--texts {name}"):
        list_document_pairs(None, None, listed)


def test_links_without_costs_or_spaces(tmp_path):
    path = written(tmp_path / "gold", "[0,1]:[2]\n\n[3]:[]:1e-3\r\n [] : [4] \n")
    assert read_links(path, (4, 5)) == [
        Link((0, 1), (2,), 0.0),
        Link((3,), (), 0.001),
        Link((), (4,), 0.0),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[0]:[0]\n0:0\n", r"gold:2: expected \[0, 1\]:\[2\] or \[0, 1\]:\[2\]:0.12, found '0:0'"),
        ("[0]\n", "gold:1: expected"),
        ("[0]:[0]:cheap\n", "gold:1: expected"),
        ("[0]:[3]\n", "gold:1: .*sentence 3 .*length 3"),
        ("[7]:[0]\n", "gold:1: .*sentence 7 .*length 5"),
    ],
)
def test_lines_that_are_no_links(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_links(written(tmp_path / "gold", text), (5, 3))


def test_sentences_are_lines_blank_ones_too(tmp_path):
    assert read_document_sentences(written(tmp_path / "a.txt", "one \r\n\n two\n")) == [
        "one ",
        "",
        " two",
    ]


@pytest.mark.parametrize("text", ["", "\n \n\t\n"])
def test_empty_documents(text, tmp_path):
    with pytest.raises(DataError, match=r"a\.txt: .*no text"):
        read_document_sentences(written(tmp_path / "a.txt", text))


def test_sentences_of_a_table_by_column_or_language(tmp_path):
    table = written(tmp_path / "m.csv", "id,de,text\n1,eins,one\n2,,two\n")
    assert read_document_sentences(table, language="de") == ["eins", ""]
    assert read_document_sentences(table, column="text", language="de") == ["one", "two"]
    assert read_document_sentences(table, split_as="", column="text") == ["one two"]
    with pytest.raises(ConfigError, match="'text'"):
        read_document_sentences(written(tmp_path / "m.txt", "eins\n"), column="text")


def test_a_list(tmp_path):
    path = written(
        tmp_path / "list",
        "# German English\nde/1.txt\ten/1.txt\n\nde/2.txt.gz\ten/2\tout/2\nde/3\ten/3\t\tgold/3\n",
    )
    assert read_list(path, tmp_path) == [
        DocumentPair("de/1.txt", "en/1.txt", str(tmp_path / "1.txt.align")),
        DocumentPair("de/2.txt.gz", "en/2", str(tmp_path / "out" / "2")),
        DocumentPair("de/3", "en/3", str(tmp_path / "3.align"), "gold/3"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n", "list:1: .*1 column"),
        ("a\tb\n\tb\n", "list:2: expected"),
        ("a\tb\tc\td\te\n", "list:1: expected .* found 5 columns"),
        ("x/a\tb\ny/a\tb\n", r"list:2: .*out/a\.align, .*line 1"),
        ("#\n", "the list is empty"),
    ],
)
def test_broken_lists(text, message, tmp_path):
    with pytest.raises(DataError, match=message):
        read_list(written(tmp_path / "list", text), "out")


def test_what_is_to_be_aligned(tmp_path):
    assert list_document_pairs("a", "b") == [DocumentPair("a", "b")]
    assert list_document_pairs("a", "b", None, "c", "d") == [DocumentPair("a", "b", "c", "d")]
    listed = written(tmp_path / "list", "a\tb\tc\n")
    assert list_document_pairs(None, None, listed) == [DocumentPair("a", "b", "c")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a", None), "SOURCE and TARGET"),
        (("a", "b", "LIST"), "--list cannot be combined"),
        ((None, None, "LIST", None, "gold"), "--list cannot be combined"),
        ((None, None, "LIST"), "links .*--output"),
    ],
)
def test_what_can_not_be_aligned(arguments, message, tmp_path):
    listed = written(tmp_path / "list", "a\tb\n")
    with pytest.raises(ConfigError, match=message):
        list_document_pairs(*(listed if argument == "LIST" else argument for argument in arguments))


def test_formats_that_tell_languages_need_them():
    check_bitext_languages("out.tsv", [("", "")])
    check_bitext_languages(None, [("", "")])
    check_bitext_languages("out.tmx", [("deu_Latn", "eng_Latn")])
    with pytest.raises(ConfigError, match=r"out\.tmx: .*--source-language"):
        check_bitext_languages("out.tmx", [("deu_Latn", "eng_Latn"), ("deu_Latn", "")])


def test_languages_are_those_given_else_of_both_names():
    assert pair_languages("a/chapter.de.txt", "chapter.en.txt.gz") == ("deu_Latn", "eng_Latn")
    both = ("deu_Latn", "fra_Latn")
    assert pair_languages("chapter.de.txt", "chapter.en.txt", (None, "fr")) == both
    # a single name may mean something else
    assert pair_languages("chapter.de.txt", "other.txt") == ("", "")
    assert pair_languages("de/1.de.txt", "de/2.de.txt") == ("", "")
    with pytest.raises(DataError, match="Germn"):
        pair_languages("a", "b", ("Germn", None))


def test_plain_text_is_split_and_lines_are_not(tmp_path):
    path = written(tmp_path / "a.txt", "One. Two!\n\nThree\n")
    assert read_document_sentences(path) == ["One. Two!", "", "Three"]
    assert read_document_sentences(path, split_as="eng_Latn") == ["One.", "Two!", "Three"]
