from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.senteval import senteval_sets
from interlingua.evaluation.metrics.logistic import PROTOTYPING, SENTEVAL
from interlingua.evaluation.metrics.senteval import (
    cross_validation_on_train,
    nested_cross_validation,
    validation_on_dev,
)
from interlingua.evaluation.tasks.classification.senteval import _SIZES, SentEval
from tests.evaluation.files import DATA, public_data, write
from tests.evaluation.tasks.topics import TOPICS, Topics


def lines(size, first=0, classes=2):
    return "".join(
        f"{n % classes}\ten {TOPICS[n % classes]} {n}\n" for n in range(first, first + size)
    )


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "senteval_cls"
    write(folder / "custrev.all", lines(120))
    for split, size, first in (("train", 60, 0), ("dev", 30, 100), ("test", 30, 200)):
        write(folder / f"stsa.binary.{split}", lines(size, first))
    write(folder / "TREC.train.all", lines(90, classes=3))
    write(folder / "TREC.test.all", lines(30, 200, classes=3))
    for split, size, first in (("train", 80, 0), ("val", 20, 100), ("test", 40, 200)):
        rows = (
            f"{n % 2}\t1\t2\ten sports {n}\ten {TOPICS[1 - n % 2]} {n + 7}\n"
            for n in range(first, first + size)
        )
        write(tmp_path / "mrpc" / f"{split}.tsv", "Quality\t1\t2\ta\tb\n" + "".join(rows))
    return folder


def test_each_task_by_its_own_scheme(folder):
    encoder = Topics(noise=2)
    result = SentEval(prototyping=True).evaluate(encoder, folder.parent)
    assert result.task == "senteval_senteval_cls"
    scores = {subset.name: subset.scores for subset in result.subsets}
    assert list(scores) == ["CR_120", "SST_60", "TREC_90", "MRPC_100"]
    sets = senteval_sets(folder)

    def vectors(name, split):
        one = sets[name]()[split]
        x = encoder.encode(one.texts)
        if one.others:
            v = encoder.encode(one.others)
            x = np.concatenate([np.abs(x - v), x * v], axis=1)
        return x, np.array(one.labels)

    cr = nested_cross_validation(*vectors("CR", "train"), classes=2, settings=PROTOTYPING)
    sst = validation_on_dev(
        *(vectors("SST", split) for split in ("train", "dev", "test")),
        classes=2,
        settings=PROTOTYPING,
    )
    trec = cross_validation_on_train(
        *(vectors("TREC", s) for s in ("train", "test")), classes=3, settings=PROTOTYPING
    )
    mrpc = cross_validation_on_train(
        *(vectors("MRPC", s) for s in ("train", "test")), classes=2, settings=PROTOTYPING
    )
    for name, expected in (("CR_120", cr), ("SST_60", sst), ("TREC_90", trec), ("MRPC_100", mrpc)):
        assert scores[name]["accuracy"] == expected.accuracy
        assert scores[name]["dev_accuracy"] == expected.dev_accuracy
        assert result.items[name].values.mean() == pytest.approx(expected.accuracy, abs=1e-12)
    y = vectors("MRPC", "test")[1]
    right = ((y == 1) & (mrpc.predicted == 1)).sum()
    assert scores["MRPC_100"]["f1"] == pytest.approx(
        2 * right / ((y == 1).sum() + (mrpc.predicted == 1).sum())
    )
    assert [subset.pairs for subset in result.subsets] == [120, 30, 30, 40]
    assert list(result.groups) == ["all_4"]
    assert result.groups["all_4"]["accuracy"] == pytest.approx(
        np.mean([one["accuracy"] for one in scores.values()])
    )
    assert "f1" not in result.groups["all_4"]


def test_the_defaults_are_senteval_s():
    assert SENTEVAL.folds == 10
    assert SENTEVAL.optimizer == "adam"
    assert SENTEVAL.batch_size == 64
    assert SENTEVAL.tenacity == 5
    assert SENTEVAL.epoch_size == 4
    assert (PROTOTYPING.folds, PROTOTYPING.optimizer, PROTOTYPING.batch_size) == (5, "rmsprop", 128)
    assert (PROTOTYPING.tenacity, PROTOTYPING.epoch_size) == (3, 2)


def test_an_average_of_fewer_tasks_carries_its_count(folder, monkeypatch):
    monkeypatch.setitem(_SIZES, "CR", 120)
    monkeypatch.setitem(_SIZES, "TREC", 90)
    result = SentEval(prototyping=True, tasks=("TREC", "CR")).evaluate(Topics(), folder)
    assert result.task == "senteval"
    assert result.members == {"all_2": ("CR", "TREC"), "senteval_2of7": ("CR", "TREC")}
    result = SentEval(prototyping=True, tasks=("CR", "MRPC")).evaluate(Topics(), folder)
    assert result.task == "senteval_senteval_cls"
    assert result.members == {"all_2": ("CR", "MRPC_100"), "senteval_1of7": ("CR",)}
    with pytest.raises(DataError, match=r"'SUBJ'.*CR, MRPC, SST, TREC"):
        SentEval(tasks=("SUBJ",)).evaluate(Topics(), folder)


@pytest.mark.data
def test_the_public_sets_are_recognized():
    public_data("senteval_cls")
    sets = {name: read() for name, read in senteval_sets(DATA / "senteval_cls").items()}
    sizes = {name: len(task["train"].labels) for name, task in sets.items()}
    assert sizes == {**_SIZES, "SST": 6920}  # sentences, not SentEval's phrases
    assert [len(sets[name]["test"].labels) for name in ("SST", "TREC", "MRPC")] == [1821, 500, 1725]
