from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.backends.function import FunctionEncoder
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.mapped import MAPPED_FILE, MappedEncoder
from interlingua.encoder.language_maps.affine_maps import fit_language_map, language_statistics
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, write_map
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
    identities = []
    for identity, kind in (("counts 1", "project"), ("counts 1", "center"), (None, "project")):
        base = FunctionEncoder(counts, name="counts", identity=identity)
        mapped = MappedEncoder(base, fit_language_map(language_map, kind), name="m")
        identities.append(mapped.info.identity)
    project, center, unknown = identities
    assert project != center
    assert unknown is None


@pytest.fixture
def write_folder(tmp_path, monkeypatch):
    """Write a mapped encoder of a function. Importing its module creates a file."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "stranger", raising=False)

    def write(language_map, backend="function"):
        Path("stranger.py").write_text(
            "__import__('pathlib').Path('ran').touch()\n"
            "def embed(texts): return [[1.0, 0.0, 0.0] for _ in texts]\n"
        )
        described = {"model": "stranger:embed", "backend": backend, "options": {}}
        Path(MAPPED_FILE).write_text(json.dumps(described))
        write_map(language_map, MAP_FILE)

    return write


def test_damaged_folder_or_shift_is_refused(language_map, tmp_path, write_folder):
    with pytest.raises(CheckpointError, match=MAPPED_FILE):
        load_encoder(str(tmp_path), backend="mapped")
    write_folder(fit_language_map(language_map, "shift"))
    with pytest.raises(ConfigError, match="--method"):
        load_encoder(str(tmp_path), backend="mapped", options={"trust": True})


@pytest.mark.parametrize("backend", ["function", "openai"])
def test_code_that_a_folder_names_runs_only_if_it_is_trusted(
    language_map, tmp_path, write_folder, backend
):
    """Use an untrusted folder that names an importable module."""
    write_folder(fit_language_map(language_map), backend)
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
