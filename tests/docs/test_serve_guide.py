"""docs/how-to/serve.md: its requests are answered, its paths, flags and defaults are those of the
server."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from typer.main import get_command

from interlingua.cli.verb import make_verb_command
from interlingua.serving.app import make_app
from interlingua.serving.model import ServedModel
from interlingua.serving.settings import ServeSettings
from tests.docs.markdown import has_model
from tests.docs.sessions import compare_page
from tests.tiny import tiny_encoder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "serve.md"
TEXT = PAGE.read_text(encoding="utf-8")
CURLS = [shlex.split(line[2:]) for line in TEXT.splitlines() if line.startswith("$ curl")]
COMMANDS = [get_command(make_verb_command(name, "")) for name in ("serve", "score")]
OPTIONS = {option for one in COMMANDS for parameter in one.params for option in parameter.opts}


@pytest.fixture(scope="module")
def client(word_vocabulary):
    encoder = tiny_encoder(word_vocabulary).eval()
    app = make_app(ServedModel(encoder, "e5"), ServeSettings(), write_line=lambda _: None)
    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize("words", CURLS, ids=[words[1].partition("/")[2] for words in CURLS])
def test_its_requests_are_answered(client, words):
    path = "/" + words[1].partition("/")[2]
    reply = client.post(
        path, content=words[words.index("-d") + 1], headers={"content-type": "application/json"}
    )
    assert reply.status_code == 200, reply.text


def test_the_python_part_runs(client):
    (code,) = re.findall(r"```python\n(.*?)```", TEXT, flags=re.DOTALL)
    code = code.replace("http://127.0.0.1:8000", str(client.base_url))
    code = code.replace('api_key="not needed"', 'api_key="not needed", http_client=http_client')
    found = {"http_client": client}
    exec(code, found)
    assert len(found["vectors"]) == 2


def test_its_paths_are_those_of_the_server(client):
    rows = re.findall(r"^\| (`/.*?) \|", TEXT, flags=re.MULTILINE)
    named = {path for row in rows for path in re.findall(r"`(/\S+?)`", row)}
    served = {
        path for path in json.loads(client.get("/openapi.json").text)["paths"] if "{" not in path
    }
    # Those of an index exist only with one; those of Azure and of lists are not described.
    of_index = {"/search", "/index/info", "/index/add", "/index/delete"}
    hidden = {"/openapi.json", "/openai/deployments/NAME/embeddings", "/api/tags"}
    assert named == served | of_index | hidden


@pytest.mark.skipif(not has_model(), reason="the default model is not installed")
def test_the_server_prints_and_replies_what_the_page_shows():
    command, request = re.findall(r"^```console\n\$ (.*)\n", TEXT, re.M)[:2]
    port = re.search(r"localhost:(\d+)", request)[1]
    server = subprocess.Popen(
        [sys.executable, "-m", *shlex.split(command), "--port", "0", "--threads", "1"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        line = server.stderr.readline()
        address = re.search(r"http://\S+:(\d+)", line)
        words = shlex.split(request)
        path = words[1].partition("/")[2]
        asked = urllib.request.Request(
            f"{address[0]}/{path}",
            data=words[words.index("-d") + 1].encode(),
            headers={"content-type": "application/json"},
        )
        with urllib.request.urlopen(asked, timeout=60) as reply:
            answer = reply.read().decode()
    finally:
        server.terminate()
        server.communicate()
    line = line.replace(f":{address[1]}", f":{port}")
    output = {command: line.strip(), request: answer.strip()}
    now = TEXT
    for asked_for, printed in output.items():
        block = f"```console\n$ {asked_for}\n"
        before, after = now.split(block)
        now = f"{before}{block}{printed}\n{after[after.index('```') :]}"
    compare_page(PAGE, now)


def test_its_flags_exist():
    flags = set(re.findall(r"`(--[\w-]+)", TEXT))
    assert len(flags) >= 7
    assert {flag.replace("--no-", "--") for flag in flags} <= OPTIONS


def test_its_defaults_are_those_of_the_settings():
    defaults = {field.name: field.default for field in dataclasses.fields(ServeSettings)}
    rows = re.findall(r"^\| `--([\w-]+)` \| ([\d,]+)( MiB)? \|", TEXT, flags=re.MULTILINE)
    assert len(rows) == 8
    for flag, number, unit in rows:
        assert defaults[flag.replace("-", "_")] == int(number.replace(",", "")) * (
            1024**2 if unit else 1
        )
