from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.pairs import (
    mrpc_file,
    mrpc_sets,
    pair_sets,
    paws_x_sets,
    xnli_sets,
)
from tests.evaluation.files import write

XNLI = "a\tb\tentailment\nc\td\tneutral\ne\tf\tcontradiction\n"


def test_mrpc(tmp_path):
    rows = '#1\tx\tx\tx\tx\n1\t7\t8\tHe said "so\tSo he said\n0\t7\t9\ta\tb\n'
    write(tmp_path / "test.tsv", rows)
    write(tmp_path / "msr_paraphrase_train.txt", rows)
    assert mrpc_sets(tmp_path, "test")["en"]() == (
        ['He said "so', "a"],
        ["So he said", "b"],
        [True, False],
    )
    assert mrpc_file(tmp_path, "train").name == "msr_paraphrase_train.txt"
    assert mrpc_sets(tmp_path, "dev") == {}


def test_xnli_by_language_and_in_one_file(tmp_path):
    write(tmp_path / "dev-de.tsv", XNLI)
    write(tmp_path / "dev-sw.tsv", XNLI)
    write(tmp_path / "README.tsv", "x\n")
    sets = xnli_sets(tmp_path, "dev", "negative")
    assert list(sets) == ["de", "sw"]
    assert sets["de"]() == (["a", "c", "e"], ["b", "d", "f"], [True, False, False])
    assert xnli_sets(tmp_path, "dev", "left_out")["de"]() == (["a", "e"], ["b", "f"], [True, False])
    header = "language\tgold_label\tsentence1\tsentence2\n"
    write(
        tmp_path / "xnli.test.tsv",
        header + "de\tentailment\ta\tb\nfr\tneutral\tc\td\nde\tcontradiction\te\tf\n",
    )
    sets = xnli_sets(tmp_path, "test", "negative")
    assert {language: read().positive for language, read in sets.items()} == {
        "deu_Latn": [True, False],
        "fra_Latn": [False],
    }


def test_paws_x(tmp_path):
    rows = "id\tsentence1\tsentence2\tlabel\n1\ta b\tb a\t1\n2\tc d\td c\t0\n"
    for name in ("de/test_2k.tsv", "de/translated_train.tsv", "en/train.tsv", "en/test_2k.tsv"):
        write(tmp_path / "x-final" / name, rows)
    write(tmp_path / "sick" / "test.tsv", "3\ta\tb\n")
    assert list(paws_x_sets(tmp_path, "test")) == ["de", "en"]
    assert list(paws_x_sets(tmp_path, "train")) == ["de", "en"]
    assert paws_x_sets(tmp_path / "x-final", "test")["de"]() == (
        ["a b", "c d"],
        ["b a", "d c"],
        [True, False],
    )


def test_your_own_pairs(tmp_path):
    write(tmp_path / "german.test.tsv", "1\ta\tb\n0\tc\td\n")
    write(tmp_path / "sw.test.jsonl", '{"label": 1, "sentence1": "a", "sentence2": "b"}\n')
    sets = pair_sets(tmp_path, "test")
    assert sets["german"]() == (["a", "c"], ["b", "d"], [True, False])
    assert sets["sw"]() == (["a"], ["b"], [True])
    assert pair_sets(tmp_path / "none", "test") == {}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("de.test.tsv", "1\ta\n", "tsv:1: .*found 2 columns"),
        ("de.test.tsv", "1\ta\tb\nyes\ta\tb\n", "tsv:2: .*'yes'"),
        ("de.test.tsv", "1\ta\t \n", "tsv:1: a sentence .*empty"),
        ("de.test.tsv", "", "no labeled pairs"),
        (
            "de.test.jsonl",
            '{"label": 1}\n',
            "jsonl:1: no column sentence1",
        ),
    ],
)
def test_broken_files_say_where(tmp_path, name, text, message):
    write(tmp_path / name, text)
    with pytest.raises(DataError, match=message):
        pair_sets(tmp_path, "test")["de"]()
