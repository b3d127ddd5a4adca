"""Reference pages are made from the code: a test compares them, and ``UPDATE_DOCS=1 make test``
writes them anew."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from interlingua.training.template import field_texts


def key_table(section: str, cls: type, given: object = None) -> list[str]:
    """Format each field of a config, inherited ones too, with its default and description.

    Args:
        section: its name.
        cls: the dataclass.
        given: the section as it is by default, where that is not the dataclass's own defaults.
    """
    meaning = field_texts(cls)
    table = ["", f"## [{section}]", "", "| key | default | meaning |", "|---|---|---|"]
    for field in dataclasses.fields(cls):
        value = field.default if given is None else getattr(given, field.name)
        default = "" if value is dataclasses.MISSING else f"`{value!r}`"
        table.append(f"| `{field.name}` | {default} | {meaning[field.name]} |")
    return table


def check_page(page: Path, text: str) -> None:
    """Fail if the page differs from this text, or write it with ``UPDATE_DOCS``."""
    if os.environ.get("UPDATE_DOCS"):
        page.write_text(text, encoding="utf-8")
    assert page.read_text(encoding="utf-8") == text, (
        f"docs/reference/{page.name} is old; run: UPDATE_DOCS=1 make test"
    )
