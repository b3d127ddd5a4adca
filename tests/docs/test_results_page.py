"""docs/results/: the commands of a section print its tables from the stored results.

A table belongs to the innermost heading above it that either starts with "Not stored: " and what is
missing, or has commands that read ``experiments/results``. Headings that have neither are titles of
tables. docs/results.md has the findings, each with the page of its numbers.
"""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shlex
from pathlib import Path
from typing import NamedTuple

import pytest

from interlingua.cli import main
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.results import read_results
from tests.scripts import load_script

ROOT = Path(__file__).resolve().parents[2]
FINDINGS = ROOT / "docs" / "results.md"
PAGES = {
    page.stem: page.read_text(encoding="utf-8")
    for page in sorted((ROOT / "docs" / "results").glob("*.md"))
}
NOT_STORED = "Not stored: "
STORED = "interlingua compare experiments/results/"
NAMED = r"compare (experiments/results/\S+)"


class Section(NamedTuple):
    """A heading and the text up to the next heading of level 1 to 3."""

    level: int
    heading: str
    text: str

    @property
    def is_not_stored(self):
        return self.text.lstrip().startswith(NOT_STORED)

    @property
    def commands(self):
        """The commands that print stored results."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        return [line[2:] for line in joined.splitlines() if line.startswith(f"$ {STORED}")]


def read_sections(page):
    parts = re.split(r"^(#{1,3}) (.+)$", page, flags=re.M)[1:]
    levels, headings, texts = parts[::3], parts[1::3], parts[2::3]
    return [
        Section(len(level), *rest) for level, *rest in zip(levels, headings, texts, strict=True)
    ]


def tables_of(text):
    """Return the tables of a text, each a list of lines."""
    return [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", text, re.M)]


def tables_by_section(page):
    """Return each table with its section; None if no heading states its origin."""
    found, above = [], {}
    for section in read_sections(page):
        above = {level: one for level, one in above.items() if level < section.level}
        above[section.level] = section
        owners = [one for one in above.values() if one.is_not_stored or one.commands]
        owner = owners[-1] if owners else None
        found += [(owner, section.heading, table) for table in tables_of(section.text)]
    return found


TABLES = {name: tables_by_section(page) for name, page in PAGES.items()}


@functools.cache
def printed_by(command):
    out = io.StringIO()
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
        main.main([*shlex.split(command)[1:], "--quiet"])
    assert not stop.value.code, command
    return out.getvalue()


def printed_tables(section):
    return [table for command in section.commands for table in tables_of(printed_by(command))]


def cells_of(line):
    return [cell.strip(" *") for cell in line.strip().strip("|").split(" |")]


def is_printed(section, table):
    """Return whether the commands of a section print a table of it."""
    return table in printed_tables(section)


def stored():
    return [
        pytest.param(owner, table, id=f"{name}-{heading[:40]}-{number}")
        for name, tables in TABLES.items()
        for number, (owner, heading, table) in enumerate(tables)
        if owner is not None and not owner.is_not_stored
    ]


def test_every_table_is_printed_or_not_stored():
    found = [table for tables in TABLES.values() for table in tables]
    assert len(found) > 50
    assert [heading for owner, heading, _ in found if owner is None] == []


def test_what_is_not_stored_says_what_it_needs():
    for section in (section for page in PAGES.values() for section in read_sections(page)):
        if section.is_not_stored:
            line = section.text.lstrip().splitlines()[0]
            assert len(line) > len(NOT_STORED) + 20, section.heading
            assert not section.commands, section.heading


@pytest.mark.parametrize(("section", "table"), stored())
def test_the_commands_of_a_section_print_its_tables(section, table):
    assert is_printed(section, table)


@pytest.mark.parametrize(("section", "table"), stored())
def test_a_changed_digit_is_noticed(section, table):
    for number in {2, len(table) // 2 + 1, len(table) - 1}:
        line = table[number]
        places = [place.start() for place in re.finditer(r"\d(?=[^|]*\|)", line)]
        # the first digit may be of the row's name
        for place in (places[len(places) // 2], places[-1]):
            digit = str((int(line[place]) + 1) % 10)
            changed = [*table]
            changed[number] = line[:place] + digit + line[place + 1 :]
            assert not is_printed(section, changed), changed[number]


def test_every_stored_table_of_results_is_on_the_page():
    folder = ROOT / "experiments" / "results"
    tables = {path for path in folder.rglob("*.jsonl") if not path.stem.endswith(".finished")}
    named = {ROOT / path for path in re.findall(NAMED, "\n".join(PAGES.values()))}
    assert tables == named


def test_the_column_of_nano_follows_from_its_stored_results():
    gates = load_script(ROOT / "experiments" / "mini" / "gates.py")
    results = {
        result.task: {subset.name: subset.scores for subset in result.subsets}
        for result in read_results([ROOT / "experiments" / "results" / "nano.jsonl"])
    }
    trained = {full_code(name.split("-")[0]) for name in results["xsim"]}
    expected = []
    for gate in gates.GATES:
        rows = results.get(gates.RESULT_NAMES.get(gate.task, gate.task))
        if rows:
            # The page rounds the error of all languages to one digit, because nano's is large.
            digits = 2 if "14 languages, error" in gate.title else 1
            expected.append(f"{gate.value(rows, trained):.{digits}f}")
    title = "nano, a table of token vectors"
    [table] = [table for _, heading, table in TABLES["nano"] if heading == title]
    column = " ".join(cells_of(line)[1] for line in table[2:])
    assert re.findall(r"[\d.]+", column) == expected


def findings():
    return re.findall(r"^\d+\. (.+)$", FINDINGS.read_text(encoding="utf-8"), re.M)


def test_there_are_ten_findings():
    assert len(findings()) == 10


@pytest.mark.parametrize("finding", findings(), ids=range(1, len(findings()) + 1))
def test_the_numbers_of_a_finding_are_on_its_page(finding):
    pages = re.findall(r"\]\(results/([\w-]+)\.md", finding)
    assert pages
    text = "\n".join(PAGES[page] for page in pages)
    numbers = re.findall(r"\d+\.\d+", re.sub(r"\]\([^)]*\)", "]", finding))
    assert [number for number in numbers if not re.search(rf"(?<![\d.]){number}(?!\d)", text)] == []


def test_a_table_below_an_unmarked_heading_is_found():
    page = "## One\n\nNot stored: b.\n\n### Two\n\n| a |\n|---|\n\n## Three\n\n| b |\n|---|\n"
    [(first, _, _), (second, _, _)] = tables_by_section(page)
    assert first.heading == "One"
    assert second is None
