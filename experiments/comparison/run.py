"""Runs the comparison under equal budget: for every arm two learning rates are tried, the better one gets three seeds.

    python experiments/comparison/run.py                  # all arms, one after the other
    python experiments/comparison/run.py --arms ems labse

A trial is judged by retrieval on held-out training pairs (tatoeba_accuracy of the validation texts), not on a test set.
What is finished is not done again. Results land in reports/comparison; `interlingua compare` makes the tables.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parent
ARMS = ("ems", "mexma", "calibrated", "semantic", "distill", "labse")
LEARNING_RATES = ("5e-5", "2e-4")
TRIAL_STEPS = 40
SEEDS = (1, 2, 3)
RUNS, REPORTS = Path("runs/comparison"), Path("reports/comparison")
LANGUAGES = "ara,deu,spa,fra,ita,jpn,kor,nld,pol,por,rus,tha,tur,zho_Hans"  # mUSE's
SUITE = {"tatoeba": LANGUAGES, "xsim": LANGUAGES, "sts17": None}


def interlingua(*arguments: object) -> None:
    """Runs the command line; its error ends this script."""
    command = [sys.executable, "-m", "interlingua.cli.main", *map(str, arguments)]
    subprocess.run(command, check=True)


def train(arm: str, output: Path, *settings: str) -> None:
    """Trains an arm, or finds that it is trained."""
    changes = [part for setting in settings for part in ("--set", setting)]
    interlingua("train", FOLDER / f"{arm}.toml", "--quiet", "--output", output, *changes)


def last_accuracy(run: Path) -> float:
    """Of the last evaluation on the validation texts."""
    records = map(json.loads, (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return float([record["tatoeba_accuracy"] for record in records if "tatoeba_accuracy" in record][-1])


def best_learning_rate(arm: str) -> str:
    """The one whose trial retrieves better; every arm has the same trials."""
    found = {}
    for rate in LEARNING_RATES:
        run = RUNS / "trials" / f"{arm}-{rate}"
        train(arm, run, f"optimizer.learning_rate={rate}", f"run.max_steps={TRIAL_STEPS}", "run.seed=100")
        found[rate] = last_accuracy(run)
    print(f"{arm}: " + ", ".join(f"{rate} {accuracy:.4f}" for rate, accuracy in found.items()), flush=True)
    return max(found, key=lambda rate: found[rate])


def main() -> None:
    """Goes through the arms."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
    parser.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    options = parser.parse_args()
    for arm in options.arms:
        rate = best_learning_rate(arm)
        for seed in options.seeds:
            run = RUNS / f"{arm}-seed{seed}"
            train(arm, run, f"optimizer.learning_rate={rate}", f"run.seed={seed}")
            for task, languages in SUITE.items():
                chosen = () if languages is None else ("--languages", languages)
                interlingua("evaluate", run / "model", "--suite", task, *chosen, "--name", f"{arm}-seed{seed}",
                            "--output", REPORTS, "--quiet")  # fmt: skip


if __name__ == "__main__":
    main()
