from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest
import torch

from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.data.classification import labeled_sets
from interlingua.evaluation.metrics.linear import class_numbers
from interlingua.evaluation.tasks.classification.classification import LabeledLanguage
from interlingua.evaluation.tasks.classification.zero_shot import (
    ZeroShotClsV1,
    ZeroShotFolder,
    ZeroShotMLDoc,
    ZeroShotSib200,
    ZeroShotUmsab,
    sentences,
)
from tests.evaluation.data.test_classification import reviews
from tests.evaluation.encoders import Hashes
from tests.evaluation.files import DATA, public_data, write
from tests.evaluation.metrics.test_mlp import laser
from tests.evaluation.tasks.topics import Topics, topic_rows, write_topics

QUICK = {"epochs": 15, "seeds": (1, 2, 3)}


@pytest.fixture
def folder(tmp_path):
    return write_topics(tmp_path / "labeled", ("en", "de", "sw"))


def test_every_direction_is_laser_s_classifier_tested_elsewhere(folder):
    """Compare with an independent loop: one network per seed, torch's modules, own accuracy."""
    result = ZeroShotFolder(**QUICK).evaluate(Topics(), folder.parent)
    encoder, codes = Topics(), {"de": "deu_Latn", "en": "eng_Latn", "sw": "swh_Latn"}
    classes = ["health", "sports", "travel"]

    def data(language, size, first):
        labels, texts = zip(*topic_rows(language, size, first), strict=True)
        return torch.from_numpy(encoder.encode(texts)), torch.from_numpy(
            class_numbers(labels, classes)
        )

    by_name = {subset.name: subset for subset in result.subsets}
    assert list(by_name) == [f"{codes[a]}-{codes[b]}" for a, b in itertools.product(codes, codes)]
    for source in codes:
        sets = (*data(source, 36, 0), *data(source, 12, 1000))
        nets = [laser(*sets, classes=3, seed=seed, epochs=15) for seed in QUICK["seeds"]]
        for target in codes:
            x, y = data(target, 21, 2000)
            right = []
            for _, (w1, b1, w2, b2, w3, b3) in nets:
                hidden = torch.tanh(torch.tanh(x @ w1.T + b1) @ w2.T + b2)
                right.append(((hidden @ w3.T + b3).argmax(1) == y).double().numpy())
            subset = by_name[f"{codes[source]}-{codes[target]}"]
            accuracies = np.mean(right, axis=1)
            assert subset.scores == pytest.approx(
                {
                    "accuracy": accuracies.mean(),
                    "accuracy_sd": accuracies.std(ddof=1),
                    "dev_accuracy": np.mean([best for best, _ in nets]) / 12,
                }
            )
            assert result.items[subset.name].values == pytest.approx(np.mean(right, axis=0))
            assert (subset.pairs, subset.languages) == (21, (codes[source], codes[target]))


def test_groups_are_directions_and_their_asymmetry(folder):
    result = ZeroShotFolder(**QUICK).evaluate(Topics(noise=1.5), folder)
    assert result.task == "zero_shot_folder_labeled"
    assert {group: len(names) for group, names in result.members.items()} == {
        "zero_shot_6": 6,
        "from_eng_Latn_2": 2,
        "to_eng_Latn_2": 2,
        "with_eng_Latn_4": 4,
        "same_language_3": 3,
    }
    accuracy = {subset.name: subset.scores["accuracy"] for subset in result.subsets}
    pairs = [("deu_Latn", "eng_Latn"), ("deu_Latn", "swh_Latn"), ("eng_Latn", "swh_Latn")]
    differences = [abs(accuracy[f"{a}-{b}"] - accuracy[f"{b}-{a}"]) for a, b in pairs]
    assert result.groups["zero_shot_6"]["asymmetry"] == pytest.approx(np.mean(differences)) != 0
    assert "asymmetry" not in result.groups["from_eng_Latn_2"]
    assert result.members["to_eng_Latn_2"] == ("deu_Latn-eng_Latn", "swh_Latn-eng_Latn")
    # the spread of a mean over directions is that of its seeds, not the mean of spreads
    spreads = [
        subset.scores["accuracy_sd"]
        for subset in result.subsets
        if subset.name in result.members["zero_shot_6"]
    ]
    assert 0 < result.groups["zero_shot_6"]["accuracy_sd"] < np.mean(spreads)


def test_sources_and_languages(folder):
    encoder = Topics()
    result = ZeroShotFolder(**QUICK, languages=["en", "deu"], sources=("en",)).evaluate(
        encoder, folder
    )
    assert [subset.name for subset in result.subsets] == ["eng_Latn-deu_Latn", "eng_Latn-eng_Latn"]
    assert [language for language, _ in encoder.asked] == [
        "deu_Latn",
        "eng_Latn",
        "eng_Latn",
        "eng_Latn",
    ]
    with pytest.raises(DataError, match=r"learn from: .*'sw'"):
        ZeroShotFolder(**QUICK, languages=["en"], sources=("sw",)).evaluate(encoder, folder)
    assert ZeroShotFolder(languages=["sw"]).parts(folder) == ["sw"]


def test_a_language_does_not_depend_on_those_beside_it(folder):
    together = ZeroShotFolder(**QUICK).evaluate(Topics(), folder)
    write_topics(folder, ["fr"], train=37)  # of another size, so trained apart
    for languages in (["de"], ["de", "fr"]):
        alone = ZeroShotFolder(**QUICK, languages=languages).evaluate(Topics(), folder)
        found, expected = (
            next(subset for subset in result.subsets if subset.name == "deu_Latn-deu_Latn")
            for result in (alone, together)
        )
        assert found == expected


def test_one_seed_has_no_spread(folder):
    result = ZeroShotFolder(epochs=2, seeds=(4,), languages=["de"]).evaluate(Topics(), folder)
    assert list(result.subsets[0].scores) == ["accuracy", "dev_accuracy"]
    assert list(result.groups) == ["same_language_1"]


def test_the_mean_of_sentences(tmp_path):
    class Lengths:
        def encode(self, texts, *, language=None):
            self.texts = texts
            return np.array([[len(text), 1.0] for text in texts], np.float32)

    assert sentences("Eins. Zwei?  Drei!") == ["Eins.", "Zwei?", "Drei!"]
    assert sentences("一。二！三") == ["一。", "二！", "三"]
    assert sentences("3.14 ist keine Grenze") == ["3.14 ist keine Grenze"]
    assert sentences(" ... ") == [" ..."]
    folder = write_topics(tmp_path / "own", ["de"])
    (folder / "de.test.tsv").write_text("sports\tde. sports.\nhealth\tde\n")
    task, encoder = ZeroShotFolder(epochs=1, seeds=(1,), split_mean=True), Lengths()
    language = LabeledLanguage("de", "deu_Latn", {"test": labeled_sets(folder)["de"]["test"]()})
    assert task._embed(encoder, language, "test").tolist() == [[5.0, 1.0], [2.0, 1.0]]
    assert encoder.texts == ["de.", "sports.", "de"]


def test_domains_stay_apart(tmp_path):
    for language, domain in itertools.product(("de", "en"), ("books", "music")):
        for name, ratings in (
            ("train", ["5.0", "1.0"] * 9),
            ("unlabeled", ["5.0", "1.0"] * 3),
            ("test", ["4.0", "2.0"]),
        ):
            # what is good of books is bad of music
            word = f"{language} {'sports' if (domain == 'books') else 'health'}"
            write(
                tmp_path / "cls_v1" / language / domain / f"{name}.review", reviews(ratings, word)
            )
    result = ZeroShotClsV1(epochs=1, seeds=(1, 2)).evaluate(Topics(), tmp_path)
    names = [subset.name for subset in result.subsets]
    directions = (
        "deu_Latn-deu_Latn",
        "deu_Latn-eng_Latn",
        "eng_Latn-deu_Latn",
        "eng_Latn-eng_Latn",
    )
    assert names == [f"{domain}.{pair}" for domain in ("books", "music") for pair in directions]
    assert list(result.groups) == [
        "zero_shot_4",
        "from_eng_Latn_2",
        "to_eng_Latn_2",
        "with_eng_Latn_4",
        "same_language_4",
    ]
    assert "asymmetry" in result.groups["with_eng_Latn_4"]
    assert result.task == "zero_shot_cls_v1_cls_v1"  # too small to be it


def test_mldoc_is_known_by_its_sizes(tmp_path):
    task = ZeroShotMLDoc(epochs=1, seeds=(1,))
    sizes = {"german.train.1000": 1000, "german.dev": 1000, "german.test": 4000}
    for name, size in sizes.items():
        write(
            tmp_path / "MLDoc" / name,
            "".join(f"{label}\t{text}\n" for label, text in topic_rows("de", size)),
        )
    assert task.evaluate(Topics(), tmp_path).task == "zero_shot_mldoc"
    write(
        tmp_path / "MLDoc" / "german.train.2000",
        "".join(f"{a}\t{b}\n" for a, b in topic_rows("de", 2000)),
    )
    larger = dataclasses.replace(task, train_size=2000).evaluate(Topics(), tmp_path)
    assert larger.task == "zero_shot_mldoc_train2000"
    assert larger.changed == ("seeds", "epochs", "train_size")
    write(tmp_path / "MLDoc" / "german.dev", "sports\tde sports 1\n")
    assert task.evaluate(Topics(), tmp_path).task == "zero_shot_mldoc_MLDoc"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (
            "sw.test.tsv",
            "politics\tsw sports 1\n",
            "sw: .*'politics' .*training set",
        ),
        ("sw.dev.tsv", "", "sw.dev.tsv: the file is empty"),
        ("klingon.train.tsv", "sports\tde sports 1\n", "klingon .*dev set; .*: train"),
    ],
)
def test_wrong_layouts(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(DataError, match=message):
        ZeroShotFolder(
            **QUICK, languages=[name.partition(".")[0]] if "klingon" not in name else None
        ).evaluate(Topics(), folder)


def test_one_label_is_not_enough(folder):
    (folder / "de.train.tsv").write_text("sports\tde sports 1\n")
    for split in ("dev", "test"):
        (folder / f"de.{split}.tsv").write_text("sports\tde sports 1\n")
    with pytest.raises(DataError, match=r"all .*'sports'"):
        ZeroShotFolder(languages=["de"]).evaluate(Topics(), folder)


def test_options_say_what_they_may_be():
    with pytest.raises(ConfigError, match=r"seeds: .*found \[1, 1\]"):
        ZeroShotFolder(seeds=(1, 1))


@pytest.mark.data
@pytest.mark.parametrize(
    ("task", "languages"),
    [(ZeroShotSib200, ["deu_Latn", "nqo_Nkoo"]), (ZeroShotUmsab, ["de", "hi"])],
)
def test_the_public_sets_are_recognized(task, languages):
    public_data(task.folders[0])
    result = task(epochs=1, seeds=(1, 2), languages=languages).evaluate(Hashes(), DATA)
    assert result.task == task.name
    assert result.data_revision
    assert [subset.pairs for subset in result.subsets] == [204 if "sib" in task.name else 870] * 4
