from __future__ import annotations

import dataclasses
import json

import pytest

from interlingua.encoder.model_info import ModelInfo, describe_encoder
from interlingua.errors import ConfigError
from interlingua.evaluation.cache import kept_folder, unfinished_file, vector_places


def test_vectors_of_other_weights_settings_or_prompts_are_not_taken(
    short_encoder, number_encoder, tmp_path
):
    base = describe_encoder(short_encoder)
    files = {
        unfinished_file(model, encoder, prompt, tmp_path)
        for model, encoder, prompt in [
            (base, short_encoder, ""),
            (base, short_encoder, "query: "),
            (dataclasses.replace(base, digest="0"), short_encoder, ""),
            (dataclasses.replace(base, dtype="bfloat16"), short_encoder, ""),
        ]
    }
    short_encoder.settings = dataclasses.replace(short_encoder.settings, include_special=False)
    files.add(unfinished_file(base, short_encoder, "", tmp_path))
    assert len(files) == 5
    assert unfinished_file(describe_encoder(number_encoder), number_encoder, "", tmp_path) is None


def test_name_run_and_gpu_number_decide_no_vector(short_encoder, tmp_path):
    base = dataclasses.replace(describe_encoder(short_encoder), device="cuda:0")
    same = dataclasses.replace(base, training={"seed": 1}, device="cuda:1")
    assert unfinished_file(base, short_encoder, "", tmp_path) == unfinished_file(
        same, short_encoder, "", tmp_path
    )
    asked = base.with_overrides(("query_prompt='q: '",))  # keys of vectors know it
    assert unfinished_file(base, short_encoder, "", tmp_path) == unfinished_file(
        asked, short_encoder, "", tmp_path
    )
    other = dataclasses.replace(base, device="cpu")
    assert unfinished_file(base, short_encoder, "", tmp_path) != unfinished_file(
        other, short_encoder, "", tmp_path
    )


def test_a_cache_comes_before_the_results(short_encoder, tmp_path):
    info = describe_encoder(short_encoder)
    places = vector_places(info, short_encoder, "", tmp_path / "out", tmp_path / "cache")
    assert places["unfinished"] is None
    assert places["kept"].parent == tmp_path / "cache"
    assert json.loads((places["kept"] / "about.json").read_text())["identity"] == info.digest
    assert vector_places(info, short_encoder, "", None, None) == {"kept": None, "unfinished": None}
    assert (
        vector_places(info, short_encoder, "", tmp_path, None)["unfinished"].parent.parent
        == tmp_path / "results"
    )


def test_what_nobody_can_name_is_not_kept(short_encoder, tmp_path):
    unknown = ModelInfo(name="f", digest=None, library="function")
    with pytest.raises(ConfigError, match=r"vectors of f .* --set function.version=1"):
        kept_folder(unknown, short_encoder, "", tmp_path)
    named = dataclasses.replace(unknown, kept_as="f 1")
    assert kept_folder(named, short_encoder, "", tmp_path) != kept_folder(
        dataclasses.replace(unknown, kept_as="f 2"), short_encoder, "", tmp_path
    )
