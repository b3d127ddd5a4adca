from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from interlingua.errors import ConfigError
from interlingua.vocabulary.sentencepiece_training import train_vocabulary
from interlingua.vocabulary.trimming import (
    id_counts,
    ids_in_use,
    most_frequent_ids,
    trim_vocabulary,
)
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.growing import trained_wordpiece
from tests.encoder.multilingual import AWKWARD, LINES, SENTENCES, TEXTS

KEPT = [text for language in ("eng_Latn", "deu_Latn") for text in SENTENCES[language]]


def sentencepiece(**settings) -> Vocabulary:
    return train_vocabulary(
        LINES, languages=["deu_Latn", "eng_Latn"], threads=1, **{"size": 800} | settings
    )


def byte_level() -> Vocabulary:
    """Build a vocabulary like RoBERTa's."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=900, special_tokens=special, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.add_special_tokens(["<mask>"])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return Vocabulary(tokenizer.to_str(), special_tokens=roles)


def xlm_r() -> Vocabulary:
    """Build a Unigram vocabulary with <s> ... </s> from a template, like XLM-R's."""
    plain = sentencepiece(model_type="unigram")
    plain.tokenizer.post_processor = processors.TemplateProcessing(
        single="<MASK> $A <2de>", special_tokens=[("<MASK>", 2), ("<2de>", 3)]
    )
    return Vocabulary(plain.tokenizer.to_str(), special_tokens=plain.special_tokens)


KINDS = {
    "bpe": sentencepiece,
    "bpe, bytes": lambda: sentencepiece(byte_fallback=True, size=1000),
    "unigram": lambda: sentencepiece(model_type="unigram"),
    "unigram, bytes": lambda: sentencepiece(model_type="unigram", byte_fallback=True, size=900),
    "xlm-r": xlm_r,
    "wordpiece": lambda: trained_wordpiece(TEXTS, 700),
    "byte-level": byte_level,
}


@pytest.fixture(scope="module", params=KINDS, ids=KINDS.keys())
def full(request):
    return KINDS[request.param]()


@pytest.mark.parametrize(
    "texts", [KEPT, KEPT[:1], TEXTS[10:20], AWKWARD], ids=["two", "one", "scripts", "awkward"]
)
def test_kept_text_is_segmented_exactly_as_before(full, texts):
    trimmed, kept_ids = trim_vocabulary(full, ids_in_use(full, texts))
    back = [kept_ids[ids].tolist() for ids in trimmed.encode(texts)]
    assert back == full.encode(texts)


def test_the_embedding_rows_are_those_of_the_same_entries(full):
    trimmed, kept_ids = trim_vocabulary(full, ids_in_use(full, KEPT))
    assert trimmed.size == len(kept_ids) < full.size
    assert (np.diff(kept_ids) > 0).all()
    tokens = [full.tokenizer.id_to_token(int(index)) for index in kept_ids]
    assert tokens == [trimmed.tokenizer.id_to_token(index) for index in range(trimmed.size)]


def test_special_tokens_keep_their_roles(full):
    trimmed, kept_ids = trim_vocabulary(full, ids_in_use(full, KEPT[:1]))
    assert trimmed.special_tokens == full.special_tokens
    assert [int(kept_ids[index]) for index in trimmed.special_ids] == list(full.special_ids)
    assert int(kept_ids[trimmed.mask_id]) == full.mask_id
    assert set(trimmed.language_tags) == set(full.language_tags)
    assert trimmed.closing_tokens == full.closing_tokens


def test_unseen_text_can_still_be_encoded(full):
    trimmed, _ = trim_vocabulary(full, ids_in_use(full, KEPT))
    assert all(trimmed.encode(TEXTS + AWKWARD))


def test_trimming_to_everything_changes_nothing(full):
    trimmed, kept_ids = trim_vocabulary(full, range(full.size))
    assert kept_ids.tolist() == list(range(full.size))
    assert trimmed.encode(TEXTS) == full.encode(TEXTS)


def test_a_trimmed_vocabulary_is_saved_and_loaded(full, tmp_path):
    trimmed, _ = trim_vocabulary(full, ids_in_use(full, KEPT))
    trimmed.save(tmp_path)
    assert Vocabulary.load(tmp_path).encode(KEPT) == trimmed.encode(KEPT)
    assert not (tmp_path / "sentencepiece.model").exists()


def test_unknown_words_stay_unknown_in_wordpiece():
    # Greedy matching takes "ab" and finds nothing for "c"; without "ab" in the vocabulary "a" +
    # "##bc" would spell it.
    vocab = {"[PAD]": 0, "[UNK]": 1, "a": 2, "ab": 3, "##bc": 4, "d": 5}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    full = Vocabulary(
        tokenizer.to_str(), special_tokens={"pad_token": "[PAD]", "unk_token": "[UNK]"}
    )
    texts = ["abc d a", "abd"]
    used = ids_in_use(full, texts) | {4}
    trimmed, kept_ids = trim_vocabulary(full, used)
    assert [kept_ids[ids].tolist() for ids in trimmed.encode(texts)] == [[1, 5, 2], [1]]
    assert full.encode(texts) == [[1, 5, 2], [1]]


def test_other_models_are_refused():
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    with pytest.raises(ConfigError, match="WordLevel tokenizer"):
        trim_vocabulary(Vocabulary(tokenizer.to_str(), special_tokens={"unk_token": "[UNK]"}), [1])


def test_id_counts_are_those_of_a_loop(monkeypatch):
    monkeypatch.setattr("interlingua.vocabulary.trimming._CHUNK_TEXTS", 3)
    vocabulary = sentencepiece(model_type="unigram")
    expected = np.zeros(vocabulary.size, dtype=np.int64)
    for text in KEPT:
        for index in vocabulary.encode([text], language="eng_Latn")[0]:
            expected[index] += 1
    assert np.array_equal(id_counts(vocabulary, KEPT, language="eng_Latn"), expected)


@pytest.fixture(scope="module")
def counted():
    """A vocabulary, and the uses of its pieces by two languages: much and little text."""
    vocabulary = sentencepiece(model_type="unigram")
    english = id_counts(vocabulary, SENTENCES["eng_Latn"] * 50, language="eng_Latn")
    german = id_counts(vocabulary, SENTENCES["deu_Latn"], language="deu_Latn")
    return vocabulary, {"eng": english, "deu": german}


def test_a_vocabulary_of_given_size_keeps_what_is_frequent(counted):
    vocabulary, counts = counted
    total = counts["eng"] + counts["deu"]
    in_use = most_frequent_ids(vocabulary, counts, vocabulary.size, temperature=1.0)
    kept = most_frequent_ids(vocabulary, counts, len(in_use) - 20, temperature=1.0)
    pieces = [piece for piece, _ in vocabulary.definition["model"]["vocab"]]
    chosen = {index for index in kept if len(pieces[index]) > 1 and total[index]}
    left_out = in_use - kept
    assert len(left_out) == 20
    assert chosen
    assert min(total[index] for index in chosen) >= max(total[index] for index in left_out)


def test_text_without_its_rare_pieces_has_no_unknown_token(counted):
    vocabulary, counts = counted
    in_use = most_frequent_ids(vocabulary, counts, vocabulary.size, temperature=1.0)
    kept = most_frequent_ids(vocabulary, counts, len(in_use) - 40, temperature=1.0)
    trimmed, _ = trim_vocabulary(vocabulary, kept)
    assert trimmed.size <= len(kept) + 1  # the piece of lowest score
    texts = [*SENTENCES["eng_Latn"], *SENTENCES["deu_Latn"]]
    before = [vocabulary.unk_id in ids for ids in vocabulary.encode(texts, language="eng_Latn")]
    after = [trimmed.unk_id in ids for ids in trimmed.encode(texts, language="eng_Latn")]
    assert after == before


def test_temperature_gives_a_small_language_more_pieces(counted):
    vocabulary, counts = counted
    size = len(most_frequent_ids(vocabulary, counts, vocabulary.size, temperature=1.0)) - 30
    german = {}
    for temperature in (1.0, 100.0):
        kept = most_frequent_ids(vocabulary, counts, size, temperature=temperature)
        german[temperature] = counts["deu"][sorted(kept)].sum()
    assert german[100.0] > german[1.0]


def test_a_size_below_the_characters_is_refused(counted):
    vocabulary, counts = counted
    with pytest.raises(ConfigError, match="max_size"):
        most_frequent_ids(vocabulary, counts, 10, temperature=1.0)
