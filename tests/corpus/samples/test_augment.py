import json

import numpy as np
import pytest

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.labeled_pairs import read_labeled
from interlingua.corpus.samples.augment import candidates, make_silver, nearest_others
from interlingua.errors import ConfigError, DataError
from interlingua.storage.files import sha256_file
from tests.corpus.conftest import write

ENGLISH = ("eng_Latn", "eng_Latn")
HEADER = "split\tscore\tsentence1\tsentence2"


def points_at_angles(texts, language):
    """Encode sentences as angles in degrees, ``at 50``."""
    assert language == "eng_Latn"
    angles = np.radians([degrees(text) for text in texts])
    return 3 * np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)


def closeness(first, second, language):
    return np.array(
        [1 - abs(degrees(a) - degrees(b)) / 100 for a, b in zip(first, second, strict=True)]
    )


def degrees(text):
    return float(text.removeprefix("at "))


@pytest.fixture
def gold(tmp_path):
    lines = ("5.0\tat 0\tat 1", "1.0\tat 0\tat 50", "3.0\tat 3\tat 50")
    return write(tmp_path / "en.train.tsv", *lines)


def silver(gold, folder, **options):
    return make_silver(
        [gold],
        folder,
        embed=points_at_angles,
        score=closeness,
        languages=ENGLISH,
        models={"sentence_encoder": "x"},
        **options,
    )


def test_neighbors_are_those_of_a_plain_loop():
    # More than a block of rows.
    vectors = np.random.default_rng(0).normal(size=(2500, 6)).astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = nearest_others(vectors, 4)
    for row in range(0, len(vectors), 97):
        others = [other for other in range(len(vectors)) if other != row]
        cosines = unit[[row]] @ unit.T
        expected = sorted(others, key=lambda other: -cosines[0, other])[:4]
        assert found[row].tolist() == expected


def test_equal_neighbors_go_by_their_place_and_self_is_no_neighbor():
    nearest = nearest_others(np.ones((4, 2), np.float32), 2)
    assert nearest.tolist() == [[1, 2], [0, 2], [0, 1], [0, 1]]
    assert nearest_others(np.ones((2, 2), np.float32), 10).tolist() == [[1], [0]]
    assert nearest_others(np.ones((1, 2), np.float32), 10).shape == (1, 0)


def test_gold_pairs_and_repeats_go_whatever_their_order():
    nearest = np.array([[1, 2], [0, 2], [0, 1]])
    found = candidates(["a", "b", "c"], nearest, {frozenset(text_keys(["c", "b"]).tolist())})
    assert found.pairs == [("a", "b"), ("a", "c")]
    assert (found.gold, found.repeated) == (2, 2)


def test_silver_pairs_by_hand(gold, tmp_path):
    """Use angles 0 1 3 50: of the two nearest each, (0, 1) and (3, 50) are gold.

    (0, 3), (1, 3) and (50, 1) are new.
    """
    report = silver(gold, tmp_path / "silver", neighbors=2)
    pairs = read_labeled(tmp_path / "silver" / "silver.tsv", kind="sts", languages=ENGLISH)
    assert {(degrees(pair.a), degrees(pair.b)): round(pair.label, 4) for pair in pairs} == {
        (0, 3): 0.97,
        (1, 3): 0.98,
        (50, 1): 0.51,
    }
    assert (report.sentences, report.neighbors, report.pairs) == (4, 2, 3)
    assert report.gold_removed + report.repeated_removed + report.pairs == 4 * 2
    assert report.mean_score == pytest.approx(5 * (0.97 + 0.98 + 0.51) / 3, abs=1e-4)


def test_the_manifest_names_models_and_files(gold, tmp_path):
    silver(gold, tmp_path / "silver")
    manifest = json.loads((tmp_path / "silver" / "manifest.json").read_text())
    assert manifest["models"] == {"sentence_encoder": "x"}
    assert manifest["gold"] == {str(gold): sha256_file(gold)}
    assert manifest["sha256"] == sha256_file(tmp_path / "silver" / "silver.tsv")
    assert manifest["report"]["neighbors"] == 3  # of four sentences


def test_of_a_file_of_all_splits_training_sentences_alone_are_used(tmp_path):
    rows = [("train", 0, 1), ("dev", 2, 3), ("test", 4, 5), ("train", 50, 1)]
    lines = [f"{split}\t3.0\tat {a}\tat {b}" for split, a, b in rows]
    path = write(tmp_path / "stsbenchmark.tsv", HEADER, *lines)
    assert silver(path, tmp_path / "silver").sentences == 3
    pairs = read_labeled(tmp_path / "silver" / "silver.tsv", kind="sts", languages=ENGLISH)
    assert [(pair.a, pair.b) for pair in pairs] == [("at 0", "at 50")]


@pytest.mark.parametrize(
    "name", ["en.dev.tsv", "sts-test.csv", "stsb_test.tsv", "stsb.validation.tsv"]
)
def test_no_silver_pairs_of_test_sentences(gold, tmp_path, name):
    other = gold.rename(tmp_path / name)
    with pytest.raises(DataError, match=r"(dev|test|validation) split"):
        silver(other, tmp_path / "silver")


def test_one_language_at_a_time(gold, tmp_path):
    german = write(tmp_path / "de.train.tsv", "5.0\tat 0\tat 1\n")
    with pytest.raises(DataError, match="sentences in deu_Latn, eng_Latn"):
        make_silver(
            [gold, german], tmp_path / "silver", embed=points_at_angles, score=closeness, models={}
        )


def test_pairs_of_other_splits_are_no_silver_pairs(gold, tmp_path):
    before = silver(gold, tmp_path / "silver")
    others = write(tmp_path / "en.test.tsv", "2.0\tAT, 3!\tat  0.\n2.0\tat 9\tat 1\n")
    report = silver(gold, tmp_path / "silver", exclude=[others])
    assert (report.pairs, report.gold_removed) == (before.pairs - 1, before.gold_removed + 2)
    pairs = read_labeled(tmp_path / "silver" / "silver.tsv", kind="sts", languages=ENGLISH)
    assert {"at 0", "at 3"} not in [{pair.a, pair.b} for pair in pairs]


def test_other_splits_inside_of_the_gold_file_are_left_out(tmp_path):
    rows = [("train", 0, 1), ("train", 3, 50), ("dev", 3, 0), ("test", 50, 1)]
    lines = [f"{split}\t3.0\tat {a}\tat {b}" for split, a, b in rows]
    path = write(tmp_path / "benchmark.tsv", HEADER, *lines)
    report = silver(path, tmp_path / "silver")
    assert report.sentences == 4
    assert report.pairs == 6 - 4  # six pairs of four sentences, of which all four rows are scored


def test_what_is_no_silver_is_kept(gold, tmp_path):
    silver(gold, tmp_path / "silver")
    silver(gold, tmp_path / "silver")
    (tmp_path / "silver" / "manifest.json").write_text("[]")
    with pytest.raises(ConfigError, match=r"silver: .*other files"):
        silver(gold, tmp_path / "silver")
