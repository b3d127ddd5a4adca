from __future__ import annotations

import importlib
import inspect
import subprocess
import sys

import pytest

import interlingua
from interlingua.callable_package import CallablePackage

PACKAGES = ("export", "prepare", "quickstart", "search", "serve", "train")


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_is_called_as_its_verb(name, monkeypatch):
    package = importlib.import_module(f"interlingua.{name}")
    assert isinstance(package, CallablePackage)
    assert getattr(interlingua, name) is package
    seen = []
    verb = importlib.import_module(f"interlingua.verbs.{name}")
    assert inspect.signature(package) == inspect.signature(getattr(verb, name))
    monkeypatch.setattr(verb, name, lambda *given, **options: seen.append((given, options)))
    getattr(interlingua, name)("a", b=1)
    assert seen == [(("a",), {"b": 1})]


@pytest.mark.parametrize(
    "before", ["pass", "import interlingua.training.config", "from interlingua import training"]
)
def test_a_verb_is_there_whatever_was_imported_before(before):
    code = f"import interlingua\n{before}\nassert callable(interlingua.train)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
