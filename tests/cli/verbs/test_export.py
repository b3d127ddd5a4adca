from __future__ import annotations

import json

import pytest
import torch

from interlingua.encoder.encoder import Encoder
from tests.tiny import tiny_encoder

pytest.importorskip("sentence_transformers")


@pytest.fixture
def model(word_vocabulary, tmp_path):
    tiny_encoder(word_vocabulary).save(tmp_path / "model")
    return tmp_path / "model"


def test_export_says_how_close_the_vectors_are(done, refused, model, tmp_path):
    command = f"export {model} -o {tmp_path}/out --license MIT"
    out = done(command).out
    assert "smallest cosine 1.0000000" in out
    assert "allowed              1.0e-05" in out
    assert 'license: "mit"' in (tmp_path / "out" / "README.md").read_text()
    assert "--overwrite" in refused(command).err
    assert "not checked" in done(command, "--overwrite --no-verify").out
    done(command, "--overwrite --layers 1")
    assert Encoder.load(tmp_path / "out").backbone.config.num_hidden_layers == 1
    (tmp_path / "kept.txt").write_text("en1 en2 de3\n", encoding="utf-8")
    kept = f"--vocabulary-of {tmp_path}/kept.txt"
    assert "WordLevel tokenizer" in refused(command, "--overwrite", kept).err


def test_graphs_are_written_checked_and_checked_again(done, refused, model, tmp_path):
    (tmp_path / "de.txt").write_text("de1 de2\nde3\n", encoding="utf-8")
    said = done(f"export {model} -o {tmp_path}/out --onnx --int8 --verify-texts {tmp_path}/de.txt")
    out = said.out
    assert "onnx int8" in out
    assert "32 texts" in out
    said = done(f"export {model} -o {tmp_path}/out --verify-only")
    assert "30 texts" in said.out
    other = Encoder.load(model)
    with torch.no_grad():
        other.backbone.layers[0].output.weight.normal_()
    other.save(tmp_path / "other")
    said = refused(f"export {tmp_path}/other -o {tmp_path}/out --verify-only")
    assert "onnx returns another vector" in said.err
    assert "!" in said.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("--static", "--static requires --corpus"),
        ("--dim 8", "--dim requires --static"),
        ("--set run.seed=1", "--set requires --static"),
        ("--static --onnx", "--static and --onnx cannot be combined"),
        ("--verify-only --int8", "--verify-only and --int8"),
        ("--int8 --dtype int4", "dtype: expected float32 or float16, found 'int4'"),
    ],
)
def test_options_that_do_not_go_together(refused, model, tmp_path, options, message):
    assert message in refused(f"export {model} -o {tmp_path}/out", options).err
    assert not (tmp_path / "out").exists()


def test_shorter_vectors_and_ranges_are_options(done, model, tmp_path):
    (tmp_path / "de.txt").write_text("de1 de2\nde3\n", encoding="utf-8")
    options = f"--truncate-dim 8 --ranges-of {tmp_path}/de.txt --overwrite"
    done(f"export {model} -o {tmp_path}/out", options)
    done(f"export {model} -o {tmp_path}/graphs --onnx", options)
    for name in ("out", "graphs"):
        assert (
            json.loads((tmp_path / name / "config_sentence_transformers.json").read_text())[
                "truncate_dim"
            ]
            == 8
        )
        assert list(json.loads((tmp_path / name / "int8_ranges.json").read_text())) == ["8"]
    assert Encoder.load(tmp_path / "out").encode(["de1"], precision="int8").shape == (1, 8)


@pytest.mark.parametrize("options", ["", "--no-verify", "--onnx --no-verify"])
def test_a_model_that_yields_nan_is_not_exported(refused, model, tmp_path, options):
    encoder = Encoder.load(model)
    with torch.no_grad():
        encoder.backbone.layers[0].output.bias[0] = float("nan")
    encoder.save(model)
    message = refused(f"export {model} -o {tmp_path}/out", options).err
    assert "'The cat sits on the mat.' and 3 more; pass --dtype float32" in message
    assert not (tmp_path / "out").exists()


def test_weights_that_a_dtype_cannot_hold_are_named(done, refused, model, tmp_path):
    encoder = Encoder.load(model)
    with torch.no_grad():
        encoder.backbone.layers[1].query.weight[0, 0] = 1e6  # beyond float16
    encoder.save(model)
    for options in ("--no-verify", "--onnx --no-verify"):
        assert (
            "layers.1.query.weight contain NaN"
            in refused(f"export {model} -o {tmp_path}/out --dtype float16", options).err
        )
    assert not (tmp_path / "out").exists()
    done(f"export {model} -o {tmp_path}/out --no-verify")
