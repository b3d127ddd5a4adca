"""docs/how-to/prepare.md: its commands run on its own corpus; docs/reference/prepare.md names every key."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from interlingua.cli import main
from interlingua.corpus.clean import CleanConfig
from interlingua.corpus.formats import read_pairs
from interlingua.corpus.manifest import Manifest
from interlingua.prepare import config as configs
from interlingua.registry import FORMATS
from tests.docs.markdown import FENCE, steps
from tests.docs.test_train_guide import rows

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "prepare.md"
REFERENCE = DOCS / "reference" / "prepare.md"
HEAD = """# The keys of a preparation config

A TOML file; what has no default must be given. `--set section.key=value` overrides one.
[how-to/prepare.md](../how-to/prepare.md) shows them at work. `None` means that the key may be left out. A path may be
a glob, and `~` and `$VARIABLES` are expanded.
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepare-guide")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        blocks = dict(FENCE.findall(GUIDE.read_text(encoding="utf-8")))
        (folder / "corpus.de-en.tsv").write_text(blocks["tsv"].split("\n", 1)[1], encoding="utf-8")
        for step in steps(GUIDE):
            if step.file:
                (folder / step.file).write_text(step.text, encoding="utf-8")
                continue
            with pytest.raises(SystemExit) as stop:
                main.main([*shlex.split(step.command)[1:], "--set", "processes=1"])
            assert not stop.value.code, step.command
        exec(blocks["python"], {})
    return folder


def test_every_step_runs(workplace):
    manifest = Manifest.load(workplace / "prepared")
    assert manifest.sources[0].read == 7
    assert manifest.dropped == {"no_letters": 1, "duplicate": 1}
    assert manifest.vocabulary["size"] == 100
    assert (workplace / "other" / "manifest.json").is_file()
    assert len(list(read_pairs(workplace / "corpus.tmx"))) == 7


def test_the_guide_names_every_format_and_everything_in_the_folder(workplace):
    guide = GUIDE.read_text(encoding="utf-8")
    assert [name for name in FORMATS if f"| `{name}` |" not in guide] == []
    assert [path.name for path in (workplace / "prepared").iterdir() if f"`{path.name}" not in guide] == []


def test_reference_names_every_key():
    lines = [HEAD.rstrip()]
    for section, cls in (
        ("at the top", configs.PrepareConfig),
        ("[sources]", configs.SourceConfig),
        ("clean", CleanConfig),
        ("deduplicate", configs.DeduplicateConfig),
        ("heldout], [validation", configs.SplitConfig),
        ("vocabulary", configs.VocabularyConfig),
    ):
        lines += rows(section, cls)
    text = "\n".join(lines).replace("[at the top]", "At the top") + "\n"
    if os.environ.get("UPDATE_DOCS"):
        REFERENCE.write_text(text, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == text, (
        "docs/reference/prepare.md is old; run: UPDATE_DOCS=1 make test"
    )
