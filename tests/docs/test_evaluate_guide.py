"""docs/how-to/evaluate.md: its commands run in their order on a tiny model and tiny data; docs/reference/results.md."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import torch

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from tests.docs.markdown import follow, run_python

DOCS = Path(__file__).resolve().parents[2] / "docs"
GUIDE = DOCS / "how-to" / "evaluate.md"
FUNCTION = "import numpy as np\n\ndef embed(texts):\n    return np.array([[len(t), t.count(' '), 1] for t in texts])\n"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("guide")
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    Encoder.from_scratch(config, word_vocabulary).save(folder / "runs" / "ems" / "model")
    tatoeba, flores = folder / "data" / "tatoeba_laser", folder / "data" / "flores200_devtest"
    tatoeba.mkdir(parents=True)
    flores.mkdir()
    for code in ("deu", "swh", "cmn"):
        (tatoeba / f"{code}-eng.tsv").write_text("".join(f"de{n} de{n + 1}\ten{n} en{n + 1}\n" for n in range(9)))
    for code in ("deu_Latn", "rus_Cyrl", "eng_Latn"):
        (flores / f"{code}.txt").write_text("".join(f"{code[:2]}{n} {code[:2]}{n + 2}\n" for n in range(9)))
    (folder / "my_code.py").write_text(FUNCTION)
    return folder


@pytest.fixture(scope="module")
def said(workplace):
    """Command -> what it printed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLINGUA_DATA", str(workplace / "data"))
        patch.setattr(sys, "path", [*sys.path])
        return follow(GUIDE, workplace)


def test_every_command_runs(said, workplace):
    assert len(said) >= 9
    for command, output in said.items():
        assert ("written: reports/results/" in output) == command.startswith("interlingua evaluate"), output
    written = {path.parent.parent.name for path in (workplace / "reports").rglob("*.json")}
    assert written == {"ems-model", "theirs", "my_code_embed"}


def test_compare_shows_them_all(said):
    markdown, table = [output for command, output in said.items() if command.startswith("interlingua compare")]
    assert "### tatoeba_tatoeba_laser: accuracy" in markdown
    assert all(
        name in markdown for name in ("theirs", "my_code:embed", "prompt='query: ')", "languages=de+Swahili+cmn")
    )
    assert any(line.startswith("swh-eng,") for line in table.splitlines())


def test_the_python_part_runs(said, workplace, capsys):
    run_python(GUIDE, workplace)
    assert "all_2" in capsys.readouterr().out


def test_the_reference_names_every_key(said, workplace):
    reference = (DOCS / "reference" / "results.md").read_text(encoding="utf-8")
    for task in ("tatoeba_tatoeba_laser", "xsim_flores200_devtest"):
        content = json.loads(next(workplace.rglob(f"{task}.json")).read_text())
        own = content["interlingua"]
        keys = [*content, *content["scores"]["test"][0], *own, *own["provenance"], *own["provenance"]["model"]]
        keys += own["settings"]
        assert [key for key in keys if key not in reference] == []
