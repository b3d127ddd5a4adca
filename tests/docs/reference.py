"""Reference pages are made from the code: a test compares them, and ``UPDATE_DOCS=1 make test`` writes them anew."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import itertools
import os
import textwrap
from collections.abc import Iterator
from pathlib import Path


def key_table(section: str, cls: type) -> list[str]:
    """Each field of a config, inherited ones too, with its default and the string that stands under it."""
    meaning = {name: text for base in reversed(cls.__mro__[:-1]) for name, text in _texts(base)}
    table = ["", f"## [{section}]", "", "| key | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(cls):
        default = "" if field.default is dataclasses.MISSING else f"`{field.default!r}`"
        table.append(f"| `{field.name}` | {default} | {meaning[field.name]} |")
    return table


def _texts(cls: type) -> Iterator[tuple[str, str]]:
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body
    for field, text in itertools.pairwise(body):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            yield field.target.id, " ".join(text.value.value.replace("``", "`").split())


def check_page(page: Path, text: str) -> None:
    """Fails where the page is not this text, or writes it if asked to."""
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, f"docs/reference/{page.name} is old; run: UPDATE_DOCS=1 make test"
