from __future__ import annotations

import gzip
import io
import os
import types

import numpy as np
import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder

LINES = ["de1 de2 de3", "", "en4", "de5 de6 ru7 ru8 en9"]


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    torch.manual_seed(0)
    encoder = Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size), word_vocabulary
    )
    folder = tmp_path_factory.mktemp("models") / "tiny"
    encoder.save(folder)
    return folder


def embed(*arguments):
    try:
        main.main(["embed", *map(str, arguments)])
    except SystemExit as stop:
        return stop.code or 0
    return 0


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("".join(f"{line}\n" for line in LINES), encoding="utf-8")
    return path


def test_row_i_is_line_i(model, text, tmp_path, capsys):
    assert embed(model, text, "-o", tmp_path / "out.npy") == 0
    expected = Encoder.load(model).encode(LINES)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert "4 x 32 float32" in capsys.readouterr().err


def test_lines_that_are_cut_are_counted(model, tmp_path, capsys):
    long = tmp_path / "long.txt"
    long.write_text("en1 " * 121 + "\nen2\n", encoding="utf-8")
    assert embed(model, long, "-o", tmp_path / "out.npy", "--quiet") == 0
    assert capsys.readouterr().err == "1 of 2 texts were cut to 120 tokens\n"


def test_compressed_files_and_standard_input(model, text, tmp_path, monkeypatch):
    packed = tmp_path / "lines.txt.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert embed(model, packed, "-o", tmp_path / "a.npy", "--quiet") == 0
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(text.read_bytes())))
    assert embed(model, "-", "-o", tmp_path / "b.npy", "--quiet") == 0
    assert np.array_equal(np.load(tmp_path / "a.npy"), np.load(tmp_path / "b.npy"))


def test_options_reach_the_encoder(model, text, tmp_path):
    options = (
        "--prompt",
        "ru1 ",
        "--no-normalize",
        "--batch-tokens",
        3,
        "--dtype",
        "bfloat16",
        "--device",
        "cpu",
    )
    assert embed(model, text, "-o", tmp_path / "out.npy", "--language", "de", *options) == 0
    expected = Encoder.load(model).encode(
        LINES, prompt="ru1 ", normalize=False, batch_tokens=3, dtype="bfloat16", language="deu_Latn"
    )
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)


def test_shorter_and_coded_vectors(model, text, tmp_path, capsys):
    assert (
        embed(model, text, "-o", tmp_path / "out.npy", "--dim", 12, "--precision", "ubinary") == 0
    )
    expected = Encoder.load(model).encode(LINES, dim=12, precision="ubinary")
    assert expected.shape == (4, 2)
    assert np.array_equal(np.load(tmp_path / "out.npy"), expected)
    assert "4 x 2 uint8" in capsys.readouterr().err


def test_a_folder_holds_vectors_of_one_width(model, text, tmp_path, capsys):
    for dim, code in ((8, 0), (8, 0), (16, 2)):
        assert embed(model, text, "-o", f"{tmp_path}/folder/", "--dim", dim, "--quiet") == code
    assert "another model, prompt or settings" in capsys.readouterr().err


def test_any_backend(text, tmp_path, monkeypatch, capsys):
    (tmp_path / "my_two_numbers.py").write_text(
        "def embed(texts):\n    return [[len(text), 2.0] for text in texts]\n"
    )
    monkeypatch.chdir(tmp_path)
    options = ("--backend", "function", "--prompt", "q: ", "--no-normalize")
    assert embed("my_two_numbers:embed", text, "-o", tmp_path / "out.npy", *options) == 0
    assert np.load(tmp_path / "out.npy").tolist() == [[3 + len(line), 2.0] for line in LINES]
    assert "out.npy: 4 x 2 float32" in capsys.readouterr().err
    assert embed("my_two_numbers:embed", text, "-o", tmp_path / "out.npy", *options[:2]) == 0
    assert np.allclose(np.linalg.norm(np.load(tmp_path / "out.npy"), axis=1), 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("MODEL", "TEXT", "--backend", "onx"), "unknown backend 'onx'"),
        (
            ("MODEL", "TEXT", "--set", "stsb.split=dev"),
            "--set stsb.split=dev: expected BACKEND.OPTION=VALUE",
        ),
        (("MODEL", "TEXT", "--set", "interlingua.x=1"), "--set interlingua: unknown key 'x'"),
        (("MODEL", "absent.txt"), "absent.txt: no such file"),
        (("./absent", "TEXT"), "absent: no such model directory"),
        (("MODEL", "TEXT", "--dtype", "float8"), "dtype 'float8' is unknown"),
        (("MODEL", "TEXT", "--device", "cuda:99"), "device 'cuda:99' can't be used"),
        (("MODEL", "TEXT", "--prompt", "query"), "the model has no prompt called 'query'"),
        (("MODEL", "TEXT", "--language", "Germn"), "Germn"),
        (("MODEL", "TEXT", "--precision", "int8"), "no int8 ranges for vectors of 32 elements"),
        (("MODEL", "TEXT", "--precision", "int2"), "precision 'int2' is unknown"),
        (("MODEL", "TEXT", "--dim", "33"), "dim is 33, but the model's vectors have 32"),
        (("MODEL", "TEXT", "--dim", "8", "--backend", "onnx"), "--dim is for our own models"),
        (("MODEL", "LATIN1"), "latin1.txt:2: not UTF-8 (byte 0xe4)"),
    ],
)
def test_mistakes_are_one_line_and_leave_nothing(arguments, message, model, text, tmp_path, capsys):
    latin = tmp_path / "latin1.txt"
    latin.write_bytes("gut\nB\xe4r\n".encode("latin-1"))
    places = {"MODEL": model, "TEXT": text, "LATIN1": latin}
    assert embed(*(places.get(a, a) for a in arguments), "-o", tmp_path / "out.npy") == 2
    error = capsys.readouterr().err
    assert message in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out.npy").exists()


def test_bytes_that_are_not_utf8_on_standard_input(model, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", types.SimpleNamespace(buffer=io.BytesIO(b"ok\n\xff\n")))
    assert embed(model, "-", "-o", tmp_path / "out.npy") == 2
    assert "not UTF-8 (byte 0xff)" in capsys.readouterr().err


def test_a_device_is_no_place_for_vectors(model, text, tmp_path, capsys):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert embed(model, text, "-o", pipe) == 2
    assert "pipe or device" in capsys.readouterr().err
    assert pipe.is_fifo()
    assert embed(model, text, "-o", tmp_path) == 2
    assert "is a folder" in capsys.readouterr().err


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_vectors_that_are_not_finite_are_not_written(model, text, tmp_path, capsys, bad):
    """One word's vector is broken, so are the lines that hold it; the first one is named."""
    encoder = Encoder.load(model)
    word = encoder.vocabulary.encode(["en4"])[0][0]
    with torch.no_grad():
        encoder.backbone.word_embeddings.weight[word] = bad
    encoder.save(tmp_path / "broken")
    for target in ("out.npy", "folder/"):
        assert embed(tmp_path / "broken", text, "-o", tmp_path / target) == 2
        message = capsys.readouterr().err.strip().splitlines()[-1]
        assert "line 3 (row 2 counted from 0); try --dtype float32" in message
    assert not list(tmp_path.glob("**/*.npy"))


def test_a_runs_folder_stands_for_its_best_model(model, text, tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "config.toml").write_text("")
    Encoder.load(model).save(run / "best")
    assert embed(run, text, "-o", tmp_path / "run.npy") == 0
    assert np.array_equal(np.load(tmp_path / "run.npy"), Encoder.load(model).encode(LINES))


@pytest.mark.parametrize(("precision", "dim"), [("float32", 12), ("ubinary", 16), ("binary", 32)])
def test_parquet_rows_are_those_of_encode(model, text, tmp_path, precision, dim, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    options = ("--dim", dim, "--precision", precision)
    assert embed(model, text, "-o", tmp_path / "out.parquet", *options) == 0
    found = parquet.read_table(tmp_path / "out.parquet")
    expected = Encoder.load(model).encode(LINES, dim=dim, precision=precision)
    assert found.column_names == ["text", "vector"]
    assert found["text"].to_pylist() == LINES
    vectors = found["vector"].combine_chunks().flatten().to_numpy().reshape(4, -1)
    assert vectors.dtype == expected.dtype
    assert np.array_equal(vectors, expected)
    assert f"4 x {expected.shape[1]} {expected.dtype}" in capsys.readouterr().err


def test_several_processes_write_what_one_does(model, text, tmp_path, capsys):
    more = tmp_path / "more.txt"
    more.write_text("en1 en2 en3\nde4\n", encoding="utf-8")
    assert embed(model, text, more, "-o", tmp_path / "one") == 0
    assert embed(model, text, more, "-o", tmp_path / "two", "--devices", 2, "--device", "cpu") == 0
    assert "two: 2 files, 6 x 32 float32" in capsys.readouterr().err
    for made in (tmp_path / "one").glob("*.npy"):
        assert made.read_bytes() == (tmp_path / "two" / made.name).read_bytes()
    assert embed(model, text, "-o", tmp_path / "x.npy", "--devices", 2, "--ray", "local") == 2
    assert "drop --devices" in capsys.readouterr().err
