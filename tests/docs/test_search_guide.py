"""docs/how-to/search.md: its commands are run on a tiny model and texts, its Python too."""

from __future__ import annotations

import contextlib
import glob
import io
import json
import shlex
from pathlib import Path

import pytest

from interlingua.cli import main
from interlingua.retrieval.passage_index import PassageIndex
from tests.conftest import WORDS
from tests.docs.markdown import run_python, steps
from tests.tiny import tiny_encoder

pytest.importorskip("lancedb")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "search.md"
LANGUAGES = ("deu_Latn", "eng_Latn", "rus_Latn")


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("search")
    tiny_encoder(word_vocabulary).save(folder / "models" / "multilingual-e5-small")
    (folder / "texts").mkdir()
    for code in LANGUAGES:
        lines = [f"{code[:2]}{n % WORDS} {code[:2]}{(n * 7 + 1) % WORDS} Pago" for n in range(40)]
        (folder / "texts" / f"{code}.txt").write_text("".join(f"{line}\n" for line in lines))
    records = [
        {"id": f"n{n}", "text": f"en{n}", "language": "en", "year": year, "topic": topic}
        for n, (year, topic) in enumerate(((1999, "sports"), (2024, "science")))
    ]
    (folder / "news.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records))
    article = "key,headline,body,tongue,year\nk1,en1 en2,en3 en4,en,2024\n"
    (folder / "articles.csv").write_text(article)
    (folder / "docs").mkdir()
    ferry = "The ferry to Bergen leaves at seven o'clock."
    (folder / "docs" / "guide.md").write_text(f"# A guide\n\n## Ferries\n\n{ferry}\n")
    (folder / "docs" / "guide.html").write_text(f"<h1>A guide</h1><p>{ferry}</p>")
    (folder / "books").mkdir()
    (folder / "books" / "one.en.txt").write_text("".join(f"en{n}. " for n in range(40)))
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    """Command -> output. The server is tested elsewhere."""
    files = " ".join(f"texts/{code}.txt" for code in LANGUAGES)
    printed = {}
    with contextlib.chdir(workplace):
        for step in steps(PAGE, opening=False):
            command = step.command.replace("texts/*.txt", files).replace(
                "texts/en.txt", "texts/eng_Latn.txt"
            )
            program, *words = shlex.split(command)
            arguments = [name for word in words for name in sorted(glob.glob(word)) or [word]]
            if program == "pip" or arguments[0] == "serve":
                continue
            out = io.StringIO()
            with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
                main.main(arguments)
            assert not stop.value.code, command
            printed[step.command] = out.getvalue()
    return printed


def test_every_command_ends_well(done):
    assert len(done) == 22


def test_a_balanced_search_finds_every_language(done):
    outputs = {
        "feedback" in command: text for command, text in done.items() if "--per-language" in command
    }
    assert set(outputs) == {False, True}
    for output in outputs.values():
        assert {line.split()[2] for line in output.splitlines()} == set(LANGUAGES)


def test_words_and_conditions_find_what_they_name(done):
    by_words = next(text for command, text in done.items() if "--mode text" in command)
    assert len(by_words.splitlines()) == 10
    conditions = {
        command: text
        for command, text in done.items()
        if "search" in command and "--where" in command
    }
    assert len(conditions) == 1
    for output in conditions.values():
        assert [line.split()[3] for line in output.splitlines()] == ["n1"]


def test_named_columns_are_the_parts_of_a_passage(done, workplace):
    (found,) = PassageIndex(workplace / "articles-index").passages()
    assert (found.id, found.title, found.text) == ("k1", "en1 en2", "en3 en4")
    assert (found.language, json.loads(found.metadata)) == ("eng_Latn", {"year": "2024"})


def test_what_was_deleted_is_gone(done, workplace):
    assert PassageIndex(workplace / "index").count() == 2 * 40 + 1


def test_its_python_runs(done, workplace, capsys):
    assert len(run_python(PAGE, workplace)["ranking"].hits) == 5
