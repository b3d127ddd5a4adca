"""docs/how-to/documents.md: its commands run in the order of the page on invented documents."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from interlingua.corpus.formats.bitext import read_pairs
from tests.alignment.invented_documents import contents, markdown, write_sides
from tests.docs.markdown import follow, run_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "documents.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    write_sides(folder / "manuals", contents(6))
    shutil.copytree(folder / "manuals", folder / "site")
    text = markdown(contents(1, seed=3)[0], "de")
    (folder / "manuals" / "de" / "alone.md").write_text(text, encoding="utf-8")
    (folder / "my_code.py").write_text("from tests.mining.invented import embed as embed\n")
    return folder


def test_the_commands_of_the_page(workplace):
    done = follow(
        PAGE,
        workplace,
        extra=["--backend", "function"],
        instead={"interlingua documents": "interlingua documents tests.mining.invented:embed"},
    )
    assert len(done) == 5
    for name in ("memory.tmx", "site.tmx", "sure.tsv", "memory.xlsx"):
        pairs = list(read_pairs(workplace / name, source_language="de", target_language="en"))
        assert len(pairs) >= 30, name
    assert "alone.md" in (workplace / "memory.html").read_text(encoding="utf-8")
    assert len((workplace / "pairs.tsv").read_text(encoding="utf-8").splitlines()) == 6


def test_the_python_part(workplace, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(workplace), *sys.path])
    monkeypatch.delitem(sys.modules, "my_code", raising=False)  # another guide's
    names = run_python(PAGE, workplace)
    assert len(names["table"]) == len(names["links"]) >= 30
