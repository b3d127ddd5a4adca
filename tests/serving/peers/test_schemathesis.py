"""The OpenAPI document against the server, by all checks of schemathesis.

Skipped where that is not installed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import ServeSettings
from tests.serving.conftest import served

PLACES = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
SCHEMATHESIS = shutil.which("schemathesis", path=PLACES)
pytestmark = [
    pytest.mark.skipif(SCHEMATHESIS is None, reason="no schemathesis here"),
]


@pytest.fixture
def address(encoder, searcher):
    app = make_app(
        ServedModel(encoder, "tiny"), ServeSettings(), write_line=lambda _: None, searcher=searcher
    )
    with served(app) as found:
        yield found


def test_the_document_and_the_server_agree(address, tmp_path):
    options = ["--max-examples", "10", "--seed", "1", "--workers", "1"]
    command = [SCHEMATHESIS, "run", f"{address}openapi.json", *options]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert "Tested: 15" in result.stdout
    assert result.returncode == 0, result.stdout[-6000:]
