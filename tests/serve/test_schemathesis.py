"""The OpenAPI document against the server, by all checks of schemathesis.

Skipped where that is not installed.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import uvicorn

from interlingua.serve.app import make_app
from interlingua.serve.model import ServedModel
from interlingua.serve.settings import ServeSettings

PLACES = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
SCHEMATHESIS = shutil.which("schemathesis", path=PLACES)
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(SCHEMATHESIS is None, reason="no schemathesis here"),
]


@pytest.fixture
def address(encoder, searcher):
    app = make_app(
        ServedModel(encoder, "tiny"), ServeSettings(), write_line=lambda _: None, searcher=searcher
    )
    server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    server.should_exit = True
    thread.join(10)
    listener.close()


def test_the_document_and_the_server_agree(address, tmp_path):
    options = ["--max-examples", "10", "--seed", "1", "--workers", "1"]
    command = [SCHEMATHESIS, "run", f"{address}/openapi.json", *options]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    result = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False
    )
    assert "Tested: 12" in result.stdout
    assert result.returncode == 0, result.stdout[-6000:]
