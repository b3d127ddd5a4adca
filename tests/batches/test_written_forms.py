"""Forms of sentences that are there as tokens."""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.sentences import join, take
from interlingua.batches.tokens import TokenBatch
from interlingua.batches.written_forms import FormsRequest, WrittenForms
from interlingua.errors import ConfigError
from tests.methods.test_distill import byte_vocabulary

VOCABULARY = byte_vocabulary()
TEXTS = [f"A house by the sea, number {number}." for number in range(40)]


def batch(texts=TEXTS, language="eng_Latn"):
    return TokenBatch.from_lists(VOCABULARY.encode(texts), [language] * len(texts))


def forms(share, *names, max_tokens=512):
    return WrittenForms(VOCABULARY, FormsRequest(share, names), max_tokens=max_tokens)


def texts_of(sentences):
    ids = torch.split(sentences.input_ids, sentences.lengths.tolist())
    return [VOCABULARY.decode(one.tolist()) for one in ids]


def test_all_sentences_in_capitals():
    written = forms(1.0, "capitals")(batch(), seed=0, step=0)
    assert texts_of(written) == [text.upper() for text in TEXTS]
    assert written.languages == ("eng_Latn",) * len(TEXTS)


def test_a_share_of_them_and_others_in_each_step():
    write = forms(0.25, "capitals")
    changed = []
    for step in range(20):
        texts = texts_of(write(batch(), seed=0, step=step))
        changed.append({row for row, text in enumerate(texts) if text.isupper()})
        assert all(text in (TEXTS[row], TEXTS[row].upper()) for row, text in enumerate(texts))
    assert 0.2 < sum(map(len, changed)) / (20 * len(TEXTS)) < 0.3
    assert len(set(map(frozenset, changed))) == 20


def test_a_form_does_not_depend_on_the_rest_of_the_batch():
    write = forms(0.5)
    whole = texts_of(write(batch(), seed=7, step=3))
    half = texts_of(write(take(batch(), range(20, 40)), seed=7, step=3))
    assert half == whole[20:]
    assert texts_of(write(join(batch(), batch()), seed=7, step=3)) == whole * 2
    assert whole != texts_of(write(batch(), seed=8, step=3))


def test_the_same_batch_where_nothing_has_the_form():
    sentences = batch(["no points"] * 3)
    assert forms(1.0, "points")(sentences, seed=0, step=0) is sentences


def test_long_forms_are_cut():
    written = forms(1.0, "capitals", max_tokens=6)(batch(), seed=0, step=0)
    assert written.max_seqlen <= 6


def test_unknown_forms_are_refused():
    with pytest.raises(ConfigError, match=r"data.forms.names.*capitals"):
        forms(0.5, "capital")
