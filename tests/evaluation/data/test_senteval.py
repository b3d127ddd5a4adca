from __future__ import annotations

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.senteval import senteval_sets
from tests.evaluation.files import write

MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"


def test_senteval_s_own_layout(tmp_path):
    folder = tmp_path / "data" / "downstream"
    write(folder / "CR" / "custrev.pos", "long  and good\n\ngood\n")
    write(folder / "CR" / "custrev.neg", "bad\n")
    for split in ("train", "dev", "test"):
        write(
            folder / "SST" / "binary" / f"sentiment-{split}", f"a fine {split} film\t1\ndull\t0\n"
        )
    (folder / "TREC").mkdir()
    (folder / "TREC" / "train_5500.label").write_bytes(
        "DESC:manner How did Ren\xe9 go ?\nNUM:dist How far ?\n".encode("latin-1")
    )
    write(folder / "TREC" / "TREC_10.label", "HUM:ind Who ?\n")
    write(
        folder / "MRPC" / "msr_paraphrase_train.txt",
        MRPC_HEADER + "1\t1\t2\tone two\tthree\n0\t1\t2\tone\ttwo\n",
    )
    write(folder / "MRPC" / "msr_paraphrase_test.txt", MRPC_HEADER + "1\t1\t2\ta\tb\n")
    sets = senteval_sets(tmp_path)
    assert list(sets) == ["CR", "SST", "TREC", "MRPC"]
    # by length, then by class; SentEval's examples put a full stop where there is no text
    assert sets["CR"]() == {"train": (["bad", ".", "good", "long and good"], [0, 1, 1, 1], None)}
    assert sets["SST"]()["dev"] == (["dull", "a fine dev film"], [0, 1], None)
    trec = sets["TREC"]()
    assert trec["train"] == (["How far ?", "How did René go ?"], [5, 1], None)
    assert trec["test"] == (["Who ?"], [3], None)
    assert sets["MRPC"]()["train"] == (["one", "one two"], [0, 1], ["two", "three"])


@pytest.mark.parametrize("suffix", ["", ".tsv"])
def test_sent_conv_s_layout_with_mrpc_beside_it(tmp_path, suffix):
    folder, tab = tmp_path / "senteval_cls", "\t" if suffix else " "
    write(
        folder / f"rt-polarity.all{suffix}", f"0{tab}dull and long\n1{tab}good\n0{tab}bad\n1{tab}\n"
    )
    for split in ("train", "dev", "test"):
        write(folder / f"stsa.binary.{split}{suffix}", f"1{tab}{split}\n")
    write(folder / f"TREC.train.all{suffix}", f"5{tab}How far ?\n")
    write(folder / f"TREC.test.all{suffix}", f"4{tab}Where ?\n")
    for split in ("train", "val", "test"):
        write(tmp_path / "mrpc" / f"{split}.tsv", MRPC_HEADER + f"1\t1\t2\t{split}\tother\n")
    sets = senteval_sets(folder)
    assert list(sets) == ["MR", "SST", "TREC", "MRPC"]
    assert sets["MR"]()["train"] == (["bad", "good", ".", "dull and long"], [0, 1, 1, 0], None)
    assert [examples.texts for examples in sets["SST"]().values()] == [["train"], ["dev"], ["test"]]
    assert sets["TREC"]()["test"] == (["Where ?"], [4], None)
    assert sets["MRPC"]() == {
        "train": (["train", "val"], [1, 1], ["other", "other"]),
        "test": (["test"], [1], ["other"]),
    }


def test_mrpc_alone_is_no_folder_of_senteval_s(tmp_path):
    write(tmp_path / "mrpc" / "train.tsv", MRPC_HEADER)
    assert senteval_sets(tmp_path) == {}
    assert senteval_sets(tmp_path / "none") == {}


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        (
            "subj.all",
            "yes text\n",
            "subj.all:1: .*'yes text'",
        ),
        ("subj.all", "\n", r"subj.all: the file is empty"),
        (
            "SST/binary/sentiment-train",
            "no label\n",
            "sentiment-train:1: .*'no label'",
        ),
        (
            "TREC/train_5500.label",
            "WHAT:x y\n",
            "train_5500.label:1: .*ABBR, .* colon",
        ),
        ("MPQA/mpqa.pos", "good\n", r"mpqa.neg: .*"),
    ],
)
def test_broken_files_say_where(tmp_path, path, text, message):
    write(tmp_path / path, text)
    (read,) = senteval_sets(tmp_path).values()
    with pytest.raises(DataError, match=message):
        read()


def test_mrpc_without_a_test_file(tmp_path):
    write(tmp_path / "subj.all", "1 text\n")
    write(tmp_path / "MRPC" / "msr_paraphrase_train.txt", MRPC_HEADER + "1\t1\t2\ta\tb\n")
    with pytest.raises(DataError, match="MRPC has no"):
        senteval_sets(tmp_path)["MRPC"]()
