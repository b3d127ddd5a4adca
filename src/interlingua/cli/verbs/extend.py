"""``interlingua extend MODEL --pairs FILE --lang xxx -o DIR``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from interlingua.adapt.settings import ExtendSettings
from interlingua.cli.options import make_command
from interlingua.report.tables import Table
from interlingua.verbs.extend import run_extend

if TYPE_CHECKING:
    from interlingua.adapt.extend import ExtendResult


@make_command(ExtendSettings, quiet="Print only the tables.")
def extend(options: ExtendSettings, quiet: bool) -> None:
    """Add a language to a model; print its gain and the loss of the other languages."""
    result = run_extend(options, progress=not quiet)
    for line in extension_table(result):
        print(line)


def extension_table(result: ExtendResult) -> Iterator[str]:
    """Yield lines on the vocabulary, the language's sets, the forgetting check and the model."""
    cut = result.vocabulary
    yield (
        f"vocabulary: {cut.before.characters_per_token:.2f} characters per token,"
        f" {cut.premium:.2f} times as many tokens as the pivot language,"
        f" {100 * cut.before.unknown_share:.2f} % unknown"
    )
    if cut.pieces:
        yield (
            f"added {cut.pieces:,} pieces: {cut.after.characters_per_token:.2f} characters per"
            f" token, {cut.premium_after:.2f} times as many tokens as the pivot language;"
            f" {cut.changed_texts:,} of {cut.kept_texts:,} texts in other languages are tokenized"
            " differently"
        )
    # First the sets of the new language, then the sets that measure forgetting.
    retrieval = list(result.before.retrieval)
    others = [name for name in retrieval if name not in result.own]
    rows = []
    for name in (*result.own, *others):
        rows.append(_row(name, result.before.retrieval[name], result.after.retrieval[name]))
    if result.lost is not None:
        before = sum(result.before.retrieval[name] for name in others) / len(others)
        rows.append(_row("mean of the other languages, P@1", before, before - result.lost))
    for name, value in result.before.similarity.items():
        rows.append(_row(f"{name}, Spearman", value, result.after.similarity[name]))
    yield from Table("", ["P@1, %", "before", "after", "change"], rows).text()
    balance = f"gain: {result.gained:.1f} points of P@1 in {result.language}"
    if result.lost is not None:
        balance += (
            f"; loss: {result.lost:.2f} points on the mean of the {len(others)} other languages"
        )
    yield balance
    yield f"model: {result.model}"


def _row(name: str, before: float, after: float) -> list[str]:
    return [name, f"{before:.2f}", f"{after:.2f}", f"{after - before:+.2f}"]
