"""Output of the quickstart in the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from rich.console import Console

from interlingua.corpus.manifest import Manifest
from interlingua.getting_started.catalogues import CatalogueSource
from interlingua.getting_started.demo import Demonstration
from interlingua.getting_started.report import (
    SCRIPTS,
    QuickstartFindings,
    averages_table,
    best_first,
    findings_headline,
    sources_table,
    verdict,
)
from interlingua.getting_started.scores import MIN_MESSAGES, LanguageScore
from interlingua.report.tables import Table
from interlingua.runtime import duration


def print_heading(console: Console, number: int, text: str) -> None:
    """Print the heading of a part of the job."""
    console.print(f"\n[bold]{number}/4  {text}[/bold]")


def show_sources(
    console: Console, sources: Sequence[CatalogueSource], unavailable: Mapping[str, str]
) -> None:
    """Show the sources of the text and their licenses."""
    console.print(sources_table(sources).terminal())
    # Messages of pip may contain square brackets, which rich would interpret as markup.
    for name, why in unavailable.items():
        console.print(f"not available: {name} ({why})", markup=False)


def show_corpus(console: Console, manifest: Manifest) -> None:
    """Show the prepared pairs, and the number that each rule dropped."""
    heldout = sum(pair.heldout for pair in manifest.language_pairs)
    console.print(
        f"{manifest.train:,} training pairs in {len(manifest.languages) - 1} languages;"
        f" {heldout:,} held-out pairs: their sentences do not occur in the training data of any"
        " language"
    )
    rules = sorted(manifest.dropped.items(), key=lambda item: -item[1])
    dropped = ", ".join(f"{rule} {count:,}" for rule, count in rules)
    console.print(f"dropped: {dropped}", style="dim", markup=False)


def show_findings(console: Console, findings: QuickstartFindings, output: Path) -> None:
    """Show scores, verdict, demonstration and next steps."""
    console.print(_languages(findings.scores).terminal(is_titled_left=True))
    console.print(averages_table(findings).terminal())
    console.print(verdict(findings), markup=False)
    console.print(
        "\n[bold]Nearest neighbors[/bold] of sentences that were not in the training data, among"
        " the held-out sentences of other languages:"
    )
    for demonstration in findings.demonstrations:
        _show_demonstration(console, demonstration)
    console.print(f"\n[bold]{findings_headline(findings)}.[/bold]")
    seconds = sum(findings.seconds.values())
    console.print(f"{duration(seconds)} in total. Report: {output / 'report.html'}", markup=False)
    console.print("\n[bold]Next[/bold]")
    for command in findings.commands:
        style = "dim" if command.startswith("#") else None
        # Not wrapped, so that it can be copied as one line.
        console.print(command, markup=False, soft_wrap=True, style=style)


def _languages(scores: Sequence[LanguageScore]) -> Table:
    rows: list[list[str]] = []
    # A section for each kind of script.
    for script in SCRIPTS:
        for score in best_first(scores, script):
            measures = (score.random, score.tfidf_mean, score.model_mean, *score.model)
            cells = [f"{measure:.3f}" for measure in measures]
            rows.append([score.name, str(score.messages), *cells])
        rows.append([])
    title = (
        f"P@1 on held-out sentences, for languages with {MIN_MESSAGES} sentences or more (all"
        " sentences of a language are candidates)"
    )
    head = ["language", "sentences", "random", "TF-IDF", "encoder", "to English", "from English"]
    return Table(title, head, rows)


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
