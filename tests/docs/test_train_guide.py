"""docs/how-to/train.md: its commands run in their order on a tiny corpus.

Docs/reference/train.md names every key.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from interlingua.config import to_mapping
from interlingua.config.registry import METHODS, resolve_name
from interlingua.corpus.samples.sampling import Caps
from interlingua.training import config as configs
from interlingua.training.feeds import data_config
from interlingua.training.run_folder import MAY_CHANGE
from interlingua.training.silver_pairs import SilverConfig
from interlingua.training.stages import StageConfig
from tests.docs.markdown import follow
from tests.docs.reference import check_page, key_table

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "train.md"
REFERENCE = DOCS / "reference" / "train.md"
HEAD = """# The keys of a training config

A training config is a TOML file with six sections. A key without a default is required; a key with the default `None` may be
left out. `--set section.key=value` overrides a key. [Train an encoder](../how-to/train.md) has examples. The section `[[stage]]`
belongs to a file of several runs. A relative path starts at the folder of the file. In `--set` and in environment variables it
starts at the working directory.
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, prepared):
    folder = tmp_path_factory.mktemp("train-guide")
    (folder / "prepared").symlink_to(prepared)
    here = ["--set", "run.device=cpu", "--set", "run.threads=1"]
    follow(GUIDE, folder, extra=here, instead={"budget_seconds=3600": "budget_seconds=3"})
    return folder


def test_every_command_runs(workplace):
    assert sorted(path.name for path in (workplace / "runs").iterdir()) == [
        "all",
        "branch",
        "budget",
        "one",
    ]
    guide = GUIDE.read_text(encoding="utf-8")
    for path in (workplace / "runs" / "one").iterdir():
        assert f"`{path.name}" in guide, f"{path.name} is not explained"


def test_the_guide_names_what_may_change():
    (sentence,) = [
        part for part in GUIDE.read_text(encoding="utf-8").split(". ") if "may change" in part
    ]
    assert [key for key in MAY_CHANGE if f"`{key}`" not in sentence] == []


def method_sections(name):
    """Return a method's own options, and the sections below them."""
    cls = resolve_name(METHODS, name).Config
    yield f'method], name = "{name}"', cls
    for field in dataclasses.fields(cls):
        if dataclasses.is_dataclass(field.default_factory):
            yield f'method.{field.name}], name = "{name}"', field.default_factory


def test_reference_names_every_key():
    lines = [HEAD.rstrip()]
    for section, cls in (
        ("data", configs.DataConfig),
        ("data.caps", Caps),
        ("data.labeled", data_config.LabeledConfig),
        ("data.questions", data_config.QuestionsConfig),
        ("data.monolingual", data_config.MonolingualConfig),
        ("data.forms", data_config.FormsConfig),
        ("encoder", configs.EncoderConfig),
        ("optimizer", configs.OptimizerConfig),
        ("schedule", configs.ScheduleConfig),
        ("run", configs.RunConfig),
        ("[stage]", StageConfig),
        ("stage.silver", SilverConfig),
        ("method", configs.MethodConfig),
        *(section for name in sorted(METHODS) for section in method_sections(name)),
    ):
        lines += key_table(section, cls)
    check_page(REFERENCE, "\n".join(lines).replace('"]', '"') + "\n")


def test_every_section_is_in_the_reference(prepared, tmp_path):
    table = {
        "data": {"corpus": str(prepared)},
        "encoder": {"preset": "ems-tiny"},
        "method": {"name": "ems"},
        "run": {"output": str(tmp_path), "max_steps": 1},
    }
    reference = REFERENCE.read_text(encoding="utf-8")
    assert [
        name
        for name in to_mapping(configs.train_config_from(table))
        if f"## [{name}]" not in reference
    ] == []
