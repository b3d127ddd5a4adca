"""Tables: one result in the terminal, many results side by side as Markdown, CSV or LaTeX. Scores in percent."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table

from interlingua.evaluation.task import TaskResult, check_choice
from interlingua.languages import resolve

ROWS = ("groups", "languages")


class Comparison(NamedTuple):
    """A table of one task: a row per group or language, a column per result."""

    title: str
    corner: str
    columns: list[str]
    rows: list[tuple[str, list[float | None]]]
    notes: list[str]
    digits: int
    higher_is_better: bool


def terminal_tables(result: TaskResult) -> list[Table]:
    """The scores per language pair and per group, for rich to print."""
    metrics = list(result.subsets[0].scores)
    digits = _digits(result)
    by_pair = Table(title=f"{result.task} (protocol version {result.version}): {_direction(result)}, %")
    for column in ("pair", "language", "sentences", *map(_label, metrics)):
        by_pair.add_column(column, justify="left" if column in ("pair", "language") else "right")
    for subset in result.subsets:
        scores = [f"{100 * subset.scores[metric]:.{digits}f}" for metric in metrics]
        by_pair.add_row(subset.name, resolve(subset.languages[0]).name, str(subset.pairs), *scores)
    by_group = Table(title="means over groups of languages (name_present_of_size), %")
    by_group.add_column("group")
    for metric in metrics:
        by_group.add_column(_label(metric), justify="right")
    for group, scores_of in result.groups.items():
        by_group.add_row(group, *(f"{100 * scores_of[metric]:.{digits}f}" for metric in metrics))
    return [by_pair, by_group]


def cut_texts(results: Sequence[TaskResult]) -> str | None:
    """A sentence on the texts that the encoder did not read to their end; None if there were none."""
    made: list[Any] = [{"task": result.task, **result.provenance} for result in results]
    cuts = [f"{m['truncated_texts']:,} of {m['texts']:,} texts of {m['task']}" for m in made if m["truncated_texts"]]
    return f"{', '.join(cuts)} were cut to {made[0]['model']['max_tokens']} tokens" if cuts else None


def compare(results: Sequence[TaskResult], *, by: str = "groups", metric: str | None = None) -> list[Comparison]:
    """One table per task from any number of results.

    Args:
        results: of any tasks and models.
        by: what stands in the rows, ``groups`` or ``languages``.
        metric: instead of each task's main one; tasks without it are left out.

    Raises:
        ConfigError: no result has that metric, or there are no such rows.
    """
    check_choice("by", by, ROWS)
    if metric is not None:
        known = dict.fromkeys(name for result in results for scores in result.groups.values() for name in scores)
        check_choice("metric", metric, known)
        results = [result for result in results if any(metric in scores for scores in result.groups.values())]
    tasks = dict.fromkeys(result.task for result in results)
    return [_compare([result for result in results if result.task == task], by, metric) for task in tasks]


def render(comparison: Comparison, format: str = "markdown") -> str:
    """A table as text; the best value of a row stands in bold in Markdown and LaTeX.

    Raises:
        ConfigError: there is no such format.
    """
    writers = {"markdown": _markdown, "csv": _csv, "latex": _latex}
    check_choice("format", format, writers)
    return writers[format](comparison)


def _compare(results: list[TaskResult], by: str, metric: str | None) -> Comparison:
    first = results[0]
    metric = metric or first.main_metric
    values = [_values(result, by, metric) for result in results]
    names = list(dict.fromkeys(name for column in values for name in column))
    return Comparison(
        title=f"{first.task}: {_label(metric)}, %, {_direction(first)}",
        corner="language pair" if by == "languages" else "group",
        columns=_column_names(results),
        rows=[(name, [column.get(name) for column in values]) for name in names],
        notes=_notes(results),
        digits=_digits(first),
        higher_is_better=first.higher_is_better,
    )


def _values(result: TaskResult, by: str, metric: str) -> dict[str, float]:
    if by == "languages":
        return {subset.name: subset.scores[metric] for subset in result.subsets if metric in subset.scores}
    return {name: scores[metric] for name, scores in result.groups.items() if metric in scores}


def _column_names(results: list[TaskResult]) -> list[str]:
    models: list[Any] = [result.provenance["model"] for result in results]
    names: list[str] = [model["name"] for model in models]
    full = []
    for name, model, result in zip(names, models, results, strict=True):
        setting = _settings(result)
        alike = names.count(name) > 1
        full.append(f"{name} {model['revision']}{f' ({setting})' if setting else ''}" if alike else name)
    return full


def _settings(result: TaskResult) -> str:
    model: Any = result.provenance["model"]
    values: dict[str, Any] = {option: result.settings[option] for option in result.changed}
    shown = (f"{option}={'+'.join(value) if isinstance(value, list) else value}" for option, value in values.items())
    parts = [*model["overrides"], *shown]
    return ", ".join(parts)


def _notes(results: list[TaskResult]) -> list[str]:
    """What makes columns incomparable, and which settings each column was made with."""
    notes = []
    for what, values in {
        "protocol versions": [result.version for result in results],
        "data": [result.data_sha256[:12] for result in results],
    }.items():
        if len(set(values)) > 1:
            notes.append(f"the columns differ in {what} ({', '.join(values)}) and can't be compared as they are")
    for name, result in zip(_column_names(results), results, strict=True):
        if (setting := _settings(result)) and setting not in name:
            notes.append(f"{name}: {setting}")
    return notes


def _markdown(table: Comparison) -> str:
    lines = [f"### {table.title}", ""]
    lines.append("| " + " | ".join([table.corner, *table.columns]) + " |")
    lines.append("|---|" + "---:|" * len(table.columns))
    for name, values in table.rows:
        lines.append("| " + " | ".join([name, *_cells(table, values, "**{}**")]) + " |")
    lines += [""] * bool(table.notes) + [f"- {note}" for note in table.notes]
    return "\n".join(lines) + "\n"


def _csv(table: Comparison) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([table.title.partition(":")[0], *table.columns])
    writer.writerows([name, *_cells(table, values, "{}")] for name, values in table.rows)
    return text.getvalue()


def _latex(table: Comparison) -> str:
    lines = [f"% {table.title}", *(f"% {note}" for note in table.notes)]
    lines += [f"\\begin{{tabular}}{{l{'r' * len(table.columns)}}}", "\\hline"]
    lines += [" & ".join(map(_escape, [table.corner, *table.columns])) + r" \\", "\\hline"]
    for name, values in table.rows:
        lines.append(" & ".join([_escape(name), *_cells(table, values, "\\textbf{{{}}}")]) + r" \\")
    return "\n".join([*lines, "\\hline", "\\end{tabular}"]) + "\n"


def _cells(table: Comparison, values: list[float | None], bold: str) -> list[str]:
    shown = ["" if value is None else f"{100 * value:.{table.digits}f}" for value in values]
    present = [float(cell) for cell in shown if cell]
    best = (max if table.higher_is_better else min)(present)
    return [bold.format(cell) if cell and len(present) > 1 and float(cell) == best else cell for cell in shown]


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text)


def _label(metric: str) -> str:
    return metric.replace("_", " ")


def _direction(result: TaskResult) -> str:
    return "higher is better" if result.higher_is_better else "lower is better"


def _digits(result: TaskResult) -> int:
    return 1 if result.higher_is_better else 2
