"""mteb's few-shot rule; mteb's own code gives the same numbers on the same vectors."""

from __future__ import annotations

import types

import numpy as np
import pytest

from interlingua.evaluation.data.classification import sib200_sets
from interlingua.evaluation.tasks.classification.few_shot import (
    FewShotFolder,
    FewShotSib200,
    FewShotUmsab,
    few_shot_draws,
)
from tests.evaluation.files import DATA, public_data
from tests.evaluation.tasks.topics import Topics, topic_rows, write_topics


def test_draws_are_a_shuffle_of_a_shuffle():
    y = np.array([0, 1] * 10)
    first, second = few_shot_draws(y, samples_per_label=3, draws=2, seed=42)
    order = np.arange(20)
    np.random.RandomState(42).shuffle(order)
    zeros = [row for row in order if y[row] == 0][:3]
    assert [row for row in first if y[row] == 0] == zeros
    assert len(first) == len(second) == 6
    again = order.copy()
    np.random.RandomState(42).shuffle(again)
    assert [row for row in second if y[row] == 1] == [row for row in again if y[row] == 1][:3]
    assert first != second
    (few,) = few_shot_draws(np.array([0, 1, 1]), samples_per_label=2, draws=1, seed=1)
    assert sorted(few) == [0, 1, 2]


def test_scores_items_and_groups(tmp_path):
    write_topics(tmp_path / "labeled", ("en", "de"))
    encoder = Topics(noise=1.5)
    result = FewShotFolder(samples_per_label=2, draws=4).evaluate(encoder, tmp_path)
    assert result.task == "few_shot_folder_labeled"
    assert [(subset.name, subset.languages, subset.pairs) for subset in result.subsets] == [
        ("de", ("deu_Latn", "deu_Latn"), 21),
        ("en", ("eng_Latn", "eng_Latn"), 21),
    ]
    for subset in result.subsets:
        assert list(subset.scores) == ["accuracy", "accuracy_sd", "f1_macro"]
        assert result.items[subset.name].values.mean() == pytest.approx(subset.scores["accuracy"])
        assert subset.scores["accuracy_sd"] > 0
    means = {
        metric: np.mean([subset.scores[metric] for subset in result.subsets])
        for metric in result.subsets[0].scores
    }
    assert result.groups == {"all_2": pytest.approx(means)}
    asked = [text for _, texts in encoder.asked for text in texts]
    assert len(asked) < 2 * (36 + 21)  # what is never drawn is not embedded
    (alone,) = (
        FewShotFolder(samples_per_label=2, draws=1, languages=["en"])
        .evaluate(encoder, tmp_path)
        .subsets
    )
    assert list(alone.scores) == ["accuracy", "f1_macro"]


def test_a_label_that_is_only_tested_counts_as_wrong(tmp_path):
    folder = write_topics(tmp_path / "labeled", ("en", "de"))
    rows = "".join(
        f"{label}\t{text}\n" for label, text in topic_rows("de", 36) if label != "travel"
    )
    (folder / "de.train.tsv").write_text(rows)
    result = FewShotFolder().evaluate(Topics(noise=0), folder)
    assert result.subsets[0].scores["accuracy"] == pytest.approx(2 / 3)
    assert result.subsets[1].scores["accuracy"] == 1


def mteb_scores(x, y, test_x, test_y, **options):
    """Run mteb's own task class on these vectors."""
    pytest.importorskip("mteb")
    datasets = pytest.importorskip("datasets")
    from mteb.abstasks.classification import AbsTaskClassification
    from mteb.timing import TimingStack

    class Task(AbsTaskClassification):
        metadata = types.SimpleNamespace(name="few shot")
        seed = 42

        def __init__(self):
            for name, value in options.items():
                setattr(self, name, value)

    task = Task()
    task.evaluator_model.set_params(random_state=42)
    train = datasets.Dataset.from_dict({"text": [""] * len(y), "label": y.tolist()})
    test = datasets.Dataset.from_dict({"text": [""] * len(test_y), "label": test_y.tolist()})
    scores, order = [], None
    for number in range(task.n_experiments):
        drawn, order, rows = task._undersample_data(train, number, order)
        found, _ = task._run_experiment(drawn, test, x[rows], test_x, timer=TimingStack())
        scores.append(found)
    return task._calculate_avg_scores(scores)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("noise", "samples"), [(0.6, 8), (2.5, 8), (2.5, 3)])
def test_mteb_gives_the_same_numbers(tmp_path, noise, samples):
    write_topics(tmp_path / "labeled", ("en",), test=120)
    encoder = Topics(noise=noise)
    (ours,) = FewShotFolder(samples_per_label=samples).evaluate(encoder, tmp_path).subsets
    classes = {"health": 0, "sports": 1, "travel": 2}
    (labels, texts), (test_labels, test_texts) = (
        zip(*rows, strict=True) for rows in (topic_rows("en", 36), topic_rows("en", 120, 2000))
    )
    y, test_y = (np.array([classes[label] for label in some]) for some in (labels, test_labels))
    theirs = mteb_scores(
        encoder.encode(texts), y, encoder.encode(test_texts), test_y, samples_per_label=samples
    )
    assert ours.scores["accuracy"] == theirs["accuracy"]
    assert ours.scores["f1_macro"] == pytest.approx(theirs["f1"], abs=1e-12)


@pytest.mark.data
@pytest.mark.parametrize("task", [FewShotSib200, FewShotUmsab])
def test_the_public_sets_are_recognized(task):
    public_data(task.folders[0])
    from tests.evaluation.encoders import Hashes

    result = task(languages=["de", "en"], draws=2).evaluate(Hashes(), DATA)
    assert (result.task, bool(result.data_revision)) == (task.name, True)


@pytest.mark.data
@pytest.mark.filterwarnings("ignore")
def test_mteb_gives_the_same_numbers_on_sib200():
    folder = public_data("sib200")
    from tests.evaluation.tasks.translation.test_xsim import Trigrams

    (ours,) = FewShotSib200(languages=["deu_Latn"]).evaluate(Trigrams(), DATA).subsets
    splits = {split: read() for split, read in sib200_sets(folder)["deu_Latn"].items()}
    classes = {label: number for number, label in enumerate(sorted(set(splits["train"].labels)))}
    (x, y), (test_x, test_y) = (
        (Trigrams().encode(one.texts), np.array([classes[label] for label in one.labels]))
        for one in (splits["train"], splits["test"])
    )
    theirs = mteb_scores(x, y, test_x, test_y, samples_per_label=8)
    assert 0.2 < theirs["accuracy"] < 0.9
    assert ours.scores["accuracy"] == theirs["accuracy"]
    assert ours.scores["f1_macro"] == pytest.approx(theirs["f1"], abs=1e-12)
