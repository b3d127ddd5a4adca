from __future__ import annotations

import errno
import os

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.parallel import _GROUPS, choose_files, read_parallel, unit_vectors
from tests.evaluation.parallel_made import LANGUAGES, LINES, Fixed, random_vectors, write_lines
from tests.progress_records import Recorded


@pytest.fixture
def folder(tmp_path):
    return write_lines(tmp_path / "flores200_devtest")


def test_all_languages_in_order(folder):
    texts = read_parallel(folder.parent)
    assert texts.languages == LANGUAGES
    assert texts.sentences == 4
    assert texts.lines["fra_Latn"] == LINES["fra_Latn"]
    assert texts.revision is None
    assert texts.named("agnosticism") == "agnosticism_flores200_devtest"


def test_languages_by_any_name(folder):
    texts = read_parallel(folder, ["de", "French"])
    assert texts.languages == ("deu_Latn", "fra_Latn")
    assert read_parallel(folder, ["de"], also=("eng_Latn",)).languages == ("deu_Latn", "eng_Latn")
    assert texts.sha256 != read_parallel(folder).sha256


def test_groups_have_english():
    sizes = {"muse": 15, "low_resource": 17, "mexma": 81, "mexma_labse": 72, "mexma_dap": 34}
    assert {name: len(codes) for name, codes in _GROUPS.items()} == sizes


def test_the_default_is_muse_where_it_is(tmp_path):
    codes = [*_GROUPS["muse"], "fin_Latn"]
    write_lines(tmp_path / "many", {code: ["a", code] for code in codes})
    assert set(read_parallel(tmp_path / "many").languages) == set(_GROUPS["muse"])
    assert read_parallel(tmp_path / "many", ["fi", "low_resource"]).languages == (
        "eng_Latn",
        "fin_Latn",
    )


@pytest.mark.parametrize(
    ("lines", "languages", "message"),
    [
        (
            {"eng_Latn": ["a"]},
            None,
            "2 languages are required, found 1 language; add more with --languages",
        ),
        ({"eng_Latn": ["a"], "deu_Latn": ["b"]}, ["de"], "found 1 language"),
        ({"eng_Latn": ["a"], "deu_Latn": ["b", "c"]}, None, "1 line, but deu_Latn.txt"),
        ({"eng_Latn": ["a"], "deu": ["b"], "deu_Latn": ["b"]}, None, "deu_Latn.txt: deu.txt"),
        ({"eng_Latn": ["a"], "deu_Latn": []}, None, "the file is empty"),
        (
            {"eng_Latn": ["a", "b"], "deu_Latn": ["b", " "]},
            None,
            "deu_Latn.txt:2: the line is blank",
        ),
        ({"eng_Latn": ["a"], "deu_Latn": ["b"]}, ["zul"], "no file for the language 'zul'"),
    ],
)
def test_wrong_layouts_are_one_line(tmp_path, lines, languages, message):
    with pytest.raises(DataError) as error:
        read_parallel(write_lines(tmp_path / "texts", lines), languages)
    assert message in str(error.value)
    assert "\n" not in str(error.value)


def write_texts(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def test_files_of_ones_own_in_any_name(tmp_path):
    names = {"German.txt": "eins\n", "pt-BR.txt": "um\n", "en.txt": "one\n", "notes.md": "x\n"}
    named = read_parallel(write_texts(tmp_path / "a", **names))
    assert named.lines == {"deu_Latn": ["eins"], "eng_Latn": ["one"], "por_Latn": ["um"]}
    tables = {"German.csv": "\ufeffid,text\n1,eins\n", "en.csv": "text\none\n"}
    assert read_parallel(write_texts(tmp_path / "t", **tables)).lines == {
        "deu_Latn": ["eins"],
        "eng_Latn": ["one"],
    }
    ends = write_texts(
        tmp_path / "b", **{"corpus.de": "eins\n", "corpus.zh-Hant": "一\n", "corpus.en": "one\n"}
    )
    assert read_parallel(ends).languages == ("deu_Latn", "eng_Latn", "zho_Hant")


def test_files_of_two_texts_are_one_line(tmp_path):
    files = {f"{name}.{code}": "x\n" for name in ("dev", "test") for code in ("de", "en")}
    with pytest.raises(DataError, match=r"2 texts \(dev\.\*, test\.\*\)") as error:
        read_parallel(write_texts(tmp_path / "both", **files))
    assert "\n" not in str(error.value)


def test_ntrex_varieties_are_told_apart(tmp_path):
    names = ("src.eng", "ref.fra", "ref.fra-CA")
    folder = write_texts(
        tmp_path / "NTREX-128", **{f"newstest2019-{name}.txt": f"{name}\n" for name in names}
    )
    texts = read_parallel(folder)
    assert texts.languages == ("eng_Latn", "fra_CA", "fra_Latn")
    assert read_parallel(folder, ["French"]).languages == ("fra_CA", "fra_Latn")


def test_files_of_the_wanted_languages(folder):
    assert list(choose_files(folder.parent, ["fr", "de"])) == ["deu_Latn", "fra_Latn"]
    assert list(choose_files(folder, ["fr"], also=("eng_Latn",))) == ["eng_Latn", "fra_Latn"]


def test_an_empty_folder(tmp_path):
    with pytest.raises(DataError, match="no folder of line-aligned"):
        read_parallel(tmp_path)


def test_unit_vectors(folder):
    vectors = random_vectors(3, 4, 5)
    told = Recorded()
    found = unit_vectors(Fixed(7 * vectors), read_parallel(folder), progress=told)
    np.testing.assert_allclose(found, vectors, atol=1e-6)
    assert isinstance(found, np.memmap)
    assert told.states == [("deu_Latn", 4, 12), ("eng_Latn", 8, 12), ("fra_Latn", 12, 12)]


@pytest.mark.skipif(not hasattr(os, "posix_fallocate"), reason="no such call here")
def test_room_for_all_vectors_is_taken_before_they_are_mapped(folder, monkeypatch):
    def full(descriptor, start, size):
        assert (start, size) == (0, 3 * 4 * 5 * 4)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="No space left"):
        unit_vectors(Fixed(random_vectors(3, 4, 5)), read_parallel(folder))
