"""The quickstart's findings as one HTML page that needs no other file, and as one JSON file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlingua.config import to_mapping
from interlingua.errors import TaskError
from interlingua.getting_started.catalogues import CatalogueSource
from interlingua.getting_started.demo import Demonstration
from interlingua.getting_started.scores import MIN_MESSAGES, Average, LanguageScore, Script
from interlingua.report.pages import render_page
from interlingua.report.tables import Table
from interlingua.storage.files import atomic_write
from interlingua.storage.formats import QUICKSTART
from interlingua.storage.record import write_record

SCRIPTS: dict[Script, str] = {"other": "other scripts", "latin": "Latin script"}


@dataclass(frozen=True, kw_only=True, slots=True)
class QuickstartFindings:
    """All results of the quickstart."""

    date: str
    """ISO 8601, UTC."""
    seconds: Mapping[str, float]
    """Wall time of each part."""
    sources: Sequence[CatalogueSource]
    unavailable: Mapping[str, str]
    """Packages that couldn't be fetched, with pip's complaint."""
    languages: int
    """Languages trained on, English left out."""
    training_pairs: int
    steps: int
    pairs_seen: int
    parameters: int
    """Weights of the encoder."""
    loss: Sequence[tuple[int, float]]
    """(step, training loss in nats)."""
    scores: Sequence[LanguageScore]
    averages: Sequence[Average]
    demonstrations: Sequence[Demonstration]
    commands: Sequence[str]
    """Commands to try next."""
    versions: Mapping[str, str]

    def average(self, kind: str, script: Script) -> Average | None:
        """Return one of the averages, or None if no language counts in it."""
        return next((a for a in self.averages if a.kind == kind and a.script == script), None)

    def require(self, ratio: float) -> None:
        """Check that the encoder beats character n-grams across scripts, on sentences.

        Args:
            ratio: required multiple of their P@1.

        Raises:
            TaskError: the multiple is smaller, or no language of another script counts.
        """
        other = self.average("sentences", "other")
        if other is None:
            raise TaskError(
                f"no language in another script has {MIN_MESSAGES} held-out sentences; add more"
                " catalogues with --catalogues DIR"
            )
        if other.ratio < ratio:
            raise TaskError(
                f"P@1 across scripts is {other.model:.3f}, {other.ratio:.2f} times the value of"
                f" character n-grams; at least {ratio:g} times is required; increase"
                " --budget-seconds"
            )


def write_findings(findings: QuickstartFindings, path: Path) -> None:
    """Write the findings as JSON: fractions, never percent."""
    write_record(path, QUICKSTART, to_mapping(findings))


def write_html(findings: QuickstartFindings, path: Path) -> None:
    """Write the report page."""
    page = render_page(
        "quickstart.html",
        findings=findings,
        headline=findings_headline(findings),
        verdict=verdict(findings),
        scripts=SCRIPTS,
        min_messages=MIN_MESSAGES,
        charts=[(script, best_first(findings.scores, script)) for script in SCRIPTS],
        averages=averages_table(findings),
        languages=_languages_table(findings),
        language_count=len({score.code for score in findings.scores}),
        sources=sources_table(findings.sources),
        drawing=_curve(findings.loss),
    )
    with atomic_write(path) as file:
        file.write(page)


def findings_headline(findings: QuickstartFindings) -> str:
    """Return the result in one sentence."""
    # The headline is about retrieval across scripts: there a model finds translations only by what
    # it has learned.
    other = findings.average("sentences", "other")
    if other is None:
        return f"An encoder of {findings.languages} languages, trained from scratch"
    return (
        f"An encoder of {findings.languages} languages, trained from scratch, finds"
        f" {other.model:.0%} of the translations across scripts; character n-grams find"
        f" {other.tfidf:.0%}"
    )


def verdict(findings: QuickstartFindings) -> str:
    """Compare the encoder with character n-grams for both kinds of script, also if it is worse."""
    parts = []
    for average in findings.averages:
        how = "ahead of" if average.model > average.tfidf else "not ahead of"
        parts.append(
            f"{average.kind.capitalize()} in {SCRIPTS[average.script]}: P@1 {average.model:.2f},"
            f" {how} character n-grams' {average.tfidf:.2f}."
        )
    parts.append(
        "In Latin script, n-grams are strong, because languages share names, loanwords and"
        " product names with English. Across scripts, languages share little text, so that a"
        " model finds translations only by what it has learned."
    )
    return " ".join(parts)


def sources_table(sources: Sequence[CatalogueSource]) -> Table:
    """Return a table of the texts' sources and licenses."""
    rows = []
    for source in sources:
        counts = [f"{source.catalogues:,}", f"{source.pairs:,}"]
        rows.append([source.name, source.version or "", source.license, *counts])
    head = ["source", "version", "license", "catalogues", "translations"]
    return Table("", head, rows, words=(0, 1, 2))


def averages_table(findings: QuickstartFindings) -> Table:
    """Return a table of the mean P@1 of both kinds of text, by script."""
    rows = []
    for average in findings.averages:
        measures = [f"{value:.3f}" for value in (average.model, average.tfidf, average.random)]
        numbers = [*measures, f"{average.ratio:.1f}x", str(average.languages)]
        rows.append([average.kind, SCRIPTS[average.script], *numbers])
    head = ["mean P@1", "script", "encoder", "TF-IDF", "random", "ratio", "languages"]
    return Table("", head, rows, words=(0, 1))


def _languages_table(findings: QuickstartFindings) -> Table:
    rows = []
    for score in sorted(findings.scores, key=lambda score: (score.name, score.kind)):
        measures = (score.random, *score.tfidf, *score.model)
        cells = [f"{measure:.3f}" for measure in measures]
        rows.append([score.name, score.kind, str(score.messages), *cells])
    head = ["language", "kind", "messages", "random"]
    head += ["TF-IDF →en", "en→", "encoder →en", "en→"]
    return Table("", head, rows, words=(0, 1))


def best_first(scores: Sequence[LanguageScore], script: Script) -> list[LanguageScore]:
    """Return the displayed languages of a script, sorted by the encoder's score on sentences."""
    shown = [s for s in scores if s.counts and s.kind == "sentences" and s.script == script]
    return sorted(shown, key=lambda score: -score.model_mean)


def _curve(loss: Sequence[tuple[int, float]]) -> dict[str, Any] | None:
    """Return the points and lines of the drawing of the training loss."""
    if len(loss) < 2:
        return None
    # Pixels; on the left is room for the labels of the lines.
    width = 720
    height = 200
    left = 46
    last = loss[-1][0]
    low = min(value for _, value in loss)
    high = max(value for _, value in loss)

    def x(step: float) -> float:
        return left + (width - left - 8) * step / last

    # SVG counts from the top. A flat curve has no height to divide by.
    def y(value: float) -> float:
        return 10 + (height - 24 - 10) * (high - value) / (high - low or 1.0)

    points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in loss)
    lines = [(value, y(value)) for value in (low, (low + high) / 2, high)]
    return {
        "lines": lines,
        "points": points,
        "width": width,
        "height": height,
        "left": left,
        "last": last,
    }
