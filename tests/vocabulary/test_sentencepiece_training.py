from __future__ import annotations

from collections import Counter

import pytest

from interlingua.errors import DataError
from interlingua.vocabulary.sentencepiece_training import balanced_sample, train_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.multilingual import LINES, SENTENCES, TEXTS


def train(lines=LINES, **settings) -> Vocabulary:
    return train_vocabulary(
        lines, **{"size": 600, "languages": ["deu_Latn", "eng_Latn"], "threads": 1} | settings
    )


@pytest.mark.parametrize("model_type", ["bpe", "unigram"])
def test_training_is_repeatable_and_spells_its_text(model_type):
    first, again = (train(model_type=model_type, seed=4) for _ in range(2))
    assert first.digest() == again.digest()
    unknown = sum(ids.count(first.unk_id) for ids in first.encode(TEXTS))
    assert unknown <= 0.01 * sum(map(len, first.encode(TEXTS)))
    assert first.model_type.lower() == model_type


def test_case_is_folded_unless_kept():
    assert train().encode(["KATZE"]) == train().encode(["katze"])
    cased = train(lowercase=False)
    assert cased.encode(["Katze"]) != cased.encode(["katze"])


def test_bytes_spell_what_the_text_did_not_have():
    vocabulary = train(byte_fallback=True, size=900)
    ids = vocabulary.encode(["ꙮ"])[0]
    assert vocabulary.unk_id not in ids
    assert vocabulary.decode(ids) == "ꙮ"


def test_tags_and_bytes_can_not_be_spelled():
    vocabulary = train(byte_fallback=True, size=900, model_type="unigram")
    ids = set(vocabulary.encode(["<2de> <0x41> <2en>"])[0])
    assert not ids & {*vocabulary.special_ids, vocabulary.tokenizer.token_to_id("<0x41>")}


def test_a_small_text_gives_a_smaller_vocabulary_with_a_note(caplog, capsys):
    vocabulary = train(size=20_000)
    assert 500 < vocabulary.size < 20_000
    assert caplog.messages == [
        f"vocabulary: 20,000 pieces were requested, but the text yields only {vocabulary.size:,}"
    ]
    assert capsys.readouterr().out == ""


def test_a_size_without_room_for_the_characters_is_refused():
    with pytest.raises(DataError, match=r"size 100 .* \d+ in total"):
        train(size=100)


@pytest.mark.parametrize("lines", [[], [("eng_Latn", ""), ("eng_Latn", "  ")]])
def test_no_text_is_refused(lines):
    with pytest.raises(DataError, match="text to train"):
        train(lines)


def test_pre_tokenizing_is_remembered():
    pytest.importorskip("sacremoses")
    english = [("eng_Latn", text) for text in SENTENCES["eng_Latn"]]
    vocabulary = train(english, pre_tokenizer="ems", size=150)
    assert vocabulary.pre_tokenizer == "ems"
    (ids,) = vocabulary.encode(["Books, cards."], language="eng_Latn")
    assert vocabulary.decode(ids) == "books , cards ."


def numbered(counts: dict[str, int]) -> list[tuple[str, str]]:
    return [
        (language, f"{language} {number}")
        for language, count in counts.items()
        for number in range(count)
    ]


def sizes(texts: dict[str, list[str]]) -> dict[str, int]:
    return {language: len(found) for language, found in texts.items()}


def test_few_texts_are_all_taken():
    counts = {"a": 90, "b": 5, "c": 5}
    texts = balanced_sample(numbered(counts), sentences=100, temperature=5.0, seed=0)
    assert texts == {
        name: [f"{name} {number}" for number in range(count)] for name, count in counts.items()
    }


@pytest.mark.parametrize(
    ("temperature", "expected"),
    # n^(1/T): T = 1 keeps 8000 : 1000 : 1000; T = 3 gives 20 : 10 : 10; T = inf a third each.
    [(1.0, (0.8, 0.1, 0.1)), (3.0, (0.5, 0.25, 0.25)), (float("inf"), (1 / 3, 1 / 3, 1 / 3))],
)
def test_languages_are_balanced_by_temperature(temperature, expected):
    lines = numbered({"a": 8000, "b": 1000, "c": 1000})
    found = sizes(balanced_sample(lines, sentences=600, temperature=temperature, seed=1))
    # Held while streaming: at most 2 * 600 / 3 texts of a language, so "a" gives 400 of its 480 at
    # T = 1.
    limited = [min(share * 600, 400) for share in expected]
    assert sum(found.values()) == 600
    assert found["a"] == pytest.approx(limited[0], abs=1)
    assert abs(found["b"] - found["c"]) <= 1


def test_small_languages_give_all_and_the_others_more():
    lines = numbered({"a": 5000, "b": 10})
    texts = balanced_sample(lines, sentences=1000, temperature=float("inf"), seed=0)
    assert sizes(texts) == {"a": 990, "b": 10}


def test_texts_are_drawn_evenly_from_the_whole_stream():
    drawn = Counter()
    for seed in range(400):
        texts = balanced_sample(
            numbered({"a": 50, "b": 50}), sentences=10, temperature=1.0, seed=seed
        )
        drawn.update(text for found in texts.values() for text in found)
    # 400 samples of 10 among 100 texts: 40 each; chi-square with 99 degrees.
    counts = [drawn[text] for _, text in numbered({"a": 50, "b": 50})]
    assert sum((count - 40) ** 2 / 40 for count in counts) < 180


def test_the_sample_depends_on_the_seed():
    lines = numbered({"a": 500, "b": 500})
    samples = [
        balanced_sample(lines, sentences=100, temperature=1.0, seed=seed) for seed in (1, 1, 2)
    ]
    assert samples[0] == samples[1] != samples[2]
