"""docs/reproduce.md: each table of the four papers is on it, and each file and task that a command
names is there."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from interlingua.analysis.run import build_analyses
from interlingua.cli.main import VERBS
from interlingua.cli.verb import make_verb_command as command_of
from interlingua.config import load_config, load_toml
from interlingua.config.registry import ANALYSES, SUITES, TASKS
from interlingua.encoder.backends.load import backend_settings
from interlingua.evaluation.build import build_tasks
from interlingua.preparation.config import PrepareConfig
from interlingua.training.config import load_train_config
from interlingua.training.stages import is_staged, load_stages

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reproduce.md").read_text(encoding="utf-8")
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII", "XIV"]
TABLES = {
    "Calibrated similarity": [*map(str, range(1, 5))],
    "Multilingual IR": [*map(str, range(1, 11))],
    "MEXMA": [*map(str, range(1, 31))],
    "EMS": ROMAN,
}
PAPERS = {
    "calibrated": "Ham and Kim",
    "multilingual_ir": "Hu et al",
    "mexma": "Janeiro",
    "ems": "Mao",
}


def section(title):
    (text,) = re.findall(rf"^## {title}.*?\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S)
    return text


def commands():
    """Return every command of the page, with the rows of a loop written out."""
    # A fence would pair up with a command's own marks.
    outside = re.sub(r"^```.*?^```", "", PAGE, flags=re.M | re.S)
    lines = re.sub(r" \\\n +", " ", PAGE)
    found = re.findall(r"^\$ (.+)$", lines, re.M) + re.findall(
        r"`([^`]+)`", outside.replace("\n", " ")
    )
    for text in found:
        loop = re.fullmatch(r"for row in (.+?); do (.+); done", text)
        if loop:
            yield from (loop[2].replace("$row", row) for row in loop[1].split())
        else:
            yield text


@pytest.mark.parametrize("paper", TABLES)
def test_every_table_of_a_paper_has_its_row(paper):
    first_cells = re.findall(r"^\| (Table .+?) \|", section(paper), re.M)
    named = {number for cell in first_cells for number in re.findall(r"Table (\w+)", cell)}
    assert named == set(TABLES[paper])


def test_every_row_has_a_command_or_a_reason():
    for row in re.findall(r"^\| (?:Table|Figure|section) .+$", PAGE, re.M):
        cells = [cell.strip() for cell in row.strip("|").split(" | ")]
        assert len(cells) == 4, row
        assert "`" in cells[1] or cells[1].startswith(("not reproducible", "averages of Tables")), (
            row
        )


def test_every_file_of_a_command_is_there():
    files = {
        path
        for command in commands()
        for path in re.findall(r"(?:experiments|tools)/[\w./-]+", command)
    }
    assert len(files) > 50
    assert [path for path in sorted(files) if not (ROOT / path).exists()] == []


def test_every_run_measured_is_one_that_its_file_makes():
    runs = {
        path
        for command in commands()
        for path in re.findall(r"(?:evaluate|analyse) (runs/[\w./-]+)", command)
    }
    assert runs
    for run in runs:
        _, method, name = run.split("/")
        config = load_toml(ROOT / "experiments" / method / f"{name}.toml")
        assert Path(ROOT / "experiments" / method / config["run"]["output"]).resolve() == ROOT / run


def single_commands():
    return [part for command in commands() for part in command.split("; ")]


def config_of(command):
    """Return path and table of the TOML that a command names."""
    (path,) = re.findall(r"experiments/[\w./-]+\.toml", command)
    return ROOT / path, load_toml(ROOT / path)


def test_every_corpus_trained_on_is_prepared_by_a_command():
    made, read = set(), set()
    for command in single_commands():
        if command.startswith("interlingua prepare"):
            path, table = config_of(command)
            given = re.search(r"--set output=(\S+)", command)
            made.add(ROOT / given[1] if given else (path.parent / table["output"]).resolve())
        elif command.startswith("interlingua train"):
            path, table = config_of(command)
            corpus = table.get("data", {}).get("corpus")
            read |= {(path.parent / corpus).resolve()} if corpus else set()
    assert len(read) > 5
    assert read - made == set()


def test_every_evaluation_set_kept_out_is_fetched_by_a_command():
    text = " ".join(commands())
    fetched = set(" ".join(re.findall(r"get_data\.py ([\w ]+) --out", text)).split())
    # By the folder that a set lands in, where it has another name.
    wanted = {"STS2017-extended": "sts17_extended"}
    for command in single_commands():
        if command.startswith("interlingua prepare"):
            folders = [
                Path(folder).name for folder in config_of(command)[1].get("decontaminate", [])
            ]
            assert {wanted.get(folder, folder) for folder in folders} <= fetched, command


def test_evaluation_sets_kept_out_are_found_where_they_land(monkeypatch):
    """Check the variable of the page against the folders that files of experiments/ name."""
    (variable, folder) = re.search(r"export (\w+)=(\S+)", PAGE).groups()
    monkeypatch.setenv(variable, folder)
    monkeypatch.chdir(ROOT)
    for command in single_commands():
        if command.startswith("interlingua prepare"):
            path, _ = config_of(command)
            found = load_config(PrepareConfig, path).decontaminate
            assert {one.parent.absolute() for one in found} <= {ROOT / folder}, command


def test_the_cheapest_check_pools_by_the_first_token():
    (command,) = [command for command in commands() if "facebook/MEXMA" in command]
    assert "--pooling cls" in command


def test_every_suite_and_analysis_of_a_command_exists():
    for command in commands():
        for suite in re.findall(r"--suite (\S+)", command):
            for name in suite.split(","):
                assert name in TASKS or name in SUITES or name.startswith("mteb:"), command
        for name in re.findall(r"--only (\S+)", command):
            assert name in ANALYSES, command


@pytest.mark.parametrize("folder", PAPERS)
def test_every_file_of_a_paper_is_on_the_page(folder):
    """Require files with a header that names the paper and a table or figure first."""
    text = " ".join(commands())
    for path in sorted((ROOT / "experiments" / folder).glob("*.toml")):
        header = path.read_text(encoding="utf-8").split("\n", 1)[0]
        if re.search(rf"\({PAPERS[folder]}.*\), (Table|Figure)", header):
            assert f"{folder}/{path.name}" in text or f"`{path.name}`" in PAGE, path


def test_every_command_line_is_understood(monkeypatch):
    """Parse options by the command line, and load files with their overrides like the verbs."""
    monkeypatch.setenv("INTERLINGUA_DATA", "data")
    monkeypatch.chdir(ROOT)
    parsers = {}
    for text in dict.fromkeys(single_commands()):
        if not re.match(r"interlingua \w+ \S", text):
            continue
        _, verb, *arguments = shlex.split(text)
        if verb not in parsers:
            parsers[verb] = typer.main.get_command(command_of(verb, VERBS[verb]))
        options = parsers[verb].make_context(verb, arguments).params
        overrides = options.get("settings") or []
        if verb == "prepare":
            load_config(PrepareConfig, options["config"], overrides=overrides)
        elif verb == "train" and is_staged(options["config"]):
            load_stages(Path(options["config"]), overrides=overrides)
        elif verb == "train":
            load_train_config(options["config"], overrides=overrides)
        elif verb == "evaluate":
            _, of_tasks = backend_settings(overrides, options["backend"])
            languages = options["languages"].split(",") if options["languages"] else None
            suite = options["suite"].split(",")
            if not suite[0].startswith("mexma_table"):  # mteb's tasks, which take long to import
                build_tasks(suite, languages=languages, settings=of_tasks)
        elif verb == "analyse":
            languages = options["languages"].split(",") if options["languages"] else None
            build_analyses(options["only"].split(","), languages=languages, settings=overrides)
    assert parsers.keys() == {"prepare", "train", "evaluate", "analyse", "compare"}


@pytest.mark.parametrize(
    ("paper", "numbers"),
    [("Calibrated similarity", [4]), ("Multilingual IR", [3, 4]), ("MEXMA", range(1, 13))],
)
def test_every_figure_with_measurements_has_its_row(paper, numbers):
    first_cells = re.findall(r"^\| (Figure .+?) \|", section(paper), re.M)
    named = {int(number) for cell in first_cells for number in re.findall(r"Figure (\d+)", cell)}
    assert named == set(numbers)


def test_each_peer_is_measured_by_a_command():
    named = {name for command in commands() for name in re.findall(r"peers\.(\w+):", command)}
    assert named == {path.stem for path in (ROOT / "experiments" / "peers").glob("*.py")}


def test_results_that_are_read_were_written_there():
    for title in TABLES:
        before, read, _ = section(title).partition("reports/results")
        assert not read or "-o reports" in before, title
