from __future__ import annotations

import pytest

from interlingua.encoder.hub import hub_hint, hub_name, hub_snapshot
from interlingua.errors import CheckpointError


def test_only_the_prefix_makes_a_name_of_the_hub():
    assert hub_name("hf:owner/name") == "owner/name"
    assert [hub_name(path) for path in ("owner/name", "./hf:owner", "HF:owner/name", "")] == [
        None
    ] * 4


def test_what_looks_like_a_name_of_the_hub_gets_a_hint():
    assert hub_hint("owner/name").endswith("write hf:owner/name")
    assert [hub_hint(path) for path in ("./a", "/a/b", "a/b/c", "../a", "a b")] == [""] * 5


@pytest.mark.parametrize("name", ["../../etc", "a/b/c", "", "a b", "a/../b", "a\n"])
def test_a_name_that_is_none_is_refused_before_the_hub_is_asked(monkeypatch, name):
    asked = []
    monkeypatch.setattr(
        "huggingface_hub.snapshot_download", lambda *given, **_: asked.append(given)
    )
    with pytest.raises(CheckpointError, match="invalid model"):
        hub_snapshot(name, ["*.json"])
    assert not asked
