from __future__ import annotations

import hashlib

import pytest

from interlingua.errors import DataError, LanguageAbsentError
from interlingua.evaluation.data.folders import (
    check_enough,
    choose_languages,
    content_sha256,
    find_folder,
    language_pair,
    pair_files_by_key,
    published_digests,
    recognize,
    set_name,
)
from interlingua.evaluation.tasks.translation.flores import FloresP1
from interlingua.evaluation.tasks.translation.xsim import XSim

FILES = {"ara": "ara", "cmn": "cmn", "deu": "deu", "fra": "fra", "fra-deu": "fra"}
GROUPS = {"small": ["deu", "fra", "ita"]}


@pytest.mark.parametrize(
    ("wanted", "chosen"),
    [
        (None, ["ara", "cmn", "deu", "fra", "fra-deu"]),
        (["de"], ["deu"]),
        (["German", "arb_Arab"], ["ara", "deu"]),
        (["zh", "deu"], ["cmn", "deu"]),
        (["small"], ["deu", "fra"]),
        (["fr"], ["fra", "fra-deu"]),
        (["fr-de"], ["fra-deu"]),
        (["ar-SA"], ["ara"]),
    ],
)
def test_languages_in_any_code_in_the_files_order(tmp_path, wanted, chosen):
    assert choose_languages(wanted, FILES, GROUPS, tmp_path) == chosen


def test_pair_files_by_what_tells_them_apart(tmp_path):
    for name in ("deu-eng", "deu-fra", "eng-deu"):
        (tmp_path / f"{name}.tsv").write_text("a\tb\n")
    assert {key: file.name for key, file in pair_files_by_key(tmp_path).items()} == {
        "deu": "deu-eng",
        "deu-fra": "deu-fra",
        "eng-deu": "eng-deu",
    }
    (tmp_path / "German-eng.tsv").touch()  # no code, so no pair file
    (tmp_path / "ger-en.tsv").write_text("a\tb\n")
    with pytest.raises(DataError, match=r"ger-en\.tsv: deu-eng\.tsv .*same pair"):
        pair_files_by_key(tmp_path)


def test_a_language_without_a_file_and_no_language_at_all(tmp_path):
    with pytest.raises(DataError, match=r"'zul'; .*ara, cmn, deu"):
        choose_languages(["zul"], FILES, GROUPS, tmp_path)
    with pytest.raises(DataError, match=r"no file .*'en'"):
        choose_languages(["de", "en"], FILES, GROUPS, tmp_path)
    assert choose_languages(["de", "en"], FILES, GROUPS, tmp_path, pivots={"eng"}) == ["deu"]
    with pytest.raises(DataError, match=r"no file .*'en'"):
        choose_languages(["en"], FILES, GROUPS, tmp_path, pivots={"eng"})
    with pytest.raises(DataError, match="Klingonese"):
        choose_languages(["Klingonese"], FILES, GROUPS, tmp_path)


def test_folder_itself_or_below(tmp_path):
    below = tmp_path / "tatoeba_laser"
    below.mkdir()
    (below / "x").touch()

    def holds(folder):
        return (folder / "x").exists()

    assert find_folder(tmp_path, ["tatoeba_laser"], holds, "x") == below
    assert find_folder(below, ["tatoeba_laser"], holds, "x") == below
    with pytest.raises(DataError, match="in a/ or b/"):
        find_folder(tmp_path, ["a", "b"], holds, "folder of x")
    with pytest.raises(DataError, match="folder not found"):
        find_folder(tmp_path / "none", ["a"], holds, "x")


def test_content_digest_is_of_the_lines_and_where_a_side_ends():
    assert content_sha256([["a", "b"], ["c"]]) == hashlib.sha256(b"a\nb\n\0c\n\0").hexdigest()
    assert content_sha256([["a"], ["b", "c"]]) != content_sha256([["a", "b"], ["c"]])


def test_published_sets_are_recognized_by_every_language():
    revision, digests = published_digests("tatoeba_laser")
    assert len(digests) == 112
    assert len(published_digests("flores200_devtest")[1]) == 203
    full = {code: digest + "0" * 52 for code, digest in digests.items()}
    assert recognize("tatoeba_laser", full) == revision == "LASER@74bc6ae"
    assert recognize("tatoeba_laser", {"deu": full["deu"]}) == revision
    assert recognize("tatoeba_laser", full | {"deu": full["fra"]}) is None
    assert recognize("tatoeba_laser", full | {"eng": full["fra"]}) is None


@pytest.mark.parametrize(
    ("item", "pair"),
    [
        ("en-de", ("eng_Latn", "deu_Latn")),  # no English of Germany
        ("deu_Latn-eng_Latn", ("deu_Latn", "eng_Latn")),
        ("German-French", ("deu_Latn", "fra_Latn")),
        ("de", None),
        ("en-DE", None),
        ("pt-BR", None),
        ("zh-Hans", None),
        ("eng-Latn", None),
        ("es-419", None),
        ("zh-tw", None),  # the region decides the script, though tw is Twi too
        ("de-xx", None),
    ],
)
def test_a_pair_of_languages_is_no_language_of_a_region(item, pair):
    assert language_pair(item) == pair


def test_pairs_are_looked_up_by_the_files_names(tmp_path):
    names = {key: f"{key}-eng" if "-" not in key else key for key in FILES}
    assert choose_languages(["de-en", "fra-deu"], FILES, GROUPS, tmp_path, names=names) == [
        "deu",
        "fra-deu",
    ]
    for wanted in ("en-de", "de-fr"):  # and not whatever there is in English or German
        with pytest.raises(DataError, match=f"no file .*'{wanted}'"):
            choose_languages([wanted], FILES, GROUPS, tmp_path, names=names)


def test_a_stray_file_does_not_hide_the_data_below(tmp_path):
    below = tmp_path / "sets"
    below.mkdir()

    def holds(folder):
        if folder == tmp_path:
            raise DataError("log.txt is not a language", path=folder)
        return (folder / "x").exists()

    with pytest.raises(DataError, match=r"log\.txt is not a language"):
        find_folder(tmp_path, ["sets"], holds, "x")
    (below / "x").touch()
    assert find_folder(tmp_path, ["sets"], holds, "x") == below


def test_too_few_languages_for_a_pool(tmp_path):
    check_enough(["deu_Latn", "eng_Latn"], 2, None, tmp_path)
    with pytest.raises(LanguageAbsentError, match=r"2 languages .*found 1 .*--languages") as error:
        check_enough(["deu_Latn"], 2, ["de"], tmp_path)
    assert error.value.item == "de"
    with pytest.raises(DataError, match=r"3 languages .*found 0"):
        check_enough([], 3, None, tmp_path)


def test_a_corpus_part_is_called_by_its_corpus_too(tmp_path):
    assert set_name(tmp_path / "news" / "heldout") == "news/heldout"
    assert set_name(tmp_path / "news") == "news"


@pytest.mark.parametrize("below", ["flores200_dataset/devtest", "devtest", "."])
def test_the_original_archive_of_flores_is_found_from_each_folder(tmp_path, below):
    folder = tmp_path / below
    folder.mkdir(parents=True, exist_ok=True)
    for code in ("eng_Latn", "deu_Latn"):
        (folder / f"{code}.devtest").write_text("a\nb\n", encoding="utf-8")
    assert FloresP1().find(tmp_path).resolve() == folder.resolve()
    assert XSim().find(tmp_path).resolve() == folder.resolve()
