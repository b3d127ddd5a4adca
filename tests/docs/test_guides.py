"""docs/guides/: the sessions of a guide print what the page shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.runtime import progress
from tests.conftest import pairs
from tests.docs.markdown import has_model
from tests.docs.sessions import check_sessions, follow_sessions, is_excerpt, mask_numbers

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
NEEDS = {"search-in-50-languages": "lancedb"}
"""Guide -> the package of an extra that it uses."""
NOT_RUN = {"from-laser-vecalign-bicleaner", "gallery"}
"""They show tables and pictures."""


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
    check_sessions(GUIDES / f"{guide}.md", tmp_path)


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
