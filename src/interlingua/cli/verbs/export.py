"""``interlingua export MODEL -o DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.cli.options import make_command
from interlingua.verbs.export import ExportOptions, run_export

if TYPE_CHECKING:
    from interlingua.exporters.verify import Verification


@make_command(ExportOptions, quiet=None)
def export(options: ExportOptions, quiet: bool) -> None:
    """Write a model for other libraries, and verify its vectors there."""
    done = run_export(options, _print_verification)
    for line in done.lines:
        print(line)
    if options.verify_only:
        outcome = "compared"
    elif done.verification:
        outcome = "written"
    else:
        outcome = "written; not checked"
    print(f"{done.output}: {outcome}")


def _print_verification(found: Verification) -> None:
    for line in found.table():
        print(line)
    print(
        f"{found.texts} texts in {len(found.worst)} languages, smallest cosine {found.minimum:.7f}"
        f" ({min(found.worst, key=found.worst.__getitem__)})"
    )
