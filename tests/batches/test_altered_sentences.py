"""Hard negatives for training: altered forms of a batch's sentences, in tokens."""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.altered_sentences import AlteredSentences, HardRequest
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import ConfigError
from tests.methods.test_distill import byte_vocabulary

TEXTS = [
    "Anna never paid 480 euros in Berlin before noon.",
    "Yes.",
    "He bought 12 houses, and they were not old.",
]


def batch(vocabulary, texts=TEXTS):
    return TokenBatch.from_lists(vocabulary.encode(texts), ["eng_Latn"] * len(texts))


def decoded(sentences):
    ids = sentences.input_ids.split(sentences.lengths.tolist())
    return [byte_vocabulary().decode(one.tolist()) for one in ids]


def made(*, kinds=("number", "negation"), most=2, seed=1, step=0, max_tokens=200, **more):
    vocabulary = byte_vocabulary()
    alter = AlteredSentences(
        vocabulary, "eng_Latn", HardRequest(kinds, most), max_tokens=max_tokens
    )
    found = alter(batch(vocabulary), seed=seed, step=step, **more)
    if found is None:
        return None
    return list(zip(found.owners.tolist(), decoded(found.sentences), strict=True))


def test_each_form_belongs_to_its_sentence_and_differs_from_it():
    found = made()
    assert {owner for owner, _ in found} == {0, 2}  # nothing in "Yes." can be altered
    assert all(text != TEXTS[owner] for owner, text in found)
    assert max([owner for owner, _ in found].count(owner) for owner in (0, 2)) == 2
    numbers = [text for owner, text in found if owner == 0 and "480" not in text]
    negations = [text for owner, text in found if owner == 0 and "480" in text]
    assert len(numbers) == len(negations) == 1  # one of each kind before a second of any


def test_seed_and_step_decide():
    assert made() == made()
    assert len({str(made(step=step)) for step in range(4)}) > 1
    assert len({str(made(seed=seed)) for seed in range(4)}) > 1


def test_what_is_a_sentence_of_the_corpus_is_left_out():
    assert made(is_known=lambda keys: [True] * len(keys)) is None
    kept = made(is_known=lambda keys: [True, *[False] * (len(keys) - 1)])
    assert kept == made()[1:]


def test_nothing_to_alter_is_nothing():
    vocabulary = byte_vocabulary()
    alter = AlteredSentences(vocabulary, "eng_Latn", HardRequest(("number",), 1), max_tokens=50)
    assert alter(batch(vocabulary, ["Yes.", "No."]), seed=1, step=0) is None


def test_names_come_from_the_sentences_that_are_learned():
    vocabulary = byte_vocabulary()
    alter = AlteredSentences(vocabulary, "eng_Latn", HardRequest(("entity",), 3), max_tokens=200)
    assert alter.needs_names
    alter.learn_names(
        [f"We saw {name} again in {name}." for name in ("Madrid", "Paris", "Berlin", "Dublin")]
    )
    found = alter(batch(vocabulary, ["They went to Berlin by train."]), seed=1, step=0)
    assert set(decoded(found.sentences)) == {
        f"They went to {name} by train." for name in ("Madrid", "Paris", "Dublin")
    }


def test_forms_are_cut_to_what_the_encoder_takes():
    vocabulary = byte_vocabulary()
    alter = AlteredSentences(vocabulary, "eng_Latn", HardRequest(("number",), 1), max_tokens=30)
    found = alter(batch(vocabulary), seed=1, step=0)
    assert int(found.sentences.lengths.max()) <= 30
    assert torch.equal(found.sentences.lengths.long(), found.sentences.cu_seqlens.diff().long())


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ConfigError, match="kinds"):
        made(kinds=("spelling",))
