"""Against the real chromadb."""

from __future__ import annotations

import os
import sys

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import MissingExtraError

TEXTS = ["de2 de3", "en4 en5", "ru6"]


def test_without_chroma_the_extra_is_named(monkeypatch):
    for name in ("chromadb", "chromadb.api", "chromadb.api.types"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "interlingua.integrations.chroma", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[chroma\]"):
        import interlingua.integrations.chroma  # noqa: F401


@pytest.fixture
def function(model, monkeypatch):
    pytest.importorskip("chromadb")
    from interlingua.integrations.chroma import InterlinguaEmbeddingFunction

    monkeypatch.chdir(os.path.dirname(model))
    return InterlinguaEmbeddingFunction("tiny", dtype="bfloat16")


def test_a_function_is_built_again_from_its_config(function, model):
    config = function.get_config()
    assert config == {"model": model, "device": None, "dtype": "bfloat16", "language": None}
    again = type(function).build_from_config(config)
    assert again.get_config() == config
    assert not function.is_legacy()
    expected = Encoder.load(model).encode(TEXTS, prompt="passage", dtype="bfloat16")
    assert np.array_equal(again(TEXTS), expected)


def test_a_collection_on_the_disk_keeps_its_function(function, model, tmp_path):
    """Open a collection by another client without the function, and use the query's prompt."""
    import chromadb

    settings = chromadb.Settings(anonymized_telemetry=False)
    client = chromadb.PersistentClient(str(tmp_path / "store"), settings)
    collection = client.create_collection("news", embedding_function=function)
    collection.add(ids=["a", "b", "c"], documents=TEXTS)
    chromadb.api.client.SharedSystemClient.clear_system_cache()
    opened = chromadb.PersistentClient(str(tmp_path / "store"), settings).get_collection("news")
    found = opened.query(query_texts=["en4"], n_results=3)
    encoder = Encoder.load(model)
    documents = encoder.encode(TEXTS, prompt="passage", dtype="bfloat16")
    distances = 1 - documents @ encoder.encode(["en4"], prompt="query", dtype="bfloat16")[0]
    assert found["documents"][0] == [TEXTS[row] for row in np.argsort(distances)]
    assert np.allclose(found["distances"][0], np.sort(distances), atol=1e-5)
