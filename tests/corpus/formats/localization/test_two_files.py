"""Two files by what their names share."""

from __future__ import annotations

import pytest

from interlingua.corpus.formats.localization.two_files import files_of_languages, find_two_files
from interlingua.errors import DataError


@pytest.fixture
def folder(tmp_path):
    for name in ("en.json", "de.json", "fr.json", "other.de.json", "x/de/a.json", "x/it/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    return tmp_path


def names(folder, path, source=None, target=None):
    found = find_two_files(str(path), source, target)
    return [str(file.relative_to(folder)) for file in found.paths]


def test_english_is_the_source_and_the_named_file_the_target(folder):
    assert names(folder, folder / "de.json") == ["en.json", "de.json"]
    assert names(folder, folder / "en.json", target="fra_Latn") == ["en.json", "fr.json"]
    assert names(folder, folder / "de.json", "fra_Latn") == ["fr.json", "de.json"]
    assert names(folder, folder / "x/it/a.json") == ["x/de/a.json", "x/it/a.json"]
    both = f"{folder}/fr.json,{folder}/en.json"
    assert names(folder, both) == ["fr.json", "en.json"]


def test_what_is_not_clear_is_refused(folder):
    for path in ("en.json", "other.de.json", "none"):
        with pytest.raises(DataError, match="a,b"):
            names(folder, folder / path)
    with pytest.raises(DataError, match="--source-language and --target-language"):
        names(folder, f"{folder}/x,{folder}/y")


def test_files_of_all_languages(folder):
    found = files_of_languages(str(folder / "de.json"))
    assert sorted(found) == ["deu_Latn", "eng_Latn", "fra_Latn"]
    assert list(files_of_languages(str(folder / "x/de/a.json"))) == ["deu_Latn", "ita_Latn"]
