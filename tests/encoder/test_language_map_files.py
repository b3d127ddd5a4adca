from __future__ import annotations

import numpy as np
import pytest

from interlingua.encoder.language_map_files import MAP_FILE, read_map, write_map
from interlingua.encoder.language_maps import MAP_METHODS, fit_language_map, language_statistics
from interlingua.errors import CheckpointError


@pytest.fixture
def statistics():
    rng = np.random.default_rng(0)
    return language_statistics([(code, rng.normal(size=(30, 6)) + rng.normal(size=6)) for code in ("a", "b", "c")])


@pytest.mark.parametrize("method", MAP_METHODS)
def test_map_read_back_gives_the_same_vectors(statistics, method, tmp_path):
    language_map = fit_language_map(statistics, method)
    write_map(language_map, tmp_path / MAP_FILE)
    vectors, languages = np.random.default_rng(1).normal(size=(3, 6)), ["a", "b", "c"]
    for place in (tmp_path, tmp_path / MAP_FILE):
        found = read_map(place)
        assert (found.method, found.rank, found.languages) == (method, language_map.rank, ("a", "b", "c"))
        np.testing.assert_allclose(found.apply(vectors, languages), language_map.apply(vectors, languages), atol=1e-6)


def test_missing_or_damaged_map_is_refused(statistics, tmp_path):
    with pytest.raises(CheckpointError, match="no such file"):
        read_map(tmp_path)
    path = tmp_path / MAP_FILE
    write_map(fit_language_map(statistics), path)
    whole = path.read_bytes()
    for damaged in (whole[:-5], b"", b"x" * 100, whole.replace(b'"project"', b'"unknown"')):
        path.write_bytes(damaged)
        with pytest.raises(CheckpointError, match="damaged"):
            read_map(path)
