from __future__ import annotations

import gzip
import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.similarity import (
    SimilarityFile,
    read_scored_pairs,
    sick_files,
    sts12_16_files,
    sts17_files,
    stsb_files,
)
from tests.evaluation.files import write


def read(file):
    return tuple(read_scored_pairs(file))


def test_sts17_in_four_layouts(tmp_path):
    write(tmp_path / "track1.ar-ar.tsv", "2.5\tألف\tباء\n")
    write(tmp_path / "track6.tr-en.tsv", '5\tA "dog".\tBir köpek.\n')
    write(tmp_path / "STS.fr-en.txt", "Un chien.\tA dog.\t4.8\n")
    write(tmp_path / "track4b.es-en.tsv", "1\tYes.\tNo.\n")
    write(tmp_path / "STS.input.track3.es-es.txt", "Sí.\tNo.\nUno.\tDos.\n")
    write(tmp_path / "STS.gs.track3.es-es.txt", "0.4\n\n")
    record = {"score": 3.0, "sentence1": "A cat.", "sentence2": "Eine Katze."}
    (tmp_path / "en-de.jsonl.gz").write_bytes(gzip.compress(json.dumps(record).encode()))
    files = sts17_files(tmp_path)
    assert list(files) == ["en-fr", "es-es", "en-de", "ar-ar", "en-es_4b", "en-tr"]
    assert [files[key].languages for key in ("en-tr", "en-es_4b", "en-fr")] == [
        ("en", "tr"),
        ("en", "es"),
        ("fr", "en"),
    ]
    assert read(files["en-tr"]) == (['A "dog".'], ["Bir köpek."], [5.0], 0)
    assert read(files["en-fr"]) == (["Un chien."], ["A dog."], [4.8], 0)
    assert read(files["es-es"]) == (["Sí."], ["No."], [0.4], 1)
    assert read(files["en-de"]) == (["A cat."], ["Eine Katze."], [3.0], 0)
    assert sts17_files(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (("track6.tr-en.tsv", "STS.en-tr.txt"), sts17_files),
        (("en.test.tsv", "sts-test.csv"), lambda folder: stsb_files(folder, "test")),
        (("2012.MSRpar.tsv", "2012.MSRpar.test.tsv"), sts12_16_files),
        (("test.tsv", "SICK_test_annotated.txt"), sick_files),
    ],
)
def test_a_set_in_two_layouts_is_said_and_neither_is_taken(tmp_path, files, found):
    for name in files:
        write(tmp_path / name, "1\ta\tb\n")
    with pytest.raises(DataError, match=f"({'|'.join(files)}) .*copy of"):
        found(tmp_path)


def test_sts17_gold_in_the_folder_beside(tmp_path):
    write(tmp_path / "STS2017.eval" / "STS.input.track5.en-en.txt", "a\tb\n")
    write(tmp_path / "STS2017.gs" / "STS.gs.track5.en-en.txt", "3.2\n")
    assert read(sts17_files(tmp_path / "STS2017.eval")["en-en"])[2] == [3.2]


def test_stsb_in_three_layouts(tmp_path):
    write(tmp_path / "de.test.tsv", "2.5\tEin Hund.\tEine Katze.\n")
    write(tmp_path / "de.dev.tsv", "1\ta\tb\n")
    write(tmp_path / "stsb-fr-test.csv", '"Un chien, noir.","Un ""chat"".",3.25\n')
    write(
        tmp_path / "sts-test.csv",
        'main-captions\tMSRvid\t2012test\t0024\t2.500\tA "girl.\tA boy.\tmore\n',
    )
    files = stsb_files(tmp_path, "test")
    assert sorted(files) == ["de", "en", "fr"]
    assert read(files["fr"]) == (["Un chien, noir."], ['Un "chat".'], [3.25], 0)
    assert read(files["en"]) == (['A "girl.'], ["A boy."], [2.5], 0)
    assert list(stsb_files(tmp_path, "dev")) == ["de"]


def test_sts12_16_in_two_layouts(tmp_path):
    write(tmp_path / "2013.FNWN.test.tsv", "1\ta\tb\n")
    write(tmp_path / "2012.MSRpar.train.tsv", "1\ta\tb\n")
    write(tmp_path / "2016.x-y.tsv", "1\ta\tb\n")
    write(tmp_path / "STS12-en-test" / "STS.input.surprise.OnWN.txt", "a\tb\n")
    write(tmp_path / "STS12-en-test" / "STS.gs.surprise.OnWN.txt", "4\n")
    files = sts12_16_files(tmp_path)
    assert list(files) == ["2013.FNWN", "2016.x-y", "2012.OnWN"]
    assert read(files["2012.OnWN"])[2] == [4.0]


def test_sick_in_two_layouts(tmp_path):
    write(tmp_path / "dev.tsv", "3.3\tA boy\tA girl\tNEUTRAL\n")
    header = "pair_ID\tsentence_A\tsentence_B\trelatedness_score\tentailment_judgment\n"
    write(tmp_path / "SICK_test_annotated.txt", f"{header}6\tA cat\tA dog\t1.5\tNEUTRAL\n")
    files = sick_files(tmp_path)
    assert sorted(files) == ["dev", "test"]
    assert read(files["test"]) == (["A cat"], ["A dog"], [1.5], 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("1\ta\tb\n1\ta\n", "x.tsv:2: expected 3 columns with tabs between them, found 2"),
        ("good\ta\tb\n", "x.tsv:1: unknown label 'good'"),
        ("nan\ta\tb\n", "x.tsv:1: unknown label 'nan'"),
        ("1\t \tb\n", "x.tsv:1: a sentence is empty"),
        ("", "x.tsv: the file contains no labeled pairs"),
    ],
)
def test_broken_rows_are_one_line_with_the_place(tmp_path, content, message):
    write(tmp_path / "x.tsv", content)
    with pytest.raises(DataError) as error:
        read_scored_pairs(SimilarityFile(("en", "en"), tmp_path / "x.tsv"))
    assert message in str(error.value)


def test_gold_of_another_length_missing_gold_and_broken_json(tmp_path):
    write(tmp_path / "STS.input.track5.en-en.txt", "a\tb\nc\td\n")
    write(tmp_path / "en-de.jsonl", '{"score": 1}\n')
    files = sts17_files(tmp_path)
    with pytest.raises(DataError, match=r"STS.gs.track5.en-en.txt: file not found"):
        read_scored_pairs(files["en-en"])
    write(tmp_path / "STS.gs.track5.en-en.txt", "1\n")
    with pytest.raises(DataError, match=r"2 lines, but STS.gs.track5.en-en.txt has 1"):
        read_scored_pairs(files["en-en"])
    with pytest.raises(DataError, match=r"en-de.jsonl:1: no column sentence1"):
        read_scored_pairs(files["en-de"])
