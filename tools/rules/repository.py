"""Rules on all files that git tracks, of any kind."""

from __future__ import annotations

from collections.abc import Iterator

from tools.rules.base import Finding, Rule, SourceFile

OUTSIDE = (".." + "/shared", "/work" + "/")
"""Paths outside of the repository. They are joined here so that this file does not contain them."""
MAX_BYTES = 1_000_000
LARGE_FILES: dict[str, str] = {}
"""Larger files outside of ``models/``: path -> why the repository needs the file."""


class OutsidePaths(Rule):
    """Nothing in the project needs a folder next to it."""

    name = "outside-paths"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report lines that name a folder outside of the repository."""
        if file.is_tracked:
            for outside in OUTSIDE:
                for line in file.find_lines(outside):
                    yield Finding(file.path, line, f"{outside} is outside of the repository")


class FileSize(Rule):
    """A file has at most 1 MB, except the models and the reviewed ``LARGE_FILES``."""

    name = "large-files"

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report a file that is too large."""
        if not file.is_tracked or file.path.startswith("models/") or file.path in LARGE_FILES:
            return
        size = file.location.stat().st_size
        if size > MAX_BYTES:
            text = (
                f"{size / 1e6:.1f} MB, at most {MAX_BYTES / 1e6:g} MB are allowed; "
                "if the repository needs it, add the reason to LARGE_FILES "
                "(tools/rules/repository.py)"
            )
            yield Finding(file.path, 1, text)
