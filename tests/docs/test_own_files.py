"""docs/how-to/own-files.md: its files are written and its commands run, in the order of the
page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import pairs
from tests.docs.markdown import follow, run_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "own-files.md"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory):
    folder = tmp_path_factory.mktemp("own-files")
    for language, code in (("deu_Latn", "de"), ("fra_Latn", "fr")):
        rows = pairs(language, 700, seed=0)
        (folder / f"bitext.{code}-en.tsv").write_text(
            "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8"
        )
    (folder / "tests").mkdir()
    rows = pairs("deu_Latn", 40, seed=5) + pairs("deu_Latn", 700, seed=0)[:20]
    (folder / "tests" / "deu-eng.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in rows), encoding="utf-8"
    )
    (folder / "sentences.txt").write_text("de1 de2\n\nde3\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def done(workplace):
    """Command -> output."""
    return follow(PAGE, workplace, opening=False)


def test_every_command_ends_well(done):
    assert len(done) == 8


def test_the_output_is_there(done, workplace):
    vectors = np.load(workplace / "out.npy")
    assert vectors.shape == (3, 32)
    # The second text is blank: its vector is zero.
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), [1, 0, 1], atol=1e-5)
    assert (workplace / "exported" / "modules.json").exists()
    manifest = (workplace / "prepared" / "manifest.json").read_text(encoding="utf-8")
    assert re.search(r'"tests": [1-9]', manifest), (
        "the twenty sentences shared with tests/ must be counted as removed"
    )


def test_the_python_part_runs(done, workplace):
    vectors = run_python(PAGE, workplace)["vectors"]
    np.testing.assert_allclose(np.diag(vectors @ vectors.T), 1, atol=1e-5)
