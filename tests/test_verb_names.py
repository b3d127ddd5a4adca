from __future__ import annotations

import pkgutil
import subprocess
import sys

import pytest

import interlingua


def test_no_package_has_the_name_of_a_public_function():
    # Python sets a package as an attribute of its parent when a module of it is imported.
    packages = {module.name for module in pkgutil.iter_modules(interlingua.__path__)}
    assert not packages & set(interlingua.__all__)


@pytest.mark.parametrize(
    "before", ["pass", "import interlingua.training.config", "from interlingua import train"]
)
def test_a_verb_is_there_whatever_was_imported_before(before):
    code = f"import interlingua\n{before}\nassert callable(interlingua.train)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
