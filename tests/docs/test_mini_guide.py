"""docs/how-to/search-your-documents.md: its Python and its commands are run, where the package of
the model is."""

from __future__ import annotations

import contextlib
import io
import re
import shlex
from pathlib import Path

import pytest

from interlingua.cli import main
from tests.docs.markdown import has_model, run_python, steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "search-your-documents.md"
TEXT = PAGE.read_text(encoding="utf-8")
DOCUMENTS = re.search(r"^```text\n(.*?)^```", TEXT, re.M | re.S)[1]
LANGUAGES = ("de", "en", "fr", "pt", "ru", "ja", "es")
"""Languages of the passages, in their order."""
JAPANESE = "図書館の本は二週間借りられます。"


with_model = pytest.mark.skipif(
    not has_model(), reason="the model of interlingua-mini is not installed"
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "documents.txt").write_text(DOCUMENTS, encoding="utf-8")
    (tmp_path / "texts").mkdir()
    for code, line in zip(LANGUAGES, DOCUMENTS.splitlines(), strict=True):
        (tmp_path / "texts" / f"{code}.txt").write_text(f"{line}\n", encoding="utf-8")
    return tmp_path


def test_the_first_part_has_five_lines():
    first = re.search(r"^```python\n(.*?)^```", TEXT, re.M | re.S)[1]
    assert len([line for line in first.splitlines() if line and line[0] != "#"]) == 5


def test_commands_name_no_model():
    commands = [shlex.split(step.command) for step in steps(PAGE)]
    verbs = [words[1] for words in commands if words[0] == "interlingua"]
    assert verbs == ["index", "serve", "search"]
    assert not any(
        "models/" in word for words in commands for word in words if words[0] == "interlingua"
    )


@pytest.mark.filterwarnings("ignore:unclosed file")  # that five lines leave to the interpreter
@with_model
def test_the_python_finds_the_passage_of_another_language(folder, capsys):
    names = run_python(PAGE, folder)
    assert names["passages"] == DOCUMENTS.splitlines()
    printed = TEXT.split("\n# [", 1)[1].split("\n", 1)[0]
    found, *ranking = capsys.readouterr().out.splitlines()
    assert JAPANESE in found
    assert found == f"[{printed}"
    assert "Lyon" in ranking[0]


@with_model
def test_the_commands_find_the_same(folder):
    pytest.importorskip("lancedb")
    printed = {}
    with contextlib.chdir(folder):
        for step in steps(PAGE):
            command = step.command.replace(
                "texts/*.txt", " ".join(f"texts/{code}.txt" for code in LANGUAGES)
            )
            program, *arguments = shlex.split(command)
            if program == "pip" or arguments[0] == "serve":  # serving is tested elsewhere
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
                main.main(arguments)
            assert not stop.value.code, step.command
            printed[arguments[0]] = out.getvalue()
    assert JAPANESE in printed["search"]
    assert len(printed["search"].splitlines()) == 3
