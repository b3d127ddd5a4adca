from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import get_data as tool

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A repository with a set in its older revision, and one other folder."""

    def git(*arguments):
        identity = "-c user.name=n -c user.email=n@example.org -c commit.gpgsign=false"
        command = ["git", "-C", repository, *identity.split(), *arguments]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()

    repository = tmp_path / "server" / "owner" / "sets"
    (repository / "data" / "v1").mkdir(parents=True)
    (repository / "other").mkdir()
    git("init", "--quiet")
    git("config", "uploadpack.allowAnySHA1InWant", "true")
    git("config", "uploadpack.allowFilter", "true")
    (repository / "data" / "v1" / "deu-eng.tsv").write_text("Hallo\tHello\n", encoding="utf-8")
    (repository / "other" / "big.bin").write_text("not asked for", encoding="utf-8")
    git("add", "--all")
    git("commit", "--quiet", "-m", "first")
    revision = git("rev-parse", "HEAD")
    (repository / "data" / "v1" / "deu-eng.tsv").write_text("changed later\n", encoding="utf-8")
    git("commit", "--quiet", "-am", "second")
    monkeypatch.setattr(
        tool, "SETS", {"tatoeba_laser": tool.Published("owner/sets", revision, "data/v1")}
    )
    return f"file://{tmp_path / 'server'}"


def test_the_named_revision_and_nothing_else(tmp_path, server, capsys):
    tool.main(["tatoeba_laser", "--out", str(tmp_path / "data"), "--server", server])
    found = sorted(
        path.relative_to(tmp_path / "data")
        for path in (tmp_path / "data").rglob("*")
        if path.is_file()
    )
    assert found == [Path("tatoeba_laser/deu-eng.tsv")]
    assert (tmp_path / "data" / found[0]).read_text(encoding="utf-8") == "Hallo\tHello\n"
    assert "tatoeba_laser: 1 files" in capsys.readouterr().out


def test_what_is_there_stays(tmp_path, server, capsys):
    (tmp_path / "tatoeba_laser").mkdir()
    with pytest.raises(SystemExit, match="2"):
        tool.main(["tatoeba_laser", "--out", str(tmp_path), "--server", server])
    assert "is there already; remove it" in capsys.readouterr().err
    assert not list((tmp_path / "tatoeba_laser").iterdir())


def test_a_server_without_it_is_one_line(tmp_path, server, capsys):
    with pytest.raises(SystemExit, match="2"):
        tool.main(
            ["tatoeba_laser", "--out", str(tmp_path / "new"), "--server", f"{server}/nowhere"]
        )
    said = capsys.readouterr().err
    assert said.startswith("get_data: git fetch: fatal:")
    assert said.count("\n") == 1
    assert not list((tmp_path / "new").iterdir())


def test_every_set_is_in_the_docs_with_its_revision(capsys):
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    for name, one in tool.SETS.items():
        assert f"`{name}`" in page
        assert one.revision in page
    tool.main(["--list"])
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == [
        *tool.SETS,
        *tool.FILES,
    ]


def test_nothing_asked_for(capsys):
    with pytest.raises(SystemExit, match="2"):
        tool.main([])
    assert "--list" in capsys.readouterr().err
