import gzip

import pytest

from interlingua.corpus.monolingual import language_of, read_sentences
from interlingua.errors import DataError


def test_lines_that_are_not_blank(tmp_path):
    file = tmp_path / "ru.txt.gz"
    file.write_bytes(gzip.compress("Да.\n\n  Нет. \r\n".encode()))
    assert list(read_sentences(file)) == ["Да.", "Нет."]


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
    with pytest.raises(DataError, match="no language in its name"):
        language_of(tmp_path / "sentences-2024.txt")
