"""docs/how-to/analyse.md: its commands run in their order on tiny models.

Its tables name everything there is.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from interlingua.config.registry import ANALYSES
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from tests.analysis.conftest import write_lines
from tests.docs.markdown import follow, run_python
from tests.encoder.conftest import tiny_vocabulary

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "analyse.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("analyse")
    vocabulary = tiny_vocabulary(frame=True)
    config = BackboneConfig.preset("ems-tiny", vocab_size=vocabulary.size)
    for seed, name in enumerate(("model", "later")):
        torch.manual_seed(seed)
        Encoder.from_scratch(config, vocabulary, "cls").save(folder / "runs" / "ems" / name)
    lines = {
        code: [f"{code[:2]} {n} cat{n + 1}" for n in range(6)]
        for code in ("deu_Latn", "rus_Cyrl", "eng_Latn")
    }
    write_lines(folder / "data" / "flores200_devtest", lines)
    sentences = {code: lines[code][:2] for code in ("deu_Latn", "eng_Latn")}
    write_lines(folder / "my_sentences", sentences)
    return folder


@pytest.fixture(scope="module")
def said(workplace):
    """Command -> output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLINGUA_DATA", str(workplace / "data"))
        patch.setattr(sys, "path", [*sys.path])
        return follow(GUIDE, workplace, opening=False)


def test_every_command_runs(said, workplace):
    assert len(said) == 6
    assert all("written: reports/analysis-" in output for output in said.values())
    assert (workplace / "reports" / "analysis-ems-model.html").is_file()
    assert (workplace / "reports" / "analysis-before-after-agnosticism.html").is_file()
    attention = workplace / "reports" / "analysis-ems-model-attention_entropy.html"
    assert 'class="heat map named"' in attention.read_text(encoding="utf-8")


def test_the_python_part_runs(said, workplace, capsys):
    names = run_python(GUIDE, workplace)
    assert f"{names['panel']['mixed_pool_drop'].value}" in capsys.readouterr().out


def test_the_tables_name_every_analysis_and_measure(said, workplace):
    guide = GUIDE.read_text(encoding="utf-8")
    assert [name for name in ANALYSES if f"| `{name}` |" not in guide] == []
    panel = json.loads(next(workplace.rglob("agnosticism*.analysis.json")).read_text())
    assert [m["name"] for m in panel["measures"] if f"| `{m['name']}` |" not in guide] == []


def test_the_reference_names_every_key(said, workplace):
    reference = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    for path in workplace.rglob("*.analysis.json"):
        content = json.loads(path.read_text())
        keys = [*content, *content["measures"][0], *content["tables"]]
        assert [key for key in keys if f"`{key}`" not in reference] == []
