from __future__ import annotations

import json

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.examples import (
    TEXT_CHARACTERS,
    bounded,
    choose_examples,
    cosine_of,
    cut,
    examples_path,
    rank,
    read_examples,
    write_examples,
    wrong_neighbors,
)
from interlingua.evaluation.scores import Example


def example(item=0, query="eins", **changes):
    fields = {"expected": "one", "retrieved": "two", "expected_score": 0.25, "retrieved_score": 0.5}
    return Example(
        item=item, query=query, languages=("deu_Latn", "eng_Latn"), **{**fields, **changes}
    )


def test_wrong_neighbors_by_hand():
    x = np.eye(3, dtype=np.float32)
    y = np.array(
        [[1, 0, 0], [0, 0, 2], [0, 3, 4]], dtype=np.float32
    )  # the second's nearest is the third, 0.6
    right, predicted = np.array([True, False, True]), np.array([0, 2, 2])
    (one,) = wrong_neighbors(
        right,
        predicted,
        ["a", "b", "c"],
        ["A", "B", "C"],
        cosine_of(x, y),
        languages=("deu_Latn", "eng_Latn"),
        limit=5,
    )
    assert one[:4] == (1, "b", "B", "C")
    assert (one.expected_score, one.retrieved_score) == (0.0, pytest.approx(0.6))
    assert (one.languages, one.measure) == (("deu_Latn", "eng_Latn"), "cosine")


def test_a_zero_vector_has_cosine_zero():
    assert cosine_of(np.zeros((1, 2), np.float32), np.ones((1, 2), np.float32))(0, 0) == 0.0


def test_two_encoders_keep_the_same_items_as_far_as_both_are_wrong():
    texts = [f"sentence {n}" for n in range(200)]
    rng = np.random.default_rng(0)
    first, second = rng.random(200) < 0.5, rng.random(200) < 0.9
    kept, other = choose_examples(first, texts, 20), choose_examples(second, texts, 20)
    assert len(kept) == 20
    assert all(first[place] for place in kept)
    last = max(rank(texts[place]) for place in other)
    both = [place for place in kept if second[place] and rank(texts[place]) <= last]
    assert set(both) <= set(other)
    assert len(both) > 5
    assert choose_examples(first, texts, 5) == kept[:5]
    assert choose_examples(first, texts, 0) == []
    assert choose_examples(first, texts, 20, of="deu_Latn-eng_Latn") != kept


def test_round_trip_and_bounds(tmp_path):
    path = examples_path(tmp_path / "tatoeba.json")
    assert path.name == "tatoeba.examples.jsonl"
    assert read_examples(path) == {}
    examples = {
        "deu-eng": (example(query="line\u2028separator </script>"),),
        "rus-eng": (example(1, expected_score=None),),
    }
    write_examples(path, {**examples, "fra-eng": ()})
    assert read_examples(path) == examples
    assert [json.loads(line)["subset"] for line in path.read_text("utf-8").split("\n")[:1]] == [
        "deu-eng"
    ]


def test_every_pair_has_the_same_share_of_a_bounded_file():
    many = {name: tuple(example(n) for n in range(20)) for name in "abcd"}
    assert {name: len(found) for name, found in bounded(many, most=10).items()} == dict.fromkeys(
        "abcd", 2
    )
    assert [one.item for one in bounded(many, most=10)["a"]] == [0, 1]
    assert {len(found) for found in bounded(many, most=2).values()} == {1}
    assert bounded({"a": ()}) == {}


def test_long_texts_are_cut_and_half_surrogates_can_be_written():
    assert len(cut("x" * 1000)) == TEXT_CHARACTERS
    assert cut("x" * 1000).endswith("x…")
    assert cut("short") == "short"
    assert cut("a\ud800b") == "a?b"


@pytest.mark.parametrize(
    "line", ["{", '{"subset": "a"}', '{"subset": "a", "languages": ["x"]}', "[1]"]
)
def test_a_broken_file_is_one_line(tmp_path, line):
    path = tmp_path / "t.examples.jsonl"
    write_examples(path, {"a": (example(),)})
    with path.open("a") as file:
        file.write(line + "\n")
    with pytest.raises(DataError, match=r"t\.examples\.jsonl:2: not a wrong neighbor"):
        read_examples(path)
