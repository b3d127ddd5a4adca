"""docs/reference/robustness.md: each promise names a test that exists.

No model is loaded with its code.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "reference" / "robustness.md"


def named() -> list[tuple[str, str]]:
    """Return path and name of each test on the page. A missing path is that of the last test."""
    found = []
    path = ""
    for file, name in re.findall(r"`(tests/[\w/]+\.py)?::(\w+)`", PAGE.read_text(encoding="utf-8")):
        path = file or path
        found.append((path, name))
    return found


NAMED = named()
LOADERS = ("from_pretrained", "SentenceTransformer", "CrossEncoder", "pipeline")


@pytest.mark.parametrize(("path", "name"), NAMED, ids=[name for _, name in NAMED])
def test_a_promise_has_its_test(path, name):
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_row_of_the_page_names_a_test():
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    rows = [line for line in lines if line.startswith("| ") and not line.startswith("| promise")]
    assert len(rows) >= 16
    assert all("`tests/" in row for row in rows)


def loads_of_models():
    for path in [
        *ROOT.glob("src/**/*.py"),
        *ROOT.glob("benchmarks/*.py"),
        *ROOT.glob("tools/*.py"),
    ]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                if name in LOADERS:
                    yield path, node


def test_every_model_is_loaded_without_its_code():
    found = list(loads_of_models())
    assert len(found) >= 6
    for path, call in found:
        said = {word.arg: word.value for word in call.keywords}
        trusted = said.get("trust_remote_code")
        assert isinstance(trusted, ast.Constant), f"{path.name}:{call.lineno}"
        assert trusted.value is False, f"{path.name}:{call.lineno}"


def test_security_page_names_the_table():
    assert "docs/reference/robustness.md" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")
