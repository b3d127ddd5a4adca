from __future__ import annotations

import gzip

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.bucc import bucc_files, read_bucc


def write(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def small(tmp_path):
    files = {
        "dev.zh": "zh-000000001\t一 。 \r\nzh-000000002\t二\nzh-000000003\t三\n",
        "dev.en": "en-000000001\tone\ten\nen-000000002\ttwo\n",
        "dev.gold": "zh-000000003\ten-000000001\nzh-000000001\ten-000000002\n",
    }
    return write(tmp_path / "bucc", **files)


def test_ids_become_rows(small):
    assert list(bucc_files(small)) == ["zh-en"]
    read = read_bucc(bucc_files(small)["zh-en"]["dev"])
    assert read.source.ids == ["zh-000000001", "zh-000000002", "zh-000000003"]
    assert read.source.texts == ["一 。", "二", "三"]
    assert read.target.texts == ["one\ten", "two"]  # a sentence extends to the line's end
    assert read.gold == [(2, 0), (0, 1)]


def test_the_layout_of_the_shared_task(tmp_path):
    for split in ("training", "test", "sample"):
        sides = {f"de-en.{split}.{code}": f"{code}-000000001\t{code}\n" for code in ("de", "en")}
        write(tmp_path / "de-en", **sides)
    write(
        tmp_path / "de-en",
        **{"de-en.training.gold": "de-000000001\ten-000000001\n", "README.en": "x\n"},
    )
    write(tmp_path / "mrpc", **{"dev.de": "x\n", "dev.en": "x\n"})
    write(tmp_path, **{"fr-en.train.fr": "x\n"})
    (tmp_path / "fr-en.train.en.gz").write_bytes(gzip.compress(b"x\n"))
    found = bucc_files(tmp_path)
    assert {name: list(splits) for name, splits in found.items()} == {
        "fr-en": ["training"],
        "de-en": ["sample", "test", "training"],
    }
    training, test = found["de-en"]["training"], found["de-en"]["test"]
    assert (training.languages, training.name) == (("de", "en"), "de-en")
    assert (training.gold.is_file(), test.gold.is_file()) == (True, False)
    assert test.gold.name == "de-en.test.gold"
    assert read_bucc(training).gold == [(0, 0)]


def test_nothing_here(tmp_path):
    write(tmp_path, **{"dev.tsv": "x\n", "dev.zh": "x\n", "train.en": "x\n"})
    assert bucc_files(tmp_path) == bucc_files(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "dev.zh",
            "zh-1\t一\nzh-1\t二\n",
            "dev.zh:2: .*'zh-1' occurs twice",
        ),
        ("dev.zh", "zh-000000003\n", r"dev.zh:1: expected id TAB sentence"),
        ("dev.en", "en-000000001\t \n", r"dev.en:1: expected id TAB sentence"),
        ("dev.en", "", r"dev.en: the file is empty"),
        ("dev.gold", "", r"dev.gold: the file is empty"),
        ("dev.gold", "zh-000000001\n", "dev.gold:1: .*1 column"),
        (
            "dev.gold",
            "zh-000000009\ten-000000001\n",
            "dev.gold:1: .*'zh-000000009' .*dev.zh",
        ),
        (
            "dev.gold",
            "en-000000001\tzh-000000001\n",
            "dev.gold:1: .*'en-000000001' .*dev.zh",
        ),
        ("dev.gold", 2 * "zh-000000001\ten-000000001\n", "dev.gold:2: the pair .*twice"),
    ],
)
def test_broken_files_are_one_line(small, name, text, message):
    (small / name).write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        read_bucc(bucc_files(small)["zh-en"]["dev"])
