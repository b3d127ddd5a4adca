"""docs/how-to/look.md: its commands run, and the report of the page is what is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.corpus.inspection.files import FileLook
from tests.corpus.inspection.made import faulty, german_english, write_rows
from tests.docs.markdown import follow, run_python
from tests.docs.sessions import opening_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "look.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("look")
    pairs = german_english(2000)
    (folder / "our-test-set").mkdir()
    write_rows(folder / "our-test-set" / "deu-eng.tsv", pairs[900:912])
    write_rows(folder / "crawl.de-en.tsv", faulty(pairs))
    for side, code in enumerate(("de", "en")):
        text = "".join(f"{pair[side]}\n" for pair in pairs[:300])
        (folder / f"book.{code}.txt").write_text(text, encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    """Command -> output."""
    return follow(PAGE, workplace)


def test_the_report_is_the_one_of_the_page(done):
    printed = done["interlingua look crawl.de-en.tsv --tests our-test-set"].splitlines()
    _, *shown = opening_of(PAGE.read_text(encoding="utf-8")).group(2).splitlines()
    assert [line for line in shown if line not in (*printed, "...")] == []


def test_two_texts_have_a_command_for_both(done):
    printed = done["interlingua look book.de.txt book.en.txt"]
    assert "next: interlingua align book.de.txt book.en.txt" in printed


def test_python(done, workplace):
    found = run_python(PAGE, workplace)["found"]
    assert isinstance(found, FileLook)
    assert found.overlap == {"our-test-set": 12}
