"""docs/how-to/prepare.md: its commands run on its own corpus.

Docs/reference/prepare.md names every key.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from interlingua.config.registry import FORMATS
from interlingua.corpus.cleaning.clean import CleanConfig
from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.manifest import Manifest
from interlingua.preparation import config as configs
from tests.docs.markdown import FENCE, follow, run_python
from tests.docs.reference import check_page, key_table

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "prepare.md"
REFERENCE = DOCS / "reference" / "prepare.md"
HEAD = """# The keys of a preparation config

A preparation config is a TOML file. A key without a default is required; a key with the default `None` may be left out.
`--set section.key=value` overrides a key. [Prepare a corpus](../how-to/prepare.md) has examples. A path may be a pattern such as
`*.tsv`, and `~` and `$VARIABLES` are expanded. A relative path starts at the folder of the file. In `--set` and in environment
variables it starts at the working directory.
"""


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prepare-guide")
    corpus = dict(FENCE.findall(GUIDE.read_text(encoding="utf-8")))["tsv"]
    (folder / "corpus.de-en.tsv").write_text(corpus.split("\n", 1)[1], encoding="utf-8")
    follow(GUIDE, folder, extra=["--set", "processes=1"])
    run_python(GUIDE, folder)
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
    assert [
        path.name for path in (workplace / "prepared").iterdir() if f"`{path.name}" not in guide
    ] == []


def by_default(section):
    """Return a section's defaults, with a validation set like the test set.

    The validation set is not empty then, as the test set is.
    """
    field = configs.PrepareConfig.__dataclass_fields__.get(section)
    return (
        None
        if field is None or field.default_factory is dataclasses.MISSING
        else field.default_factory()
    )


def test_the_reference_has_the_defaults_in_use():
    validation = REFERENCE.read_text(encoding="utf-8").partition("## [validation]")[2]
    assert "| `pairs` | `200` |" in validation.partition("## ")[0]


def test_reference_names_every_key():
    lines = [HEAD.rstrip()]
    for section, cls in (
        ("at the top", configs.PrepareConfig),
        ("[sources]", configs.SourceConfig),
        ("clean", CleanConfig),
        ("deduplicate", configs.DeduplicateConfig),
        ("heldout", configs.SplitConfig),
        ("validation", configs.SplitConfig),
        ("vocabulary", configs.VocabularyConfig),
    ):
        lines += key_table(section, cls, by_default(section))
    check_page(REFERENCE, "\n".join(lines).replace("[at the top]", "At the top") + "\n")
