"""Run the code cells of a notebook, without Jupyter: a cell's output is what it prints."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def read_notebook(path: Path) -> dict[str, Any]:
    """Read the stored notebook."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write_notebook(notebook: dict[str, Any], path: Path) -> None:
    """Store the notebook in the format of Jupyter."""
    path.write_text(json.dumps(notebook, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def shown(cell: dict[str, Any]) -> str:
    """Return the output that is stored with a cell."""
    return "".join("".join(output["text"]) for output in cell["outputs"])


def run_cells(notebook: dict[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """Run the code cells in order, and return each with its output."""
    names: dict[str, Any] = {}
    for number, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] != "code":
            continue
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(compile("".join(cell["source"]), f"cell {number}", "exec"), names)
        yield cell, out.getvalue()
