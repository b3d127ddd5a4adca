"""docs/how-to/train.md: its commands run in their order on a tiny corpus; docs/reference/train.md names every key."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import os
import shlex
import textwrap
from pathlib import Path

import pytest

from interlingua.cli import main
from interlingua.config import to_mapping
from interlingua.corpus.sampling import Caps
from interlingua.registry import METHODS, resolve
from interlingua.train import config as configs
from interlingua.train.run_folder import MAY_CHANGE
from tests.docs.markdown import steps

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "train.md"
REFERENCE = DOCS / "reference" / "train.md"
HEAD = """# The keys of a training config

A TOML file with six sections; what has no default must be given. `--set section.key=value` overrides one.
[how-to/train.md](../how-to/train.md) shows them at work. `None` means that the key may be left out.
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, prepared):
    folder = tmp_path_factory.mktemp("train-guide")
    (folder / "prepared").symlink_to(prepared)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for step in steps(GUIDE):
            if step.file:
                (folder / step.file).write_text(step.text, encoding="utf-8")
                continue
            arguments = [*shlex.split(step.command)[1:], "--set", "run.device=cpu", "--set", "run.threads=1"]
            if "budget_seconds" in step.command:
                arguments += ["--set", "run.budget_seconds=3"]
            with pytest.raises(SystemExit) as stop:
                main.main(arguments)
            assert not stop.value.code, step.command
    return folder


def test_every_command_runs(workplace):
    assert sorted(path.name for path in (workplace / "runs").iterdir()) == ["branch", "budget", "one"]
    guide = GUIDE.read_text(encoding="utf-8")
    for path in (workplace / "runs" / "one").iterdir():
        assert f"`{path.name}" in guide, f"{path.name} is not explained"


def test_the_guide_names_what_may_change():
    (sentence,) = [part for part in GUIDE.read_text(encoding="utf-8").split(". ") if "may change" in part]
    assert [key for key in MAY_CHANGE if f"`{key}`" not in sentence] == []


def rows(section: str, cls: type) -> list[str]:
    """Each field with its default and the string that stands under it."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    meaning = {
        field.target.id: " ".join(text.value.value.replace("``", "`").split())
        for field, text in itertools.pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }
    table = ["", f"## [{section}]", "", "| key | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(cls):
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        table.append(f"| `{field.name}` | {default} | {meaning[field.name]} |")
    return table


def test_reference_names_every_key():
    lines = [HEAD.rstrip()]
    for section, cls in (
        ("data", configs.DataConfig),
        ("data.caps", Caps),
        ("encoder", configs.EncoderConfig),
        ("optimizer", configs.OptimizerConfig),
        ("schedule", configs.ScheduleConfig),
        ("run", configs.RunConfig),
        *((f'method], name = "{name}"', resolve(METHODS, name).Config) for name in sorted(METHODS)),
    ):
        lines += rows(section, cls)
    text = "\n".join(lines).replace('"]', '"') + "\n"
    if os.environ.get("UPDATE_DOCS"):
        REFERENCE.write_text(text, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == text, "docs/reference/train.md is old; run: UPDATE_DOCS=1 make test"


def test_every_section_is_in_the_reference(prepared, tmp_path):
    table = {
        "data": {"corpus": str(prepared)},
        "encoder": {"preset": "ems-tiny"},
        "method": {"name": "ems"},
        "run": {"output": str(tmp_path), "max_steps": 1},
    }
    reference = REFERENCE.read_text(encoding="utf-8")
    assert [name for name in to_mapping(configs.train_config_from(table)) if f"## [{name}]" not in reference] == []
