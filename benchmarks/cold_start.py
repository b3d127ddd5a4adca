"""Time from the start of a process to the first vector.

    python benchmarks/cold_start.py --model models/multilingual-e5-small
    python benchmarks/cold_start.py --model mini --before ../older

Each program is a process of its own: only torch, which all others import; a text embedded by
interlingua; the same by sentence-transformers (left out for a name that is no folder); and
``interlingua embed`` of ten lines. The time to the first vector ends when the program has it, or,
if it only imports torch, after this import; that of the whole process ends with the process.
``--before`` names another checkout: its library is timed as well. Programs take turns, so that a
busy machine slows all of them. The first round, which fills caches and compiles bytecode, is not
counted. Printed last: medians and their ratios.
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
READY = "; sys.stdout.write('.'); sys.stdout.flush()"
"""Statement by which the parent learns that the vector exists."""
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
    """Times of a process."""

    first: float
    """Wall time to the first vector; of a command that prints nothing, to its end."""
    wall: float
    """Wall time of the whole process."""
    cpu: float
    """Processor time of the whole process."""


def programs(model: str, lines: Path, vectors: Path, before: Path | None) -> dict[str, Program]:
    """Return what is timed, by name."""
    python = [sys.executable, "-c"]
    found = {
        "torch alone": Program([*python, "import sys, torch" + READY]),
        "interlingua": Program([*python, OURS + READY, model]),
    }
    if Path(model).is_dir():
        found["sentence-transformers"] = Program([*python, PEER + READY, model])
    embed = [sys.executable, "-m", "interlingua", "embed", model, str(lines), "-o", str(vectors)]
    found["interlingua embed"] = Program(embed)
    if before is not None:
        found["before: interlingua"] = Program([*python, OURS + READY, model], before)
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
    with tempfile.TemporaryFile() as errors:
        start = time.perf_counter()
        with subprocess.Popen(
            program.command, env=environment, stdout=subprocess.PIPE, stderr=errors
        ) as process:
            assert process.stdout is not None
            process.stdout.read(1)
            first = time.perf_counter() - start
            process.stdout.read()
        wall = time.perf_counter() - start
        if process.returncode:
            errors.seek(0)
            raise SystemExit(errors.read().decode(errors="replace"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Seconds(first, wall, cpu)


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
    titles = ("first vector", "process", "processor")
    print(f"{'seconds':28} " + " ".join(f"{title:>12}" for title in titles))
    for name, seconds in medians.items():
        print(f"{name:28} " + " ".join(f"{value:12.2f}" for value in seconds))
    ours = medians["interlingua"]
    for name in ("torch alone", "sentence-transformers", "before: interlingua"):
        if name in medians:
            print(
                f"{name} / interlingua: {medians[name].first / ours.first:.2f} to the first vector,"
                f" {medians[name].cpu / ours.cpu:.2f} of processor time"
            )


if __name__ == "__main__":
    main()
