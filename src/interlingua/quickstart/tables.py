"""What the quickstart says in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from interlingua.corpus.manifest import Manifest
from interlingua.quickstart.catalogues import Source
from interlingua.quickstart.demo import Demonstration
from interlingua.quickstart.report import (
    SCRIPTS,
    QuickstartFindings,
    best_first,
    headline,
    source_cells,
    verdict,
)
from interlingua.quickstart.scores import MIN_MESSAGES, LanguageScore
from interlingua.runtime import duration


def heading(console: Console, number: int, text: str) -> None:
    """Announces a part of the job."""
    console.print(f"\n[bold]{number}/4  {text}[/bold]")


def show_sources(
    console: Console, sources: Sequence[Source], unavailable: Mapping[str, str]
) -> None:
    """Where the text comes from, under which license."""
    table = _table("source", "version", "license", "catalogues", "translations", numbers=2)
    for source in sources:
        table.add_row(*source_cells(source))
    console.print(table)
    # Messages of pip may hold square brackets, which rich would take for its own.
    for name, why in unavailable.items():
        console.print(f"not available: {name} ({why})", markup=False)


def show_corpus(console: Console, manifest: Manifest) -> None:
    """What preparing kept, and what it dropped by which rule."""
    heldout = sum(pair.heldout for pair in manifest.language_pairs)
    console.print(
        f"{manifest.train:,} pairs to train on in {len(manifest.languages) - 1} languages;"
        f" {heldout:,} held out: neither side of them is in training, in any language"
    )
    rules = sorted(manifest.dropped.items(), key=lambda item: -item[1])
    dropped = ", ".join(f"{rule} {count:,}" for rule, count in rules)
    console.print(f"dropped: {dropped}", style="dim", markup=False)


def show_findings(console: Console, findings: QuickstartFindings, output: Path) -> None:
    """Scores, verdict, demonstration, and how to go on."""
    console.print(_languages(findings.scores))
    console.print(_averages(findings))
    console.print(verdict(findings), markup=False)
    console.print(
        "\n[bold]Nearest neighbors[/bold] of sentences it never saw, among other languages'"
        " held-out ones:"
    )
    for demonstration in findings.demonstrations:
        _show_demonstration(console, demonstration)
    console.print(f"\n[bold]{headline(findings)}.[/bold]")
    seconds = sum(findings.seconds.values())
    console.print(f"{duration(seconds)} in all. Report: {output / 'report.html'}", markup=False)
    console.print("\n[bold]Next[/bold]")
    for command in findings.commands:
        style = "dim" if command.startswith("#") else None
        # Not wrapped, so that it can be copied as one line.
        console.print(command, markup=False, soft_wrap=True, style=style)


def _languages(scores: Sequence[LanguageScore]) -> Table:
    table = _table(
        "language",
        "sentences",
        "random",
        "TF-IDF",
        "encoder",
        "to English",
        "from English",
        numbers=6,
    )
    # A section for each kind of script.
    for script in SCRIPTS:
        for score in best_first(scores, script):
            measures = (score.random, score.tfidf_mean, score.model_mean, *score.model)
            cells = [f"{measure:.3f}" for measure in measures]
            table.add_row(score.name, str(score.messages), *cells)
        table.add_section()
    table.title = (
        f"P@1 on held-out sentences, languages with {MIN_MESSAGES} or more (all of a language are"
        " candidates)"
    )
    return table


def _averages(findings: QuickstartFindings) -> Table:
    table = _table(
        "mean P@1", "script", "languages", "random", "TF-IDF", "encoder", "ratio", numbers=5
    )
    for average in findings.averages:
        measures = (
            f"{average.random:.3f}",
            f"{average.tfidf:.3f}",
            f"{average.model:.3f}",
            f"{average.ratio:.1f}x",
        )
        table.add_row(average.kind, SCRIPTS[average.script], str(average.languages), *measures)
    return table


def _show_demonstration(console: Console, demonstration: Demonstration) -> None:
    console.print(f"\n  “{demonstration.query}”", markup=False)
    for neighbor in demonstration.neighbors:
        mark = "✗"
        style = "red"
        if neighbor.right:
            mark = "✓"
            style = "green"
        line = f"    {mark} {neighbor.cosine:.2f} {neighbor.language:<22} {neighbor.text}"
        console.print(line, markup=False, style=style, soft_wrap=True)


def _table(*columns: str, numbers: int) -> Table:
    """A table with ``numbers`` columns of numbers at its end."""
    table = Table(title_justify="left", title_style="")
    first_number = len(columns) - numbers
    for place, column in enumerate(columns):
        is_number = place >= first_number
        table.add_column(column, justify="right" if is_number else "left", no_wrap=place == 0)
    return table
