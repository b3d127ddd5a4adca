"""``interlingua export MODEL -o DIR``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from interlingua.cli.options import command
from interlingua.verbs.export import ExportOptions, run_export

if TYPE_CHECKING:
    from interlingua.export.verify import Verification


@command(ExportOptions, quiet=None)
def export(options: ExportOptions, quiet: bool) -> None:
    """Writes a directory for sentence-transformers, or graphs, or token vectors, and checks that
    vectors stay.
    """
    done = run_export(options, _print_verification)
    for line in done.lines:
        print(line)
    outcome = "written" if done.verification else "written; not checked"
    print(f"{done.output}: " + ("compared" if options.verify_only else outcome))


def _print_verification(found: Verification) -> None:
    for line in found.table():
        print(line)
    print(
        f"{found.texts} texts in {len(found.worst)} languages, smallest cosine {found.minimum:.7f}"
        f" ({min(found.worst, key=found.worst.__getitem__)})"
    )
