"""Draw Figure 3 or 4 of Hu et al. (2022): MRR@100 by the size of a corpus, with 95 % intervals.

    python experiments/arms.py experiments/multilingual_ir/figure3.toml
    python experiments/multilingual_ir/figures.py reports/multilingual_ir/figure3/results

A point is the mean over an arm's seeds of MRR@100, itself a mean over Mr. TyDi's languages. The
arms are called by their size. The band is Student's 95 % interval of that mean; the dashed line is
the value of the smallest size.
"""

from __future__ import annotations

import argparse
import math
import re
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from interlingua.errors import DataError
from interlingua.evaluation.results import read_results
from interlingua.evaluation.scores import TaskResult
from interlingua.report.pages import macro

ARM = re.compile(r"(\d+)-seed\d+")
METRIC = "mrr_at_100"
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Quantiles 0.975 of Student's t by degrees of freedom, from 1; more seeds get the last."""


class Point(NamedTuple):
    """The runs of one size: their mean and its interval, which has no width for one run."""

    label: str
    value: float
    low: float
    high: float


def values_by_size(results: Sequence[TaskResult], task: str) -> dict[int, list[float]]:
    """Return the runs' MRR@100, a mean over all languages, by the number in their names."""
    found: dict[int, list[float]] = {}
    for result in results:
        name = re.fullmatch(ARM, str(result.provenance["model"]["name"]))
        if result.task != task or name is None:
            continue
        # The first group is that of all languages.
        of_all = next(iter(result.groups.values()))
        found.setdefault(int(name[1]), []).append(of_all[METRIC])
    return dict(sorted(found.items()))


def points(found: dict[int, list[float]]) -> list[Point]:
    """Return mean and interval of each size."""
    shown = []
    for size, values in found.items():
        mean = statistics.fmean(values)
        half = 0.0
        if len(values) > 1:
            quantile = STUDENT[min(len(values) - 2, len(STUDENT) - 1)]
            half = quantile * statistics.stdev(values) / math.sqrt(len(values))
        shown.append(Point(f"{size:,}", mean, mean - half, mean + half))
    return shown


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("results", nargs="+", type=Path, help="result files, or folders of them")
    parser.add_argument("-o", "--output", type=Path, default=Path("figure.svg"))
    parser.add_argument("--task", default="mr_tydi", help="the task to draw")
    options = parser.parse_args()
    try:
        found = values_by_size(read_results(options.results), options.task)
    except DataError as error:
        parser.error(str(error))
    if len(found) < 2:
        parser.error(
            f"{options.task} has results of {len(found)} sizes; expected two or more, of models"
            " called SIZE-seedN, as experiments/arms.py calls them"
        )
    drawn = macro("size_curve")(points(found), f"MRR@100, {options.task}")
    options.output.write_text(drawn.strip() + "\n", encoding="utf-8")
    print(f"written: {options.output}")


if __name__ == "__main__":
    main()
