"""What preparation did, as tables for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from interlingua.corpus.manifest import Manifest
from interlingua.prepare.ingest import UNREADABLE
from interlingua.prepare.shards import Fate
from interlingua.report.tables import Table

if TYPE_CHECKING:
    import rich.table

IN_SET = Fate.in_evaluation_set.name


def summary(manifest: Manifest) -> Iterator[rich.table.Table]:
    """Tables of the sources, of the rules that dropped pairs, and of the languages."""
    yield _table(
        "Sources",
        ("source", "license", "read", "dropped", "train", "valid", "held out"),
        [
            (s.name, s.license, s.read, sum(s.dropped.values()), s.train, s.valid, s.heldout)
            for s in manifest.sources
        ],
    )
    rules = sorted(manifest.dropped.items(), key=lambda item: -item[1])
    lines = [
        line for rule in rules for line in (rule, *(_sets(manifest) if rule[0] == IN_SET else ()))
    ]
    lines += [] if IN_SET in manifest.dropped else _sets(manifest)
    yield _table("Dropped, by rule", ("rule", "pairs"), lines)
    yield _table("Totals", ("what", "number"), _totals(manifest))


def _sets(manifest: Manifest) -> list[tuple[str, int]]:
    return [(f"  of these in {name}", count) for name, count in manifest.decontaminated.items()]


def _if_any(what: str, number: int) -> list[tuple[str, int]]:
    return [(what, number)] if number else []


def _totals(manifest: Manifest) -> list[tuple[str, int | str]]:
    seconds = sum(manifest.seconds.values())
    read = sum(source.read for source in manifest.sources)
    return [
        ("languages", len(manifest.languages)),
        ("language pairs", len(manifest.language_pairs)),
        ("training pairs", manifest.train),
        ("training tokens", sum(manifest.tokens.values())),
        ("vocabulary", manifest.vocabulary["size"]),
        *_if_any(
            "lines that could not be read",
            sum(source.skipped.get(UNREADABLE, 0) for source in manifest.sources),
        ),
        *_if_any(
            "evaluation files without text, not compared", len(manifest.skipped_evaluation_files)
        ),
        ("seconds", f"{seconds:.0f}"),
        ("pairs read per second", int(read / seconds) if seconds else 0),
    ]


def _table(
    title: str, head: tuple[str, ...], rows: Sequence[tuple[object, ...]]
) -> rich.table.Table:
    """A table of counts; columns of names stand at the left."""

    def text(cell: object) -> str:
        return f"{cell:,}" if isinstance(cell, int) else str(cell)

    cells = [list(map(text, row)) for row in rows]
    words = [
        index for index, name in enumerate(head) if name in ("source", "license", "rule", "what")
    ]
    return Table(title, head, cells, words=words).terminal(is_titled_left=True)
