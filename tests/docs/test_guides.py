"""docs/guides/: the sessions of a guide print what the page shows."""

from __future__ import annotations

import os
import re
from pathlib import Path

import openpyxl
import pytest

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.runtime import progress
from tests.conftest import pairs
from tests.docs.markdown import has_model
from tests.docs.sessions import (
    check_sessions,
    far_numbers,
    follow_sessions,
    is_excerpt,
    mask_numbers,
)

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
NEEDS = {"search-in-50-languages": "lancedb"}
"""Guide -> the package of an extra that it uses."""
REVIEWED = "documents-to-a-memory"
"""The guide in which the reader answers a sheet; it has a test of its own."""
ANSWERS = {
    "Dogs must be kept on a leash.": "bad",
    "On Sundays it does not leave until 9 o'clock.": "bad",
    "The timetable": "good",
}
"""The answers of its picture."""
NOT_RUN = {"from-laser-vecalign-bicleaner", "gallery", REVIEWED}
"""Pages with tables and pictures."""


def executed():
    return sorted(page.stem for page in GUIDES.glob("*.md") if page.stem not in NOT_RUN)


@pytest.mark.skipif(not has_model(), reason="the default model is not installed")
@pytest.mark.parametrize("guide", executed())
def test_a_guide_prints_what_it_shows(guide, tmp_path, monkeypatch):
    pytest.importorskip(NEEDS.get(guide, "interlingua"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "EVERY_SECONDS", 3600.0)
    if guide == "train-your-own-encoder":
        rows = pairs("deu_Latn", 700, seed=0)
        lines = "".join(f"{a}\t{b}\n" for a, b in rows)
        (tmp_path / "bitext.de-en.tsv").write_text(lines, encoding="utf-8")
    # Training differs more between processors.
    is_near = guide != "train-your-own-encoder"
    check_sessions(GUIDES / f"{guide}.md", tmp_path, is_near=is_near)


@pytest.mark.skipif(not has_model(), reason="the default model is not installed")
def test_two_folders_become_a_reviewed_memory_in_three_commands(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setattr(progress, "EVERY_SECONDS", 3600.0)
    page = GUIDES / f"{REVIEWED}.md"
    before, heading, after = page.read_text(encoding="utf-8").partition("\n## 3.")
    now = follow_sessions(before, tmp_path)
    answer_sheet(tmp_path / "review.xlsx", ANSWERS)
    now += heading + follow_sessions(after, tmp_path)
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(now, encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    assert mask_numbers(now) == mask_numbers(text), f"{page.name} is old: UPDATE_DOCS=1"
    assert far_numbers(now, text) == [], f"{page.name} is old: UPDATE_DOCS=1"
    kept = {pair.target for pair in read_pairs(tmp_path / "reviewed.tmx")}
    assert {text for text, answer in ANSWERS.items() if answer == "good"} <= kept
    assert not kept & {text for text, answer in ANSWERS.items() if answer == "bad"}
    assert len(kept) == 11
    for picture in re.findall(r"!\[.+\]\((.+\.png)\)", text):
        assert 0 < (GUIDES / picture).stat().st_size < 200_000


def answer_sheet(path, answers):
    """Answer the rows with these targets; leave the others to the checks."""
    book = openpyxl.load_workbook(path)
    header, *rows = book.active.iter_rows()
    names = [cell.value for cell in header]
    for row in rows:
        row[names.index("answer")].value = answers.get(row[names.index("target")].value)
    book.save(path)


def test_a_file_that_is_shown_is_created_and_one_that_exists_is_compared(tmp_path):
    (tmp_path / "old.txt").write_text("now\n", encoding="utf-8")
    page = "```console\n$ cat new.txt\na\nb\n$ cat old.txt\nbefore\n```\n"
    assert follow_sessions(page, tmp_path) == page.replace("before", "now")
    assert (tmp_path / "new.txt").read_text(encoding="utf-8") == "a\nb\n"


def test_dots_stand_for_any_lines():
    assert is_excerpt("...\nb 1.5\n...\n", "a\nb 2.5\nc\n")
    assert is_excerpt("a\n...\n", "a\n")
    assert not is_excerpt("...\nb\n", "a\nc\n")
    assert not is_excerpt("a\n", "a\n")


def test_numbers_of_another_machine_are_equal():
    assert mask_numbers("7 pairs, 0.731 in 3.2 s") == mask_numbers("7 pairs, 0.702 in 11 s")
    assert mask_numbers("7 pairs") != mask_numbers("8 pairs")
    assert mask_numbers("mini/52bc367c5006/ours-7d881f11.json") == "mini/0/ours-0.json"


def test_a_number_of_an_older_output_is_found():
    now = "threshold 0.490, 12.5 pairs/s, 0.31 s, 0123abcd4567"
    assert far_numbers(now, now.replace("0.490", "0.491").replace("12.5", "99.5")) == []
    assert far_numbers(now, now.replace("0.490", "0.612")) == [("0.490", "0.612")]
