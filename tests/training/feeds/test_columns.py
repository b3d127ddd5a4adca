from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.training.feeds import open_feeds
from interlingua.training.feeds.open_feeds import ColumnBuilder, token_column
from interlingua.vocabulary.vocabulary import Vocabulary

TEXTS = ["en1 en2", "ru3", "de4 de5 de6", "en7", "ru8 ru9"] * 3
LANGUAGES = ["eng_Latn", "rus_Cyrl", "deu_Latn", "eng_Latn", "rus_Cyrl"] * 3


@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_rows_are_the_texts_in_order(word_vocabulary, monkeypatch, chunk):
    monkeypatch.setattr(open_feeds, "CHUNK_TEXTS", chunk)
    column = token_column(TEXTS, LANGUAGES, word_vocabulary, 2)
    batch = column.read(np.arange(len(TEXTS)))
    found = [ids.tolist() for ids in batch.input_ids.split_with_sizes(batch.lengths.tolist())]
    assert found == word_vocabulary.encode(TEXTS, max_tokens=2)
    assert batch.languages == tuple(LANGUAGES)


def test_each_language_is_told_to_the_vocabulary(word_vocabulary, monkeypatch):
    told = []
    encode = Vocabulary.encode

    def spy(self, texts, *, language=None, max_tokens=None):
        told.append((language, len(texts)))
        return encode(self, texts, language=language, max_tokens=max_tokens)

    monkeypatch.setattr(Vocabulary, "encode", spy)
    token_column(TEXTS, LANGUAGES, word_vocabulary, 9)
    assert told == [("deu_Latn", 3), ("eng_Latn", 6), ("rus_Cyrl", 6)]


def test_texts_are_not_kept(word_vocabulary, monkeypatch):
    monkeypatch.setattr(open_feeds, "CHUNK_TEXTS", 4)
    builder = ColumnBuilder(word_vocabulary, 9)
    assert [builder.add(text, code) for text, code in zip(TEXTS, LANGUAGES, strict=True)] == list(
        range(15)
    )
    assert len(builder) == 15
    assert len(builder._texts) == 3
    assert all(ids.dtype == np.int32 for ids in builder._sequences)


def test_no_texts_are_an_error(word_vocabulary):
    with pytest.raises(DataError, match="no sentence"):
        ColumnBuilder(word_vocabulary, 9).column()
