"""Measure models on the tasks of the small model's gates, and print a table.

    gates="python experiments/mini/gates.py --corpus prepared/mini -o reports/mini"
    $gates measure models/multilingual-e5-small --prompt query
    $gates measure mini
    $gates table

``measure`` runs ``interlingua evaluate``, with options that are not its own; what is measured
already is not measured again. The corpus names the languages that the model was trained on.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import numpy as np

from interlingua.corpus.manifest import Manifest
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.tasks.groups import TATOEBA_GROUPS

STSB = ("de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ro", "ru", "sv", "tr", "zh")
"""The languages of STS benchmark besides English."""
MRR = "mrr_at_100_all_languages"
FORMS = ("capitals", "decomposed", "points", "soft_hyphens")
"""Forms that shall not change a vector."""
RESULT_NAMES = {"bucc_best_f1": "bucc_best_f1_dev"}
"""Names of a task's results that differ from its own: only BUCC's training data has answers."""
Rows = dict[str, dict[str, Any]]
"""Subset -> its scores."""


@dataclasses.dataclass(frozen=True)
class Gate:
    """A measure, with what the model is to reach.

    Attributes:
        title: of the row.
        task: results of it are read.
        value: from these results and the trained languages' codes.
        gate: to reach; None if the value is only shown.
        stretch: what is hoped for.
        lower: whether a lower value is better.
        digits: after the point.
    """

    title: str
    task: str
    value: Callable[[Rows, set[str]], float]
    gate: float | None = None
    stretch: float | None = None
    lower: bool = False
    digits: int = 1

    def met(self, value: float) -> str:
        """Describe the result of a value."""
        if self.gate is None or self.stretch is None:
            return ""
        reached = [
            value <= limit if self.lower else value >= limit for limit in (self.gate, self.stretch)
        ]
        return "stretch" if all(reached) else "met" if reached[0] else "not met"


def mean(measure: str, group: Collection[str] | None = None) -> Callable[[Rows, set[str]], float]:
    """Return a function for a measure's mean in percent over a group's pairs, or all rows."""

    def value(rows: Rows, trained: set[str]) -> float:
        chosen = [
            row[measure]
            for name, row in rows.items()
            if group is None or name.split("-")[0] in group
        ]
        return 100 * float(np.mean(chosen))

    return value


def of_trained(measure: str) -> Callable[[Rows, set[str]], float]:
    """Return a function for a measure's mean in percent over pairs of trained languages."""

    def value(rows: Rows, trained: set[str]) -> float:
        chosen = [
            row[measure] for name, row in rows.items() if full_code(name.split("-")[0]) in trained
        ]
        return 100 * float(np.mean(chosen))

    return value


def of(measure: str, *names: str) -> Callable[[Rows, set[str]], float]:
    """Return a function for a measure's mean in percent over the named rows."""
    return lambda rows, trained: 100 * float(np.mean([rows[name][measure] for name in names]))


def xsim_of_14(rows: Rows, trained: set[str]) -> float:
    """Compute the mean error in percent of the languages of Tatoeba-14."""
    return of_trained("xsim")(rows, {full_code(code) for code in TATOEBA_GROUPS["muse"]})


def loss_of_forms(rows: Rows, trained: set[str]) -> float:
    """Compute the mean loss of cosine of sentences in one of ``FORMS``."""
    return 1 - float(
        np.mean([row["cosine"] for name, row in rows.items() if name.split("-")[1] in FORMS])
    )


GATES = (
    Gate(
        "Tatoeba-14, both directions",
        "tatoeba",
        mean("accuracy", TATOEBA_GROUPS["muse"]),
        93.5,
        95.0,
    ),
    Gate(
        "Tatoeba-14, x to English",
        "tatoeba",
        mean("accuracy_forward", TATOEBA_GROUPS["muse"]),
    ),
    Gate(
        "Tatoeba-36, x to English",
        "tatoeba",
        mean("accuracy_forward", TATOEBA_GROUPS["xtreme"]),
        91.0,
        92.5,
    ),
    Gate(
        "Tatoeba, languages trained, x to English",
        "tatoeba",
        of_trained("accuracy_forward"),
        92.0,
        94.0,
    ),
    Gate(
        "FLORES-200 xsim, languages trained, error",
        "xsim",
        mean("xsim"),
        0.07,
        0.05,
        lower=True,
        digits=3,
    ),
    Gate("FLORES-200 xsim, 14 languages, error", "xsim", xsim_of_14, lower=True, digits=2),
    Gate(
        "xsim with generated hard negatives, error",
        "xsim_pp_generated",
        mean("xsim_pp_generated"),
        lower=True,
    ),
    Gate("mixed pool of 15 languages", "mixed_pool", mean("accuracy_mixed_pool"), 96.0, 97.5),
    Gate("the same, own pool", "mixed_pool", mean("accuracy_own_pool"), 99.0, 99.3),
    Gate("STS17 ar-en", "sts17", of("spearman", "en-ar"), 75.0, 80.0),
    Gate("STS17 es-en", "sts17", of("spearman", "en-es"), 81.0, 84.0),
    Gate("STS17 tr-en", "sts17", of("spearman", "en-tr"), 73.0, 77.0),
    Gate(
        "STS17 monolingual, mean of 3",
        "sts17",
        of("spearman", "ar-ar", "es-es", "en-en"),
        82.5,
        84.5,
    ),
    Gate("STSb test, English against 14 languages", "stsb", mean("spearman"), 77.0, 79.0),
    Gate("BUCC zh-en, best F1", "bucc_best_f1", mean("best_f1"), 93.0, 94.5),
    Gate("TyDi GoldP, MRR@100", "tydi_goldp", mean(MRR), 89.5, 91.0),
    Gate("XQuAD, MRR@100", "xquad", mean(MRR), 92.5, 94.0),
    Gate("XQuAD-R, MRR@100, pool of 11 languages", "xquad_r", mean(MRR), 82.0, 86.0),
    Gate("XQuAD-R, mAP of all answers (LAReQA)", "lareqa", mean("map")),
    Gate(
        "capitals, NFD, points, soft hyphens: loss of cosine",
        "robustness",
        loss_of_forms,
        0.05,
        0.02,
        lower=True,
        digits=3,
    ),
)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--corpus", type=Path, required=True, help="prepared corpus that the model was trained on"
    )
    parser.add_argument("-o", "--output", type=Path, required=True)
    commands = parser.add_subparsers(required=True, dest="command")
    of_one = commands.add_parser("measure")
    of_one.add_argument("model")
    of_one.add_argument("--name", help="in results; by default its folder's")
    of_one.add_argument("--only", default="", help="tasks, with commas; all by default")
    of_all = commands.add_parser("table")
    of_all.add_argument(
        "--models", default="", help="in this order, with commas; the last one is judged"
    )
    given, options = parser.parse_known_args()
    languages = [code for code in Manifest.load(given.corpus).languages if code != "eng_Latn"]
    if given.command == "measure":
        measure(given, languages, options)
    else:
        folders = sorted(path.name for path in (given.output / "results").iterdir())
        print(
            table(
                given.output, given.models.split(",") if given.models else folders, set(languages)
            )
        )


def measure(given: argparse.Namespace, languages: list[str], options: list[str]) -> None:
    """Run ``interlingua evaluate`` for each task, and pass other options on to it."""
    chosen = {
        "xsim": ["--languages", ",".join(languages)],
        "xsim_pp_generated": ["--languages", "mexma"],
        "stsb": ["--languages", ",".join(f"en-{code}" for code in STSB)],
    }
    name = given.name or Path(given.model).name
    tasks = dict.fromkeys(gate.task for gate in GATES)
    for task in [task for task in tasks if not given.only or task in given.only.split(",")]:
        if result_files(given.output / "results" / name, task):
            continue
        command = [
            "interlingua",
            "evaluate",
            given.model,
            "--suite",
            task,
            "--name",
            name,
            "--output",
            str(given.output),
        ]
        subprocess.run(
            [sys.executable, "-m", *command, *chosen.get(task, []), "--quiet", *options], check=True
        )


def table(output: Path, models: list[str], trained: set[str]) -> str:
    """Format the measures as rows and the models as columns."""
    lines = [f"| measure | {' | '.join(models)} | gate | stretch | {models[-1]} has |"]
    lines.append("|---|" + "---:|" * (len(models) + 2) + "---|")
    for gate in GATES:
        values = [gate_value(output / "results" / model, gate, trained) for model in models]
        shown = ["" if value is None else f"{value:.{gate.digits}f}" for value in values]
        limits = " | ".join(
            "" if limit is None else f"{limit:.{gate.digits}f}"
            for limit in (gate.gate, gate.stretch)
        )
        reached = "" if values[-1] is None else gate.met(values[-1])
        lines.append(f"| {gate.title} | {' | '.join(shown)} | {limits} | {reached} |")
    return "\n".join(lines)


def gate_value(folder: Path, gate: Gate, trained: set[str]) -> float | None:
    """Return a model's value; None if it was not measured."""
    files = result_files(folder, gate.task)
    if not files:
        return None
    found = json.loads(files[-1].read_text(encoding="utf-8"))
    [rows] = found["scores"].values()
    return gate.value({row["hf_subset"]: row for row in rows}, trained)


def result_files(folder: Path, task: str) -> list[Path]:
    """Return a model's result files of a task, the newest last.

    The name of a user's own data follows the task's.
    """
    name = RESULT_NAMES.get(task, task)
    found = [path for path in folder.glob("*/*.json") if path.stem.split("-")[0] == name]
    return sorted(found, key=lambda path: path.stat().st_mtime)


if __name__ == "__main__":
    main()
