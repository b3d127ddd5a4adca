from __future__ import annotations

import json

import numpy as np
import pytest

from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.mapped import MAPPED_FILE, MappedEncoder
from interlingua.encoder.language_map_files import MAP_FILE, write_map
from interlingua.encoder.language_maps import fit_language_map, language_statistics
from interlingua.errors import CheckpointError, ConfigError


@pytest.fixture
def language_map():
    rng = np.random.default_rng(0)
    return language_statistics(
        [(code, rng.normal(size=(20, 3)) + rng.normal(size=3)) for code in ("a", "b")]
    )


def counts(texts):
    return np.array([[text.count("a"), text.count("b"), len(text) + 1.0] for text in texts])


def test_vectors_are_scaled_mapped_and_scaled(language_map):
    found = fit_language_map(language_map)
    mapped = MappedEncoder(FunctionEncoder(counts, name="counts"), found, name="mapped")
    raw = counts(["aab", "b"])
    expected = found.apply(raw / np.linalg.norm(raw, axis=1, keepdims=True))
    np.testing.assert_allclose(mapped.encode(["aab", "b"]), expected, atol=1e-6)
    assert mapped.dim == 3


def test_identity_tells_maps_of_one_encoder_apart(language_map):
    base = FunctionEncoder(counts, name="counts", identity="counts 1")
    project = MappedEncoder(base, fit_language_map(language_map), name="m").info.identity
    center = MappedEncoder(base, fit_language_map(language_map, "center"), name="m").info.identity
    assert project != center
    assert (
        MappedEncoder(
            FunctionEncoder(counts), fit_language_map(language_map), name="m"
        ).info.identity
        is None
    )


def test_damaged_folder_or_shift_is_refused(language_map, tmp_path, monkeypatch):
    with pytest.raises(CheckpointError, match=MAPPED_FILE):
        load_encoder(str(tmp_path), backend="mapped")
    (tmp_path / "counting.py").write_text(
        "def embed(texts): return [[1.0, 0.0, 0.0] for _ in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    described = {"model": "counting:embed", "backend": "function", "options": {}}
    (tmp_path / MAPPED_FILE).write_text(json.dumps(described))
    write_map(fit_language_map(language_map, "shift"), tmp_path / MAP_FILE)
    with pytest.raises(ConfigError, match="language of every"):
        load_encoder(str(tmp_path), backend="mapped", options={"trust": True})


@pytest.mark.parametrize("backend", ["function", "openai"])
def test_code_that_a_folder_names_runs_only_if_it_is_trusted(
    language_map, tmp_path, monkeypatch, backend
):
    """The folder may be a stranger's, and any importable module may be named in it."""
    (tmp_path / "stranger.py").write_text(
        "__import__('pathlib').Path('ran').touch()\ndef embed(texts): return [[1.0, 0.0, 0.0] for"
        " _ in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    described = {"model": "stranger:embed", "backend": backend, "options": {}}
    (tmp_path / MAPPED_FILE).write_text(json.dumps(described))
    write_map(fit_language_map(language_map), tmp_path / MAP_FILE)
    with pytest.raises(
        ConfigError, match=r"'stranger:embed' of the backend .* --set mapped\.trust=true"
    ):
        load_encoder(str(tmp_path), backend="mapped")
    assert not (tmp_path / "ran").exists()
    if backend == "function":
        encoder, info = load_encoder(str(tmp_path), backend="mapped", options={"trust": True})
        assert encoder.encode(["a"]).shape == (1, 3)
        assert not info.overrides


@pytest.mark.parametrize(
    "change",
    [
        {"model": None},
        {"model": 5},
        {"backend": ["function"]},
        {"backend": "mapped"},
        {"backend": "none"},
        {"options": [1]},
        {"options": "x"},
        {"dtype": 5},
    ],
)
def test_a_base_of_other_types_is_one_line(tmp_path, change):
    described = {"model": str(tmp_path), "backend": "vectors", "options": {}}
    (tmp_path / MAPPED_FILE).write_text(json.dumps({**described, **change}))
    with pytest.raises(CheckpointError, match=MAPPED_FILE):
        load_encoder(str(tmp_path), backend="mapped")
