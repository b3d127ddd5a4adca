import pytest

from interlingua.corpus.formats.monolingual import language_of, read_sentences
from interlingua.corpus.formats.spreadsheet import open_sheet
from interlingua.errors import ConfigError, DataError
from tests.corpus.conftest import write


def test_lines_that_are_not_blank(tmp_path):
    file = write(tmp_path / "ru.txt.gz", "Да.\n\n  Нет. \r\n")
    assert list(read_sentences(file)) == ["Да.", "Нет."]


@pytest.mark.parametrize("name", ["de.csv", "de.xlsx"])
def test_a_tables_sentences_are_a_column_of_it(tmp_path, name):
    if name.endswith("xlsx"):
        pytest.importorskip("openpyxl")
    path = tmp_path / name
    rows = (["id", "text", "note"], [1, "Eins, zwei.", "a"], [2, "", "b"], [3, "Drei.", "c"])
    with open_sheet(path, path.suffix[1:]) as write_row:
        for row in rows:
            write_row(row)
    assert list(read_sentences(path)) == ["Eins, zwei.", "Drei."]
    assert list(read_sentences(path, column="note")) == ["a", "b", "c"]


def test_a_text_file_has_no_columns(tmp_path):
    with pytest.raises(ConfigError, match="column 'text'"):
        list(read_sentences(tmp_path / "de.txt", column="text"))


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("ru.txt", "rus_Cyrl"),
        ("news.swh_Latn.txt.gz", "swh_Latn"),
        ("wiki.2024.te.txt", "tel_Telu"),
        ("is.en.txt", "eng_Latn"),  # the last that is one
    ],
)
def test_a_file_is_called_by_its_language(tmp_path, name, code):
    assert language_of(tmp_path / name) == code


def test_a_name_without_a_language(tmp_path):
    with pytest.raises(DataError, match="no language"):
        language_of(tmp_path / "sentences-2024.txt")
