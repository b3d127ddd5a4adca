"""Text that ``interlingua train --help`` shows below the options.

It lists the methods, and shows an example of a config.
"""

from __future__ import annotations

import textwrap

from interlingua.config.registry import METHODS

EXAMPLE = """\
[data]
corpus = "prepared"              # the output of interlingua prepare

[encoder]
preset = "ems-small"             # or path = "hf:owner/name": the corpus must have its vocabulary

[method]
name = "ems"

[run]
output = "runs/first"
num_train_epochs = 3             # or max_steps, or budget_seconds
"""


def unfilled(*lines: str) -> str:
    """Return lines that typer shows unchanged; it rewraps other paragraphs."""
    return "\n".join(["\b", *lines])


_NAMES = textwrap.wrap(
    ", ".join(METHODS), 76, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False
)
_SECTIONS = [
    unfilled(*textwrap.indent(section, "  ").splitlines()) for section in EXAMPLE.split("\n\n")
]
EPILOG = "\n\n".join(
    [
        unfilled("Methods, the values of [method] name; docs/methods describes each:", *_NAMES),
        unfilled("A config to start from; --init writes a longer one that explains every key:"),
        *_SECTIONS,
    ]
)
