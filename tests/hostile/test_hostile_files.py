"""Every hostile file through every verb that reads it: exit code 2 and one line, within bounded
memory and time."""

from __future__ import annotations

import io
import os
import shutil
import sys

import numpy as np
import pytest
import torch

from interlingua.cli import main
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import Dense, Normalize, PostPooling
from interlingua.quickstart.catalogues import Source, read_catalogues
from tests.hostile import bitexts, configs, models, others

PREPARE = """
output = "{folder}/corpus"
processes = 1
validation.pairs = 1
[[sources]]
paths = ["{path}"]
[vocabulary]
size = 300
"""
TRAIN = """
[data]
corpus = "{corpus}"
[encoder]
preset = "ems-tiny"
[method]
name = "ems"
projection_dim = 16
language_dim = 8
[run]
output = "{folder}/run"
max_steps = 2
global_batch_size = 8
device = "cpu"
"""


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    """So that small files are too large."""
    monkeypatch.setenv("INTERLINGUA_MAX_LINE", "1000000")
    monkeypatch.setenv("INTERLINGUA_MAX_EXPANSION", "50")
    monkeypatch.setattr("interlingua.limits.FREE_EXPANSION_BYTES", 1 << 17)


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    folder = tmp_path_factory.mktemp("hostile") / "model"
    Encoder.from_scratch(config, word_vocabulary).save(folder)
    return folder


@pytest.fixture(scope="module")
def dense_model(model, tmp_path_factory):
    plain = Encoder.load(model)
    layers = PostPooling([Normalize(), Dense(plain.hidden_size, 8)])
    folder = tmp_path_factory.mktemp("hostile") / "dense"
    Encoder(plain.backbone, plain.vocabulary, plain.settings, layers).save(folder)
    return folder


def refused(capsys, *arguments):
    """Runs a verb; its one line."""
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main.main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    assert stop.value.code == 2, printed
    assert printed.err.startswith("interlingua: "), printed.err
    assert printed.err.count("\n") == 1, printed.err
    assert len(printed.err) < 2100
    return printed.err


@pytest.mark.parametrize("name", list(bitexts.FILES))
@pytest.mark.parametrize("verb", ["prepare", "score", "export"])
def test_a_hostile_bitext_is_one_line(verb, name, model, tmp_path, capsys):
    path = bitexts.write(name, tmp_path)
    if verb == "score":
        line = refused(capsys, "score", model, path, "-o", tmp_path / "scored.tsv", "--quiet")
    elif verb == "export":
        line = refused(
            capsys,
            "export",
            model,
            "-o",
            tmp_path / "exported",
            "--vocabulary-of",
            path,
            "--no-verify",
        )
    else:
        (tmp_path / "prepare.toml").write_text(PREPARE.format(folder=tmp_path, path=path))
        line = refused(capsys, "prepare", tmp_path / "prepare.toml", "--quiet")
    assert name.partition(".")[0] in line
    assert not any((tmp_path / made).exists() for made in ("scored.tsv", "exported", "corpus"))


@pytest.mark.parametrize("name", list(others.TEXTS))
@pytest.mark.parametrize("verb", ["embed", "mine", "align", "calibrate"])
def test_a_hostile_text_is_one_line(verb, name, model, tmp_path, capsys):
    path, good = tmp_path / name, tmp_path / "good.en.txt"
    path.write_bytes(others.TEXTS[name])
    good.write_text("en1 en2\nen3\n")
    inputs = [path] if verb == "embed" else [path, good]
    out = {"embed": "v.npy", "calibrate": "c.json"}.get(verb, "out.tsv")
    options = ["--max-line", "100000"] if name.startswith("option") else []
    refused(capsys, verb, model, *inputs, "-o", tmp_path / out, "--quiet", *options)
    assert not (tmp_path / out).exists()


@pytest.mark.parametrize("change", list(models.CHANGES))
@pytest.mark.parametrize("verb", ["embed", "score", "export", "evaluate"])
def test_a_hostile_model_is_one_line(verb, change, model, tmp_path, capsys):
    hostile, text = tmp_path / "hostile", tmp_path / "a.de-en.tsv"
    shutil.copytree(model, hostile)
    models.CHANGES[change](hostile)
    text.write_text("de1 de2\ten1 en2\n")
    arguments = {
        "embed": (text, "-o", tmp_path / "v.npy", "--quiet"),
        "score": (text, "-o", tmp_path / "s.tsv", "--quiet"),
        "export": ("-o", tmp_path / "exported", "--no-verify"),
        "evaluate": ("--suite", "tatoeba", "--data", tmp_path, "-o", tmp_path / "r", "--quiet"),
    }[verb]
    refused(capsys, verb, hostile, *arguments)


@pytest.mark.parametrize("change", list(models.DENSE_CHANGES))
@pytest.mark.parametrize("verb", ["embed", "score", "export", "debias"])
def test_a_hostile_dense_layer_is_one_line(verb, change, dense_model, tmp_path, capsys):
    hostile, text = tmp_path / "hostile", tmp_path / "a.de-en.tsv"
    shutil.copytree(dense_model, hostile)
    models.DENSE_CHANGES[change](hostile)
    text.write_text("de1 de2\ten1 en2\n")
    for name in ("de", "en"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{word}\n" for word in range(40)))
    arguments = {
        "embed": (text, "-o", tmp_path / "v.npy", "--quiet"),
        "score": (text, "-o", tmp_path / "s.tsv", "--quiet"),
        "export": ("-o", tmp_path / "exported", "--no-verify"),
        "debias": (tmp_path / "de.txt", tmp_path / "en.txt", "-o", tmp_path / "d", "--quiet"),
    }[verb]
    refused(capsys, verb, hostile, *arguments)


@pytest.mark.parametrize("name", list(others.ARRAYS))
@pytest.mark.parametrize("verb", ["mine", "calibrate", "evaluate"])
def test_a_hostile_array_is_one_line(verb, name, model, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(others.ARRAYS[name]())
    for text in ("x.de.txt", "x.en.txt", f"{path.stem}.txt"):
        (tmp_path / text).write_text("de1\nde2\n")
    if verb == "evaluate":
        arguments = (
            tmp_path,
            "--backend",
            "vectors",
            "--suite",
            "tatoeba",
            "--data",
            tmp_path,
            "-o",
            tmp_path / "r",
        )
    else:
        arguments = (
            model,
            tmp_path / "x.de.txt",
            tmp_path / "x.en.txt",
            "-o",
            tmp_path / "o",
            "--source-vectors",
            path,
        )
    refused(capsys, verb, *arguments, "--quiet")


@pytest.mark.parametrize("name", list(configs.BROKEN))
@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_a_hostile_toml_file_is_one_line(verb, name, tmp_path, capsys):
    (tmp_path / "c.toml").write_bytes(configs.BROKEN[name])
    refused(capsys, verb, tmp_path / "c.toml")


@pytest.mark.parametrize("setting", configs.PREPARE)
def test_a_hostile_number_in_prepare_is_one_line(setting, tmp_path, capsys):
    (tmp_path / "a.de-en.tsv").write_text("eins\tone\n")
    (tmp_path / "c.toml").write_text(PREPARE.format(folder=tmp_path, path=tmp_path / "a.de-en.tsv"))
    line = refused(capsys, "prepare", tmp_path / "c.toml", "--set", setting, "--quiet")
    assert setting.partition("=")[0].rpartition(".")[2] in line


@pytest.mark.parametrize("setting", configs.TRAIN)
def test_a_hostile_number_in_train_is_one_line(setting, prepared, tmp_path, capsys):
    (tmp_path / "c.toml").write_text(TRAIN.format(folder=tmp_path, corpus=prepared))
    line = refused(capsys, "train", tmp_path / "c.toml", "--set", setting)
    key = setting.partition("=")[0].rpartition(".")[2]
    assert key in line or key.rpartition("_")[2].removesuffix("s") in line, line


@pytest.mark.parametrize("name", list(others.LABELED))
def test_a_hostile_training_file_is_one_line(name, prepared, tmp_path, capsys):
    path = tmp_path / name
    path.write_bytes(others.LABELED[name])
    method, feed = (
        ("nli", "labeled") if name.startswith("nli") else ("multilingual_ir", "questions")
    )
    text = TRAIN.format(folder=tmp_path, corpus=prepared).replace(
        'name = "ems"', f'name = "{method}"'
    )
    text = text.replace("projection_dim = 16\nlanguage_dim = 8\n", "")
    kind = 'kind = "nli"\n' if feed == "labeled" else ""
    (tmp_path / "c.toml").write_text(f'{text}\n[data.{feed}]\npaths = ["{path}"]\n{kind}')
    assert name in refused(capsys, "train", tmp_path / "c.toml")


@pytest.mark.parametrize("name", list(others.RESULTS))
def test_a_hostile_result_is_one_line(name, tmp_path, capsys):
    (tmp_path / f"{name}.json").write_bytes(others.RESULTS[name])
    assert f"{name}.json" in refused(capsys, "compare", tmp_path / f"{name}.json")


@pytest.mark.parametrize("name", list(others.RESULTS))
def test_a_hostile_calibration_is_one_line(name, model, tmp_path, capsys):
    (tmp_path / "c.json").write_bytes(others.RESULTS[name])
    (tmp_path / "a.de-en.tsv").write_text("de1\ten1\n")
    pairs = ("score", model, tmp_path / "a.de-en.tsv", "-o", tmp_path / "o.tsv", "--quiet")
    assert "c.json" in refused(capsys, *pairs, "--calibration", tmp_path / "c.json")


def test_a_surrogate_given_to_encode_is_an_error_with_its_text(model):
    from interlingua.errors import DataError

    encoder = Encoder.load(model)
    with pytest.raises(DataError, match="half a character"):
        encoder.encode(["de1", "en1 \ud800"])
    with pytest.raises(DataError, match="expected texts"):
        encoder.vocabulary.encode(["de1", None])


def test_standard_input_has_the_limits_too(model, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 200_000)))
    arguments = ("embed", model, "-", "-o", tmp_path / "v.npy", "--quiet", "--max-line", "1000")
    assert "--max-line" in refused(capsys, *arguments)


def test_good_files_pass_the_limits(model, tmp_path, capsys):
    (tmp_path / "good.txt").write_text("de1 de2\n" * 3)
    with pytest.raises(SystemExit) as stop:
        main.main(
            [
                "embed",
                str(model),
                str(tmp_path / "good.txt"),
                "-o",
                str(tmp_path / "v.npy"),
                "--quiet",
            ]
        )
    assert not stop.value.code
    assert np.load(tmp_path / "v.npy").shape[0] == 3


def test_a_hostile_catalogue_does_not_end_the_quickstart(tmp_path):
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    for name in bitexts.FILES:
        if name.endswith((".po", ".mo")):
            bitexts.write(name, folder)
    (folder / "good.po").write_bytes(bitexts.po())
    source = Source(name="strangers", folder=tmp_path)
    found = list(read_catalogues(source))
    assert [(pair.source, pair.target) for pair in found] == [
        ("one cat", "eine Katze"),
        ("many cats", "viele Katzen"),
    ]
    assert source.skipped["broken files"] == sum(
        name.endswith((".po", ".mo")) for name in bitexts.FILES
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_prepare_has_the_limit_as_an_option(processes, tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_MAX_LINE")
    path = tmp_path / "a.de-en.tsv"
    path.write_text("eins\tone\n" + "x" * 5000 + "\ty\n")
    (tmp_path / "c.toml").write_text(PREPARE.format(folder=tmp_path, path=path))
    setting = ("--set", "max_line_characters=1000", "--set", f"processes={processes}")
    assert "a.de-en.tsv:2" in refused(capsys, "prepare", tmp_path / "c.toml", "--quiet", *setting)
    assert "INTERLINGUA_MAX_LINE" not in os.environ
