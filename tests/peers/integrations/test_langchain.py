"""Against the real langchain-core."""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import MissingExtraError

TEXTS = ["de2 de3", "en4 en5", "ru6"]


def test_without_langchain_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "langchain_core", None)
    monkeypatch.setitem(sys.modules, "langchain_core.embeddings", None)
    monkeypatch.delitem(sys.modules, "interlingua.integrations.langchain", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[langchain\]"):
        import interlingua.integrations.langchain  # noqa: F401


@pytest.fixture
def embeddings(model):
    pytest.importorskip("langchain_core")
    from interlingua.integrations.langchain import InterlinguaEmbeddings

    return InterlinguaEmbeddings(model)


def test_documents_and_queries_have_their_prompts(embeddings, model):
    from langchain_core.embeddings import Embeddings

    assert isinstance(embeddings, Embeddings)
    encoder = Encoder.load(model)
    documents = embeddings.embed_documents(TEXTS)
    query = embeddings.embed_query("de2")
    assert type(documents[0][0]) is type(query[0]) is float
    assert np.array_equal(np.float32(documents), encoder.encode(TEXTS, prompt="passage"))
    assert np.array_equal(np.float32(query), encoder.encode(["de2"], prompt="query")[0])
    assert asyncio.run(embeddings.aembed_query("de2")) == query


def test_a_vector_store_finds_the_nearest_document(embeddings, model):
    from langchain_core.vectorstores import InMemoryVectorStore

    store = InMemoryVectorStore.from_texts(TEXTS, embedding=embeddings)
    found = [document.page_content for document in store.similarity_search("en4", k=3)]
    encoder = Encoder.load(model)
    similarities = (
        encoder.encode(TEXTS, prompt="passage") @ encoder.encode(["en4"], prompt="query")[0]
    )
    assert found == [TEXTS[row] for row in np.argsort(-similarities)]
