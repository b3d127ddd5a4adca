from __future__ import annotations

import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlingua.errors import DataError
from interlingua.vocabulary import sentencepiece_tokenizer
from interlingua.vocabulary.sentencepiece_conversion import has_default_settings, tokenizer_json
from interlingua.vocabulary.sentencepiece_tokenizer import SentencePieceTokenizer, can_replace
from interlingua.vocabulary.sentencepiece_training import train_vocabulary
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.multilingual import AWKWARD, LINES, SENTENCES, TEXTS
from tests.vocabulary.test_sentencepiece_conversion import SPECIAL, train

KINDS = {
    "bpe": {},
    "cased": {"lowercase": False},
    "bytes": {"byte_fallback": True, "size": 1000},
}


@pytest.fixture(scope="module", params=KINDS, ids=KINDS.keys())
def vocabulary(request):
    options = {"size": 700} | KINDS[request.param]
    return train_vocabulary(LINES, languages=list(SENTENCES), threads=1, **options)


def is_used(vocabulary):
    return vocabulary._sentencepiece_tokenizer is not None


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("max_tokens", [None, 5])
def test_ids_are_those_of_the_tokenizer_for_any_number_of_threads(vocabulary, threads, max_tokens):
    texts = [*TEXTS, *AWKWARD, "", " ", "<MASK> <pad>", "word " * 3000]
    expected = vocabulary.encode(texts, max_tokens=max_tokens)
    # Texts with SentencePiece's sign for a space would take their whole chunk along.
    found = [
        vocabulary.encode([text, text], max_tokens=max_tokens, sentencepiece_threads=threads)[1]
        for text in texts
    ]
    assert is_used(vocabulary)
    assert found == expected
    plain = [text for text in texts if "▁" not in text]
    assert vocabulary._sentencepiece_tokenizer.covers(plain)
    at_once = vocabulary.encode(plain, max_tokens=max_tokens, sentencepiece_threads=threads)
    assert at_once == vocabulary.encode(plain, max_tokens=max_tokens)


@settings(max_examples=150, deadline=None)
@given(
    texts=st.lists(
        st.text(alphabet=st.sampled_from(sorted(set("".join(TEXTS + AWKWARD)))), max_size=40),
        min_size=2,
    )
)
def test_ids_are_equal_on_any_mixture_of_characters(vocabulary, texts):
    assert vocabulary.encode(texts, sentencepiece_threads=2) == vocabulary.encode(texts)


def test_a_saved_vocabulary_is_still_the_conversion_of_its_model(vocabulary, tmp_path):
    vocabulary.save(tmp_path)
    assert is_used(Vocabulary.load(tmp_path))


def test_a_vocabulary_of_other_pieces_is_tokenized_without_the_model(vocabulary, tmp_path):
    vocabulary.save(tmp_path)
    definition = vocabulary.definition
    definition["model"]["merges"].pop()
    changed = vocabulary.with_definition(definition)
    assert not is_used(changed)
    changed.save(tmp_path)
    # The model of the old vocabulary still lies next to the new one.
    mixed = Vocabulary.load(tmp_path)
    assert not is_used(mixed)
    assert mixed.encode(TEXTS, sentencepiece_threads=2) == changed.encode(TEXTS)


@pytest.mark.parametrize(
    "options",
    [
        {"model_type": "unigram"},
        {"model_type": "bpe", "user_defined_symbols": ["cat"]},
        {"model_type": "bpe", "add_dummy_prefix": False},
        {"model_type": "bpe", "remove_extra_whitespaces": False},
        {"model_type": "bpe", "treat_whitespace_as_suffix": True},
        {"model_type": "bpe", "split_by_whitespace": False},
    ],
    ids=lambda options: " ".join(options),
)
def test_models_of_other_settings_are_refused(options):
    model = train(TEXTS, **options)
    assert has_default_settings(model) == (options["model_type"] == "unigram")
    assert not can_replace(model, tokenizer_json(model, special_tokens=SPECIAL), SPECIAL)


def test_an_ordinary_model_is_taken_with_its_own_tokenizer_alone():
    model = train(TEXTS, model_type="bpe")
    definition = tokenizer_json(model, special_tokens=SPECIAL)
    assert can_replace(model, definition, SPECIAL)
    assert not can_replace(model, definition, SPECIAL[:2])
    changed = json.loads(definition) | {"post_processor": {"type": "ByteLevel"}}
    assert not can_replace(model, json.dumps(changed, ensure_ascii=False), SPECIAL)


def test_a_character_of_which_two_versions_of_unicode_differ_is_not_covered(monkeypatch):
    tokenizer = SentencePieceTokenizer(train(TEXTS, model_type="bpe"))
    assert tokenizer.covers(["Á", "ﬁ", "x"])
    real = sentencepiece_tokenizer.unicodedata.normalize
    monkeypatch.setattr(
        sentencepiece_tokenizer.unicodedata,
        "normalize",
        lambda form, text: real(form, text).replace("ø", "o"),
    )
    assert not tokenizer.covers(["cat", "ø"])
    # It was not taken note of as compared.
    assert not tokenizer.covers(["ø"])
    assert tokenizer.covers(["cat"])


def test_other_ids_in_a_sample_end_the_use_of_the_model(monkeypatch, caplog):
    vocabulary = train_vocabulary(LINES, size=700, languages=list(SENTENCES), threads=1)
    expected = vocabulary.encode(TEXTS)
    real = SentencePieceTokenizer.encode
    monkeypatch.setattr(
        SentencePieceTokenizer,
        "encode",
        lambda self, texts, threads: [ids[::-1] for ids in real(self, texts, threads=threads)],
    )
    with caplog.at_level(logging.WARNING, "interlingua"):
        assert vocabulary.encode(TEXTS, sentencepiece_threads=1) == expected
    assert "SentencePiece" in caplog.text
    assert not is_used(vocabulary)


def test_half_a_character_is_one_line(vocabulary):
    with pytest.raises(DataError, match="ud83d"):
        vocabulary.encode(["a", "\ud83d"], sentencepiece_threads=1)
    with pytest.raises(DataError, match="int"):
        vocabulary.encode(["a", 3], sentencepiece_threads=1)
