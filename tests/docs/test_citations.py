"""The papers that the methods come from are cited by their authors and by sections and tables that
they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [path for folder in ("src", "docs", "experiments") for path in (ROOT / folder).rglob("*.*")]
TEXTS = [path for path in TEXTS if path.suffix in (".py", ".md", ".toml")]
CITATIONS = {
    "EMS": r"Mao et al\.,? \(?2023",
    "MEXMA": r"Janeiro et al\.,? \(?2024",
    "LEALLA": r"Mao and Nakagawa,? \(?2023",
    "LaBSE": r"Feng et al\.,? \(?2022",
    "mSimCSE": r"Wang, Wu and Neubig,? \(?2022",
    "InfoXLM": r"Chi et al\.,? \(?2021",
    "RetroMAE": r"Xiao et al\.,? \(?2022",
    "DAP": r"Li et al\.,? \(?2023",
    "XLM": r"Conneau and Lample,? \(?(NeurIPS )?2019",
}
"""Citations of each method that directly follow its name."""


YEARS = {"Ham and Kim": "2021", "Hu et al.": "2022", "Janeiro et al.": "2024", "Mao et al.": "2023"}
"""Years of the four reproduced papers. MEXMA's is the preprint's, which numbers the tables."""


@pytest.mark.parametrize("authors", YEARS)
def test_a_paper_has_one_year(authors):
    cited = re.compile(rf"{re.escape(authors)},? \(?((?:19|20)\d\d)")
    years = {
        year: path for path in TEXTS for year in cited.findall(path.read_text(encoding="utf-8"))
    }
    assert years.keys() == {YEARS[authors]}, years


@pytest.mark.parametrize("paper", CITATIONS)
def test_a_name_is_followed_by_its_authors(paper):
    behind = re.compile(rf"\b{paper}(?:'s)? \(([A-Z][^()]{{3,40}},? (?:NeurIPS )?(?:19|20)\d\d)")
    wrong = [
        f"{path.relative_to(ROOT)}: {cited}"
        for path in TEXTS
        for cited in behind.findall(path.read_text(encoding="utf-8"))
        if not re.match(CITATIONS[paper], cited)
    ]
    assert wrong == []
