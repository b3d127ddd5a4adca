"""Growing a vocabulary: fewer tokens for the new language, the same ones for kept text, rows that
are means."""

from __future__ import annotations

import string

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from interlingua.adapt.vocabulary_growth import grow_encoder, grow_vocabulary, measure_fragmentation
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.growing import bpe, unigram, wordpiece

LETTERS = list(string.ascii_lowercase)
OLD = ["the house by the sea", "a stone and a hut", "the sea and the stone"]
NEW = ["kodu mere kodu", "mere kivi kodu", "kivi kodu mere"]
VOCABULARIES = {
    "Unigram": unigram(["▁the", "▁sea", "▁stone", "se", "ea", "▁", *LETTERS]),
    "WordPiece": wordpiece(
        [*LETTERS, *(f"##{letter}" for letter in LETTERS), "the", "sea", "st", "##one"]
    ),
    "BPE": bpe(["▁", *LETTERS, "se", "▁t", "ea"], merges=[("s", "e"), ("▁", "t"), ("e", "a")]),
}


def tokens(vocabulary, text):
    return vocabulary.tokenizer.encode(text, add_special_tokens=False).tokens


def encoder_of(vocabulary, *, spare_rows=0):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size + spare_rows)
    return Encoder.from_scratch(config, vocabulary).eval()


@pytest.fixture(params=VOCABULARIES)
def before_and_after(request):
    old = VOCABULARIES[request.param]
    return old, grow_vocabulary(old, NEW, pieces=50, min_count=3, keep=OLD)


def test_words_of_the_new_language_become_one_token(before_and_after):
    old, grown = before_and_after
    assert len(tokens(old, "kodu mere")) >= 8
    names = [token.removeprefix("▁") for token in tokens(grown.vocabulary, "kodu mere")]
    assert names == ["kodu", "mere"]


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_kept_texts_are_tokenized_as_before(kind):
    old = VOCABULARIES[kind]
    grown = grow_vocabulary(old, [*NEW, *OLD], pieces=50, min_count=2, keep=OLD)
    assert grown.runs
    assert grown.changed_texts == 0
    assert grown.vocabulary.encode(OLD) == old.encode(OLD)


def test_old_ids_keep_their_tokens(before_and_after):
    old, grown = before_and_after
    assert grown.vocabulary.size > old.size
    before, after = (
        [one.tokenizer.id_to_token(token) for token in range(old.size)]
        for one in (old, grown.vocabulary)
    )
    assert before == after


def test_a_piece_stands_for_the_run_it_replaces(before_and_after):
    old, grown = before_and_after
    (before,), (after,) = old.encode(["mere"]), grown.vocabulary.encode(["mere"])
    spelled = [token for new in after for token in grown.runs.get(new, (new,))]
    assert spelled == before


def test_the_pieces_that_save_most_are_taken():
    grown = grow_vocabulary(VOCABULARIES["Unigram"], NEW, pieces=1, min_count=1)
    (only,) = grown.runs
    assert grown.vocabulary.tokenizer.id_to_token(only) == "▁kodu"  # 4 times, 4 tokens saved each


def test_too_rare_pieces_are_left_out():
    assert grow_vocabulary(VOCABULARIES["Unigram"], NEW, pieces=9, min_count=99).runs == {}


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_unknown_characters_get_entries(kind):
    old = VOCABULARIES[kind]
    grown = grow_vocabulary(old, ["жук жук", "жук лук"], pieces=10, min_count=3, keep=OLD)
    unknown = old.unk_id
    assert unknown in old.encode(["жук"])[0]
    assert unknown not in grown.vocabulary.encode(["жук"])[0]
    (jook,) = (
        new for new in grown.runs if grown.vocabulary.tokenizer.id_to_token(new) in ("▁жук", "жук")
    )
    assert set(grown.runs[jook]) <= {unknown, old.tokenizer.token_to_id("▁")}
    assert grown.vocabulary.encode(OLD) == old.encode(OLD)


def test_a_unigram_segmentation_stays_the_best_one_but_for_joined_runs():
    # "abc" is cut ab|c; a piece "bc" learned elsewhere must not win over that by its score.
    old = unigram(
        ["▁", "a", "b", "c", "ab", "x"], scores={"ab": -1.0, "c": -2.0, "a": -3.0, "b": -3.0}
    )
    new = grow_vocabulary(old, ["xbc xbc xbc"], pieces=9, min_count=3).vocabulary
    assert tokens(new, "xbc") == ["▁xbc"]
    assert tokens(new, "abc") == tokens(old, "abc") == ["▁", "ab", "c"]


def test_wordpiece_that_would_lose_a_kept_word_is_left_out():
    # With "abc" in the vocabulary "abcd" would be abc + ##d, which does not exist: the whole word
    # would be unknown.
    old = wordpiece(["ab", "##c", "##cd"])
    assert tokens(old, "abcd") == ["ab", "##cd"]
    grown = grow_vocabulary(old, ["abc abc"], pieces=9, min_count=2, keep=["abcd"])
    assert grown.vocabulary.encode(["abcd"]) == old.encode(["abcd"])
    assert grown.changed_texts == 0
    free = grow_vocabulary(old, ["abc abc"], pieces=9, min_count=2)
    assert tokens(free.vocabulary, "abcd") == ["<unk>"]


def test_a_kind_that_has_no_pieces_is_an_error():
    tokenizer = Tokenizer(models.WordLevel({"<unk>": 0, "a": 1}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    vocabulary = Vocabulary(tokenizer.to_str(), special_tokens={"unk_token": "<unk>"})
    with pytest.raises(ConfigError, match="WordLevel"):
        grow_vocabulary(vocabulary, NEW, pieces=1)


def test_fragmentation_is_counted_by_hand():
    found = measure_fragmentation(unigram(["▁", "a", "b", "▁ab"]), ["ab ab", "bañ"])
    # ▁ab ▁ab | ▁ b a <unk>
    assert found == (2, 7, 3, 6, 1)
    assert found.characters_per_token == pytest.approx(7 / 6)
    assert found.tokens_per_word == 2
    assert found.unknown_share == pytest.approx(1 / 6)


def test_new_rows_are_the_mean_of_their_run(before_and_after):
    old, grown = before_and_after
    encoder = encoder_of(old)
    larger = grow_encoder(encoder, grown)
    before, after = (one.backbone.word_embeddings.weight for one in (encoder, larger))
    assert torch.equal(after[: old.size], before)
    for new, run in grown.runs.items():
        torch.testing.assert_close(after[new], sum(before[token] for token in run) / len(run))


def test_vectors_of_kept_text_keep_their_bits():
    old = VOCABULARIES["Unigram"]
    encoder = encoder_of(old)
    larger = grow_encoder(encoder, grow_vocabulary(old, NEW, pieces=50, min_count=3, keep=OLD))
    assert np.array_equal(larger.encode(OLD), encoder.encode(OLD))
    assert not np.array_equal(larger.encode(NEW), encoder.encode(NEW))
    assert encoder.vocabulary is old


def test_spare_rows_of_the_table_are_used_first(tmp_path):
    old = VOCABULARIES["Unigram"]
    grown = grow_vocabulary(old, NEW, pieces=3, min_count=3)
    roomy = grow_encoder(encoder_of(old, spare_rows=20), grown)
    assert roomy.backbone.config.vocab_size == old.size + 20
    tight = grow_encoder(encoder_of(old), grown)
    assert tight.backbone.config.vocab_size == old.size + len(grown.runs)
    tight.save(tmp_path / "model")
    assert np.array_equal(Encoder.load(tmp_path / "model").encode(NEW), tight.encode(NEW))
