from __future__ import annotations

import json

import numpy as np
import pytest

from interlingua.analysis.debiasing import debias_index as module
from interlingua.analysis.debiasing.debias import DebiasOptions
from interlingua.analysis.debiasing.debias_index import debias_index
from interlingua.encoder.language_maps.language_map_files import read_map
from interlingua.errors import ConfigError, DataError
from interlingua.storage.arrays import normalize_rows
from tests.hostile import others


@pytest.fixture
def index(tmp_path):
    rng = np.random.default_rng(0)
    vectors = normalize_rows(
        (rng.normal(size=(300, 8)) + np.repeat(2 * rng.normal(size=(3, 8)), 100, axis=0)).astype(
            "f4"
        )
    )
    np.save(tmp_path / "index.npy", vectors)
    (tmp_path / "labels.txt").write_text(
        "\n".join(["de"] * 100 + ["eng"] * 100 + ["zz-unknown"] * 100) + "\n"
    )
    return tmp_path


def test_all_rows_are_mapped_in_blocks(index, monkeypatch):
    monkeypatch.setattr(module, "_BLOCK_ROWS", 77)
    report = debias_index(index / "index.npy", index / "out", labels=index / "labels.txt")
    mapped, language_map = np.load(index / "out" / "vectors.npy"), read_map(index / "out")
    np.testing.assert_allclose(mapped, language_map.apply(np.load(index / "index.npy")), atol=1e-6)
    assert report.languages == ("deu_Latn", "eng_Latn", "zz-unknown")
    assert report.fitted.after.recognized < 0.6 < report.fitted.before.recognized
    assert json.loads((index / "out" / "debias.json").read_text())["before"]["own_pool"] is None


def test_a_given_map_is_applied_without_labels(index):
    debias_index(index / "index.npy", index / "first", labels=index / "labels.txt")
    assert debias_index(index / "index.npy", index / "second", language_map=index / "first") is None
    first, second = (np.load(index / name / "vectors.npy") for name in ("first", "second"))
    np.testing.assert_allclose(second, first, atol=1e-6)


def test_languages_that_are_named_are_those_of_the_record(index):
    options = DebiasOptions(languages=("de", "en"))
    report = debias_index(
        index / "index.npy", index / "out", labels=index / "labels.txt", options=options
    )
    record = json.loads((index / "out" / "debias.json").read_text())
    for named in (record["languages"], report.languages, read_map(index / "out").languages):
        assert list(named) == ["deu_Latn", "eng_Latn"]


def test_a_named_language_without_vectors_is_refused(index):
    for named in (("fr",), ("de", "fr", "en")):
        options = DebiasOptions(languages=named)
        with pytest.raises(DataError, match=r"fra_Latn; .* deu_Latn, eng_Latn, zz-unknown"):
            debias_index(
                index / "index.npy", index / "out", labels=index / "labels.txt", options=options
            )


def test_a_shift_is_applied_by_labels(index):
    options = DebiasOptions(method="shift")
    debias_index(index / "index.npy", index / "out", labels=index / "labels.txt", options=options)
    with pytest.raises(ConfigError, match="labels"):
        debias_index(index / "index.npy", index / "two", language_map=index / "out")
    means = [
        np.load(index / "out" / "vectors.npy")[start : start + 100].mean(axis=0)
        for start in (0, 100, 200)
    ]
    assert np.linalg.norm(means, axis=1).max() < 0.25


def test_labels_with_a_map_that_is_no_shift_are_refused(index):
    labels = index / "labels.txt"
    debias_index(index / "index.npy", index / "out", labels=labels)
    with pytest.raises(ConfigError, match="--labels"):
        debias_index(index / "index.npy", index / "two", labels=labels, language_map=index / "out")
    assert not (index / "two").exists()


def test_labels_with_a_map_that_is_a_shift_are_read(index):
    labels = index / "labels.txt"
    debias_index(
        index / "index.npy", index / "out", labels=labels, options=DebiasOptions(method="shift")
    )
    debias_index(index / "index.npy", index / "two", labels=labels, language_map=index / "out")
    expected = np.load(index / "out" / "vectors.npy")
    np.testing.assert_allclose(np.load(index / "two" / "vectors.npy"), expected, atol=1e-6)


def test_a_folder_of_others_is_not_replaced(index):
    (index / "out").mkdir()
    (index / "out" / "mine.txt").write_text("x")
    with pytest.raises(ConfigError, match="other files"):
        debias_index(
            index / "index.npy", index / "out", labels=index / "labels.txt", overwrite=True
        )


def test_wrong_inputs_are_refused(index):
    with pytest.raises(ConfigError, match="--labels"):
        debias_index(index / "index.npy", index / "out")
    (index / "short.txt").write_text("de\n")
    with pytest.raises(DataError, match="1 line for 300"):
        debias_index(index / "index.npy", index / "out", labels=index / "short.txt")
    with pytest.raises(DataError, match=r"none\.npy: cannot be read"):
        debias_index(index / "none.npy", index / "out", labels=index / "labels.txt")
    (index / "broken.npy").write_bytes(b"x" * 50)
    with pytest.raises(DataError, match="cannot be mapped"):
        debias_index(index / "broken.npy", index / "out", labels=index / "labels.txt")
    np.save(index / "ints.npy", np.ones((3, 2), dtype=int))
    with pytest.raises(DataError, match="floats"):
        debias_index(index / "ints.npy", index / "out", labels=index / "labels.txt")
    debias_index(index / "index.npy", index / "map", labels=index / "labels.txt")
    np.save(index / "wide.npy", np.ones((3, 9), dtype="f4"))
    with pytest.raises(DataError, match="one model"):
        debias_index(index / "wide.npy", index / "out", language_map=index / "map")
    vectors = np.load(index / "index.npy")
    vectors[7, 1] = np.nan
    np.save(index / "nan.npy", vectors)
    with pytest.raises(DataError, match=r"vector 8 .*NaN"):
        debias_index(index / "nan.npy", index / "out", language_map=index / "map")


@pytest.mark.parametrize("name", list(others.ARRAYS))
def test_a_hostile_array_is_one_line(index, name):
    """Damage array headers. NumPy parses them as Python, which raises many kinds of errors."""
    debias_index(index / "index.npy", index / "map", labels=index / "labels.txt")
    (index / name).write_bytes(others.ARRAYS[name]())
    with pytest.raises(DataError, match=name):
        debias_index(index / name, index / "out", language_map=index / "map")
    assert not (index / "out").exists()
