"""examples/tour.ipynb: its cells run, and print what is stored with them.

``UPDATE_DOCS=1`` stores it anew.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from pathlib import Path

from tests.docs.examples.notebook import read_notebook, run_cells, shown, write_notebook

FOLDER = Path(__file__).resolve().parents[3] / "examples"
TOUR = FOLDER / "tour.ipynb"


def without_scores(text):
    """Remove scores and counts, which differ between processors."""
    return re.sub(r"-?\d+\.\d+|\b\d+ pairs", "#", text)


def test_cells_print_what_is_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", [str(FOLDER), *sys.path])
    monkeypatch.delitem(sys.modules, "toy", raising=False)
    notebook = read_notebook(TOUR)
    cells = 0
    with contextlib.chdir(tmp_path):
        for cell, printed in run_cells(notebook):
            cells += 1
            if os.environ.get("UPDATE_DOCS"):
                lines = printed.splitlines(keepends=True)
                cell["outputs"] = (
                    [{"name": "stdout", "output_type": "stream", "text": lines}] if lines else []
                )
                cell["execution_count"] = cells
            assert without_scores(shown(cell)) == without_scores(printed)
    if os.environ.get("UPDATE_DOCS"):
        write_notebook(notebook, TOUR)
    assert cells >= 5


def test_the_tour_finds_the_translations():
    outputs = [shown(cell) for cell in read_notebook(TOUR)["cells"] if cell["cell_type"] == "code"]
    assert (
        "Mein Bruder liest am Montag im Park.  ->  My brother reads on Monday in the park."
        in outputs[1]
    )
    mined = next(output for output in outputs if "pairs found" in output)
    assert int(mined.split(" pairs found")[0].split()[-1]) >= 45


def test_it_is_a_notebook_that_jupyter_reads():
    notebook = read_notebook(TOUR)
    assert (notebook["nbformat"], notebook["metadata"]["kernelspec"]["name"]) == (4, "python3")
    for cell in notebook["cells"]:
        assert set(cell) >= {"cell_type", "id", "metadata", "source"}
        assert cell["cell_type"] == "markdown" or {"outputs", "execution_count"} <= set(cell)
