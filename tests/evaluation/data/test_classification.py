from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.classification import (
    cls_v1_sets,
    cls_v2_sets,
    labeled_sets,
    mldoc_sets,
    require_split,
    sib200_sets,
)
from tests.evaluation.files import write


@pytest.mark.parametrize("header", ["", "index_id\tcategory\ttext\n"])
def test_sib200_with_and_without_its_header(tmp_path, header):
    for split in ("train", "dev", "test"):
        write(
            tmp_path / "deu_Latn" / f"{split}.tsv",
            f'{header}7\tsports\tEin Satz "mit Zeichen\n9\thealth\tNoch einer\n',
        )
    write(tmp_path / "SOURCE" / "train.tsv", "sports\ttwo columns\n")
    sets = sib200_sets(tmp_path)
    assert list(sets) == ["deu_Latn"]
    assert list(sets["deu_Latn"]) == ["train", "dev", "test"]
    texts, labels = sets["deu_Latn"]["dev"]()
    assert (texts, labels) == (['Ein Satz "mit Zeichen', "Noch einer"], ["sports", "health"])


def test_an_id_comes_once(tmp_path):
    write(tmp_path / "deu_Latn" / "train.tsv", "7\tsports\ta\n8\tsports\tb\n7\thealth\tc\n")
    with pytest.raises(DataError, match=r"train.tsv:3: .*'7' .*line 1"):
        sib200_sets(tmp_path)["deu_Latn"]["train"]()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sports\n", "tsv:1: .*found 1 column"),
        ("sports\ta\tb\n", r"tsv:1: .*found 3 columns"),
        ("sports\ta\n\tb\n", "tsv:2: the label .*empty"),
        ("sports\t \n", "tsv:1: the text .*empty"),
        ("", "file is empty"),
    ],
)
def test_broken_files_say_where(tmp_path, text, message):
    write(tmp_path / "german.train.tsv", text)
    with pytest.raises(DataError, match=message):
        labeled_sets(tmp_path)["german"]["train"]()


def test_your_own_layouts(tmp_path):
    write(tmp_path / "german.train.tsv", "0\tschlecht\n1\tgut\n")
    write(tmp_path / "german.val.tsv", "1\tgut\n")
    write(tmp_path / "sw" / "train.jsonl", '{"text": "nzuri", "label": 1}\n')
    write(tmp_path / "sw" / "test.jsonl", '{"text": "mbaya", "label": 0}\n')
    write(tmp_path / "nolanguage" / "train.tsv", "1\tx\n")
    write(tmp_path / "fr.test.tsv", "1\tseul\n")  # nothing to learn from
    sets = labeled_sets(tmp_path)
    assert {language: list(splits) for language, splits in sets.items()} == {
        "german": ["train", "dev"],
        "sw": ["test", "train"],
    }
    assert sets["sw"]["train"]() == (["nzuri"], ["1"])
    with pytest.raises(DataError, match=r"no test set; .*train, dev"):
        require_split(sets["german"], "test", language="german", folder=tmp_path)
    write(tmp_path / "sw" / "train.jsonl", '{"text": "nzuri"}\n')
    with pytest.raises(DataError, match=r"train.jsonl:1: .*label, text"):
        sets["sw"]["train"]()


def test_mldoc_by_its_own_names_and_by_laser_s(tmp_path):
    for name in ("german.train.1000", "german.dev", "german.test", "german.train.2000"):
        write(tmp_path / name, "CCAT\tb'Gr\\xc3\\xbc\\xc3\\x9fe'\nMCAT\tbeide 'Orte'\n")
    for name in ("mldoc.train1000.fr", "mldoc.dev.fr", "mldoc.test.fr"):
        write(tmp_path / name, "ECAT\tdeux\n")
    write(tmp_path / "spanish-latam.train.1000", "ECAT\tdos\n")
    sets = mldoc_sets(tmp_path)
    assert list(sets) == ["german", "fr"]
    assert sets["german"]["train"]() == (["Grüße", "beide 'Orte'"], ["CCAT", "MCAT"])
    assert list(mldoc_sets(tmp_path, 2000)) == ["german"]
    assert mldoc_sets(tmp_path / "none") == {}


def reviews(ratings, word):
    items = "".join(
        f"<item><category>books</category><rating>{rating}</rating><summary>s</summary>"
        f"<text>{word} {n} &amp;\n more</text></item>"
        for n, rating in enumerate(ratings)
    )
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<items>{items}</items>'


def test_cls_v1_takes_its_dev_set_evenly_from_the_unlabeled(tmp_path):
    below = tmp_path / "jp" / "books"
    write(below / "train.review", reviews(["5.0", "1.0", "4.0"], "本"))
    write(below / "test.review", reviews(["2.0"], "試"))
    write(below / "unlabeled.review", reviews(["1.0"] * 3000 + ["5.0"] * 7, "外"))
    sets = cls_v1_sets(tmp_path)
    assert list(sets) == ["books.ja"]
    assert sets["books.ja"]["train"]() == (
        ["本 0 & more", "本 1 & more", "本 2 & more"],
        ["positive", "negative", "positive"],
    )
    texts, labels = sets["books.ja"]["dev"]()
    assert (labels.count("negative"), labels.count("positive")) == (1000, 7)
    assert texts[:3] == ["外 0 & more", "外 3 & more", "外 6 & more"]
    assert texts[999:1001] == ["外 2997 & more", "外 3000 & more"]
    write(below / "test.review", "<items><item>")
    with pytest.raises(DataError, match=r"test\.review"):
        sets["books.ja"]["test"]()
    write(below / "test.review", "<items></items>")
    with pytest.raises(DataError, match="no review"):
        sets["books.ja"]["test"]()


def test_cls_v2_leaves_three_stars_out(tmp_path):
    def lines(stars):
        return "".join(
            json.dumps({"stars": str(s), "review_body": f"r{n}"}) + "\n"
            for n, s in enumerate(stars)
        )

    write(tmp_path / "train" / "dataset_de_train.json", lines([1] * 1500 + [3] + [5] * 2000))
    write(tmp_path / "dev" / "dataset_de_dev.json", lines([1, 2, 3, 4, 5]))
    write(tmp_path / "dataset_fr_test.json", lines([1]))  # nothing to learn from
    sets = cls_v2_sets(tmp_path)
    assert list(sets) == ["de"]
    texts, labels = sets["de"]["train"]()
    assert (labels.count("negative"), labels.count("positive")) == (1000, 1000)
    assert texts[:3] == ["r0", "r1", "r3"]
    assert texts[1000:1002] == ["r1501", "r1503"]
    assert sets["de"]["dev"]() == (
        ["r0", "r1", "r3", "r4"],
        ["negative", "negative", "positive", "positive"],
    )
