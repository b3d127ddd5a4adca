"""Execution of a verb by typer: its file is imported; a wrong option is reported in one line."""

from __future__ import annotations

import functools
import importlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlingua.errors import InterlinguaError


def call_verb(verb: str, summary: str, arguments: Sequence[str]) -> None:
    """Run a verb and end the process.

    Raises:
        InterlinguaError: an option is unknown, or its value is invalid.
    """
    import typer

    # UsageError: a class of click or, in newer versions of typer, of typer itself.
    slip: Any = typer.BadParameter.__base__
    try:
        run = make_verb_command(verb, summary)
        # In standalone mode, typer would print an error in its own format and end the process.
        code = run(args=list(arguments), prog_name=f"interlingua {verb}", standalone_mode=False)
    except slip as error:
        message = error.format_message().rstrip(".")
        raise InterlinguaError(f"{message}; see: interlingua {verb} --help") from None
    sys.exit(code or 0)


def make_verb_command(verb: str, summary: str) -> Any:
    """Make a typer command from the function of a verb in ``interlingua.cli.verbs``."""
    import typer

    from interlingua.cli.options import GroupedCommand

    module = importlib.import_module(f"interlingua.cli.verbs.{verb}")
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    settings = {"help_option_names": ["-h", "--help"]}
    epilog = getattr(module, "EPILOG", None)
    register = app.command(
        name=verb, cls=GroupedCommand, help=summary, epilog=epilog, context_settings=settings
    )
    register(_interruptible(getattr(module, verb)))
    return app


def completion(verbs: Mapping[str, str], arguments: Sequence[str]) -> None:
    """Complete a command line for the shell, or install the completion.

    This part of typer needs all verbs at once.
    """
    import typer

    app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    for verb, summary in verbs.items():
        function = getattr(importlib.import_module(f"interlingua.cli.verbs.{verb}"), verb)
        app.command(name=verb, help=summary)(function)
    app(args=list(arguments), prog_name="interlingua")


def reader_has_left() -> None:
    """End quietly: the reader of the output, for example `head`, has exited."""
    # Discard the rest of the buffer; otherwise Python would report an error at exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(0)


def _interruptible(function: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> None:
        try:
            function(*args, **kwargs)
        except KeyboardInterrupt:
            raise InterlinguaError(
                "stopped; no incomplete files remain; run the same command again"
            ) from None
        except BrokenPipeError:  # caught here, because click would exit with 1
            reader_has_left()

    return call
