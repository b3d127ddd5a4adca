import numpy as np
import pytest

from interlingua.corpus.cleaning import near_duplicates
from interlingua.corpus.cleaning.keys import text_key
from interlingua.corpus.cleaning.near_duplicates import NearDuplicates, hash_texts
from interlingua.runtime.workers import in_processes

WORDS = (
    "the of and committee building river mountain question answer children music"
    " Straße Haus Wasser Freundschaft möglich дерево вопрос ответ город ja да"
    " 东京 時間 勉強 음악 언어 كتاب مدرسة"
)


def add(index, texts):
    index.append(hash_texts(texts, index.threshold))


def corpus(count, seed=0):
    """Return sentences of which half are earlier ones with some letters, words or marks changed."""
    rng = np.random.default_rng(seed)
    texts = [""]
    for _ in range(count - 1):
        if rng.random() < 0.5:
            texts.append(" ".join(rng.choice(WORDS.split(), rng.integers(1, 14))))
            continue
        text = list(texts[rng.integers(max(len(texts) - 60, 0), len(texts))])
        for _ in range(rng.integers(0, 4)):
            place = int(rng.integers(0, len(text) + 1))
            text[place : place + int(rng.integers(0, 2))] = rng.choice(
                ["x", "Q", "!", " ", "ß", "本"]
            )
        texts.append("".join(text))
    return texts


def shingles(text, size):
    key = text_key(text)
    return {key[i : i + size] for i in range(max(len(key) - size + 1, 1))} if key else set()


def brute_force(texts, size):
    """Compute the largest Jaccard index of each text with any earlier one."""
    sets = [shingles(text, size) for text in texts]
    return np.array(
        [
            max((len(a & b) / len(a | b) for b in sets[:i] if a and b), default=0.0)
            for i, a in enumerate(sets)
        ]
    )


@pytest.mark.parametrize(("threshold", "size"), [(0.8, 5), (0.6, 3), (0.95, 4)])
def test_a_double_loop_says_the_same(tmp_path, monkeypatch, threshold, size):
    monkeypatch.setattr(near_duplicates, "SHINGLE_CHARACTERS", size)
    texts = corpus(900)
    best = brute_force(texts, size)
    with NearDuplicates(tmp_path, threshold=threshold) as index:
        add(index, texts)
        found = index.duplicates()
    assert not (found & (best < threshold)).any()  # what is reported is a near duplicate
    should = best >= threshold
    assert should.sum() > 100
    assert (found & should).sum() >= 0.985 * should.sum()
    assert found[best == 1.0].all()


def test_chunks_and_partitions_change_nothing(tmp_path, monkeypatch):
    texts = corpus(900, seed=1)
    with NearDuplicates(tmp_path / "whole") as whole:
        add(whole, texts)
        expected = whole.duplicates()
    assert 100 < expected.sum() < 800
    monkeypatch.setattr(near_duplicates, "_BATCH", 7)
    monkeypatch.setattr(near_duplicates, "_VERIFIED", 5)
    monkeypatch.setattr(near_duplicates, "PARTITION_ROWS", 64)
    with NearDuplicates(tmp_path / "parts") as parts:
        for first in range(0, len(texts), 50):
            add(parts, texts[first : first + 50])
        assert (parts.duplicates() == expected).all()


def test_processes_mark_the_same_texts(tmp_path, monkeypatch):
    """Compare with several partitions of each band, and many batches."""
    monkeypatch.setattr(near_duplicates, "_VERIFIED", 5)
    with NearDuplicates(tmp_path) as index, in_processes(2, "") as workers:
        add(index, corpus(900, seed=1))
        expected = index.duplicates()
        monkeypatch.setattr(near_duplicates, "PARTITION_ROWS", 300)
        assert (index.duplicates(workers) == expected).all()
        assert 100 < expected.sum() < 800


def test_hand_made_cases(tmp_path):
    texts = [
        "The committee will meet again on Thursday to discuss the new building.",
        "...",
        "The committee will meet again on Thursday to discuss the new buildings!",  # of 0
        "",
        "Something else entirely, and long enough to have shingles of its own.",
        "THE COMMITTEE WILL MEET AGAIN, ON THURSDAY, TO DISCUSS THE NEW BUILDING",  # of 0
        "...",  # nothing in it: not a duplicate of the other
        "ja",
        "Ja!",  # shorter than a shingle, but the same
        "je",
    ]
    with NearDuplicates(tmp_path) as index:
        add(index, texts)
        assert np.flatnonzero(index.duplicates()).tolist() == [2, 5, 8]


def test_more_can_be_added_after_asking(tmp_path):
    with NearDuplicates(tmp_path) as index:
        assert index.duplicates().tolist() == []
        add(index, ["a sentence of some length", "another sentence, different"])
        assert index.duplicates().tolist() == [False, False]
        add(index, ["A sentence of some length."])
        assert index.duplicates().tolist() == [False, False, True]
