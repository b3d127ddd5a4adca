"""docs/concepts: the code of a page prints the output below it, and every link leads to a file."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "concepts"
PAGES = sorted(FOLDER.glob("*.md"))
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", re.M | re.S)
WITH_CODE = [page for page in PAGES if EXAMPLE.search(page.read_text(encoding="utf-8"))]


def test_there_are_pages_with_code():
    assert {page.stem for page in WITH_CODE} == {"batches", "hubness", "margin"}


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda page: page.stem)
def test_code_prints_what_the_page_shows(page):
    examples = EXAMPLE.findall(page.read_text(encoding="utf-8"))
    assert len(examples) == page.read_text(encoding="utf-8").count("```python")
    for code, shown in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile(code, page.name, "exec"), {})
        assert out.getvalue() == shown


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\(([^)#:]+)", page.read_text(encoding="utf-8"))
    assert links
    assert [link for link in links if not (page.parent / link).is_file()] == []
