"""Tables: one result in the terminal, many results side by side as Markdown, CSV or LaTeX. Scores in percent."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.table import Table

from interlingua.evaluation.comparison import MARK, Cell, Comparison, Row, direction, label
from interlingua.evaluation.task import SubsetScores, TaskResult, check_choice
from interlingua.languages import resolve


def terminal_tables(result: TaskResult) -> list[Table]:
    """The scores per language pair and per group, for rich to print."""
    metrics = list(result.subsets[0].scores)
    digits = _digits(result)
    by_pair = Table(title=f"{result.task} (protocol version {result.version}): {direction(result)}, %")
    for column in ("pair", "language", "sentences", *map(label, metrics)):
        by_pair.add_column(column, justify="left" if column in ("pair", "language") else "right")
    for subset in result.subsets:
        scores = [f"{100 * subset.scores[metric]:.{digits}f}" for metric in metrics]
        by_pair.add_row(subset.name, _languages(subset), str(subset.pairs), *scores)
    by_group = Table(title="means over groups of languages (name_present_of_size), %")
    by_group.add_column("group")
    of_groups = dict.fromkeys(metric for scores_of in result.groups.values() for metric in scores_of)
    for metric in of_groups:
        by_group.add_column(label(metric), justify="right")
    for group, scores_of in result.groups.items():
        shown = (scores_of.get(metric) for metric in of_groups)
        by_group.add_row(group, *("" if score is None else f"{100 * score:.{digits}f}" for score in shown))
    return [by_pair, by_group]


def _languages(subset: SubsetScores) -> str:
    """The language that is not English, or both."""
    first, second = (resolve(code) for code in subset.languages)
    return first.name if second in (first, resolve("eng_Latn")) else f"{first.name} - {second.name}"


def cut_texts(results: Sequence[TaskResult]) -> str | None:
    """A sentence on the texts that the encoder did not read to their end; None if there were none."""
    made: list[Any] = [{"task": result.task, **result.provenance} for result in results]
    cuts = [f"{m['truncated_texts']:,} of {m['texts']:,} texts of {m['task']}" for m in made if m["truncated_texts"]]
    return f"{', '.join(cuts)} were cut to {made[0]['model']['max_tokens']} tokens" if cuts else None


def render(table: Comparison, format: str = "markdown", *, rows: str = "scores") -> str:
    """A table as text; the best value of a row stands in bold in Markdown and LaTeX.

    Args:
        table: from ``comparison.compare``.
        format: markdown, csv or latex.
        rows: ``scores``, or ``arms`` to turn the table over: a row per column of it.

    Raises:
        ConfigError: there is no such format.
    """
    writers = {"markdown": (_markdown, MARKDOWN), "csv": (_csv, CSV), "latex": (_latex, LATEX)}
    check_choice("format", format, writers)
    check_choice("rows", rows, ("scores", "arms"))
    write, style = writers[format]
    columns = [name if alike else f"{name} {MARK}" for name, alike in zip(table.columns, table.comparable, strict=True)]
    lines = [[table.corner, *columns], *([row.name, *_cells(row, table.comparable, style)] for row in table.rows)]
    if style is CSV:
        lines = _with_spread_columns(lines, table)
    if rows == "arms":
        lines = [list(line) for line in zip(*lines, strict=True)]
        lines[0][0] = "arm"
    unlike = [] if all(table.comparable) else [f"{MARK} can't be compared with the first column"]
    return write(table.title, lines, [*table.notes, *unlike])


class Style(NamedTuple):
    """How a format writes what is special about a number."""

    bold: str
    differs: str
    spread: str
    cost: str


MARKDOWN = Style(bold="**{}**", differs=r"{}\*", spread="{} ± {}", cost="{:,.0f}")
CSV = Style(bold="{}", differs="{}", spread="{}", cost="{:.0f}")
LATEX = Style(bold=r"\textbf{{{}}}", differs="{}$^{{*}}$", spread=r"{} $\pm$ {}", cost="{:,.0f}")


def _cells(row: Row, comparable: Sequence[bool], style: Style) -> list[str]:
    if row.higher_is_better is None:
        return ["" if cell is None else _with_spread(cell, 1, style.cost, style) for cell in row.cells]
    number = f"{{:.{row.digits}f}}"
    shown = ["" if cell is None else number.format(100 * cell.value) for cell in row.cells]
    ranked = [float(text) for text, alike in zip(shown, comparable, strict=True) if text and alike]
    best = (max if row.higher_is_better else min)(ranked) if len(ranked) > 1 else None
    texts = []
    for cell, text, alike in zip(row.cells, shown, comparable, strict=True):
        if cell is None:
            texts.append("")
            continue
        written = _with_spread(cell, 100, number, style)
        written = style.bold.format(written) if alike and best is not None and float(text) == best else written
        texts.append(style.differs.format(written) if cell.differs else written)
    return texts


def _with_spread(cell: Cell, scale: float, number: str, style: Style) -> str:
    value = number.format(scale * cell.value)
    return value if cell.spread is None else style.spread.format(value, number.format(scale * cell.spread))


def _with_spread_columns(lines: list[list[str]], table: Comparison) -> list[list[str]]:
    """A column of standard deviations behind each that has any, so that every cell is one number."""
    wider = [list(line[:1]) for line in lines]
    for place, name in enumerate(table.columns):
        spread = [row.cells[place] for row in table.rows]
        for new, line in zip(wider, lines, strict=True):
            new.append(line[1 + place])
        if any(cell is not None and cell.spread is not None for cell in spread):
            wider[0].append(f"{name} sd")
            for new, row, cell in zip(wider[1:], table.rows, spread, strict=True):
                scale, digits = (1, 0) if row.higher_is_better is None else (100, row.digits + 1)
                sd = None if cell is None else cell.spread
                new.append("" if sd is None else f"{scale * sd:.{digits}f}")
    return wider


def _markdown(title: str, lines: list[list[str]], notes: list[str]) -> str:
    written = [f"### {title}", "", _markdown_line(lines[0]), "|---|" + "---:|" * (len(lines[0]) - 1)]
    written += map(_markdown_line, lines[1:])
    written += [""] * bool(notes) + [f"- {note.replace('*', chr(92) + '*', 1)}" for note in notes]
    return "\n".join(written) + "\n"


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _csv(title: str, lines: list[list[str]], notes: list[str]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([title.partition(":")[0], *lines[0][1:]])
    writer.writerows(lines[1:])
    return text.getvalue()


def _latex(title: str, lines: list[list[str]], notes: list[str]) -> str:
    written = [f"% {title}", *(f"% {note}" for note in notes)]
    written += [f"\\begin{{tabular}}{{l{'r' * (len(lines[0]) - 1)}}}", "\\hline"]
    escaped = [[_escape(cell) if "\\" not in cell and "$" not in cell else cell for cell in line] for line in lines]
    written += [" & ".join(escaped[0]) + r" \\", "\\hline"]
    written += [" & ".join(line) + r" \\" for line in escaped[1:]]
    return "\n".join([*written, "\\hline", "\\end{tabular}"]) + "\n"


def _escape(text: str) -> str:
    return "".join(f"\\{c}" if c in "&%$#_{}" else c for c in text).replace(MARK, r"$^{\dagger}$")


def _digits(result: TaskResult) -> int:
    return 1 if result.higher_is_better else 2
