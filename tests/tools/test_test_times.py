"""tools/test_times.py: the section of CONTRIBUTING.md is made of what pytest wrote."""

from __future__ import annotations

import json
import sys

import pytest

from tools import test_times

RUN = {
    "tier": "core",
    "seconds": 301.6,
    "cases": {"core": 1234},
    "tests": {f"tests/a.py::test_{i}": float(i) for i in range(12)},
}


def write(tmp_path, monkeypatch, **changes):
    page = tmp_path / "page.md"
    page.write_text(f"before\n{test_times.BEGIN}old\n{test_times.END}after\n")
    (tmp_path / "run.json").write_text(json.dumps(RUN | changes))
    arguments = ["test_times.py", str(tmp_path / "run.json"), "--page", str(page)]
    monkeypatch.setattr(sys, "argv", arguments)
    test_times.main()
    return page.read_text()


def test_the_section_is_replaced(tmp_path, monkeypatch):
    text = write(tmp_path, monkeypatch)
    assert text.startswith(f"before\n{test_times.BEGIN}")
    assert text.endswith(f"{test_times.END}after\n")
    assert "| `make test` | 302 | core 1,234 |" in text
    assert "old" not in text
    slow = [line for line in text.splitlines() if line.startswith("| `tests/")]
    assert slow == [f"| `tests/a.py::test_{i}` | {i}.0 |" for i in range(11, 1, -1)]


def test_a_run_of_another_selection_is_refused(tmp_path, monkeypatch):
    with pytest.raises(SystemExit, match="-m kernels"):
        write(tmp_path, monkeypatch, tier="kernels")
