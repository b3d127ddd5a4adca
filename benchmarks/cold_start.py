"""Time from the start of a process to the first vector.

    python benchmarks/cold_start.py --model models/multilingual-e5-small
    python benchmarks/cold_start.py --model mini --before ../older

Each program is a process of its own: only torch, which all others import; a text embedded by
interlingua; the same by sentence-transformers (left out for a name that is no folder); and
``interlingua embed`` of ten lines. ``--before`` names another checkout: its library is timed as
well. Programs take turns, so that a busy machine slows all of them. The first round, which fills
caches and compiles bytecode, is not counted. Printed last: medians and their ratios.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
OURS = "import sys, interlingua; interlingua.load(sys.argv[1]).encode(['a text'])"
PEER = (
    "import sys; from sentence_transformers import SentenceTransformer;"
    " SentenceTransformer(sys.argv[1], device='cpu').encode(['a text'])"
)


class Program(NamedTuple):
    """A command, and the checkout that it imports interlingua from."""

    command: list[str]
    root: Path = ROOT


class Seconds(NamedTuple):
    """Wall time and processor time of a process."""

    wall: float
    cpu: float


def programs(model: str, lines: Path, vectors: Path, before: Path | None) -> dict[str, Program]:
    """Return what is timed, by name."""
    python = [sys.executable, "-c"]
    found = {
        "torch alone": Program([*python, "import torch"]),
        "interlingua": Program([*python, OURS, model]),
    }
    if Path(model).is_dir():
        found["sentence-transformers"] = Program([*python, PEER, model])
    embed = [sys.executable, "-m", "interlingua", "embed", model, str(lines), "-o", str(vectors)]
    found["interlingua embed"] = Program(embed)
    if before is not None:
        found["before: interlingua"] = Program([*python, OURS, model], before)
        found["before: interlingua embed"] = Program(embed, before)
    return found


def timed(program: Program, threads: int) -> Seconds:
    """Run a program to its end."""
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": str(threads),
        "PYTHONPATH": str(program.root / "src"),
        "HF_HUB_OFFLINE": "1",
    }
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.perf_counter()
    done = subprocess.run(program.command, env=environment, capture_output=True, check=False)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr.decode(errors="replace"))
    return Seconds(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    """Time all programs in turn, and print medians and ratios."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="mini")
    parser.add_argument("--before", type=Path, help="another checkout of this repository")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines, vectors = Path(folder) / "lines.en.txt", Path(folder) / "vectors.npy"
        lines.write_text("".join(f"Line {number} of ten.\n" for number in range(10)), "utf-8")
        found = programs(options.model, lines, vectors, options.before)
        times: dict[str, list[Seconds]] = {name: [] for name in found}
        for round_number in range(options.rounds + 1):
            for name, program in found.items():
                vectors.unlink(missing_ok=True)
                taken = timed(program, options.threads)
                if round_number:
                    times[name].append(taken)
    medians = {
        name: Seconds(*(median(column) for column in zip(*taken, strict=True)))
        for name, taken in times.items()
    }
    print(f"load of the machine: {os.getloadavg()[0]:.1f}")
    for name, seconds in medians.items():
        print(f"{name:28} {seconds.wall:6.2f} s by the clock {seconds.cpu:6.2f} s of processor")
    ours = medians["interlingua"]
    for name in ("torch alone", "sentence-transformers", "before: interlingua"):
        if name in medians:
            print(f"{name} / interlingua: {medians[name].cpu / ours.cpu:.2f} of processor time")


if __name__ == "__main__":
    main()
