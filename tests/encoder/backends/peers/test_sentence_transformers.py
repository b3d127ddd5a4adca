from __future__ import annotations

import json
import shutil
import sys

import numpy as np
import pytest

from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.sentence_transformers import check_version
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.model_info import prompt_text
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError
from interlingua.storage.arrays import normalize_rows


@pytest.mark.parametrize("prompt", [None, "passage", "en3 ", ""])
def test_it_reads_prompts_as_we_do(prompted, prompt):
    pytest.importorskip("sentence_transformers")
    ours, _ = load_encoder(prompted)
    theirs, info = load_encoder(prompted, backend="sentence-transformers")
    expected = {None: "en1 ", "passage": "en2 "}.get(prompt, prompt)
    assert prompt_text(theirs, prompt) == prompt_text(ours, prompt) == expected
    texts = ["de1 de2", "en7 en8 en9", "de5"]
    unit = normalize_rows(ours.encode(texts, prompt=prompt))
    np.testing.assert_allclose(normalize_rows(theirs.encode(texts, prompt=prompt)), unit, atol=1e-5)
    assert (info.name, info.pooling, info.pooling_from) == ("prompted", "mean", "model")
    assert (info.dim, info.max_tokens) == (ours.dim, ours.info.max_tokens)
    assert info.normalized is False


def test_it_cuts_what_we_cut(prompted):
    pytest.importorskip("sentence_transformers")
    texts = ["de1 de2", "en7 " * 130, "de5", "ru1 " * 120, "ru1 " * 121]
    cuts = []
    for backend in ("interlingua", "sentence-transformers"):
        report = EncodeReport()
        encoder, _ = load_encoder(prompted, backend=backend)
        for portion in (texts[:2], texts[2:]):
            encoder.encode(portion, prompt="", report=report)
        cuts.append((list(report.cut_rows), report.texts, report.tokens, report.max_tokens))
    assert cuts[0] == cuts[1]
    assert cuts[0][0] == [1, 4]


def test_sentence_transformers_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[sentence-transformers\]"):
        load_encoder(str(tmp_path), backend="sentence-transformers")


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("notes.txt", "x"),
        ("config.json", '{"model_type": "bert"}'),
        ("modules.json", "["),
        (
            "modules.json",
            '[{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.no"}]',
        ),
        ("model.safetensors", "x"),
    ],
)
def test_what_is_no_model_is_one_line(prompted, tmp_path, file, content):
    pytest.importorskip("sentence_transformers")
    folder = tmp_path / "folder"
    if file == "model.safetensors":
        shutil.copytree(prompted, folder)
    folder.mkdir(exist_ok=True)
    (folder / file).write_text(content)
    with pytest.raises(CheckpointError) as error:
        load_encoder(str(folder), backend="sentence-transformers")
    said = str(error.value)
    assert said.startswith(str(folder))
    if file != "modules.json":  # which is looked at before
        assert said.startswith(f"{folder}: sentence-transformers cannot load the model (")
        assert said.endswith("; use a folder that it saved, hf:owner/name, or another --backend")
    assert "\n" not in said


def test_it_computes_in_no_bytes(prompted):
    pytest.importorskip("sentence_transformers")
    with pytest.raises(ConfigError, match="cannot compute in int8"):
        load_encoder(prompted, backend="sentence-transformers", dtype="int8")


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("own_module.Own", {}),
        ("os.system", {}),
        ("sentence_transformers.os.system", {}),
        ("sentence_transformers.util.import_from_string", {}),
        ("sentence_transformers.models.Dense", {"activation_function": "own_module.Own"}),
        ("sentence_transformers.models.Dense", {"activation_function": 5}),
        ("sentence_transformers.models.Router", {"types": {"a": "own_module.Own"}}),
        ("sentence_transformers.models.WordEmbeddings", {"tokenizer_class": "own_module.Own"}),
    ],
)
def test_code_of_a_model_folder_is_refused(prompted, tmp_path, monkeypatch, kind, settings):
    """Try routers and dense layers. sentence-transformers would run or import their code."""
    pytest.importorskip("sentence_transformers")
    folder, ran = tmp_path / "model", tmp_path / "ran"
    shutil.copytree(prompted, folder)
    code = f"from pathlib import Path\nPath({str(ran)!r}).write_text('x')\nclass Own:\n    pass\n"
    (folder / "own_module.py").write_text(code)
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"idx": 9, "name": "9", "path": "9_Own", "type": kind})
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "9_Own").mkdir()
    (folder / "9_Own" / "config.json").write_text(json.dumps(settings))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(folder)
    with pytest.raises(CheckpointError, match=r"and code|torch\.nn|tokenizer_class"):
        load_encoder(str(folder), backend="sentence-transformers")
    assert not ran.exists()


def test_a_release_that_is_too_old_is_named():
    with pytest.raises(MissingExtraError, match=r"5\.4 or newer \(not 5\.3\.1\)"):
        check_version("5.3.1")
    for version in ("5.4.0", "5.10", "6.2.0.dev1"):
        check_version(version)
