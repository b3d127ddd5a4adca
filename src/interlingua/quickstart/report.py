"""The quickstart's findings as one HTML page that needs no other file, and as one JSON file."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from interlingua.config import to_mapping
from interlingua.errors import TaskError
from interlingua.files import atomic_write
from interlingua.quickstart.catalogues import Source
from interlingua.quickstart.demo import Demonstration
from interlingua.quickstart.scores import MIN_MESSAGES, Average, LanguageScore, Script

FORMAT = "interlingua-quickstart-1"
SCRIPTS: dict[Script, str] = {"other": "other scripts", "latin": "Latin script"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Findings:
    """Everything the quickstart found out."""

    date: str
    """ISO 8601, UTC."""
    seconds: Mapping[str, float]
    """Wall time of each part."""
    sources: Sequence[Source]
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
    """What to try next."""
    versions: Mapping[str, str]

    def average(self, kind: str, script: Script) -> Average | None:
        """One of the averages, if any language counts in it."""
        return next((a for a in self.averages if a.kind == kind and a.script == script), None)

    def require(self, ratio: float) -> None:
        """Makes sure that the encoder beats character n-grams across scripts, on sentences.

        Args:
            ratio: how many times their P@1 is required.

        Raises:
            TaskError: it is less, or no language of another script counts.
        """
        other = self.average("sentences", "other")
        if other is None:
            raise TaskError(f"no language in another script has {MIN_MESSAGES} held-out sentences; add catalogues")
        if other.ratio < ratio:
            raise TaskError(
                f"across scripts P@1 is {other.model:.3f}, {other.ratio:.2f} times that of character n-grams; "
                f"{ratio:g} times is required: give it more --budget-seconds"
            )


def write_json(findings: Findings, path: Path) -> None:
    """Writes the findings as JSON: fractions, never percent."""
    with atomic_write(path) as file:
        json.dump({"format": FORMAT, **to_mapping(findings)}, file, ensure_ascii=False, indent=1)
        file.write("\n")


def write_html(findings: Findings, path: Path) -> None:
    """Writes the report page."""
    template = (importlib.resources.files("interlingua.quickstart") / "report.html").read_text(encoding="utf-8")
    with atomic_write(path) as file:
        file.write(Template(template).substitute(_parts(findings)))


def headline(findings: Findings) -> str:
    """The result in one sentence."""
    other = findings.average("sentences", "other")
    if other is None:
        return f"An encoder of {findings.languages} languages, trained from scratch"
    return (
        f"An encoder of {findings.languages} languages, trained from scratch, finds {other.model:.0%} of the "
        f"translations across scripts; character n-grams find {other.tfidf:.0%}"
    )


def verdict(findings: Findings) -> str:
    """How the encoder stands to character n-grams, for both kinds of script, whichever way it went."""
    parts = []
    for average in findings.averages:
        how = "ahead of" if average.model > average.tfidf else "not ahead of"
        parts.append(
            f"{average.kind.capitalize()} in {SCRIPTS[average.script]}: P@1 {average.model:.2f}, {how} character "
            f"n-grams' {average.tfidf:.2f}."
        )
    parts.append(
        "In Latin script n-grams are strong: languages share names, loan words and product names with English. "
        "Across scripts little is shared, and what is found there was learned."
    )
    return " ".join(parts)


def _parts(findings: Findings) -> dict[str, str]:
    unavailable = "; ".join(f"{name}: {why}" for name, why in findings.unavailable.items())
    return {
        "date": escape(findings.date),
        "headline": escape(headline(findings)),
        "lead": escape(
            f"{findings.training_pairs:,} translated messages of public software, "
            f"{findings.seconds['train']:.0f} seconds of training, {findings.parameters / 1e6:.1f} million weights. "
            "None of the messages below was seen in training, neither side of it, in any language."
        ),
        "tiles": "".join(map(_tile, findings.averages)),
        "protocol": escape(
            "P@1, the mean of both directions: is the nearest message, by cosine, the translation? Candidates are all "
            "held-out sentences (three English words or more) of the language. Shown: languages with "
            f"{MIN_MESSAGES} or more."
        ),
        "charts": "".join(_chart(findings.scores, script) for script in SCRIPTS),
        "averages": "".join(map(_average_row, findings.averages)),
        "verdict": escape(verdict(findings)),
        "demonstration_note": escape(
            "English sentences the encoder never saw, and the nearest held-out sentence of each language; "
            "✓ where it is the translation."
        ),
        "demonstration": "".join(map(_demonstration, findings.demonstrations)),
        "training": escape(
            f"EMS (cross-lingual token reconstruction and contrastive learning), {findings.steps:,} steps, "
            f"{findings.pairs_seen:,} pairs seen. " + _times(findings.seconds)
        ),
        "curve": _curve(findings.loss),
        "language_count": str(len({score.code for score in findings.scores})),
        "languages": "".join(map(_language_row, sorted(findings.scores, key=lambda s: (s.name, s.kind)))),
        "sources": "".join(map(_source_row, findings.sources)),
        "sources_note": escape(
            "Read from the packages' own catalogues; the text stays under their licences and none of it is passed on."
            + (f" Could not be fetched: {unavailable}." if unavailable else "")
        ),
        "commands": escape("\n".join(findings.commands)),
        "footer": escape(" · ".join(f"{name} {version}" for name, version in findings.versions.items())),
    }


def _tile(average: Average) -> str:
    return (
        f'<div class="tile"><b>{average.model:.2f}</b><span>{escape(average.kind)}, {SCRIPTS[average.script]} '
        f"({average.languages} languages)<br>TF-IDF {average.tfidf:.2f} · random {average.random:.3f}</span></div>"
    )


def _chart(scores: Sequence[LanguageScore], script: Script) -> str:
    shown = [s for s in scores if s.kind == "sentences" and s.script == script and s.messages >= MIN_MESSAGES]
    if not shown:
        return ""
    rows = "".join(
        f'<span class="name">{escape(s.name)}</span>'
        f'<span class="bar" title="{escape(s.name)}: encoder {s.model_mean:.3f}, TF-IDF {s.tfidf_mean:.3f}, '
        f'{s.messages} messages"><i style="width:{100 * s.model_mean:.1f}%"></i>'
        f'<u style="left:{100 * s.tfidf_mean:.1f}%"></u></span><span class="value">{s.model_mean:.2f}</span>'
        for s in sorted(shown, key=lambda s: -s.model_mean)
    )
    return f'<h3>{SCRIPTS[script].capitalize()}</h3><div class="chart">{rows}</div>'


def _average_row(average: Average) -> str:
    measures = (f"<b>{average.model:.3f}</b>", f"{average.tfidf:.3f}", f"{average.ratio:.1f}x", f"{average.random:.3f}")
    return _row(average.kind, SCRIPTS[average.script], *measures, average.languages)


def _language_row(score: LanguageScore) -> str:
    measures = (score.random, *score.tfidf, *score.model)
    return _row(escape(score.name), score.kind, score.messages, *(f"{measure:.3f}" for measure in measures))


def _source_row(source: Source) -> str:
    cells = (source.name, source.version or "", source.licence, f"{source.catalogues:,}", f"{source.pairs:,}")
    return _row(*map(escape, cells))


def _demonstration(demonstration: Demonstration) -> str:
    rows = "".join(
        f'<tr><td>{escape(n.language)}</td><td dir="auto">{escape(n.text)}</td><td>{n.cosine:.2f}</td>'
        f"<td>{'<span class=right>✓</span>' if n.right else '<span class=wrong>✗</span>'}</td></tr>"
        for n in demonstration.neighbours
    )
    table = f'<div class="scroll"><table class="text neighbours">{rows}</table></div>'
    return f"<h3>“{escape(demonstration.query)}”</h3>{table}"


def _curve(loss: Sequence[tuple[int, float]]) -> str:
    """The training loss as an inline drawing."""
    if len(loss) < 2:
        return ""
    width = 720
    height = 200
    left = 46
    bottom = 24
    last = loss[-1][0]
    low = min(value for _, value in loss)
    high = max(value for _, value in loss)
    span = high - low or 1.0

    def x(step: float) -> float:
        return left + (width - left - 8) * step / last

    def y(value: float) -> float:
        return 10 + (height - bottom - 10) * (high - value) / span

    points = " ".join(f"{x(step):.1f},{y(value):.1f}" for step, value in loss)
    marks = "".join(
        f'<text x="{left - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{value:.1f}</text>'
        f'<line x1="{left}" x2="{width - 8}" y1="{y(value):.1f}" y2="{y(value):.1f}" stroke="var(--line)"/>'
        for value in (low, (low + high) / 2, high)
    )
    return (
        f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="Training loss by step" font-size="11" '
        f'fill="var(--soft)">{marks}<polyline points="{points}" fill="none" stroke="var(--model)" stroke-width="2"/>'
        f'<text x="{left}" y="{height - 6}">step 0</text>'
        f'<text x="{width - 8}" y="{height - 6}" text-anchor="end">step {last:,}; loss in nats</text></svg>'
    )


def _times(seconds: Mapping[str, float]) -> str:
    parts = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    return f"Time: {parts}; {sum(seconds.values()):.0f} s in all."


def _row(*cells: Any) -> str:
    return "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
