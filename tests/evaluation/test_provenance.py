from __future__ import annotations

import dataclasses
import json
from types import SimpleNamespace

import numpy as np

from interlingua.encoder.directory import EncodingSettings
from interlingua.evaluation.provenance import ModelInfo, describe, peak_rss_bytes, prompt_text, provenance


def test_a_plain_encoder_is_described_by_what_it_has(number_encoder):
    info = describe(number_encoder)
    assert (info.name, info.dim, info.digest) == ("NumberEncoder", 32, None)
    assert info.revision == "no_revision_available"
    assert describe(SimpleNamespace(digest=lambda: "ab" * 32)).revision == "abababababab"


def test_what_vectors_are_kept_under():
    info = ModelInfo(name="m", digest=None, library="x")
    assert info.identity is None
    assert dataclasses.replace(info, kept_as="http://x m").identity == "http://x m"
    assert dataclasses.replace(info, kept_as="http://x m", digest="ab").identity == "ab"
    assert info.with_overrides(("a=1",)).with_overrides(("b=2",)).overrides == ("a=1", "b=2")


def test_an_adapter_speaks_for_itself():
    info = ModelInfo(name="me", digest=None, library="function")
    assert describe(SimpleNamespace(info=info)) is info


def test_prompts_by_name_by_default_and_by_text():
    model = SimpleNamespace(settings=EncodingSettings(prompts={"query": "query: "}, default_prompt="query"))
    assert prompt_text(model, None) == prompt_text(model, "query") == "query: "
    assert prompt_text(model, "find: ") == "find: "
    assert prompt_text(model, "") == ""
    assert prompt_text(object(), None) == ""
    assert prompt_text(object(), "query") == "query"  # a function's own business


def test_the_record_has_what_a_number_depends_on():
    record = provenance(ModelInfo(name="m", digest="0" * 64, library="function"), "query: ", {"wall_seconds": 1.5})
    assert record["model"]["revision"] == "0" * 12
    assert record["versions"].keys() >= {"interlingua", "torch", "numpy"}
    assert record["prompt"] == "query: "
    assert record["wall_seconds"] == 1.5
    assert record["date"].endswith("+00:00")
    assert record.keys() >= {"command", "python", "machine", "threads", "peak_rss_bytes"}
    json.dumps(record)


def test_peak_memory_is_in_bytes():
    before = peak_rss_bytes()
    assert before > 30 * 2**20  # an interpreter with torch
    np.ones(2**26, dtype=np.uint8).sum()  # 64 MiB, touched
    assert peak_rss_bytes() >= before
