"""Train the second edition of the small model: from the first edition and data to packaged weights.

    python experiments/mini/second.py $INTERLINGUA_DATA --estimate
    python experiments/mini/second.py $INTERLINGUA_DATA
    python experiments/mini/second.py $INTERLINGUA_DATA --toy --work /tmp/second

A step with an output that is there is not done again. A step that was stopped resumes where it was
(``train``, ``spread``) or starts anew (the others, which take minutes on a GPU). Everything is
written below ``--work``, by default the repository: data/, models/, prepared/, runs/ and package/,
the files of interlingua-mini. Nothing there replaces the shipped model: measure first (gates.py),
then copy.

``--most`` and ``--headings`` are those of second_data.py, the number of questions. ``--estimate``
prints the steps with their cost and does nothing; the steps that read all questions have the cost
of the default number. ``--toy`` takes a few lines of each set, two layers and three steps per run,
with the start as its own teacher in place of the steps ``teacher`` and ``debias``, to see that all
the others run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
TOMLS = ("prepare_second.toml", "second.toml", "second_spread.toml")
TOY_LINES = 120
"""Lines of each file of the data."""
TOY_SETS = (
    *("scored_pairs", "train-mix/pairs", "parallel_docs"),
    *("qa_wikipedia", "qa_squad_fi_en", "stories"),
)
WHOLE_SETS = (
    *("stsb", "sts12_16", "sts17", "tatoeba_laser", "flores200_devtest"),
    *("bucc2018_zh_en", "xquad", "xquad_r", "tydiqa_goldp"),
)
"""Sets that are read completely, to keep their sentences out of training."""
TOY_RUN = (
    "run.max_steps=3",
    "run.global_batch_size=8",
    "run.save_steps=2",
    "run.eval_steps=3",
    "optimizer.learning_rate=1e-6",
    "data.valid_pairs=16",
    "data.questions.batch_size=4",
    "data.questions.language_block=2",
    "data.questions.held_out=64",
    "data.labeled.batch_size=4",
    "method.terms.translations.bank_size=64",
)
SENTENCE_TOKENS, PASSAGE_TOKENS = 15, 110
"""Mean numbers of tokens of a sentence or question and of a passage, with a third of the teacher's
tokens: with these, both runs of the shipped sizes agree with their measured time."""
TOKENS_PER_SECOND = {"two CPU cores": 2_800, "one H200": 217_000}
"""Tokens per second of training: second.toml ran at 2,800 and more on two cores of a Zen 5 that
other work shared, and 4,000 steps of 512 pairs (15,360 tokens) took 283 s on an H200. Only reading
is three times as fast."""


class Cost(NamedTuple):
    """Cost of a step."""

    tokens: int = 0
    """Trained tokens; tokens that are only read count a third."""
    minutes: float = 0.0
    """Minutes of other work, on two cores."""
    megabytes: int = 0
    """Megabytes of disk."""


@dataclass(frozen=True)
class Step:
    """A command, and its output, which exists once it is done."""

    name: str
    output: Path
    command: Sequence[str | Path]
    cost: Cost


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="folder with the sets of docs/data.md")
    parser.add_argument("--work", type=Path, default=ROOT, help="where everything is written")
    parser.add_argument("--estimate", action="store_true", help="print what it takes, do nothing")
    parser.add_argument("--toy", action="store_true", help="the same at a size of minutes")
    parser.add_argument("--most", type=int, help="questions of a set and language")
    parser.add_argument("--headings", type=int, help="headings of all sets")
    parser.add_argument("--until", help="name of the last step to do")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of both training runs",
    )
    given = parser.parse_args(arguments)
    work = given.work.resolve()
    data = given.data.expanduser().resolve()
    if given.toy and not given.estimate:
        data = toy_data(data, work / "toy_data")
    counts = [
        part
        for option, value in (("--most", given.most), ("--headings", given.headings))
        if value is not None
        for part in (option, str(value))
    ]
    steps = list(all_steps(data, work, toy=given.toy, overrides=given.set, counts=counts))
    names = [step.name for step in steps]
    if given.until is not None:
        if given.until not in names:
            sys.exit(f"second.py: --until {given.until}: there are {', '.join(names)}")
        steps = steps[: names.index(given.until) + 1]
    print_estimate(steps)
    if not given.estimate:
        run_steps(steps, data, work)


def all_steps(
    data: Path, work: Path, *, toy: bool, overrides: Sequence[str], counts: Sequence[str] = ()
) -> Iterator[Step]:
    """Yield the steps in their order.

    Args:
        data: the sets.
        work: where everything is written.
        toy: a few steps of two layers.
        overrides: keys of the training run.
        counts: options of second_data.py.
    """
    models, prepared, made = work / "models", work / "prepared", work / "data"
    teacher, start = models / "multilingual-e5-small", models / "second-start"
    interlingua = (sys.executable, "-m", "interlingua")
    python = (sys.executable,)
    if toy:
        teacher = start
    else:
        command = (
            *python,
            ROOT / "tools/get_backbone.py",
            "multilingual-e5-small",
            "--out",
            teacher,
        )
        yield Step("teacher", teacher, command, Cost(minutes=2, megabytes=490))
    edition, stock, partner = (
        models / name for name in ("mini-first-edition", "mini-stock", "second-partner")
    )
    export = (*interlingua, "export")
    forms = ("--text-forms", "all")
    if toy:
        edition, partner = ROOT / "models/mini/src/interlingua_mini/model", start
        command = (*export, "mini", "-o", start, *forms, "--layers", "2", "--no-verify")
        yield Step("start", start, command, Cost(minutes=2, megabytes=340))
    else:
        earlier = (*python, HERE / "earlier.py")
        whole = Cost(minutes=1, megabytes=340)
        yield Step("edition", edition, (*earlier, "second", "-o", edition), whole)
        yield Step("start", start, (*export, edition, "-o", start, *forms), whole)
        yield Step("stock", stock, (*earlier, "retrieval", "-o", stock), whole)
        yield Step("partner", partner, (*export, stock, "-o", partner, *forms), whole)
    command = (*python, HERE / "scored_pairs.py", data, "-o", made / "mini")
    yield Step("scores", made / "mini/dev.tsv", command, Cost(minutes=1, megabytes=20))
    command = (
        *(*python, HERE / "second_data.py", data, "--scored", made / "mini"),
        *("-o", made / "second", *(("--most", "60") if toy else ()), *counts),
    )
    yield Step("questions", made / "second/sources.json", command, Cost(minutes=1, megabytes=180))
    config = work / "experiments/mini/prepare_second.toml"
    small = ("--set", "validation.pairs=4") if toy else ()
    yield Step(
        "prepare",
        prepared / "second",
        (*interlingua, "prepare", config, *small),
        Cost(minutes=2, megabytes=400),
    )
    prompts = ("--question-prompt", "query: ", "--passage-prompt", "passage: ")
    ranked = made / "second/ranked.json"
    command = (
        *(*python, HERE / "hard_passages.py", teacher, made / "second/questions.json"),
        *(*prompts, "--sentences", "0.5", "--questions", "2", "--dtype", "bfloat16", "-o", ranked),
    )
    yield Step("rank", ranked, command, Cost(tokens=1_200_000, megabytes=100))
    if not toy:  # a few sentences of a language do not show what they have in common
        debiased = models / "second-teacher"
        command = (
            *(*interlingua, "debias", teacher, prepared / "second", "--dtype", "bfloat16"),
            *("--sentences", "300", "--prompt", "query: ", "--prompt", "passage: "),
            *("-o", debiased),
        )
        yield Step("debias", debiased, command, Cost(tokens=300_000, megabytes=490))
    changes = [*overrides]
    if toy:
        changes = [*TOY_RUN, f"method.terms.ranking.teacher={teacher}", *changes]
    options = [part for change in changes for part in ("--set", change)]
    runs = [work / "runs/second", work / "runs/second_spread"]
    first, chosen = models / "second-first", models / "second-average"
    for name, run in zip(("train", "spread"), runs, strict=True):
        config = work / "experiments/mini" / f"{run.name}.toml"
        yield Step(
            name,
            run / "model",
            (*interlingua, "train", config, *options),
            Cost(tokens=tokens_of(HERE / config.name, changes), megabytes=3_000),
        )
        if name == "train":
            command = (*interlingua, "average", start, run / "model", "--weights", "0.15,0.85")
            yield Step("first", first, (*command, "-o", first), Cost(minutes=1, megabytes=340))
    command = (*interlingua, "average", partner, start, runs[1] / "model")
    command = (*command, "--weights", "0.45,0.1,0.45")
    yield Step("average", chosen, (*command, "-o", chosen), Cost(minutes=1, megabytes=340))
    package = work / "package/interlingua_mini/model"
    command = (
        *(*python, HERE / "ship.py", chosen, "--corpus", prepared / "second"),
        *(part for run in runs for part in ("--run", run)),
        *("--before", edition, "--sources", made / "second/sources.json", "-o", package),
    )
    yield Step("ship", package, command, Cost(minutes=3, megabytes=60))


def tokens_of(config: Path, changes: Sequence[str]) -> int:
    """Return the tokens that a training run reads, a third of the teacher's tokens among them.

    Args:
        config: the file of the run.
        changes: keys that the command line changes, as ``section.key=value``.
    """
    settings = tomllib.loads(config.read_text(encoding="utf-8"))
    for change in changes:
        name, _, value = change.partition("=")
        *sections, key = name.split(".")
        table = settings
        for section in sections:
            table = table.setdefault(section, {})
        table[key] = value
    data, run = settings["data"], settings["run"]
    pairs = whole_number(run["global_batch_size"]) + whole_number(data["labeled"]["batch_size"])
    questions = whole_number(data["questions"]["batch_size"])
    passages = questions * (1 + whole_number(data["questions"]["hard_negatives"]))
    of_step = (2 * pairs + questions) * SENTENCE_TOKENS + passages * PASSAGE_TOKENS
    return whole_number(run["max_steps"]) * of_step


def whole_number(value: int | str) -> int:
    """Return a number of a file or, with its underscores, of the command line."""
    return int(str(value).replace("_", ""))


def print_estimate(steps: Sequence[Step]) -> None:
    """Print what each step costs, and whether it is done."""
    places = list(TOKENS_PER_SECOND)
    print(f"{'step':10} {'state':6} {'disk':>8}  " + "  ".join(f"{place:>16}" for place in places))
    total = dict.fromkeys(places, 0.0)
    disk = 0
    for step in steps:
        done = step.output.exists()
        minutes = {place: minutes_of(step.cost, place) for place in places}
        row = "  ".join(f"{minutes[place]:12,.0f} min" for place in places)
        state = "done" if done else "to do"
        print(f"{step.name:10} {state:6} {step.cost.megabytes:5,} MB  {row}")
        if not done:
            disk += step.cost.megabytes
            for place in places:
                total[place] += minutes[place]
    row = "  ".join(f"{total[place] / 60:14.1f} h" for place in places)
    print(f"{'to do':17} {disk:5,} MB  {row}", flush=True)


def minutes_of(cost: Cost, place: str) -> float:
    """Return the minutes of a step on a machine."""
    return cost.minutes + cost.tokens / TOKENS_PER_SECOND[place] / 60


def run_steps(steps: Sequence[Step], data: Path, work: Path) -> None:
    """Run the steps without an output, until one fails."""
    folder = work / "experiments/mini"
    folder.mkdir(parents=True, exist_ok=True)
    for name in TOMLS:  # their paths start at their own folder
        if folder != HERE:
            shutil.copy(HERE / name, folder / name)
    environment = {**os.environ, "INTERLINGUA_DATA": str(data)}
    for step in steps:
        if step.output.exists():
            continue
        command = [str(part) for part in step.command]
        print(f"== {step.name}: {' '.join(command)}", flush=True)
        step.output.parent.mkdir(parents=True, exist_ok=True)
        done = subprocess.run(command, env=environment, check=False)
        if done.returncode:
            sys.exit(
                f"second.py: {step.name} ended with {done.returncode}; the same command resumes"
            )
        if not step.output.exists():
            sys.exit(f"second.py: {step.name} was stopped; the same command resumes")
    if steps and steps[-1].name == "ship":
        print(f"{steps[-1].output}: measure it with experiments/mini/gates.py before it is shipped")


def toy_data(data: Path, output: Path) -> Path:
    """Copy the first lines of each file that the recipe reads, and link the test sets."""
    output.mkdir(parents=True, exist_ok=True)
    for name in WHOLE_SETS:
        if (data / name).is_dir() and not (output / name).exists():
            (output / name).symlink_to(data / name)
    for name in TOY_SETS:
        for path in sorted((data / name).glob("*")):
            target = output / name / path.name
            if path.is_dir() or target.exists() or path.suffix not in (".tsv", ".txt"):
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            with path.open(encoding="utf-8") as lines:
                some = [line for line, _ in zip(lines, range(TOY_LINES), strict=False)]
            target.write_text("".join(some), encoding="utf-8")
    return output


if __name__ == "__main__":
    main()
