"""``interlingua.compare`` and ``interlingua compare`` make the same table."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.analysis.record import write_analysis
from interlingua.errors import ConfigError
from tests.analysis.test_record import analysis
from tests.cli.verbs.test_compare import files as files


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ("", {}),
        ("--by languages --metric accuracy", {"by": "languages", "metric": "accuracy"}),
        ("--format csv --join", {"format": "csv", "join": True}),
    ],
)
def test_function_and_command_line_make_equal_tables(done, files, flags, options):
    said = done("compare", *files, "--quiet", flags)
    assert interlingua.compare(files, **options).text == said.out


def test_one_folder_may_be_given_by_itself(files, tmp_path):
    found = interlingua.compare(files[0].parents[2], output=tmp_path / "table.md")
    assert found.output == tmp_path / "table.md"
    assert found.output.read_text(encoding="utf-8") == found.text == interlingua.compare(files).text


def test_a_page_takes_no_option_of_tables(files, tmp_path):
    with pytest.raises(ConfigError, match="--metric"):
        interlingua.compare(files, output=tmp_path / "page.html", metric="accuracy")


@pytest.mark.parametrize("option", [{"metric": "accuracy"}, {"rows": "arms"}, {"group": "config"}])
def test_a_table_of_results_takes_no_option_of_tables(files, tmp_path, option):
    with pytest.raises(ConfigError, match=f"--{next(iter(option))}"):
        interlingua.compare(files, output=tmp_path / "all.jsonl", **option)


@pytest.mark.parametrize(
    "options", [{}, {"by": "tasks", "rows": "arms", "costs": True}, {"format": "html"}]
)
def test_a_table_of_results_is_compared_as_the_files_are(files, tmp_path, options):
    table = tmp_path / "all.jsonl"
    interlingua.compare(files, output=table)
    assert interlingua.compare(table, **options).text == interlingua.compare(files, **options).text


def test_a_table_of_results_keeps_analyses(files, tmp_path):
    folder = files[0].parents[2]
    write_analysis(analysis(), folder.parent)
    table = tmp_path / "all.jsonl"
    interlingua.compare(folder, output=table)
    text = interlingua.compare(table).text
    assert "agnosticism" in text
    assert text == interlingua.compare(folder).text
    assert "agnosticism" in interlingua.compare(table, format="html").text
