from __future__ import annotations

import gzip
import io
import os
import types

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from tests.tiny import tiny_encoder

LINES = ["de1 de2 de3", "", "en4", "de5 de6 ru7 ru8 en9"]


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    encoder = tiny_encoder(word_vocabulary)
    folder = tmp_path_factory.mktemp("models") / "tiny"
    encoder.save(folder)
    return folder


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def test_row_i_is_line_i(done, model, text, tmp_path):
    said = done(f"embed {model} {text} -o {tmp_path}/out.npy")
    expected = Encoder.load(model).encode(LINES)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert "4 x 32 float32" in said.err


def test_lines_that_are_cut_are_counted(done, model, tmp_path):
    long = tmp_path / "long.txt"
    long.write_text("en1 " * 121 + "\nen2\n", encoding="utf-8")
    said = done(f"embed {model} {long} -o {tmp_path}/out.npy --quiet")
    assert said.err == "1 of 2 texts were cut to 120 tokens\n"


def test_compressed_files_and_standard_input(done, model, text, tmp_path, monkeypatch):
    packed = tmp_path / "lines.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    done(f"embed {model} {packed} -o {tmp_path}/a.npy --quiet")
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text.read_bytes())))
    done(f"embed {model} - -o {tmp_path}/b.npy --quiet")
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_options_reach_the_encoder(done, model, text, tmp_path):
    options = (
        "--prompt 'ru1 ' --no-normalize-embeddings --batch-tokens 3 --dtype bfloat16 --device cpu"
    )
    done(f"embed {model} {text} -o {tmp_path}/out.npy --language de", options)
    expected = Encoder.load(model).encode(
        LINES,
        prompt="ru1 ",
        normalize_embeddings=False,
        batch_tokens=3,
        dtype="bfloat16",
        language="deu_Latn",
    )
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)


def test_shorter_and_coded_vectors(done, model, text, tmp_path):
    said = done(f"embed {model} {text} -o {tmp_path}/out.npy --truncate-dim 12 --precision ubinary")
    expected = Encoder.load(model).encode(LINES, truncate_dim=12, precision="ubinary")
    assert expected.shape == (4, 2)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert "4 x 2 uint8" in said.err


def test_a_folder_holds_vectors_of_one_width(done, refused, model, text, tmp_path):
    command = f"embed {model} {text} -o {tmp_path}/folder/ --quiet"
    done(command, "--truncate-dim 8")
    done(command, "--truncate-dim 8")
    assert "another model, prompt or settings" in refused(command, "--truncate-dim 16").err


def test_any_backend(done, text, tmp_path, monkeypatch):
    (tmp_path / "my_two_numbers.py").write_text(
        "def embed(texts):\n    return [[len(text), 2.0] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    command = f"embed my_two_numbers:embed {text} -o {tmp_path}/out.npy --backend function"
    said = done(command, "--prompt 'q: ' --no-normalize-embeddings")
    assert np.load(tmp_path / "out.npy").tolist() == [[3 + len(line), 2.0] for line in LINES]
    assert "out.npy: 4 x 2 float32" in said.err
    done(command)
    assert np.allclose(np.linalg.norm(np.load(tmp_path / "out.npy"), axis=1), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("MODEL TEXT --backend onx", "unknown backend 'onx'"),
        ("MODEL TEXT --set stsb.split=dev", "--set stsb.split=dev: expected BACKEND.OPTION=VALUE"),
        ("MODEL TEXT --set run.threads=1", "OMP_NUM_THREADS=1"),
        ("MODEL TEXT --set interlingua.x=1", "--set interlingua: unknown key 'x'"),
        ("MODEL absent.txt", "absent.txt: file not found"),
        ("./absent TEXT", "absent: model folder not found"),
        ("MODEL TEXT --dtype float8", "unknown dtype 'float8'"),
        ("MODEL TEXT --device cuda:99", "device 'cuda:99' cannot be used"),
        ("MODEL TEXT --prompt query", "unknown prompt 'query'"),
        ("MODEL TEXT --language Germn", "Germn"),
        ("MODEL TEXT --precision int8", "no int8 ranges for vectors of 32 elements"),
        ("MODEL TEXT --precision int2", "unknown precision 'int2'"),
        ("MODEL TEXT --truncate-dim 33", "truncate_dim: expected a number from 1 to 32, found 33"),
        (
            "MODEL TEXT --truncate-dim 8 --backend onnx",
            "--truncate-dim requires --backend interlingua",
        ),
        ("MODEL LATIN1", "latin1.txt:2: not UTF-8 (byte 0xe4)"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(
    refused, arguments, message, model, text, tmp_path
):
    latin = tmp_path / "latin1.txt"
    latin.write_bytes("gut\nB\xe4r\n".encode("latin-1"))
    places = {"MODEL": model, "TEXT": text, "LATIN1": latin}
    assert (
        message
        in refused(
            "embed",
            *(places.get(word, word) for word in arguments.split()),
            f"-o {tmp_path}/out.npy",
        ).err
    )
    assert not (tmp_path / "out.npy").exists()


def test_bytes_that_are_not_utf8_on_standard_input(refused, model, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"ok\n\xff\n")))
    assert "not UTF-8 (byte 0xff)" in refused(f"embed {model} - -o {tmp_path}/out.npy").err


def test_a_device_is_no_place_for_vectors(refused, model, text, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    said = refused(f"embed {model} {text} -o {pipe}")
    assert "pipe or device" in said.err
    assert pipe.is_fifo()
    assert "is a folder" in refused(f"embed {model} {text} -o {tmp_path}").err


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vectors_that_are_not_finite_are_not_written(refused, model, text, tmp_path, bad):
    """Damage one word's vector, and so the lines with the word. The first one is reported."""
    encoder = Encoder.load(model)
    word = encoder.vocabulary.encode(["en4"])[0][0]
    with torch.no_grad():
        encoder.backbone.word_embeddings.weight[word] = bad
    encoder.save(tmp_path / "broken")
    for target in ("out.npy", "folder/"):
        said = refused(f"embed {tmp_path}/broken {text} -o {tmp_path}/{target}")
        message = said.err.strip().splitlines()[-1]
        assert "line 3 (row 2 counted from 0); pass --dtype float32" in message
    assert not list(tmp_path.glob("**/*.npy"))


def test_a_runs_folder_stands_for_its_best_model(done, model, text, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text("")
    Encoder.load(model).save(run / "best")
    done(f"embed {run} {text} -o {tmp_path}/run.npy")
    assert np.array_equal(np.load(tmp_path / "run.npy"), Encoder.load(model).encode(LINES))


@pytest.mark.parametrize(("precision", "dim"), [("float32", 12), ("ubinary", 16), ("binary", 32)])
def test_parquet_rows_are_those_of_encode(done, model, text, tmp_path, precision, dim):
    parquet = pytest.importorskip("pyarrow.parquet")
    options = f"--truncate-dim {dim} --precision {precision}"
    said = done(f"embed {model} {text} -o {tmp_path}/out.parquet", options)
    found = parquet.read_table(tmp_path / "out.parquet")
    expected = Encoder.load(model).encode(LINES, truncate_dim=dim, precision=precision)
    assert found.column_names == ["text", "vector"]
    assert found["text"].to_pylist() == LINES
    vectors = found["vector"].combine_chunks().flatten().to_numpy().reshape(4, -1)
    assert vectors.dtype == expected.dtype
    assert np.array_equal(vectors, expected)
    assert f"4 x {expected.shape[1]} {expected.dtype}" in said.err


def test_several_processes_write_what_one_does(done, refused, model, text, tmp_path):
    more = tmp_path / "more.txt"
    more.write_text("en1 en2 en3\nde4\n", encoding="utf-8")
    done(f"embed {model} {text} {more} -o {tmp_path}/one")
    said = done(f"embed {model} {text} {more} -o {tmp_path}/two --devices 2 --device cpu")
    assert "two: 2 files, 6 x 32 float32" in said.err
    for made in (tmp_path / "one").glob("*.npy"):
        assert made.read_bytes() == (tmp_path / "two" / made.name).read_bytes()
    assert (
        "remove --devices"
        in refused(f"embed {model} {text} -o {tmp_path}/x.npy --devices 2 --ray local").err
    )
