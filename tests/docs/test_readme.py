"""README.md: what a newcomer sees first is there, its numbers are those of the results, and its
code runs."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from interlingua.config.options import declared
from interlingua.config.registry import METHODS
from interlingua.verbs.export import ExportOptions
from tests.docs.markdown import has_model
from tests.methods.conftest import tiny_encoder
from tools.draw_mixed_pool import results_text, tables

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
RESULTS = results_text()
PRINTED = {
    "LaBSE (471 M), as published": ["96.2", "", "0.92", ""],
    "MEXMA (559 M), as published": ["", "", "0.06", ""],
}
"""Mao et al. 2023, Table V, and Janeiro et al. 2024, Table 1."""


def test_the_speed_of_token_vectors_is_the_measured_one():
    measured = re.search(r"embeds (\d+) times as many texts a second as mini", RESULTS)[1]
    for page in ("README.md", "CHANGELOG.md", "docs/how-to/export.md"):
        lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
        of_nano = "\n".join(line for line in lines if "nano" in line)
        named = re.findall(r"(\w+) times as (?:fast|many)", of_nano)
        assert set(named) == {measured}, page
    vague = re.compile(r"(hundred|fifty) times (as fast|faster)", re.IGNORECASE)
    assert not vague.search(README)
    assert not vague.search((ROOT / "docs/how-to/export.md").read_text(encoding="utf-8"))
    assert not any(vague.search(declaration.help) for _, declaration in declared(ExportOptions))


def test_every_method_is_counted_and_linked():
    numbers = {16: "sixteen", 17: "seventeen", 18: "eighteen", 19: "nineteen", 20: "twenty"}
    assert f"with {numbers[len(METHODS)]} methods and their ablations" in README
    table = README[README.index("\n## Methods\n") : README.index("\n## Read on\n")]
    assert set(METHODS) <= set(re.findall(r"\w+", " ".join(re.findall(r"\[.*?\]\(", table))))


def readme_table():
    head, _, *rows = re.search(
        r"^\| % \|.*\n(?:^\| (?:`|LaBSE|MEXMA|multi).*\n|^\|---.*\n)+", README, re.M
    )[0].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    assert len(head.strip("|").split("|")) == 5
    return {row[0]: row[1:] for row in cells}


def measured():
    """Return the rows of the README's table as docs/results/ has them."""
    [mapped] = tables(RESULTS, "Vectors without language")
    public = tables(RESULTS, "Three public encoders on every set")[0]
    small = tables(RESULTS, "mini on every measure")[0]
    nano = tables(RESULTS, "nano, a table of token vectors")[0]
    tatoeba, pool = "Tatoeba-14, both directions", "mixed pool of 15 languages"
    xsim = "FLORES-200 xsim, 14 languages, error"
    as_it_is = [
        mapped[row]["as it is"]
        for row in (
            "Tatoeba, 14 languages, both directions, %",
            "FLORES-200 xsim, 14 languages to English, %",
            "FLORES-200, 15 languages: mixed pool, %",
        )
    ]
    wide = public["xsim: mexma_80of80 (languages=mexma)"]["multilingual-e5-small"]
    return {
        "`mini`": [
            small[tatoeba]["mini"],
            small[xsim]["mini"],
            "",
            small[pool]["mini"],
        ],
        "`nano`": [
            nano[tatoeba]["nano"],
            nano[xsim]["nano"],
            "",
            nano[f"{pool} (own pool)"]["nano"].split()[0],
        ],
        "multilingual-e5-small": [*as_it_is[:2], wide, as_it_is[2]],
    }


def test_install_code_table_and_picture_come_first():
    begins = "\n".join(README.splitlines()[:45])
    places = [
        begins.find(part)
        for part in ("pip install", "```python", "| MEXMA", "](docs/mixed-pool.svg)")
    ]
    assert -1 not in places
    assert places == sorted(places)
    [code] = re.findall(r"```python\n(.*?)```", begins, re.S)
    assert len([line for line in code.splitlines() if line]) == 5


def test_own_numbers_are_those_of_the_results():
    table = readme_table()
    for name, cells in measured().items():
        [row] = [row for row in table if row.startswith(name)]
        assert table.pop(row) == cells, name
    assert table == PRINTED


def test_the_first_two_screens_end_before_the_methods():
    """Count lines of the screen: rows of tables and lines of text."""
    first = README[: README.index("\n## Methods\n")]
    assert len([line for line in first.splitlines() if line.strip()]) <= 90


def test_the_code_runs(tmp_path):
    folder = tmp_path / "model"
    tiny_encoder().save(folder)
    code = code_of_the_readme()
    assert "interlingua.load()" in code
    printed = run(code.replace("load()", f"load({str(folder)!r})"))
    assert re.fullmatch(r"\[[01] [01]\]", printed)


@pytest.mark.skipif(not has_model(), reason="the model of interlingua-mini is not installed")
def test_the_code_prints_what_it_promises():
    code = code_of_the_readme()
    assert f"# {run(code)}: " in code


def code_of_the_readme():
    [code] = re.findall(r"```python\n(.*?)```", README, re.S)
    return code


def run(code):
    """Return the output of code."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, "README.md", "exec"), {})
    return out.getvalue().strip()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", README))))
def test_links_lead_to_files(link):
    assert (ROOT / link).exists()
