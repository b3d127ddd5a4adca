from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.language_maps.affine_maps import (
    MAP_METHODS,
    fit_language_map,
    language_statistics,
)
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, read_map, write_map
from interlingua.errors import CheckpointError


@pytest.fixture
def statistics():
    rng = np.random.default_rng(0)
    return language_statistics(
        [(code, rng.normal(size=(30, 6)) + rng.normal(size=6)) for code in ("a", "b", "c")]
    )


@pytest.mark.parametrize("method", MAP_METHODS)
def test_map_read_back_gives_the_same_vectors(statistics, method, tmp_path):
    language_map = fit_language_map(statistics, method)
    write_map(language_map, tmp_path / MAP_FILE)
    vectors, languages = np.random.default_rng(1).normal(size=(3, 6)), ["a", "b", "c"]
    for place in (tmp_path, tmp_path / MAP_FILE):
        found = read_map(place)
        assert (found.method, found.rank) == (method, language_map.rank)
        assert found.languages == ("a", "b", "c")
        expected = language_map.apply(vectors, languages)
        np.testing.assert_allclose(found.apply(vectors, languages), expected, atol=1e-6)


def test_missing_or_damaged_map_is_refused(statistics, tmp_path):
    with pytest.raises(CheckpointError, match="file not found"):
        read_map(tmp_path)
    path = tmp_path / MAP_FILE
    write_map(fit_language_map(statistics), path)
    whole = path.read_bytes()
    for damaged in (whole[:-5], b"", b"x" * 100, whole.replace(b'"project"', b'"unknown"')):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            read_map(path)


def test_parts_of_another_kind_are_refused(statistics, tmp_path):
    """Use a foreign map. A bias of columns raised a traceback when it was applied."""
    from safetensors.numpy import load_file, save_file

    path = tmp_path / MAP_FILE
    write_map(fit_language_map(statistics), path)
    parts = load_file(path)
    described = {"method": "project", "rank": "1", "languages": '["a", "b", "c"]'}
    wrong_parts = (
        ("bias", np.zeros((6, 2), "f4")),
        ("bias", np.zeros((), "f4")),
        ("weight", parts["weight"] * np.nan),
    )
    wrong_words = (
        ("languages", '{"a": 1}'),
        ("languages", "[" * 100_000),
        ("rank", "x"),
        ("rank", "9" * 5000),
    )
    files = [({**parts, name: part}, described) for name, part in wrong_parts]
    files += [(parts, {**described, name: word}) for name, word in wrong_words]
    for tensors, metadata in files:
        save_file(tensors, path, metadata=metadata)
        with pytest.raises(CheckpointError, match="damaged"):
            read_map(path)
