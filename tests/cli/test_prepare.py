import pytest

from interlingua.cli.main import main
from interlingua.corpus.manifest import Manifest

TOML = """
output = "nowhere"
processes = 1
validation = {pairs = 1}
[[sources]]
paths = ["$INTERLINGUA_DATA/de-en.tsv"]
"""


@pytest.fixture
def config(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLINGUA_DATA", str(tmp_path))
    words = [f"{a}{b}" for a in "abcdefghij" for b in "klmnopqrst"]
    (tmp_path / "de-en.tsv").write_text("".join(f"der {word}en\tthe {word}\n" for word in words))
    (tmp_path / "prepare.toml").write_text(TOML)
    return tmp_path / "prepare.toml"


def run(*arguments):
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return caught.value.code


def test_prepare(tmp_path, config, capsys):
    assert run("prepare", config, "--set", "vocabulary.size=60", "-o", tmp_path / "out") == 0
    out = capsys.readouterr().out
    assert "Dropped, by rule" in out
    assert f"written: {tmp_path / 'out'}" in out.replace("\n", "")
    assert Manifest.load(tmp_path / "out").train == 100
    assert run("prepare", config, "--set", "vocabulary.size=50", "-o", tmp_path / "out", "--overwrite", "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert Manifest.load(tmp_path / "out").vocabulary["size"] == 50


def test_users_errors_are_one_line(tmp_path, config, capsys):
    (tmp_path / "de-en.tsv").write_text("one column\n")
    assert run("prepare", config, "-o", tmp_path / "out", "--quiet") == 2
    error = capsys.readouterr().err
    assert error.startswith(f"interlingua: {tmp_path / 'de-en.tsv'}:1: 1 columns")
    assert error.count("\n") == 1
