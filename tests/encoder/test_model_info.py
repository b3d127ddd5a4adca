from __future__ import annotations

import dataclasses
from types import SimpleNamespace

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.model_info import ModelInfo, describe_encoder, prompt_text


def test_a_plain_encoder_is_described_by_what_it_has():
    info = describe_encoder(SimpleNamespace(dim=32))
    assert (info.name, info.dim, info.digest) == ("SimpleNamespace", 32, None)
    assert info.revision == "no_revision_available"
    assert describe_encoder(SimpleNamespace(digest=lambda: "ab" * 32)).revision == "abababababab"


def test_what_vectors_are_kept_under():
    info = ModelInfo(name="m", digest=None, library="x")
    assert info.identity is None
    assert dataclasses.replace(info, kept_as="http://x m").identity == "http://x m"
    assert dataclasses.replace(info, kept_as="http://x m", digest="ab").identity == "ab"
    assert info.with_overrides(("a=1",)).with_overrides(("b=2",)).overrides == ("a=1", "b=2")


def test_an_adapter_speaks_for_itself():
    info = ModelInfo(name="me", digest=None, library="function")
    assert describe_encoder(SimpleNamespace(info=info)) is info


def test_prompts_by_name_by_default_and_by_text():
    model = SimpleNamespace(
        settings=EncodingSettings(prompts={"query": "query: "}, default_prompt="query")
    )
    assert prompt_text(model, None) == prompt_text(model, "query") == "query: "
    assert prompt_text(model, "find: ") == "find: "
    assert prompt_text(model, "") == ""
    assert prompt_text(object(), None) == ""
    assert prompt_text(object(), "query") == "query"  # a function's own business
