"""``interlingua.embed`` and ``interlingua embed`` write the same vectors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import interlingua
from interlingua.errors import ConfigError, DataError, InterlinguaError
from tests.mining.invented import write_lines
from tests.tiny import tiny_encoder


@pytest.fixture
def encoder(word_vocabulary, tmp_path):
    made = tiny_encoder(word_vocabulary)
    made.save(tmp_path / "m")
    write_lines(tmp_path / "a.de", ["de1 de2", "de3", "de4 de5 de6"])
    return made


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        (
            "--prompt 'ru1 ' --no-normalize-embeddings",
            {"prompt": "ru1 ", "normalize_embeddings": False},
        ),
        ("--truncate-dim 8 --precision ubinary", {"truncate_dim": 8, "precision": "ubinary"}),
    ],
)
def test_function_and_command_line_write_equal_vectors(done, encoder, tmp_path, flags, options):
    done(f"embed {tmp_path}/m {tmp_path}/a.de -o {tmp_path}/a.npy --quiet", flags)
    expected = np.load(tmp_path / "a.npy")
    for name, model in (("b", tmp_path / "m"), ("c", encoder)):
        lines = interlingua.embed(
            model, tmp_path / "a.de", output=tmp_path / f"{name}.npy", **options
        )
        assert "a.de" in lines[0] or f"{name}.npy" in lines[0]
        np.testing.assert_array_equal(np.load(tmp_path / f"{name}.npy"), expected)


def test_several_files_go_to_a_folder(encoder, tmp_path):
    write_lines(tmp_path / "b.de", ["de7"])
    interlingua.embed(encoder, [tmp_path / "a.de", tmp_path / "b.de"], output=f"{tmp_path / 'v'}/")
    assert sorted(path.suffix for path in (tmp_path / "v").glob("*.npy")) == [".npy", ".npy"]


def test_a_shorter_vector_needs_our_own_model(tmp_path):
    with pytest.raises(ConfigError, match="--truncate-dim"):
        interlingua.embed("m", tmp_path / "a.de", output="a.npy", truncate_dim=3, backend="onnx")


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize(
    ("texts", "error"),
    [
        (["Guten Morgen", "Good morning"], DataError),
        (["How are you?"], DataError),
        (["It costs 1.5 euros"], DataError),
        ("Guten Morgen", DataError),
        (["a" * 300], DataError),
        (pd.Series(["Guten Morgen"]), ConfigError),
        ([1, 2], ConfigError),
    ],
)
def test_texts_in_memory_are_refused_with_the_function_for_them(
    encoder, tmp_path, texts, error, devices
):
    with pytest.raises(error, match=r"^[^\n]*load\(model\)\.encode\(texts\)[^\n]*$"):
        interlingua.embed(tmp_path / "m", texts, output=tmp_path / "x.npy", devices=devices)


@pytest.mark.parametrize("name", ["absent.txt", "folder/absent", "part-*.gz", "hf:owner/name"])
def test_names_of_files_are_not_taken_for_texts(encoder, tmp_path, name):
    with pytest.raises(InterlinguaError) as caught:
        interlingua.embed(tmp_path / "m", [name], output=tmp_path / "x.npy")
    assert "encode(texts)" not in str(caught.value)


def test_no_file_is_an_error_of_one_line(encoder, tmp_path):
    with pytest.raises(ConfigError, match="files"):
        interlingua.embed(tmp_path / "m", [], output=tmp_path / "x.npy")


def test_paths_of_an_iterator_are_embedded(encoder, tmp_path):
    interlingua.embed(tmp_path / "m", tmp_path.glob("*.de"), output=tmp_path / "x.npy")
    assert len(np.load(tmp_path / "x.npy")) == 3
