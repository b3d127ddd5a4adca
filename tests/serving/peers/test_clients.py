"""Clients of other makers against a server; each is skipped where it is not installed."""

from __future__ import annotations

import asyncio
import gc
import warnings

import numpy as np
import pytest

from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import ServeSettings
from tests.serving.conftest import NAME, served

TEXTS = ["en1 en2", "de1"]
KEY = "secret"


@pytest.fixture(scope="module")
def address(encoder):
    settings = ServeSettings(api_key=KEY)
    with served(make_app(ServedModel(encoder, NAME), settings, write_line=lambda _: None)) as found:
        yield found.rstrip("/")


@pytest.fixture(scope="module")
def expected(encoder):
    return encoder.encode(TEXTS)


@pytest.fixture(autouse=True)
def forgotten_connections():
    """Collect the sockets that a client leaves open, so that no other test warns about them."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        gc.collect()


def package(name):
    """Import a client's package, without its warnings on import."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip(name)


def assert_close(found, expected):
    assert np.abs(np.array(found, dtype=np.float32) - expected).max() < 1e-5


def test_openai(address, expected):
    openai = package("openai")
    with openai.OpenAI(base_url=f"{address}/v1", api_key=KEY) as client:
        reply = client.embeddings.create(model=NAME, input=TEXTS)
        assert_close([item.embedding for item in reply.data], expected)
        with pytest.raises(openai.BadRequestError, match="row 0"):
            client.embeddings.create(model=NAME, input="")
        with pytest.raises(openai.BadRequestError, match="--accept-token-ids"):
            client.embeddings.create(model=NAME, input=[[9906, 1917]])
        with pytest.raises(openai.NotFoundError):
            client.embeddings.create(model="other", input="a")


def test_openai_async(address, expected):
    openai = package("openai")

    async def ask():
        async with openai.AsyncOpenAI(base_url=f"{address}/v1", api_key=KEY) as client:
            texts = [client.embeddings.create(model=NAME, input=text) for text in TEXTS]
            return [reply.data[0].embedding for reply in await asyncio.gather(*texts)]

    assert_close(asyncio.run(ask()), expected)


def test_openai_of_azure(address, expected):
    openai = package("openai")
    given = {"azure_endpoint": address, "api_key": KEY, "api_version": "2024-10-21"}
    with openai.AzureOpenAI(**given) as client:
        reply = client.embeddings.create(model=NAME, input=TEXTS)
    assert_close([item.embedding for item in reply.data], expected)


@pytest.mark.filterwarnings("ignore")
def test_litellm(address, expected):
    litellm = package("litellm")
    given = {"input": TEXTS, "api_key": KEY}
    reply = litellm.embedding(model=f"openai/{NAME}", api_base=f"{address}/v1", **given)
    assert_close([item["embedding"] for item in reply.data], expected)
    given = {"input": TEXTS, "api_key": KEY, "api_base": address, "api_version": "2024-10-21"}
    reply = litellm.embedding(model=f"azure/{NAME}", **given)
    assert_close([item["embedding"] for item in reply.data], expected)


@pytest.mark.filterwarnings("ignore")
def test_langchain_openai(address, expected):
    langchain = package("langchain_openai")
    given = {"model": NAME, "base_url": f"{address}/v1", "api_key": KEY}
    client = langchain.OpenAIEmbeddings(**given, check_embedding_ctx_length=False)
    assert_close(client.embed_documents(TEXTS), expected)
    assert_close(client.embed_query(TEXTS[0]), expected[0])
    assert_close(asyncio.run(client.aembed_documents(TEXTS)), expected)


@pytest.mark.filterwarnings("ignore")
def test_llama_index(address, expected):
    package("llama_index.core")
    openai_like = package("llama_index.embeddings.openai_like")
    given = {"model_name": NAME, "api_base": f"{address}/v1", "api_key": KEY}
    client = openai_like.OpenAILikeEmbedding(**given, embed_batch_size=10)
    assert_close(client.get_text_embedding_batch(TEXTS), expected)
    assert_close(client.get_query_embedding(TEXTS[0]), expected[0])
    assert_close(asyncio.run(client.aget_text_embedding(TEXTS[1])), expected[1])


@pytest.mark.filterwarnings("ignore")
def test_ollama(address, expected):
    ollama = package("ollama")
    client = ollama.Client(host=address, headers={"authorization": f"Bearer {KEY}"})
    assert_close(client.embed(model=NAME, input=TEXTS).embeddings, expected)
    assert_close(client.embeddings(model=NAME, prompt=TEXTS[0]).embedding, expected[0])
    assert [model.model for model in client.list().models] == [f"{NAME}:latest"]
