"""docs/how-to/debias.md: its commands run in their order on a tiny model.

Its table names every method.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from interlingua.encoder.language_maps.affine_maps import MAP_METHODS
from tests.docs.markdown import follow, run_python
from tests.encoder.conftest import tiny_vocabulary
from tests.tiny import tiny_encoder

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "debias.md"
FUNCTION = (
    "def embed(texts):\n    return [[len(t), t.count('e'), t.count('t'), 1.0] for t in texts]\n"
)


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("debias")
    vocabulary = tiny_vocabulary(frame=True)
    tiny_encoder(vocabulary).save(folder / "runs" / "ems" / "model")
    (folder / "texts").mkdir()
    rng = np.random.default_rng(0)
    words = {
        "de": ["Katze", "Matte", "der"],
        "en": ["cat", "mat", "the"],
        "ru": ["Кошка", "коврике", "на"],
    }
    for code, known in words.items():
        lines = [" ".join(rng.choice(known, 5)) for _ in range(50)]
        (folder / "texts" / f"{code}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    vectors = rng.normal(size=(90, 4)) + np.repeat(2 * np.eye(3, 4), 30, axis=0)
    np.save(folder / "all.npy", vectors.astype(np.float32))
    (folder / "all.languages.txt").write_text("de\n" * 30 + "en\n" * 30 + "ru\n" * 30)
    (folder / "mycode.py").write_text(FUNCTION)
    return folder


@pytest.fixture(scope="module")
def printed(workplace):
    """Command -> output."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", [*sys.path])
        return follow(GUIDE, workplace, opening=False)


def test_every_command_runs_and_writes_its_output(printed, workplace):
    assert len(printed) == 7
    for name in (
        "runs/ems/debiased/model.safetensors",
        "mapped/vectors.npy",
        "mapped-all/vectors.npy",
        "out.npy",
    ):
        assert (workplace / name).is_file()


def test_the_python_part_runs(printed, workplace):
    names = run_python(GUIDE, workplace)
    assert names["encoder"].post_pooling.kinds == ("Normalize", "Dense")


def test_the_table_names_every_method():
    guide = GUIDE.read_text(encoding="utf-8")
    assert [method for method in MAP_METHODS if f"| `{method}`" not in guide] == []
