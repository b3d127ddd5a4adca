"""Before and after: the measures of two models side by side, with their differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlingua.analysis.record import Analysis, Measure
from interlingua.errors import ConfigError
from interlingua.evaluation.scores import Items
from interlingua.evaluation.significance import Difference, paired_bootstrap


class Change(NamedTuple):
    """A measure of two models.

    Attributes:
        before: the measure of the first model.
        after: the measure of the second model.
        difference: second minus first.
        tested: the result of the paired bootstrap over the sentences, if the measure is a mean
            over them.
    """

    before: Measure
    after: Measure
    difference: float
    tested: Difference | None

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``unclear``, which means that the interval holds 0.

        It is ``seems better`` or ``seems worse`` if there is no interval. It is empty if there is
        no difference, or if neither direction is the good one.
        """
        if self.before.better is None or (self.tested is None and self.difference == 0):
            return ""
        if self.tested is not None and self.tested.low <= 0 <= self.tested.high:
            return "unclear"
        is_better = (self.difference > 0) == (self.before.better == "higher")
        verdict = "better" if is_better else "worse"
        if self.tested is None:
            return f"seems {verdict}"
        return verdict


def changes(before: Analysis, after: Analysis) -> list[Change]:
    """Return the measures that both analyses have, in the first one's order.

    Raises:
        ConfigError: they differ in analysis, version, settings or texts, so that their differences
            have no meaning.
    """
    for what in ("task", "version", "data_sha256", "settings", "languages"):
        sides = getattr(before, what), getattr(after, what)
        if sides[0] != sides[1]:
            raise ConfigError(
                f"{before.model} and {after.model} cannot be compared, because {what} is"
                f" {sides[0]!r} in one and {sides[1]!r} in the other; use the same {what} for both"
            )
    # An analysis may lack a measure: a difference relative to a score of 0 does not exist.
    known = after.by_name
    return [_change(one, known[one.name]) for one in before.measures if one.name in known]


def _change(before: Measure, after: Measure) -> Change:
    tested = None
    # Each draw takes the same sentences of both models, as those are hard or easy for both.
    if before.items is not None and after.items is not None:
        first = [{before.name: Items(before.items)}]
        second = [{before.name: Items(after.items)}]
        tested = paired_bootstrap(first, second, [before.name])
    return Change(before, after, after.value - before.value, tested)


def paired(analyses: Sequence[Sequence[Analysis]]) -> list[tuple[Analysis, Analysis]]:
    """Return the pairs of analyses that both models have.

    Args:
        analyses: of the first model, and of the second.
    """
    first, second = analyses
    by_task = {analysis.task: analysis for analysis in second}
    return [(analysis, by_task[analysis.task]) for analysis in first if analysis.task in by_task]
