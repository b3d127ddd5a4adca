"""Train several arms with several seeds and evaluate them all in the same way, as a file says.

    python experiments/arms.py experiments/comparison/arms.toml
    python experiments/arms.py experiments/claims/mexma.toml --arms mexma no_koleo --seeds 1 2 3
    python experiments/arms.py experiments/claims/mexma.toml --dry-run
    python experiments/arms.py experiments/claims/ir.toml --kept experiments/results/claims/ir.jsonl

Finished work is not repeated, and an interrupted run resumes. If the file names trials, every
arm tries each of the learning rates, or each of its own tries, in a short run, judged on held-out
training data, and its seeds take the best. Results land below ``reports``, and
`interlingua compare REPORTS/results --by tasks --rows arms --group config --costs` makes the
tables.

``--kept TABLE.jsonl`` writes each finished result to that table of results, small enough to be
committed, and each finished trial or evaluation to ``TABLE.finished.jsonl``. What is there is not
done again, on whatever machine: a comparison can be stopped and finished elsewhere. A run with
other settings than those kept is done. `interlingua compare TABLE.jsonl` makes the same tables.
Without the option everything is done anew.

An arm may continue from another of its file: in the texts of ``model``, ``set`` and ``average`` the
seed takes the place of ``{seed}``, so runs/one-seed{seed}/model is the model that arm ``one`` has
of the same seed. With ``--kept``, an arm that another one still needs is made again and not
measured. What was kept of an arm counts for its own settings: after a change of an arm, remove
the kept results of those that continue from it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from interlingua.config import PathText, from_mapping, load_toml
from interlingua.errors import ConfigError
from interlingua.evaluation.results import TABLE_SUFFIX, read_results, result_path, write_table
from interlingua.storage.locks import exclusive

Run = Callable[[Sequence[str]], bool]
"""Function that receives a command line, and returns whether it was run."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arm:
    """[[arm]]: a training run, or a model as it is."""

    name: str
    """In the names of runs and results."""
    config: Path | None = None
    """The run's TOML file, relative to the file of arms."""
    model: PathText | None = None
    """In place of ``config``: a model to be evaluated together with the trained ones."""
    set: dict[str, Any] = field(default_factory=dict)
    """Keys of the run that are otherwise in this arm, as with ``--set``: paths start at the working
    directory."""
    average: tuple[str, ...] = ()
    """In place of ``config``: models of which the average is evaluated, one for each seed. Paths
    start at the working directory, as in ``set``."""
    weights: tuple[float, ...] = ()
    """Share of each model in the average."""
    tries: tuple[dict[str, Any], ...] = ()
    """Keys of the run, of which [trials] chooses the best; as many for every arm that has some."""
    seeds: tuple[int, ...] | None = None
    """In place of those of all arms."""

    def __post_init__(self) -> None:
        given = [name for name in ("config", "model", "average") if getattr(self, name)]
        if len(given) != 1:
            names = " and ".join(given) or "none"
            raise ConfigError(
                f"[[arm]] {self.name} has {names} of config, model and average; give one"
            )
        if len(self.weights) != len(self.average):
            raise ConfigError(
                f"[[arm]] {self.name} has {len(self.weights)} weights for {len(self.average)}"
                " models of its average; give each a weight"
            )

    def texts(self) -> list[str]:
        """Return the settings that may contain paths of other arms' models."""
        return [str(self.model), *self.average, *settings(self.set)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """[[evaluate]]: what every trained model is measured on."""

    suite: str
    """Task, or several with commas between."""
    options: tuple[str, ...] = ()
    """More of ``interlingua evaluate``'s command line."""
    arms: tuple[str, ...] = ()
    """Arms to measure so; default: all."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trials:
    """[trials]: short runs that choose each arm's learning rate, or other knobs of its own.

    As many for each.
    """

    steps: int
    """Length of a trial."""
    metric: str
    """Metric of the trial's last evaluation."""
    learning_rates: tuple[float, ...] = ()
    """To be tried, at the peak of the schedule, by arms without tries of their own."""
    greater_is_better: bool = True
    """True if a greater value of the metric is better."""
    seed: int = 100
    """Seed of the trials; not one of the runs' seeds."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Arms:
    """The whole file."""

    runs: Path
    """Folder of the trained arms."""
    reports: Path
    """Folder of their results."""
    seeds: tuple[int, ...]
    """One run of each arm for each."""
    arm: tuple[Arm, ...]
    evaluate: tuple[Evaluation, ...]
    first: tuple[Path, ...] = ()
    """TOML files to be trained before all arms, once, such as the stages that all start from."""
    trials: Trials | None = None
    set: dict[str, Any] = field(default_factory=dict)
    """Keys that are otherwise in all runs."""


@dataclass(frozen=True, slots=True)
class Kept:
    """Finished results and trials, without models and values of single items."""

    table: Path
    """Table of results, as `interlingua compare RESULTS -o TABLE.jsonl` writes it."""

    @property
    def journal(self) -> Path:
        """File with a line per finished trial or evaluation."""
        return self.table.with_suffix(f".finished{TABLE_SUFFIX}")

    def find(self, name: str, settings: Sequence[str]) -> dict[str, Any] | None:
        """Return the record of a trial or evaluation that was done with these settings.

        The last one if there are several.
        """
        lines = []
        if self.journal.exists():
            lines = self.journal.read_text(encoding="utf-8").splitlines()
        same = [record for record in map(json.loads, lines) if record["name"] == name]
        return next(
            (record for record in reversed(same) if record["settings"] == list(settings)), None
        )

    def add(self, name: str, settings: Sequence[str], **values: float) -> None:
        """Record a trial or evaluation, once."""
        record = {"name": name, "settings": list(settings), **values}
        if self.find(name, settings) != record:
            self.journal.parent.mkdir(parents=True, exist_ok=True)
            with self.journal.open("a", encoding="utf-8") as journal:
                journal.write(json.dumps(record) + "\n")

    def copy(self, reports: Path) -> None:
        """Write the results below a folder to the table.

        Results of the same model, settings and data as one in the table take its place.
        """
        new = read_results([reports / "results"])
        lock = f".{self.table.stem}.lock"
        # several processes may finish arms of one table at the same time
        with exclusive(self.table.parent, remedy="end it", name=lock, wait=True):
            kept = read_results([self.table]) if self.table.exists() else []
            by_place = {}
            for result in [*kept, *new]:
                by_place[result_path(result, Path()), result.data_sha256] = result
            write_table([by_place[place] for place in sorted(by_place)], self.table)


def interlingua(arguments: Sequence[str]) -> bool:
    """Run a command line; its error ends this script."""
    subprocess.run([sys.executable, "-m", "interlingua.cli.main", *arguments], check=True)
    return True


def show(arguments: Sequence[str]) -> bool:
    """Print a command line."""
    print("interlingua", *arguments)
    return False


def settings(*tables: dict[str, Any]) -> list[str]:
    """Format nested tables as ``--set section.key=value``. Later tables come first."""
    flat: dict[str, Any] = {}

    def walk(table: dict[str, Any], before: str) -> None:
        for key, value in table.items():
            if isinstance(value, dict):
                walk(value, f"{before}{key}.")
            else:
                flat[before + key] = value

    for table in tables:
        walk(table, "")
    return [part for key, value in flat.items() for part in ("--set", f"{key}={json.dumps(value)}")]


def with_seed(value: Any, seed: int) -> Any:
    """Replace ``{seed}`` by the seed in a setting or a table of settings."""
    match value:
        case str():
            return value.replace("{seed}", str(seed))
        case dict():
            return {key: with_seed(item, seed) for key, item in value.items()}
        case list() | tuple():
            return [with_seed(item, seed) for item in value]
    return value


def last_value(run: Path, metric: str) -> float:
    """Return a metric of a run's last evaluation."""
    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    return float([record[metric] for record in map(json.loads, lines) if metric in record][-1])


def train(run: Run, config: Path, output: Path, *tables: dict[str, Any]) -> None:
    """Train, unless the trained model exists."""
    run(["train", str(config), "--quiet", "--output", str(output), *settings(*tables)])


def average(run: Run, arm: Arm, output: Path) -> None:
    """Average the arm's models."""
    weights = ",".join(map(str, arm.weights))
    fixed = ["-o", str(output), "--overwrite", "--quiet"]
    run(["average", *arm.average, "--weights", weights, *fixed])


def tries_of(arms: Arms, arm: Arm) -> dict[str, dict[str, Any]]:
    """Return the settings of an arm's trials by name."""
    if arms.trials is None:
        return {}
    if arm.tries:
        return {str(number): tried for number, tried in enumerate(arm.tries, start=1)}
    return {
        f"{rate:g}": {"optimizer": {"learning_rate": rate}} for rate in arms.trials.learning_rates
    }


def check_equal_trials(arms: Arms) -> None:
    """Check that all arms have equal numbers of trials.

    Raises:
        ConfigError: one gets more.
    """
    counts = {arm.name: len(tries_of(arms, arm)) for arm in arms.arm if arm.config is not None}
    most = max(counts, key=lambda name: counts[name], default="")
    least = min(counts, key=lambda name: counts[name], default="")
    if counts and counts[most] != counts[least]:
        raise ConfigError(
            f"[[arm]] {most} has {counts[most]} tries, and {least} {counts[least]}; give each as"
            " many"
        )


def identity(arm: Arm, *tables: dict[str, Any], options: Sequence[str] = ()) -> list[str]:
    """Return the properties that must be equal to reuse a stored result.

    These are the run's file, its keys, and the evaluation's options.
    """
    averaged = [*arm.average, *map(str, arm.weights)] or [str(arm.config or arm.model)]
    parts = [*averaged, *settings(*tables)[1::2], *options]
    return [part.replace(f"{Path.cwd()}/", "") for part in parts]  # the same on another machine


def best_try(run: Run, arms: Arms, arm: Arm, config: Path, kept: Kept | None) -> dict[str, Any]:
    """Return the settings of the trial with the best result."""
    trials = arms.trials
    tries = tries_of(arms, arm)
    found: dict[str, float] = {}
    for name, tried in tries.items():
        assert trials is not None
        output = arms.runs / "trials" / f"{arm.name}-{name}"
        short = {"run": {"max_steps": trials.steps, "seed": trials.seed}}
        given = (with_seed(table, trials.seed) for table in (arms.set, arm.set, tried))
        tables = (*given, short)
        done = kept.find(f"trial-{output.name}", identity(arm, *tables)) if kept else None
        if done is not None and trials.metric in done:
            found[name] = done[trials.metric]
            continue
        train(run, config, output, *tables)
        if (output / "metrics.jsonl").exists():  # not so in a dry run
            found[name] = last_value(output, trials.metric)
            if kept:
                kept.add(
                    f"trial-{output.name}", identity(arm, *tables), **{trials.metric: found[name]}
                )
    if trials is None or not found:
        return {}
    print(
        f"{arm.name}: " + ", ".join(f"{name} {value:.4f}" for name, value in found.items()),
        flush=True,
    )
    choose = max if trials.greater_is_better else min
    return tries[choose(found, key=lambda name: found[name])]


def go(
    arms: Arms,
    folder: Path,
    *,
    run: Run,
    names: Sequence[str] = (),
    seeds: Sequence[int] = (),
    kept: Kept | None = None,
) -> None:
    """Train and evaluate each arm.

    Args:
        arms: the file.
        folder: of the file.
        run: called with each command line of interlingua.
        names: of the arms to do; all by default.
        seeds: to do; all by default.
        kept: what was done before, perhaps elsewhere; gets what is finished.
    """
    check_equal_trials(arms)
    stages = list(arms.first)

    def after_stages(command: Sequence[str]) -> bool:
        while stages:  # not before a command needs them: everything may be kept
            run(["train", str(folder / stages.pop(0)), "--quiet"])
        return run(command)

    for arm in arms.arm:
        if names and arm.name not in names:
            continue
        if arm.model is not None and "{seed}" not in arm.model:
            measure(after_stages, arms, arm, str(arm.model), arm.name, kept=kept)
            continue
        config = folder / arm.config if arm.config else None
        chosen = best_try(after_stages, arms, arm, config, kept) if config else {}
        for seed in arm.seeds or arms.seeds:
            if not seeds or seed in seeds:
                make_and_measure(after_stages, arms, arm, config, kept, chosen, seed)


def make_and_measure(
    run: Run,
    arms: Arms,
    arm: Arm,
    config: Path | None,
    kept: Kept | None,
    chosen: dict[str, Any],
    seed: int,
) -> None:
    """Train and measure one seed of an arm. Stored results skip training and averaging."""
    name = f"{arm.name}-seed{seed}"
    arm = of_seed(arm, seed)
    model = arm.model or arms.runs / name / "model"
    tables = tables_of(arms, arm, chosen, seed)
    if not to_measure(arms, arm, name, tables, kept) and not is_needed(arms, arm, seed, kept):
        return
    if config:
        train(run, config, arms.runs / name, *tables)
    elif arm.average:
        average(run, arm, Path(model))
    measure(run, arms, arm, str(model), name, *tables, kept=kept)


def of_seed(arm: Arm, seed: int) -> Arm:
    """Return the arm with the paths of one seed's models."""
    average = tuple(with_seed(arm.average, seed))
    return replace(arm, model=with_seed(arm.model, seed), average=average)


def tables_of(
    arms: Arms, arm: Arm, chosen: dict[str, Any], seed: int
) -> tuple[dict[str, Any], ...]:
    """Return the settings of an arm's run with one seed. Later tables have precedence."""
    if arm.config is None:
        return ()
    given = (with_seed(table, seed) for table in (arms.set, arm.set, chosen))
    return (*given, {"run": {"seed": seed}})


def is_needed(arms: Arms, arm: Arm, seed: int, kept: Kept | None) -> bool:
    """Return whether an arm without stored results starts from this arm's model of a seed."""
    path = f"/{arms.runs.name}/{arm.name}-seed{{seed}}/"
    for other in arms.arm:
        if not any(path in text for text in other.texts()):
            continue
        name = f"{other.name}-seed{seed}"
        tables = tables_of(arms, other, {}, seed)
        is_open = to_measure(arms, of_seed(other, seed), name, tables, kept)
        if is_open or is_needed(arms, other, seed, kept):
            return True
    return False


def to_measure(
    arms: Arms, arm: Arm, name: str, tables: Sequence[dict[str, Any]], kept: Kept | None
) -> dict[str, Evaluation]:
    """Return the missing evaluations of an arm by their names in the journal."""
    found = {}
    for number, evaluation in enumerate(arms.evaluate):
        key = f"{name}-{number}-{evaluation.suite}"
        measured = not evaluation.arms or arm.name in evaluation.arms
        if measured and not (
            kept and kept.find(key, identity(arm, *tables, options=evaluation.options))
        ):
            found[key] = evaluation
    return found


def measure(
    run: Run,
    arms: Arms,
    arm: Arm,
    model: str,
    name: str,
    *tables: dict[str, Any],
    kept: Kept | None = None,
) -> None:
    """Evaluate a model on the file's tasks, unless their results exist."""
    for key, evaluation in to_measure(arms, arm, name, tables, kept).items():
        done = arms.reports / "done" / key
        if not done.exists():
            fixed = ["--name", name, "--output", str(arms.reports), "--quiet"]
            options = [os.path.expandvars(option) for option in evaluation.options]
            if run(["evaluate", model, "--suite", evaluation.suite, *options, *fixed]):
                done.parent.mkdir(parents=True, exist_ok=True)
                done.touch()
        if kept and done.exists():
            kept.copy(arms.reports)
            kept.add(key, identity(arm, *tables, options=evaluation.options))


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--arms", nargs="+", default=(), help="only these")
    parser.add_argument("--seeds", nargs="+", type=int, default=(), help="only these")
    parser.add_argument(
        "--kept",
        type=Path,
        help="table of finished results (.jsonl): not done again, and gets new ones",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the command lines")
    options = parser.parse_args()
    if options.kept and options.kept.suffix != TABLE_SUFFIX:
        parser.error(f"--kept {options.kept}: a table of results ends with {TABLE_SUFFIX}")
    file = options.file.resolve()  # so that its paths, which start at its folder, are whole
    arms = from_mapping(Arms, load_toml(file), where=str(options.file))
    known = [arm.name for arm in arms.arm]
    if unknown := [name for name in options.arms if name not in known]:
        parser.error(f"no arm {unknown[0]}; there are {', '.join(known)}")
    run = show if options.dry_run else interlingua
    kept = Kept(options.kept) if options.kept else None
    go(arms, file.parent, run=run, names=options.arms, seeds=options.seeds, kept=kept)


if __name__ == "__main__":
    main()
