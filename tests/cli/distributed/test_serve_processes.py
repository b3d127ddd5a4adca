"""``interlingua serve`` in a process of its own: mistakes are one line."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from tests.tiny import tiny_encoder


@pytest.fixture(scope="module")
def folder(word_vocabulary, tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "tiny"
    tiny_encoder(word_vocabulary).save(folder)
    return folder


def run(*arguments):
    command = [sys.executable, "-m", "interlingua", "serve", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_port_in_use_is_one_line(folder):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run(str(folder), "--port", str(taken.getsockname()[1]))
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert "--port" in result.stderr


@pytest.mark.parametrize(
    "options", [["--dtype", "float8"], ["--prompt", "unknown"], ["--api-key", ""]]
)
def test_slips_are_one_line(folder, options):
    result = run(str(folder), *options)
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
