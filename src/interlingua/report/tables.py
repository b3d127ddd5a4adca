"""A table and its forms: for a terminal, as plain text, in Markdown, LaTeX, CSV and HTML."""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    import rich.table

T = TypeVar("T")

# Replaced one by one and in a single pass, so that no replacement is replaced again.
LATEX_CHARACTERS = {character: f"\\{character}" for character in "&%$#_{}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "†": r"$^{\dagger}$",
    "‡": r"$^{\ddagger}$",
}


@dataclass(frozen=True)
class Table:
    """Rows of text below a head; the text of cells is already escaped for the form.

    Attributes:
        title: title above the table.
        head: the columns' names.
        rows: each with as many cells as the head; in a terminal an empty row is a line between
            rows.
        notes: lines below the table.
        words: indices of columns that hold words, aligned left.
    """

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    words: Collection[int] = (0,)

    def terminal(self, *, is_titled_left: bool = False) -> rich.table.Table:
        """Return a table for rich to print.

        Args:
            is_titled_left: align the title left, in plain text, instead of centering it.
        """
        import rich.table

        table = rich.table.Table(title=self.title or None, caption="\n".join(self.notes) or None)
        if is_titled_left:
            table.title_justify = "left"
        # Numbers are aligned to the right, so that their digits are below each other.
        sides: list[Literal["left", "right"]] = self._sides("left", "right")
        for name, side in zip(self.head, sides, strict=True):
            table.add_column(name, justify=side)
        for row in self.rows:
            if row:
                table.add_row(*row)
            else:
                table.add_section()
        return table

    def markdown(self) -> str:
        """Return a heading (if there is a title), the table, and a list of notes."""
        lines = []
        if self.title:
            lines += [f"### {self.title}", ""]
        rules = self._sides("---", "---:")
        lines += [_markdown_row(self.head), f"|{'|'.join(rules)}|"]
        lines += [_markdown_row(row) for row in self.rows]
        # Without an empty line the notes would be one more row.
        if self.notes:
            lines.append("")
        lines += [f"- {note}" for note in self.notes]
        return "\n".join(lines) + "\n"

    def latex(self) -> str:
        """Return a ``tabular`` with booktabs; title and notes are comments."""
        lines = [rf"% {self.title}; \usepackage{{booktabs}}"]
        lines += [f"% {note}" for note in self.notes]
        columns = "".join(self._sides("l", "r"))
        lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule"]
        lines += [_latex_row(self.head), r"\midrule"]
        lines += [_latex_row(row) for row in self.rows]
        lines += [r"\bottomrule", r"\end{tabular}"]
        return "\n".join(lines) + "\n"

    def text(self) -> list[str]:
        """Return lines of plain text: title, head, rows in columns, notes."""
        cells = [self.head, *self.rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        sides = self._sides("<", ">")
        lines = []
        if self.title:
            lines.append(self.title)
        for row in cells:
            columns = zip(row, sides, widths, strict=True)
            padded = [f"{cell:{side}{width}}" for cell, side, width in columns]
            # Without rstrip, lines with a last column of words would end in spaces.
            lines.append("  ".join(padded).rstrip())
        return [*lines, *self.notes]

    def csv(self) -> str:
        """Return head and rows as CSV; title and notes are left out."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerows([self.head, *self.rows])
        return text.getvalue()

    def html(self) -> str:
        """Return an HTML table with the title above and the notes below; cells are escaped."""
        from interlingua.report.pages import macro

        return str(macro("table")(self))

    def _sides(self, left: T, right: T) -> list[T]:
        """Return ``left`` for the columns of words and ``right`` for those of numbers."""
        return [(right, left)[index in self.words] for index in range(len(self.head))]


def escape_markdown(text: str) -> str:
    """Escape a text so that it does not end a cell."""
    return text.replace("|", "\\|")


def escape_latex(text: str) -> str:
    """Escape a text so that it contains no commands."""
    return "".join(LATEX_CHARACTERS.get(character, character) for character in text)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _latex_row(cells: Sequence[str]) -> str:
    return rf"{' & '.join(cells)} \\"
