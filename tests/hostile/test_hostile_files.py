"""Every hostile file through its reader, and through the verbs in turn: exit code 2 and one line,
within bounded memory and time."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from itertools import cycle

import numpy as np
import pytest

import interlingua
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.finite_vectors import check_finite
from interlingua.encoder.post_pooling import Dense, Normalize, PostPooling
from interlingua.errors import InterlinguaError
from interlingua.getting_started.catalogues import CatalogueSource, read_catalogues
from tests.hostile import bitexts, configs, models, others
from tests.tiny import tiny_encoder

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
    """Limits that make small files too large."""
    monkeypatch.setenv("INTERLINGUA_MAX_LINE", "1000000")
    monkeypatch.setenv("INTERLINGUA_MAX_EXPANSION", "50")
    monkeypatch.setattr("interlingua.storage.limits.FREE_EXPANSION_BYTES", 1 << 17)


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("hostile") / "model"
    tiny_encoder(word_vocabulary).save(folder)
    return folder


@pytest.fixture(scope="module")
def dense_model(model, tmp_path_factory):
    plain = Encoder.load(model)
    layers = PostPooling([Normalize(), Dense(plain.hidden_size, 8)])
    folder = tmp_path_factory.mktemp("hostile") / "dense"
    Encoder(plain.backbone, plain.vocabulary, plain.settings, layers).save(folder)
    return folder


def one_line_of(error) -> str:
    """Return the message of one of our errors, which is one line of bounded length."""
    message = str(error.value)
    assert "\n" not in message
    assert len(message) < 2100
    return message


def in_turn(names, verbs):
    """Return each name with one of the verbs, each verb as often as the others.

    The readers are tested on every file in process; the verbs show that they use these readers.
    """
    return list(zip(names, cycle(verbs), strict=False))


@pytest.mark.parametrize("name", list(bitexts.FILES))
def test_a_hostile_bitext_is_refused_by_its_reader(name, tmp_path):
    path = bitexts.write(name, tmp_path)
    with pytest.raises(InterlinguaError) as error:
        for _ in read_pairs(path):
            pass
    assert name.partition(".")[0] in one_line_of(error)


@pytest.mark.parametrize("name", list(bitexts.TWO_FILES))
def test_a_hostile_file_of_two_is_refused_by_its_reader(name, tmp_path):
    with pytest.raises(InterlinguaError) as error:
        for _ in read_pairs(bitexts.write_two(name, tmp_path)):
            pass
    assert name.partition(".")[0] in one_line_of(error)


@pytest.mark.parametrize(("name", "verb"), in_turn(bitexts.FILES, ["prepare", "score", "export"]))
def test_a_hostile_bitext_is_one_line(refused, verb, name, model, tmp_path):
    path = bitexts.write(name, tmp_path)
    if verb == "score":
        line = refused("score", model, path, f"-o {tmp_path}/scored.tsv --quiet").err
    elif verb == "export":
        output = f"-o {tmp_path}/exported --no-verify --vocabulary-of"
        line = refused("export", model, output, path).err
    else:
        (tmp_path / "prepare.toml").write_text(PREPARE.format(folder=tmp_path, path=path))
        line = refused(f"prepare {tmp_path}/prepare.toml --quiet").err
    assert name.partition(".")[0] in line
    assert not any((tmp_path / made).exists() for made in ("scored.tsv", "exported", "corpus"))


@pytest.mark.parametrize("name", list(others.TEXTS))
@pytest.mark.parametrize("verb", ["embed", "mine", "align", "calibrate"])
def test_a_hostile_text_is_one_line(refused, verb, name, model, tmp_path):
    path, good = tmp_path / name, tmp_path / "good.en.txt"
    path.write_bytes(others.TEXTS[name])
    good.write_text("en1 en2\nen3\n")
    inputs = [path] if verb == "embed" else [path, good]
    out = {"embed": "v.npy", "calibrate": "c.json"}.get(verb, "out.tsv")
    limit = "--max-line 100000" if name.startswith("option") else ""
    refused(verb, model, *inputs, f"-o {tmp_path}/{out} --quiet", limit)
    assert not (tmp_path / out).exists()


def encode_hostile(model, change, folder):
    """Load a changed copy of a model, encode a text with it, and check the vector as verbs do."""
    shutil.copytree(model, folder)
    change(folder)
    check_finite(interlingua.load(folder).encode(["de1 de2"]), str)


@pytest.mark.parametrize("change", list(models.CHANGES))
def test_a_hostile_model_is_refused_by_its_loader(change, model, tmp_path):
    with pytest.raises(InterlinguaError) as error:
        encode_hostile(model, models.CHANGES[change], tmp_path / "hostile")
    one_line_of(error)


@pytest.mark.parametrize("change", list(models.DENSE_CHANGES))
def test_a_hostile_dense_layer_is_refused_by_its_loader(change, dense_model, tmp_path):
    with pytest.raises(InterlinguaError) as error:
        encode_hostile(dense_model, models.DENSE_CHANGES[change], tmp_path / "hostile")
    one_line_of(error)


@pytest.mark.parametrize(
    ("change", "verb"), in_turn(models.CHANGES, ["embed", "score", "export", "evaluate"])
)
def test_a_hostile_model_is_one_line(refused, verb, change, model, tmp_path):
    hostile, text = tmp_path / "hostile", tmp_path / "a.de-en.tsv"
    shutil.copytree(model, hostile)
    models.CHANGES[change](hostile)
    text.write_text("de1 de2\ten1 en2\n")
    arguments = {
        "embed": f"{text} -o {tmp_path}/v.npy --quiet",
        "score": f"{text} -o {tmp_path}/s.tsv --quiet",
        "export": f"-o {tmp_path}/exported --no-verify",
        "evaluate": f"--suite tatoeba --data {tmp_path} -o {tmp_path}/r --quiet",
    }[verb]
    refused(verb, hostile, arguments)


@pytest.mark.parametrize(
    ("change", "verb"), in_turn(models.DENSE_CHANGES, ["embed", "score", "export", "debias"])
)
def test_a_hostile_dense_layer_is_one_line(refused, verb, change, dense_model, tmp_path):
    hostile, text = tmp_path / "hostile", tmp_path / "a.de-en.tsv"
    shutil.copytree(dense_model, hostile)
    models.DENSE_CHANGES[change](hostile)
    text.write_text("de1 de2\ten1 en2\n")
    for name in ("de", "en"):
        (tmp_path / f"{name}.txt").write_text("".join(f"{name}{word}\n" for word in range(40)))
    arguments = {
        "embed": f"{text} -o {tmp_path}/v.npy --quiet",
        "score": f"{text} -o {tmp_path}/s.tsv --quiet",
        "export": f"-o {tmp_path}/exported --no-verify",
        "debias": f"{tmp_path}/de.txt {tmp_path}/en.txt -o {tmp_path}/d --quiet",
    }[verb]
    refused(verb, hostile, arguments)


@pytest.mark.parametrize("name", list(others.ARRAYS))
@pytest.mark.parametrize("verb", ["mine", "calibrate", "evaluate"])
def test_a_hostile_array_is_one_line(refused, verb, name, model, tmp_path):
    path = tmp_path / name
    path.write_bytes(others.ARRAYS[name]())
    for text in ("x.de.txt", "x.en.txt", f"{path.stem}.txt"):
        (tmp_path / text).write_text("de1\nde2\n")
    if verb == "evaluate":
        line = f"{tmp_path} --backend vectors --suite tatoeba --data {tmp_path} -o {tmp_path}/r"
        refused(verb, line, "--quiet")
    else:
        line = f"{model} {tmp_path}/x.de.txt {tmp_path}/x.en.txt -o {tmp_path}/o --source-vectors"
        refused(verb, line, path, "--quiet")


@pytest.mark.parametrize("name", list(configs.BROKEN))
@pytest.mark.parametrize("verb", ["prepare", "train"])
def test_a_hostile_toml_file_is_one_line(refused, verb, name, tmp_path):
    (tmp_path / "c.toml").write_bytes(configs.BROKEN[name])
    refused(f"{verb} {tmp_path}/c.toml")


@pytest.mark.parametrize("setting", configs.PREPARE)
def test_a_hostile_number_in_prepare_is_one_line(refused, setting, tmp_path):
    (tmp_path / "a.de-en.tsv").write_text("eins\tone\n")
    (tmp_path / "c.toml").write_text(PREPARE.format(folder=tmp_path, path=tmp_path / "a.de-en.tsv"))
    line = refused(f"prepare {tmp_path}/c.toml --quiet --set", shlex.quote(setting)).err
    assert setting.partition("=")[0].rpartition(".")[2] in line


@pytest.mark.parametrize("setting", configs.TRAIN)
def test_a_hostile_number_in_train_is_one_line(refused, setting, prepared, tmp_path):
    (tmp_path / "c.toml").write_text(TRAIN.format(folder=tmp_path, corpus=prepared))
    line = refused(f"train {tmp_path}/c.toml --set", shlex.quote(setting)).err
    key = setting.partition("=")[0].rpartition(".")[2]
    assert key in line or key.rpartition("_")[2].removesuffix("s") in line, line


@pytest.mark.parametrize("name", list(others.LABELED))
def test_a_hostile_training_file_is_one_line(refused, name, prepared, tmp_path):
    path = tmp_path / name
    path.write_bytes(others.LABELED[name])
    method, feed = "multilingual_ir", "questions"
    if name.startswith("nli"):
        method, feed = "nli", "labeled"
    text = TRAIN.format(folder=tmp_path, corpus=prepared).replace(
        'name = "ems"', f'name = "{method}"'
    )
    text = text.replace("projection_dim = 16\nlanguage_dim = 8\n", "")
    kind = 'kind = "nli"\n' if feed == "labeled" else ""
    (tmp_path / "c.toml").write_text(f'{text}\n[data.{feed}]\npaths = ["{path}"]\n{kind}')
    assert name in refused(f"train {tmp_path}/c.toml").err


@pytest.mark.parametrize("name", list(others.RESULTS))
def test_a_hostile_result_is_one_line(refused, name, tmp_path):
    (tmp_path / f"{name}.json").write_bytes(others.RESULTS[name])
    assert f"{name}.json" in refused("compare", tmp_path / f"{name}.json").err


@pytest.mark.parametrize("name", list(others.RESULTS))
@pytest.mark.parametrize("first", [b"", b'{"analysis": '])
def test_a_hostile_line_of_a_table_is_one_line(refused, name, first, tmp_path):
    line = first + others.RESULTS[name].replace(b"\n", b" ") + (b"}" if first else b"")
    (tmp_path / f"{name}.jsonl").write_bytes(line)
    assert f"{name}.jsonl" in refused("compare", tmp_path / f"{name}.jsonl").err


@pytest.mark.parametrize("name", list(others.RESULTS))
def test_a_hostile_calibration_is_one_line(refused, name, model, tmp_path):
    (tmp_path / "c.json").write_bytes(others.RESULTS[name])
    (tmp_path / "a.de-en.tsv").write_text("de1\ten1\n")
    line = f"score {model} {tmp_path}/a.de-en.tsv -o {tmp_path}/o.tsv --quiet"
    assert "c.json" in refused(line, f"--calibration {tmp_path}/c.json").err


def test_a_surrogate_given_to_encode_is_an_error_with_its_text(model):
    from interlingua.errors import DataError

    encoder = Encoder.load(model)
    with pytest.raises(DataError, match="incomplete character"):
        encoder.encode(["de1", "en1 \ud800"])
    with pytest.raises(DataError, match="expected texts"):
        encoder.vocabulary.encode(["de1", None])


def test_standard_input_has_the_limits_too(refused, model, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"x" * 200_000)))
    line = f"embed {model} - -o {tmp_path}/v.npy --quiet --max-line 1000"
    assert "--max-line" in refused(line).err


def test_good_files_pass_the_limits(done, model, tmp_path):
    (tmp_path / "good.txt").write_text("de1 de2\n" * 3)
    done(f"embed {model} {tmp_path}/good.txt -o {tmp_path}/v.npy --quiet")
    assert np.load(tmp_path / "v.npy").shape[0] == 3


def test_a_hostile_catalogue_does_not_end_the_quickstart(tmp_path):
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    for name in bitexts.FILES:
        if name.endswith((".po", ".mo")):
            bitexts.write(name, folder)
    (folder / "good.po").write_bytes(bitexts.po())
    source = CatalogueSource(name="strangers", folder=tmp_path)
    found = list(read_catalogues(source))
    assert [(pair.source, pair.target) for pair in found] == [
        ("one cat", "eine Katze"),
        ("many cats", "viele Katzen"),
    ]
    assert source.skipped["broken files"] == sum(
        name.endswith((".po", ".mo")) for name in bitexts.FILES
    )


@pytest.mark.parametrize("processes", [1, 2])
def test_prepare_has_the_limit_as_an_option(refused, processes, tmp_path, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_MAX_LINE")
    path = tmp_path / "a.de-en.tsv"
    path.write_text("eins\tone\n" + "x" * 5000 + "\ty\n")
    (tmp_path / "c.toml").write_text(PREPARE.format(folder=tmp_path, path=path))
    settings = f"--set max_line_characters=1000 --set processes={processes}"
    assert "a.de-en.tsv:2" in refused(f"prepare {tmp_path}/c.toml --quiet", settings).err
    assert "INTERLINGUA_MAX_LINE" not in os.environ
