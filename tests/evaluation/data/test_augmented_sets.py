from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.augmented_sets import (
    MISALIGNED,
    Altered,
    altered_file,
    read_altered,
    write_altered,
)
from tests.evaluation.files import write_rows


def lay(folder, lines, table, language="eng_Latn", split="devtest"):
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / f"{language}_augmented.{split}", lines)
    (folder / f"{language}_errtype.{split}.json").write_text(json.dumps(table))
    return folder / f"{language}_augmented.{split}"


def test_lasers_layout(tmp_path):
    table = {"It cost 5 euros.": {"src": "It cost 4 euros.", "errtype": "Number Replacement"}}
    path = lay(tmp_path / "devtest_augmented", ["It cost 5 euros.", "Who knows? "], table)
    (tmp_path / "devtest").mkdir()
    assert altered_file(tmp_path / "devtest", "en") == path
    assert altered_file(tmp_path / "devtest", "de") is None
    assert read_altered(path) == [
        Altered("It cost 5 euros.", "It cost 4 euros.", "Number Replacement"),
        Altered("Who knows? ", "", MISALIGNED),
    ]


@pytest.mark.parametrize("folder", ["devtest", "flores200_dataset/devtest"])
def test_the_folder_of_flores_own_archive_has_the_set_of_the_data_folder(tmp_path, folder):
    table = {"b": {"src": "a", "errtype": "x"}}
    path = lay(tmp_path / "flores200_devtest_augmented", ["b"], table)
    (tmp_path / folder).mkdir(parents=True)
    assert altered_file(tmp_path / folder, "en") == path


def test_files_in_the_folder_itself_come_first(tmp_path):
    table = {"b": {"src": "a", "errtype": "x"}}
    lay(tmp_path / "set_augmented", ["b"], table)
    here = lay(tmp_path / "set", ["b"], table, language="en", split="txt")
    assert altered_file(tmp_path / "set", "eng_Latn") == here


def test_round_trip(tmp_path):
    altered = [
        Altered('Say "7"', 'Say "6"', "generated_number"),
        Altered("да 2\\", "да 1\\", "generated_number"),
    ]
    path = write_altered(tmp_path / "new", "rus_Cyrl", iter(altered))
    assert path == altered_file(tmp_path / "new", "rus_Cyrl")
    assert read_altered(path) == altered
    assert (
        json.loads(
            write_altered(tmp_path, "eng_Latn", [])
            .with_name("eng_Latn_errtype.devtest.json")
            .read_text()
        )
        == {}
    )


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"other": {"src": "a", "errtype": "x"}}, "errtype.devtest.json contains no line"),
        (["b"], r'{"altered": {"src": .*\(AttributeError'),
        ({"b": {"src": "a"}}, r"found another form \(KeyError: 'errtype'\)"),
        ({"b": "a"}, r"found another form \(TypeError"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, table, message):
    with pytest.raises(DataError, match=message):
        read_altered(lay(tmp_path, ["b"], table))


def test_a_missing_table_and_a_blank_line(tmp_path):
    path = lay(tmp_path, ["b"], {})
    path.with_name("eng_Latn_errtype.devtest.json").unlink()
    with pytest.raises(DataError, match=r"errtype.devtest.json: .*line of eng_Latn_augmented"):
        read_altered(path)
    path.write_text("b\n\n")
    with pytest.raises(DataError, match=r"eng_Latn_augmented.devtest:2: the line is blank"):
        read_altered(path)
