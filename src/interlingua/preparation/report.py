"""The report of preparation, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from interlingua.corpus.manifest import Manifest
from interlingua.preparation.ingest import UNREADABLE
from interlingua.preparation.shards import Fate
from interlingua.report.tables import Table

if TYPE_CHECKING:
    import rich.table

IN_SET = Fate.in_evaluation_set.name


def corpus_summary(manifest: Manifest) -> Iterator[rich.table.Table]:
    """Yield tables of the sources, of the rules that dropped pairs, and of the languages."""
    titles = ("source", "license", "read", "dropped", "train", "valid", "held out")
    rows = []
    for source in manifest.sources:
        dropped = sum(source.dropped.values())
        counts = (source.read, dropped, source.train, source.valid, source.heldout)
        rows.append((source.name, source.license, *counts))
    yield _table("Sources", titles, rows)
    lines: list[tuple[str, int]] = []
    for rule, pairs in sorted(manifest.dropped.items(), key=lambda item: -item[1]):
        lines.append((rule, pairs))
        if rule == IN_SET:
            lines += _sets(manifest)
    if IN_SET not in manifest.dropped:
        lines += _sets(manifest)  # show the sets also if no pair was found in them
    yield _table("Dropped, by rule", ("rule", "pairs"), lines)
    yield _table("Totals", ("what", "number"), _totals(manifest))


def _sets(manifest: Manifest) -> list[tuple[str, int]]:
    return [(f"  of these in {name}", count) for name, count in manifest.decontaminated.items()]


def _totals(manifest: Manifest) -> list[tuple[str, int | str]]:
    seconds = sum(manifest.seconds.values())
    read = sum(source.read for source in manifest.sources)
    speed = 0
    if seconds:
        speed = int(read / seconds)
    rows: list[tuple[str, int | str]] = [
        ("languages", len(manifest.languages)),
        ("language pairs", len(manifest.language_pairs)),
        ("training pairs", manifest.train),
        ("training tokens", sum(manifest.tokens.values())),
        ("vocabulary", manifest.vocabulary["size"]),
    ]
    # Rows of errors, only if there are any.
    unreadable = sum(source.skipped.get(UNREADABLE, 0) for source in manifest.sources)
    if unreadable:
        rows.append(("lines that could not be read", unreadable))
    skipped_files = len(manifest.skipped_evaluation_files)
    if skipped_files:
        rows.append(("evaluation files without text, not compared", skipped_files))
    rows.append(("seconds", f"{seconds:.0f}"))
    rows.append(("pairs read per second", speed))
    return rows


def _table(
    title: str, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]
) -> rich.table.Table:
    """Return a table of counts; columns of names are aligned left."""

    def text(cell: object) -> str:
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    cells = [list(map(text, row)) for row in rows]
    names = ("source", "license", "rule", "what")
    words = [index for index, name in enumerate(head) if name in names]
    return Table(title, head, cells, words=words).terminal(is_titled_left=True)
