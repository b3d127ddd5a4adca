from __future__ import annotations

import gzip

import numpy as np
import pytest

from interlingua.encoder.backends.load import load_encoder
from interlingua.errors import ConfigError, DataError

VECTORS = np.arange(12, dtype=np.float32).reshape(4, 3) + 1


@pytest.fixture
def folder(tmp_path):
    np.save(tmp_path / "deu.npy", VECTORS[:2])
    (tmp_path / "deu.txt").write_text("eins  zwei \ndrei\n", encoding="utf-8")
    np.savez(
        tmp_path / "rest.npz",
        eng=VECTORS[2:3].astype(np.float64),
        rus=VECTORS[3:].astype(np.float16),
    )
    (tmp_path / "eng.txt").write_text("one two\n", encoding="utf-8")
    (tmp_path / "rus.txt.gz").write_bytes(gzip.compress("три\n".encode()))
    return tmp_path


def load(folder):
    return load_encoder(str(folder), backend="vectors", name="v")


def test_texts_find_their_vectors_in_any_file(folder):
    encoder, info = load(folder)
    found = encoder.encode(["три", "drei", "one two", "eins zwei", "drei"])
    assert np.array_equal(found, VECTORS[[3, 1, 2, 0, 1]])
    assert found.dtype == np.float32
    assert (info.dim, info.library, info.pooling) == (3, "precomputed vectors", None)


def test_the_digest_is_that_of_vectors_and_texts(folder):
    first = load(folder)[1].digest
    assert load(folder)[1].digest == first
    (folder / "eng.txt").write_text("one three\n")
    assert load(folder)[1].digest != first


def test_missing_texts_are_one_line_with_their_count(folder):
    encoder, _ = load(folder)
    with pytest.raises(DataError, match=r"2 of 3 texts .*'vier'"):
        encoder.encode(["drei", "vier", "fünf"])
    with pytest.raises(ConfigError, match="remove the prompt options"):
        encoder.encode(["drei"], prompt="query: ")


def test_a_text_with_two_vectors_is_said(folder, caplog):
    np.save(folder / "more.npy", VECTORS[[1, 3]])
    (folder / "more.txt").write_text("drei\none two\n")
    encoder, _ = load(folder)
    assert "1 texts occur again" in caplog.text
    assert np.array_equal(
        encoder.encode(["one two", "drei"]), VECTORS[[3, 1]]
    )  # deu.npy, more.npy, rest.npz


def test_one_array_has_the_name_of_its_file(tmp_path):
    np.savez(tmp_path / "all.npz", VECTORS[:1])
    (tmp_path / "all.txt").write_text("x\n")
    assert np.array_equal(load(tmp_path)[0].encode(["x"]), VECTORS[:1])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: (f / "deu.txt").write_text("eins\n"), "deu.npy: 2 rows, but deu.txt has 1"),
        (lambda f: (f / "deu.txt").write_text("1\n2\n3\n"), "deu.npy: 2 rows, but deu.txt has 3"),
        (lambda f: (f / "eng.txt").unlink(), "eng.txt not found; .*of eng"),
        (lambda f: np.save(f / "deu.npy", VECTORS[0]), r"deu.npy: .*float32 of shape \(3,\)"),
        (lambda f: np.save(f / "deu.npy", np.ones((2, 3), int)), "deu.npy: .*int64 of shape"),
        (lambda f: np.save(f / "deu.npy", np.ones((2, 4))), "rest.npz: .*width 4, .*width 3"),
        (lambda f: (f / "deu.npy").write_bytes(b"nonsense"), "deu.npy: cannot be mapped"),
        (lambda f: [path.unlink() for path in f.glob("*.np?")], "no .npy or .npz file"),
    ],
)
def test_files_that_dont_fit_are_one_line(folder, spoil, message):
    spoil(folder)
    with pytest.raises(DataError, match=message) as error:
        load(folder)
    assert "\n" not in str(error.value)


def test_no_folder(tmp_path):
    with pytest.raises(DataError, match=r"none: .*NAME\.npy .* NAME\.txt"):
        load(tmp_path / "none")
