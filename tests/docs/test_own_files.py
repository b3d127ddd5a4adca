"""docs/how-to/own-files.md: its files are written and its commands run, in the order of the page."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np
import pytest

from interlingua.cli import main
from tests.conftest import pairs
from tests.docs.markdown import steps

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "own-files.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-files")
    for language, code in (("deu_Latn", "de"), ("fra_Latn", "fr")):
        rows = pairs(language, 700, seed=0)
        (folder / f"bitext.{code}-en.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    (folder / "tests").mkdir()
    rows = pairs("deu_Latn", 40, seed=5) + pairs("deu_Latn", 700, seed=0)[:20]
    (folder / "tests" / "deu-eng.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8")
    (folder / "sentences.txt").write_text("de1 de2\n\nde3\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    """Runs the page; command -> exit code."""
    codes = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(workplace)
        for step in steps(PAGE):
            if step.file:
                (workplace / step.file).write_text(step.text, encoding="utf-8")
                continue
            try:
                main.main(shlex.split(step.command)[1:])
                codes[step.command] = 0
            except SystemExit as stop:
                codes[step.command] = stop.code or 0
    return codes


def test_every_command_ends_well(done):
    assert len(done) == 8
    assert {command: code for command, code in done.items() if code} == {}


def test_the_output_is_there(done, workplace):
    vectors = np.load(workplace / "out.npy")
    assert vectors.shape == (3, 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (workplace / "exported" / "modules.json").exists()
    manifest = (workplace / "prepared" / "manifest.json").read_text(encoding="utf-8")
    assert re.search(r'"tests": [1-9]', manifest), "the twenty sentences shared with tests/ must be counted as removed"


def test_the_python_part_runs(done, workplace, monkeypatch):
    monkeypatch.chdir(workplace)
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    names = {}
    exec(compile(code, "own-files.md", "exec"), names)
    np.testing.assert_allclose(np.diag(names["vectors"] @ names["vectors"].T), 1, atol=1e-5)
