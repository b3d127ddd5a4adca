from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.mteb_data import READERS, load_data
from tests.evaluation.mteb_sets import write_all

mteb = pytest.importorskip("mteb")


@pytest.fixture
def data(tmp_path):
    return write_all(tmp_path)


def loaded(name, data):
    task = mteb.get_task(name)
    assert load_data(task, data) is not None
    assert task.data_loaded
    return task


def test_subsets_are_those_of_mteb_and_their_columns_in_its_order(data):
    task = loaded("STS17", data)
    assert task.hf_subsets == ["fr-en", "en-ar", "es-en", "en-en"]
    columns = {name: splits["test"] for name, splits in task.dataset.items()}
    assert (data / "sts17" / "STS.en-fr.txt").read_text().startswith("de1 de2\ten1 en3")
    assert columns["fr-en"]["sentence1"][0] == "en1 en3"
    assert columns["fr-en"]["sentence2"][0] == "de1 de2"
    assert columns["es-en"]["sentence1"][0].startswith("de")
    assert list(columns["fr-en"]["score"]) == [2.0, 1.0, 4.0]


@pytest.mark.parametrize(
    ("name", "folder", "rows"),
    [
        ("STSBenchmark", "stsb", 60),
        ("STS13", "sts12_16", 120),
        ("STS15", "sts12_16", 60),
        ("SICK-R", "sick", 100),
    ],
)
def test_english_sets_are_pooled_as_mteb_has_them(data, name, folder, rows):
    task = mteb.get_task(name)
    assert load_data(task, data) == folder
    assert (list(task.dataset), len(task.dataset["default"]["test"])) == (["default"], rows)


def test_bitexts(data):
    task = loaded("Tatoeba", data)
    assert sorted(task.hf_subsets) == ["cmn-eng", "deu-eng"]
    task = loaded("BUCC", data)
    columns = task.dataset["zh-en"]["test"]
    assert [len(columns[name]) for name in ("sentence1", "sentence2", "gold")] == [6, 70, 6]
    assert columns["gold"][0] == (3, 8)


def test_two_files_of_one_pair_are_refused(data):
    (data / "tatoeba_laser" / "de-en.tsv").write_text("eins\tone\n")
    with pytest.raises(DataError, match="same pair of languages"):
        load_data(mteb.get_task("Tatoeba"), data)


def test_a_clone_is_read_where_there_is_no_set_of_ours(data, monkeypatch):
    clone = data / "mteb" / "sts17-crosslingual-sts"
    clone.mkdir(parents=True)
    monkeypatch.delitem(READERS, "STS17")
    asked = []
    monkeypatch.setattr(
        mteb.get_task("STS17").__class__,
        "load_data",
        lambda self: asked.append(self.metadata.dataset),
    )
    assert load_data(mteb.get_task("STS17"), data) == "sts17-crosslingual-sts"
    assert asked[0]["path"] == str(clone)
    assert mteb.get_task("STS17").metadata.dataset["path"] == "mteb/sts17-crosslingual-sts"


def test_data_that_are_nowhere_are_one_line(tmp_path, monkeypatch):
    def refuse(self):
        raise ConnectionError("no\nnetwork")

    monkeypatch.setattr(mteb.get_task("STS13").__class__, "load_data", refuse)
    message = r"STS13: .*mteb/sts13-sts .* \(ConnectionError: no network\)"
    with pytest.raises(DataError, match=message):
        load_data(mteb.get_task("STS13"), tmp_path)


def test_every_reader_is_of_a_task_of_mteb():
    assert set(READERS) >= {"STS17", "Tatoeba", "BUCC", "SICK-R", "STSBenchmark", "STS12", "STS16"}
    assert [name for name in READERS if mteb.get_task(name).metadata.name != name] == []


def test_broken_data_of_ours_are_told_and_not_passed_over(data):
    (data / "stsb" / "en.test.tsv").write_text("four\ta\tb\n")
    with pytest.raises(DataError, match=r"en\.test\.tsv:1: unknown label 'four'"):
        load_data(mteb.get_task("STSBenchmark"), data)
