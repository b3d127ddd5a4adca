from __future__ import annotations

import json

import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder

pytest.importorskip("sentence_transformers")


def test_export_says_how_close_the_vectors_are(word_vocabulary, tmp_path, capsys):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "model")
    arguments = ["export", str(tmp_path / "model"), "-o", str(tmp_path / "out"), "--license", "MIT"]
    with pytest.raises(SystemExit) as stop:
        main.main(arguments)
    assert not stop.value.code
    out = capsys.readouterr().out
    assert "smallest cosine 1.0000000" in out
    assert "allowed              1.0e-05" in out
    assert 'license: "mit"' in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(SystemExit) as stop:
        main.main(arguments)
    assert stop.value.code == 2
    assert "already there" in capsys.readouterr().err
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--no-verify"])
    assert not stop.value.code
    assert "not checked" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--layers", "1"])
    assert not stop.value.code
    assert Encoder.load(tmp_path / "out").backbone.config.num_hidden_layers == 1
    (tmp_path / "kept.txt").write_text("en1 en2 de3\n", encoding="utf-8")
    with pytest.raises(SystemExit) as stop:
        main.main([*arguments, "--overwrite", "--vocabulary-of", str(tmp_path / "kept.txt")])
    assert stop.value.code == 2
    assert "WordLevel tokenizer" in capsys.readouterr().err


def run(*arguments):
    with pytest.raises(SystemExit) as stop:
        main.main(["export", *map(str, arguments)])
    return stop.value.code or 0


@pytest.fixture
def model(word_vocabulary, tmp_path):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(tmp_path / "model")
    return tmp_path / "model"


def test_graphs_are_written_checked_and_checked_again(model, tmp_path, capsys):
    (tmp_path / "de.txt").write_text("de1 de2\nde3\n", encoding="utf-8")
    assert (
        run(
            model, "-o", tmp_path / "out", "--onnx", "--int8", "--verify-texts", tmp_path / "de.txt"
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "onnx int8" in out
    assert "32 texts" in out
    assert run(model, "-o", tmp_path / "out", "--verify-only") == 0
    assert "30 texts" in capsys.readouterr().out
    other = Encoder.load(model)
    with torch.no_grad():
        other.backbone.layers[0].output.weight.normal_()
    other.save(tmp_path / "other")
    assert run(tmp_path / "other", "-o", tmp_path / "out", "--verify-only") == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert "onnx gives another vector" in said.err
    assert "!" in said.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--static",), "--static trains on parallel text: give --corpus"),
        (("--dim", "8"), "--dim is for --static; drop it, or say --static"),
        (("--set", "run.seed=1"), "--set is for --static"),
        (("--static", "--onnx"), "--static and --onnx: make the token vectors first"),
        (("--verify-only", "--int8"), "--verify-only and --int8"),
        (
            ("--int8", "--dtype", "int4"),
            "dtype 'int4': graphs keep their weights in float32 or float16",
        ),
    ],
)
def test_options_that_do_not_go_together(model, tmp_path, capsys, options, message):
    assert run(model, "-o", tmp_path / "out", *options) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_shorter_vectors_and_ranges_are_options(model, tmp_path, capsys):
    (tmp_path / "de.txt").write_text("de1 de2\nde3\n", encoding="utf-8")
    options = ("--truncate-dim", "8", "--ranges-of", tmp_path / "de.txt", "--overwrite")
    assert run(model, "-o", tmp_path / "out", *options) == 0
    assert run(model, "-o", tmp_path / "graphs", "--onnx", *options) == 0
    for name in ("out", "graphs"):
        assert (
            json.loads((tmp_path / name / "config_sentence_transformers.json").read_text())[
                "truncate_dim"
            ]
            == 8
        )
        assert list(json.loads((tmp_path / name / "int8_ranges.json").read_text())) == ["8"]
    assert Encoder.load(tmp_path / "out").encode(["de1"], precision="int8").shape == (1, 8)


@pytest.mark.parametrize("options", [(), ("--no-verify",), ("--onnx", "--no-verify")])
def test_a_model_that_yields_nan_is_not_exported(model, tmp_path, capsys, options):
    encoder = Encoder.load(model)
    with torch.no_grad():
        encoder.backbone.layers[0].output.bias[0] = float("nan")
    encoder.save(model)
    assert run(model, "-o", tmp_path / "out", *options) == 2
    message = capsys.readouterr().err
    assert "'The cat sits on the mat.' and 3 more; try --dtype float32" in message
    assert not (tmp_path / "out").exists()


def test_weights_that_a_dtype_cannot_hold_are_named(model, tmp_path, capsys):
    encoder = Encoder.load(model)
    with torch.no_grad():
        encoder.backbone.layers[1].query.weight[0, 0] = 1e6  # beyond float16
    encoder.save(model)
    for options in (("--no-verify",), ("--onnx", "--no-verify")):
        assert run(model, "-o", tmp_path / "out", "--dtype", "float16", *options) == 2
        assert "layers.1.query.weight hold NaN" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert run(model, "-o", tmp_path / "out", "--no-verify") == 0
