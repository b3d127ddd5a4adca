"""Files that tests write, and public data that are not in the repository."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

DATA = Path(os.environ.get("INTERLINGUA_DATA") or Path.home() / ".cache/interlingua/data")


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def write_rows(path, rows):
    write(path, "".join(f"{row}\n" for row in rows))


def json_lines(*records):
    return "".join(json.dumps(record) + "\n" for record in records)


def public_data(name):
    """Return the folder of a public set, or skip the test if it does not exist."""
    folder = DATA / name
    if not folder.is_dir():
        pytest.skip(f"{folder} is not there")
    return folder
