"""The pages install nothing that is not published: the library and its models come from a clone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PAGES += [ROOT / "models" / name / "README.md" for name in ("mini", "nano")]
# As a command of its own, which may be the first; or the extras of models, which are packages.
UNPUBLISHED = re.compile(
    r"^\$ pip install [^#\n]*\binterlingua\b"
    r"|pip install [^`\n]*interlingua(\[[^\]]*\b(mini|nano)\b|-mini|-nano)",
    re.MULTILINE,
)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_installs_from_a_clone(page):
    found = UNPUBLISHED.search(page.read_text(encoding="utf-8"))
    assert found is None, found.group()
