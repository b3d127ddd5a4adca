from __future__ import annotations

import json

import pytest

from tests.cli.conftest import done as done
from tests.cli.conftest import refused as refused
from tests.cli.conftest import run as run


@pytest.fixture
def written_rows(done, tmp_path):
    """The rows that a command with some options writes to ``p.jsonl``."""
    output = tmp_path / "p.jsonl"

    def rows(command, *options):
        done(command, f"-o {output} --quiet", *options)
        return [json.loads(line) for line in output.read_text(encoding="utf-8").splitlines()]

    return rows
