"""Follows a how-to: writes its files and runs its commands in the order of the page, then its
Python part.

A fenced ``toml`` block that starts with ``# name.toml`` is a file; a fenced ``console`` block
holds commands behind ``$ ``; the lines below a command are for the reader.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlingua.cli import main
from interlingua.config.registry import DEFAULT_MODEL
from interlingua.errors import CheckpointError
from interlingua.storage.locate import installed_model
from tests.docs.sessions import opening_of

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


class Step(NamedTuple):
    """One thing to do: write ``text`` to ``file``, or run ``command``."""

    file: str | None
    text: str
    command: str | None


def steps(page: Path, *, opening: bool = True) -> list[Step]:
    """Return the steps of a page, in its order.

    Args:
        page: the how-to.
        opening: with the commands of its first session, which ``test_openings.py`` runs, too. They
            come after the files below them.
    """
    text = page.read_text(encoding="utf-8")
    first = opening_of(text)
    if first is not None:
        text = text[first.end() :]
        if opening:
            place = 0
            for block in FENCE.finditer(text):
                if block.group(1) == "console":
                    break
                if block.group(1) == "toml":
                    place = block.end()
            text = f"{text[:place]}\n{first.group(0)}\n{text[place:]}"
    found = []
    for language, body in FENCE.findall(text):
        first = body.split("\n", 1)[0]
        if language == "toml" and first.startswith("# ") and first.endswith(".toml"):
            found.append(Step(first[2:].strip(), body, None))
        elif language == "console":
            joined = re.sub(r"\\\n\s*", "", body)
            found += [
                Step(None, "", line[2:])
                for line in joined.splitlines()
                if line.startswith("$ ") and not line.startswith("$ cat ")
            ]
    return found


def follow(
    page: Path,
    folder: Path,
    *,
    extra: Sequence[str] = (),
    instead: Mapping[str, str] | None = None,
    opening: bool = True,
) -> dict[str, str]:
    """Run all steps of a page in a folder. Each command must succeed.

    Args:
        page: the how-to.
        folder: the working directory meanwhile.
        extra: options put behind every command, ``--set run.device=cpu``.
        instead: what is in commands and files for people -> what is quick enough for a test.
        opening: with the commands of the page's first session.

    Returns:
        Command -> what it printed.
    """
    printed = {}
    with contextlib.chdir(folder):
        for step in steps(page, opening=opening):
            text = step.text if step.command is None else step.command
            for long, short in (instead or {}).items():
                text = text.replace(long, short)
            if step.command is None:
                (folder / step.file).write_text(text, encoding="utf-8")
                continue
            command = text
            program, *arguments = shlex.split(os.path.expandvars(command))
            assert program == "interlingua", step.command
            out = io.StringIO()
            with contextlib.redirect_stdout(out), pytest.raises(SystemExit) as stop:
                main.main([*arguments, *extra])
            assert not stop.value.code, step.command
            printed[step.command] = out.getvalue()
    return printed


def run_python(page: Path, folder: Path) -> dict[str, Any]:
    """Run the Python parts of a page, one after the other, in a folder.

    The names they have set.
    """
    parts = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    assert parts
    code = "\n".join(parts)
    names: dict[str, Any] = {}
    with contextlib.chdir(folder):
        exec(compile(code, page.name, "exec"), names)
    return names


def has_model() -> bool:
    """Return whether the default model's package is installed with its weights."""
    try:
        return installed_model(DEFAULT_MODEL) is not None
    except CheckpointError:
        return False
