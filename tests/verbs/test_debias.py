"""``interlingua.debias`` and ``interlingua debias`` have the same options and write the same
maps."""

from __future__ import annotations

import numpy as np
import pytest

import interlingua
from interlingua.encoder.language_maps.language_map_files import read_map
from interlingua.errors import ConfigError
from tests.analysis.debiasing.test_debias import model, texts  # noqa: F401
from tests.encoder.conftest import encoder, plain_vocabulary  # noqa: F401


@pytest.fixture
def stored(tmp_path):
    rng = np.random.default_rng(0)
    np.save(
        tmp_path / "index.npy",
        rng.normal(size=(60, 4)).astype("f4") + np.repeat(np.eye(2, 4), 30, axis=0),
    )
    (tmp_path / "labels.txt").write_text("de\n" * 30 + "en\n" * 30)
    return tmp_path / "index.npy", tmp_path / "labels.txt"


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        ("--method erase --rank 1", {"method": "erase", "rank": 1}),
        ("--prompt 'The ' --prompt 'Die '", {"prompt": ["The ", "Die "]}),
        ("--held-out 0.5 --seed 3", {"held_out": 0.5, "seed": 3}),
    ],
)
def test_function_and_command_line_write_equal_maps(done, model, texts, tmp_path, flags, options):  # noqa: F811
    done(f"debias {model} {texts} -o {tmp_path}/a --sentences 40 --quiet", flags)
    report = interlingua.debias(model, texts, tmp_path / "b", sentences=40, **options)
    np.testing.assert_array_equal(read_map(tmp_path / "a").weight, read_map(tmp_path / "b").weight)
    np.testing.assert_allclose(
        read_map(tmp_path / "b").weight, report.fitted.language_map.weight, atol=1e-6
    )


def test_a_column_of_a_table_is_read_by_both(done, model, texts, tmp_path):  # noqa: F811
    for path in [*texts.iterdir()]:
        rows = path.read_text().splitlines()
        (tmp_path / f"{path.stem}.csv").write_text(
            "\n".join(["number,sentence", *(f"1,{row}" for row in rows)]) + "\n"
        )
    tables = [tmp_path / "de.csv", tmp_path / "en.csv"]
    options = f"-o {tmp_path}/a --sentences 40 --column sentence --quiet"
    done(f"debias {model}", *tables, options)
    interlingua.debias(model, tables, tmp_path / "b", sentences=40, column="sentence")
    np.testing.assert_array_equal(read_map(tmp_path / "a").weight, read_map(tmp_path / "b").weight)


def test_stored_vectors_are_mapped_by_both(done, stored, tmp_path):
    vectors, labels = stored
    done(f"debias --vectors {vectors} --labels {labels} -o {tmp_path}/a --quiet")
    report = interlingua.debias(vectors=vectors, labels=labels, output=tmp_path / "b")
    assert report.languages == ("deu_Latn", "eng_Latn")
    expected = np.load(tmp_path / "a" / "vectors.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "b" / "vectors.npy"), expected)
    assert interlingua.debias(vectors=vectors, map=tmp_path / "a", output=tmp_path / "c") is None
    np.testing.assert_allclose(np.load(tmp_path / "c" / "vectors.npy"), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"model": "m", "labels": "l"}, "--vectors"),
        ({"model": "m", "vectors": "v"}, "--vectors"),
        ({"vectors": "v", "prompt": "x"}, "prompt"),
        ({"vectors": "v", "column": "x"}, "column"),
        ({"vectors": "v", "map": "m", "method": "erase"}, "method"),
        ({"vectors": "v", "map": "m", "rank": 3}, "rank"),
        ({"model": "m", "texts": "t", "rank": -1}, "rank"),
        ({"model": "m"}, "texts"),
    ],
)
def test_options_that_nothing_would_read_are_refused(options, match):
    with pytest.raises(ConfigError, match=match):
        interlingua.debias(**options)
