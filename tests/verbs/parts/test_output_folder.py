"""Outputs of several inputs in one folder: what is done, what is done again, and what failed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from interlingua.config.options import option
from interlingua.errors import ConfigError, DataError
from interlingua.verbs.parts.output_folder import OutputFolder, OutputJob


@dataclass(frozen=True)
class Settings:
    output: Path = option(None)
    limit: float = option(0.5)
    glossary: Path | None = option(None, reads="file")


@pytest.fixture
def run(tmp_path):
    """Copies each input in capitals; an input without text fails."""

    def run(names, limit=0.5, error=DataError, model="a model", **given):
        lines, failures, written = [], [], []
        folder = OutputFolder(
            Settings(output=tmp_path / "out", limit=limit, **given),
            journal="copy.journal",
            ignored=("output",),
            word="copied",
            lines=lines,
            failures=failures,
            model=lambda: model,
        )
        jobs = [
            OutputJob(name, Settings(output=tmp_path / "out" / name), (str(tmp_path / name),))
            for name in names
        ]

        def copy(one):
            text = (tmp_path / one.output.name).read_text()
            if not text:
                raise error("no text", path=one.output) if error is DataError else error("option")
            one.output.write_text(text.upper())
            written.append(one.output.name)
            return ["copied"]

        folder.run(jobs, copy)
        folder.report_all(len(jobs))
        return written, lines, failures

    return run


def test_only_new_changed_and_damaged_outputs_are_written_again(run, tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name)
    assert run("abc")[0] == ["a", "b", "c"]
    (tmp_path / "a").write_text("changed")
    (tmp_path / "out/b").write_text("damaged")
    written, lines, _ = run("abc")
    assert written == ["a", "b"]
    assert lines[:2] == ["a: copied", "b: copied"]
    assert lines[2].startswith("1 file ")


def test_outputs_of_another_model_or_another_file_of_an_option_are_written_again(run, tmp_path):
    (tmp_path / "a").write_text("a")
    glossary = tmp_path / "glossary"
    glossary.write_text("one")
    assert run("a", glossary=glossary)[0] == ["a"]
    assert run("a", glossary=glossary)[0] == []
    assert run("a", glossary=glossary, model="trained again")[0] == ["a"]
    assert run("a", glossary=glossary, model="trained again")[0] == []
    glossary.write_text("two")
    assert run("a", glossary=glossary, model="trained again")[0] == ["a"]


def test_an_input_that_fails_is_named_and_the_rest_is_done(run, tmp_path):
    for name in "abc":
        (tmp_path / name).write_text(name * (name != "b"))
    written, lines, failures = run("abc")
    assert written == ["a", "c"]
    assert len(failures) == 1
    assert lines[-2:] == [f"not copied: {failures[0]}", "3 files, 1 not copied"]


def test_a_wrong_option_stops_the_run(run, tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(ConfigError):
        run("a", error=ConfigError)


def test_a_folder_of_other_settings_is_refused(run, tmp_path):
    (tmp_path / "a").write_text("a")
    run("a")
    with pytest.raises(ConfigError, match="limit"):
        run("a", limit=0.7)
