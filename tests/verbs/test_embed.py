"""``interlingua.embed`` and ``interlingua embed`` write the same vectors."""

from __future__ import annotations

import numpy as np
import pytest

import interlingua
from interlingua.errors import ConfigError
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
