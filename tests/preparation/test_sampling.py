from collections import Counter

import pytest

from interlingua.preparation.sampling import balanced_sentences
from interlingua.preparation.shards import Fate
from tests.preparation.conftest import shard_of


@pytest.fixture
def shards(tmp_path):
    """4,000 German, 200 Czech and 4,100 distinct English sentences, 100 of them in both pairs."""
    czech = [(f"věta {i}", f"sentence {i}") for i in range(200)]
    german = [(f"Satz {i}", f"sentence {i + 100}") for i in range(4000)]
    return [
        shard_of(tmp_path, 0, czech, pair=("ces_Latn", "eng_Latn")),
        shard_of(tmp_path, 1, german),
    ]


def drawn(shards, folder, **options):
    passed = []
    defaults = {"sentences": 10**6, "temperature": 5.0, "seed": 0, "count": passed.append}
    found = list(balanced_sentences(shards, folder, **(defaults | options)))
    assert sum(passed) == len(found)
    return found


def test_every_sentence_once_where_all_are_wanted(tmp_path, shards):
    shards[1].fates[:10] = Fate.heldout
    found = drawn(shards, tmp_path)
    assert len(found) == len(set(found))
    assert Counter(language for language, _ in found) == {
        "ces_Latn": 200,
        "deu_Latn": 3990,
        "eng_Latn": 4100,
    }


def test_a_text_counts_in_each_of_its_languages(tmp_path):
    shard = shard_of(tmp_path, 0, [("Paris", "Paris"), ("Paris!", "Rome")])
    assert sorted(drawn([shard], tmp_path)) == [
        ("deu_Latn", "Paris"),
        ("eng_Latn", "Paris"),
        ("eng_Latn", "Rome"),
    ]


def test_the_sample_is_balanced_and_decided_by_the_seed(tmp_path, shards):
    found = drawn(shards, tmp_path, sentences=1500)
    counts = Counter(language for language, _ in found)
    assert counts["ces_Latn"] == 200
    assert counts["deu_Latn"] == pytest.approx(650, abs=90)  # a standard deviation is 23
    assert counts["eng_Latn"] == pytest.approx(650, abs=90)
    assert drawn(shards, tmp_path / "again", sentences=1500) == found
    assert drawn(shards, tmp_path / "other", sentences=1500, seed=1) != found
