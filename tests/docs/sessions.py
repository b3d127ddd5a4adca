"""Run the terminal sessions of a guide, and compare what its commands print with the page.

A fenced ``console`` block is a session: commands behind ``$ ``, and below each what it prints.
``cat FILE`` shows a file. If no command has written the file, the session shows what the reader
has, and the file is created. A line ``...`` matches any lines of the output. Fenced ``sh``
blocks are not run. A ``toml`` or ``python`` block that starts with ``# NAME`` is a file.
``UPDATE_DOCS=1`` writes the output into the page.
"""

from __future__ import annotations

import contextlib
import glob
import io
import math
import os
import re
import shlex
import sys
from pathlib import Path

from interlingua.cli import main

FENCE = re.compile(r"^```(console|toml|python)\n(.*?)^```$", re.M | re.S)
FILE_NAME = re.compile(r"# (\S+\.(?:toml|py))$")
NUMBER = re.compile(r"-?\d+\.\d+(?:e[+-]\d+)?")
DIGEST = re.compile(r"\b[0-9a-f]{12}\b|\b[0-9a-f]{8}(?=\.json)")
TOLERANCE = 0.02
"""Difference of a number on another processor; a page with a larger one shows an older output."""
UNIT_OF_TIME = re.compile(
    r"\d+(?:\.\d+)? (?:ms|s|min|h)\b|\d[\d,.]* (?:pairs|texts|tokens|lines)/s"
)


def follow_sessions(page: str, folder: Path) -> str:
    """Run a page in a folder and return it with the output of this run.

    Args:
        page: its text, Markdown.
        folder: the working directory of the commands.
    """

    def run_block(block: re.Match[str]) -> str:
        kind, body = block.groups()
        if kind == "console":
            return f"```console\n{run_session(body)}```"
        name = FILE_NAME.match(body.split("\n", 1)[0])
        if name:
            Path(name.group(1)).write_text(body, encoding="utf-8")
        return block.group(0)

    with contextlib.chdir(folder), python_path(folder):
        return FENCE.sub(run_block, page)


def opening_of(text: str) -> re.Match[str] | None:
    """Return the first block of a page if it is a session before the first heading of a section."""
    first = re.search(r"^(?:```(\w*)\n(.*?)^```|## )", text, re.M | re.S)
    return first if first and first.group(1) == "console" else None


def follow_opening(text: str, folder: Path) -> str:
    """Run the first session of a page in a folder, and return the page with its output.

    The files of the page are written before, because they may be below the session.
    """
    opening = opening_of(text)
    assert opening is not None
    with contextlib.chdir(folder), python_path(folder):
        for kind, body in reversed(FENCE.findall(text)):
            name = FILE_NAME.match(body.split("\n", 1)[0])
            if kind != "console" and name:
                Path(name.group(1)).parent.mkdir(parents=True, exist_ok=True)
                Path(name.group(1)).write_text(body, encoding="utf-8")
        session = run_session(opening.group(2))
    return f"{text[: opening.start(2)]}{session}{text[opening.end(2) :]}"


def run_session(body: str) -> str:
    """Run the commands of one block and return the block with their output."""
    found = []
    for part in re.split(r"^(?=\$ )", body, flags=re.M):
        command = re.match(r"\$ ((?:[^\n]*\\\n)*[^\n]*)\n", part)
        if command is None:
            assert not part.strip(), f"output before a command: {part!r}"
            continue
        words = shlex.split(re.sub(r"\\\n\s*", "", command.group(1)))
        shown = part[command.end() :]
        output = run_command(words, shown)
        found.append(f"$ {command.group(1)}\n{shown if is_excerpt(shown, output) else output}")
    return "".join(found)


def is_excerpt(shown: str, output: str) -> bool:
    """Return whether an output has the shown lines, with any lines in place of ``...``."""
    lines = [
        r"(?:.*\n)*" if line == "...\n" else re.escape(mask_numbers(line))
        for line in shown.splitlines(keepends=True)
    ]
    return "...\n" in shown and re.fullmatch("".join(lines), mask_numbers(output)) is not None


def run_command(words: list[str], shown: str) -> str:
    """Run one command and return what it prints.

    Args:
        words: of the command line.
        shown: what the page shows below the command.
    """
    program, *arguments = words
    if program == "pip":
        return shown  # the package is installed
    if program == "cat":
        path = Path(arguments[0])
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(shown, encoding="utf-8")
        return path.read_text(encoding="utf-8")
    assert program == "interlingua", words
    arguments = [name for word in arguments for name in sorted(glob.glob(word)) or [word]]
    out = io.StringIO()
    code = None
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        try:
            main.main(arguments)
        except SystemExit as stop:
            code = stop.code
    assert not code, (words, out.getvalue())
    text = out.getvalue().replace(f"{Path.cwd()}{os.sep}", "")
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


@contextlib.contextmanager
def python_path(folder: Path):
    """Let commands import the modules of a folder."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in [path.stem for path in folder.glob("*.py")]:
            sys.modules.pop(name, None)


def check_sessions(page: Path, folder: Path, *, is_near: bool = False) -> None:
    """Fail if a session of a page prints something else than the page shows.

    Decimal numbers, times and digests may differ, because machines differ.

    Args:
        page: path of the page.
        folder: the working directory of the commands.
        is_near: decimal numbers may differ only within ``TOLERANCE``.
    """
    text = page.read_text(encoding="utf-8")
    now = follow_sessions(text, folder)
    compare_page(page, now)
    if is_near and not os.environ.get("UPDATE_DOCS"):
        assert far_numbers(now, text) == [], f"{page.name} is old: UPDATE_DOCS=1 make test"


def far_numbers(now: str, text: str) -> list[tuple[str, str]]:
    """Return the decimal numbers of two equal texts that differ by more than ``TOLERANCE``."""
    found = [NUMBER.findall(DIGEST.sub("0", UNIT_OF_TIME.sub("0 s", own))) for own in (now, text)]
    pairs = zip(*found, strict=True)
    return [(a, b) for a, b in pairs if not math.isclose(float(a), float(b), abs_tol=TOLERANCE)]


def compare_page(page: Path, now: str) -> None:
    """Fail if a page is not the text of this run, but for numbers; ``UPDATE_DOCS=1`` writes it."""
    text = page.read_text(encoding="utf-8")
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(now, encoding="utf-8")
        return
    assert mask_numbers(now) == mask_numbers(text), f"{page.name} is old: UPDATE_DOCS=1 make test"


def mask_numbers(text: str) -> str:
    """Return the text with times, decimal numbers and digests replaced."""
    return NUMBER.sub("0.0", DIGEST.sub("0", UNIT_OF_TIME.sub("0 s", text)))
