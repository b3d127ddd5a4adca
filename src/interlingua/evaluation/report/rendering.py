"""Results as text: one in the terminal, many side by side as Markdown, LaTeX or tidy CSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interlingua.config.languages import Language, resolve_language
from interlingua.config.registry import check_choice
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.report.comparison import (
    SIGNIFICANT,
    UNLIKE,
    ComparisonCell,
    ComparisonTable,
    Row,
    direction,
    label,
)
from interlingua.evaluation.results import TABLE_SUFFIX
from interlingua.evaluation.scores import SubsetScores, TaskResult
from interlingua.report.tables import Table, escape_latex, escape_markdown
from interlingua.storage.files import PathLike

if TYPE_CHECKING:
    import rich.table

_FORMATS = {
    "markdown": (".md", ".markdown"),
    "latex": (".tex",),
    "csv": (".csv",),
    "html": (".html", ".htm"),
    "jsonl": (TABLE_SUFFIX,),
}
"""Formats of a report, and the suffixes that select them."""
_MOST_COLUMNS = 21
"""Maximum number of columns of a table in the terminal: 20 languages and their names."""
CSV_COLUMNS = (
    "task", "rows", "metric", "model", "value", "sd", "baseline", "difference", "low", "high",
    "p_value", "comparable",
)  # fmt: skip


def result_terminal_tables(result: TaskResult) -> list[rich.table.Table]:
    """Return tables of the scores per language pair and per group, for rich to print."""
    metrics = list(result.subsets[0].scores)
    # error rates are small, so they get a decimal more
    digits = 1 if result.higher_is_better else 2
    lines = []
    for subset in result.subsets:
        scores = _percent(subset.scores, metrics, digits)
        lines.append([subset.name, language_names(subset), str(subset.pairs), *scores])
    by_pair = Table(
        title=f"{result.task} (protocol version {result.version}):"
        f" {direction(result, result.main_metric)}, %",
        head=["pair", "language", "sentences", *map(label, metrics)],
        rows=lines,
        words=(0, 1),
    )
    # the metrics of all groups: a group may lack some
    of_groups: dict[str, None] = {}
    for group_scores in result.groups.values():
        of_groups |= dict.fromkeys(group_scores)
    group_metrics = list(of_groups)
    matrices, notes = _matrices(result.tables)
    by_group = Table(
        title="means over groups of languages (name_present_of_size), %",
        head=["group", *map(label, group_metrics)],
        rows=[
            [group, *_percent(group_scores, group_metrics, digits)]
            for group, group_scores in result.groups.items()
        ],
        notes=notes,
    )
    return [table.terminal() for table in (by_pair, by_group, *matrices)]


def _matrices(tables: Mapping[str, Mapping[str, float]]) -> tuple[list[Table], list[str]]:
    """Return a result's tables that are displayed in full, and a note on each other table."""
    shown = []
    notes = []
    for name, cells in tables.items():
        table = _matrix(name, cells)
        # values are compared as they are shown: numbers with the same rounded value count as one
        values = set(_percent(cells, list(cells), 1))
        if len(values) == 1 and len(cells) > 1:
            notes.append(f"{table.title}: {values.pop()} in all cells")
        elif len(table.head) > _MOST_COLUMNS:
            notes.append(f"{table.title}: see the result file")
        else:
            shown.append(table)
    return shown, notes


def _matrix(name: str, cells: Mapping[str, float]) -> Table:
    """Build a table of a result, ``row-column`` -> fraction, in percent."""
    pairs = [tuple(cell.split("-")) for cell in cells]
    rows = list(dict.fromkeys(row for row, _ in pairs))
    has_cells = dict.fromkeys(column for _, column in pairs)
    # in the rows' order, so that a language's own cell is on the diagonal
    in_order = dict.fromkeys([*rows, *has_cells])
    columns = [column for column in in_order if column in has_cells]
    lines = []
    for row, shown in zip(rows, _short(rows), strict=True):
        keys = [f"{row}-{column}" for column in columns]
        lines.append([shown, *_percent(cells, keys, 1)])
    return Table(f"{label(name)}, %", ["from \\ to", *_short(columns)], lines)


def _percent(values: Mapping[str, float], names: Sequence[str], digits: int) -> list[str]:
    """Return the values of these names in percent, empty if missing."""
    return [f"{100 * values[name]:.{digits}f}" if name in values else "" for name in names]


def _short(codes: Sequence[str]) -> list[str]:
    """Return language codes without their scripts, ``deu``, if they remain distinct."""
    short = [code.partition("_")[0] for code in codes]
    if len(set(short)) < len(codes):
        return list(codes)
    return short


def language_names(subset: SubsetScores) -> str:
    """Return the first language if the second one is equal or English; otherwise, both."""
    first, second = map(look_up, subset.languages)
    if second in (first, resolve_language("eng_Latn")):
        return first.name
    return f"{first.name} - {second.name}"


def look_up(code: str) -> Language:
    """Return the language of a code; an unknown code, as in mteb's results, is its own name."""
    try:
        return resolve_language(code)
    except DataError:
        return Language(code, code, None, code, code.partition("_")[2], "unknown family")


def cut_texts(results: Sequence[TaskResult]) -> str | None:
    """Return a sentence about the texts that the encoder cut.

    None if no text was cut.
    """
    cuts = []
    for result in results:
        made: Any = result.provenance
        # 0, or None if the encoder does not report it
        if made["truncated_texts"]:
            cuts.append(f"{made['truncated_texts']:,} of {made['texts']:,} texts of {result.task}")
    if not cuts:
        return None
    model: Any = results[0].provenance["model"]
    return f"{', '.join(cuts)} were cut to {model['max_tokens']} tokens"


def format_of(format: str | None, output: PathLike | None) -> str:
    """Return the requested format, else the one of the file's suffix, else Markdown.

    Raises:
        ConfigError: the format is unknown, or no format has the suffix.
    """
    if format is not None:
        check_choice("format", format, _FORMATS)
        return format
    if output is None:
        return "markdown"
    suffix = Path(output).suffix
    for name, suffixes in _FORMATS.items():
        if suffix in suffixes:
            return name
    known = ", ".join(suffix for suffixes in _FORMATS.values() for suffix in suffixes)
    raise ConfigError(f"{output}: expected a suffix of: {known}; change the name, or add --format")


def render_tables(
    tables: Sequence[ComparisonTable], format: str = "markdown", *, rows: str = "scores"
) -> str:
    """Render tables as text; in Markdown and LaTeX the best value of a row is bold.

    Args:
        tables: from ``comparison.compare_results``.
        format: ``markdown``, ``latex`` or ``csv``; CSV has one line per score, as a fraction, for
            all tables together.
        rows: ``scores``, or ``arms`` to transpose the tables, so that each column becomes a row.

    Raises:
        ConfigError: the format is unknown, or ``arms`` is requested for csv, which has no tables to
            transpose.
    """
    check_choice("format", format, ("markdown", "csv", "latex"))
    check_choice("rows", rows, ("scores", "arms"))
    if format == "csv":
        if rows == "arms":
            raise ConfigError(
                "--rows cannot be combined with CSV, which has one line per score; remove --rows"
            )
        return _csv(tables)
    if format == "latex":
        return "\n".join(_styled(table, _LATEX, rows).latex() for table in tables)
    return "\n".join(_styled(table, _MARKDOWN, rows).markdown() for table in tables)


class Style(NamedTuple):
    """The markup of a format for special numbers and names."""

    bold: str
    differs: str
    spread: str
    escape: Callable[[str], str]


_MARKDOWN = Style(
    bold="**{}**", differs="{} " + SIGNIFICANT, spread="{} ± {}", escape=escape_markdown
)
_LATEX = Style(
    bold=r"\textbf{{{}}}", differs=r"{}$^{{\dagger}}$", spread=r"{} $\pm$ {}", escape=escape_latex
)


def _styled(table: ComparisonTable, style: Style, rows: str) -> Table:
    """Convert a comparison to a table with formatted cells, transposed for ``arms``."""
    head = [table.corner]
    for name, is_comparable in zip(table.columns, table.comparable, strict=True):
        head.append(name if is_comparable else f"{name} {UNLIKE}")
    lines = [[style.escape(name) for name in head]]
    lines += [[style.escape(row.name), *_cells(row, table.comparable, style)] for row in table.rows]
    if rows == "arms":
        # the head and the first column were exchanged, so the corner now names the former columns
        lines = [list(line) for line in zip(*lines, strict=True)]
        lines[0][0] = "arm"
    notes = [*table.notes]
    if not all(table.comparable):
        notes.append(f"{UNLIKE} cannot be compared with the first column")
    return Table(table.title, lines[0], lines[1:], notes)


def _cells(row: Row, comparable: Sequence[bool], style: Style) -> list[str]:
    """Return the row's scores as text, with bold, spread and mark of significance."""
    texts = []
    for cell, is_best in zip(row.cells, best_cells(row, comparable), strict=True):
        written = ""
        if cell is not None:
            written = _with_spread(cell, row, style)
            if is_best:
                written = style.bold.format(written)
            if cell.differs:
                written = style.differs.format(written)
        texts.append(written)
    return texts


def best_cells(row: Row, comparable: Sequence[bool]) -> list[bool]:
    """Return which cells contain the row's best score, as rounded for display.

    No cell is best if nothing can be compared.
    """
    # None for a cell that takes no part
    ranked: list[float | None] = []
    for cell, is_comparable in zip(row.cells, comparable, strict=True):
        if cell is None or not is_comparable:
            ranked.append(None)
        else:
            ranked.append(round(100 * cell.value, row.digits))
    values = [value for value in ranked if value is not None]
    # a cost has no best value, and a single score has no other to be compared with
    if len(values) < 2 or row.higher_is_better is None:
        return [False] * len(ranked)
    best = max(values) if row.higher_is_better else min(values)
    return [value == best for value in ranked]


def _with_spread(cell: ComparisonCell, row: Row, style: Style) -> str:
    value = f"{row.scale * cell.value:,.{row.digits}f}"
    if cell.spread is None:
        return value
    return style.spread.format(value, f"{row.scale * cell.spread:,.{row.digits}f}")


def _csv(tables: Sequence[ComparisonTable]) -> str:
    """Return tidy CSV: a line per score or cost, in the result files' units.

    These are fractions, seconds and bytes.
    """
    lines: list[Sequence[Any]] = []
    for table in tables:
        for row in table.rows:
            names = (row.task, row.of, row.metric)
            columns = zip(table.columns, table.comparable, row.cells, strict=True)
            for model, is_comparable, cell in columns:
                if cell is not None:
                    numbers = _csv_numbers(cell, table.baseline)
                    lines.append((*names, model, *numbers, "yes" if is_comparable else "no"))
    return Table("", CSV_COLUMNS, lines).csv()


def _csv_numbers(cell: ComparisonCell, baseline: str | None) -> list[str | None]:
    """Return the columns from ``value`` to ``p_value``; empty strings if not measured."""
    spread = ""
    if cell.spread is not None:
        spread = f"{cell.spread:.6g}"
    numbers: list[str | None] = [f"{cell.value:.6g}", spread]
    if cell.difference is None:
        return numbers + [""] * 5
    return [*numbers, baseline, *(f"{number:.6g}" for number in cell.difference)]
