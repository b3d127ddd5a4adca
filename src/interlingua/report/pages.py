"""Self-contained pages: Jinja2 templates with one base, one style sheet and shared macros.

A page extends ``base.html`` and gets plain values; the caller decides what it shows, and the
template decides how. Texts are always escaped. Style sheet, script and data are in the
page itself, so that it loads nothing.
"""

from __future__ import annotations

import functools
import importlib.resources
import json
import re
from collections.abc import Callable
from typing import Any

import jinja2
from markupsafe import Markup

from interlingua import __version__

# At least four characters before and after the mark, so that every part is readable.
BREAK = re.compile(r"(.{4,}?[-_/+@:= ]+)(?=.{4})")
LONG = 24
"""Longer parts of names may be broken anywhere; the script of compare breaks at the same places."""


def render_page(template: str, **values: object) -> str:
    """Render a page as HTML.

    Args:
        template: its name below ``templates``.
        values: the template's variables.
    """
    return _environment().get_template(template).render(values)


def macro(name: str, template: str = "macros.html") -> Callable[..., str]:
    """Return a macro as a function that returns HTML."""
    part: Callable[..., str] = getattr(_environment().get_template(template).module, name)
    return part


@functools.cache
def _environment() -> jinja2.Environment:
    # An unknown name in a template is an error, not an empty text.
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_source),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.globals |= {"resource": resource, "version": __version__}
    environment.filters |= {"breakable": breakable, "embedded_json": embedded_json}
    return environment


def resource(name: str) -> Markup:
    """Return a file of this package unchanged: a style sheet or a script."""
    return Markup(_source(name))


def breakable(text: str) -> Markup:
    """Split a text into parts after which a line may break; no part is too short to be useful."""
    parts = BREAK.sub(r"\1" + "\n", text).split("\n")
    # join escapes plain text, and leaves Markup as it is.
    return Markup("<wbr/>").join(map(_unbroken, parts))


def _unbroken(part: str) -> str:
    """Mark a part as one that must stay on one line, unless it is too long."""
    if len(part) >= LONG:
        return part
    return Markup('<span class="whole">{}</span>').format(part)


def embedded_json(data: Any) -> Markup:
    """Return JSON that cannot end its script element: without <, so without tags and comments."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c"))


def _source(name: str) -> str:
    folder = importlib.resources.files("interlingua.report") / "templates"
    return (folder / name).read_text(encoding="utf-8")
