"""Docstrings for mkdocstrings: equations become LaTeX, so that no script has to set them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Extension: Any = object
else:
    try:
        from griffe import Extension
    except ImportError:  # the extra `docs` is not installed
        Extension = object

INLINE = re.compile(r":math:`([^`]+)`")
MATH = re.compile(r"^( *)\.\. math::(.*)\n((?:\1 +\S.*\n?|\s*\n)*)", re.MULTILINE)


class EquationsAsCode(Extension):
    """Extension that turns ``.. math::`` blocks into blocks of LaTeX."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        """Convert the docstring of every object that was read."""
        if obj.docstring:
            obj.docstring.value = equations_as_code(obj.docstring.value)


def equations_as_code(text: str) -> str:
    """Put the equations of a docstring in fences, and those within a line in backticks.

    Lines keep their indentation.
    """

    def fenced(block: re.Match[str]) -> str:
        indent = block.group(1)
        lines = [line.strip() for line in [block.group(2), *block.group(3).splitlines()]]
        equation = "\n".join(indent + line for line in lines if line)
        return f"{indent}```latex\n{equation}\n{indent}```\n\n"

    return INLINE.sub(r"`\1`", MATH.sub(fenced, text))
