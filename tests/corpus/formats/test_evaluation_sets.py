from __future__ import annotations

import pytest

from interlingua.corpus.formats.evaluation_sets import (
    aligned_files,
    pair_files,
    read_aligned,
    read_evaluation_lines,
    read_pair_file,
)
from interlingua.errors import DataError
from tests.corpus.conftest import write


def test_pairs_in_tsv_and_in_lasers_own_layout(tmp_path):
    (tmp_path / "SOURCE.md").write_text("# not data")
    (tmp_path / "deu-eng.tsv").write_text("Hallo!\tHello!\nJa.\tYes.\n")
    write(tmp_path / "eng_Latn-zho_Hans.tsv.gz", "Yes.\t是。\n")
    (tmp_path / "tatoeba.fra-eng.fra").write_text("Oui.\n")
    (tmp_path / "tatoeba.fra-eng.eng").write_text("Yes.\n")
    files = pair_files(tmp_path)
    assert [file.name for file in files] == ["deu-eng", "eng_Latn-zho_Hans", "fra-eng"]
    assert [read_pair_file(file) for file in files] == [
        (["Hallo!", "Ja."], ["Hello!", "Yes."]),
        (["Yes."], ["是。"]),
        (["Oui."], ["Yes."]),
    ]
    assert pair_files(tmp_path / "none") == []


def test_line_separators_of_unicode_are_text(tmp_path):
    write(tmp_path / "fra-eng.tsv", "a\u2028b\x85c\tone line\r\n")
    assert read_pair_file(pair_files(tmp_path)[0]) == (["a\u2028b\x85c"], ["one line"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a\tb\nno tab\n", "deu-eng.tsv:2: expected text TAB text, found 1 column, 1 of them"),
        ("a\tb\tc\n", "deu-eng.tsv:1: expected text TAB text, found 3 columns, 3 of them"),
        ("a\tb\nc\t \n", "deu-eng.tsv:2: expected text TAB text, found 2 columns, 1 of them"),
        ("", "deu-eng.tsv: the file is empty"),
    ],
)
def test_broken_pairs_are_one_line_with_the_place(tmp_path, content, message):
    (tmp_path / "deu-eng.tsv").write_text(content)
    with pytest.raises(DataError) as error:
        read_pair_file(pair_files(tmp_path)[0])
    assert message in str(error.value)


def test_aligned_files(tmp_path):
    (tmp_path / "eng_Latn.txt").write_text("one\ntwo\n")
    (tmp_path / "deu_Latn.devtest").write_text("eins\nzwei\n")
    (tmp_path / "README.txt").write_text("not a language")
    files = aligned_files(tmp_path)
    assert list(files) == ["deu_Latn", "eng_Latn"]
    assert read_aligned(list(files.values())) == (["eins", "zwei"], ["one", "two"])


def test_misaligned_files_are_named_with_their_counts(tmp_path):
    (tmp_path / "deu_Latn.txt").write_text("eins\nzwei\ndrei\n")
    (tmp_path / "eng_Latn.txt").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"deu_Latn.txt: has 3 lines, but eng_Latn.txt .* has 2"):
        read_aligned([tmp_path / "deu_Latn.txt", tmp_path / "eng_Latn.txt"])


def test_missing_empty_and_blank(tmp_path):
    with pytest.raises(DataError, match="file not found"):
        read_evaluation_lines(tmp_path / "none.txt")
    (tmp_path / "empty.txt").write_text("")
    with pytest.raises(DataError, match="file is empty"):
        read_evaluation_lines(tmp_path / "empty.txt")
    (tmp_path / "blank.txt").write_text("one\n \n")
    with pytest.raises(DataError, match=r"blank.txt:2: the line is blank"):
        read_evaluation_lines(tmp_path / "blank.txt")


def test_two_files_of_one_language_are_not_one(tmp_path):
    for name in ("deu_Latn.devtest", "deu_Latn.dev"):
        (tmp_path / name).write_text("eins\n")
    with pytest.raises(DataError, match=r"deu_Latn\.devtest: deu_Latn\.dev .*same language"):
        aligned_files(tmp_path)
