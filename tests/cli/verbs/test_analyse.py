from __future__ import annotations

import json

import pytest

from tests.analysis.conftest import write_lines
from tests.encoder.conftest import tiny_vocabulary
from tests.tiny import tiny_encoder


@pytest.fixture
def models(tmp_path):
    """Two tiny models, before and after."""
    vocabulary = tiny_vocabulary(frame=True)
    for seed, name in enumerate(("before", "after")):
        tiny_encoder(vocabulary, "cls", seed=seed).save(tmp_path / name)
    return [tmp_path / "before", tmp_path / "after"]


@pytest.fixture
def data(tmp_path):
    write_lines(tmp_path / "data" / "flores200_devtest")
    return tmp_path / "data"


def test_tables_files_and_page(done, models, data, tmp_path):
    said = done(f"analyse {models[0]} --data {data} -o {tmp_path}/out --quiet")
    assert said.err == ""
    for word in (
        "language identification",
        "translation",
        "attention entropy",
        "word order cosine",
        "note: ",
    ):
        assert word in said.out
    names = {
        file.name.partition("_flores")[0] for file in (tmp_path / "out").rglob("*.analysis.json")
    }
    assert names == {
        "agnosticism",
        "token_matching",
        "attention_entropy",
        "word_order.analysis.json",
    }
    assert said.out.count("written: ") == 5
    page = (tmp_path / "out" / "analysis-before.html").read_text(encoding="utf-8")
    assert page.count("<section>") == 4


def test_two_models(done, models, data, tmp_path):
    options = "--only agnosticism --languages de,en --set agnosticism.k=2 --name old,new"
    said = done("analyse", *models, f"--data {data} --output {tmp_path} --quiet", options)
    assert "old" in said.out
    assert "difference" in said.out
    files = sorted(tmp_path.rglob("*.analysis.json"))
    assert [file.parents[1].name for file in files] == ["new", "old"]
    content = json.loads(files[0].read_text())
    assert content["languages"] == ["deu_Latn", "eng_Latn"]
    assert content["changed"] == ["languages", "k"]
    assert content["provenance"]["model"]["overrides"] == []
    assert 'class="m1"' in (tmp_path / "analysis-old-new-agnosticism.html").read_text(
        encoding="utf-8"
    )


def test_uniform_pooling(done, models, data, tmp_path):
    options = (
        "--only uniform_pooling --prompt 'Yes. '"
        """ --set 'uniform_pooling.suite=["flores_p_at_1"]'"""
    )
    said = done(f"analyse {models[1]} --data {data} --output {tmp_path} --quiet", options)
    assert "flores p at 1 flores200 devtest uniform" in said.out
    (file,) = tmp_path.rglob("*.analysis.json")
    assert json.loads(file.read_text())["provenance"]["model"]["overrides"] == ["prompt='Yes. '"]


def test_a_function(refused, done, caplog, data, tmp_path, monkeypatch):
    (tmp_path / "my_lengths.py").write_text(
        "import numpy as np\ndef embed(texts):\n    return np.array([[len(t), t.count(' '), 1] for"
        " t in texts])\n"
    )
    monkeypatch.chdir(tmp_path)
    said = done(f"analyse my_lengths:embed --backend function --data {data} --quiet")
    assert "token_matching is left out" in caplog.text
    assert len(list(tmp_path.rglob("*.analysis.json"))) == 2
    said = refused(
        f"analyse my_lengths:embed --backend function --data {data} --only token_matching"
    )
    assert "token_matching reads hidden states" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--only agnostic", "unknown analysis 'agnostic'; did you mean 'agnosticism'?"),
        ("--languages zul", "no file for the language 'zul'"),
        ("--languages de", "2 languages are required, found 1 language"),
        ("--set agnosticism.j=2", "unknown key 'j'"),
        ("--name a,b", "--name: 2 names for 1 models"),
        ("--data nowhere", "nowhere: folder not found"),
    ],
)
def test_slips_are_one_line(refused, monkeypatch, models, data, tmp_path, arguments, message):
    monkeypatch.setenv("INTERLINGUA_DATA", str(data))
    assert message in refused(f"analyse {models[0]} --quiet -o {tmp_path}", arguments).err


def test_no_data(refused, models, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    said = refused(f"analyse {models[0]}")
    assert said.err == (
        "interlingua: no folder of data sets is set; pass --data DIR, or set the variable"
        " INTERLINGUA_DATA\n"
    )
