"""Write the times of the tests into CONTRIBUTING.md: cases by marker, and the slowest of each tier.

    make test-all
    python tools/test_times.py

The tests leave their times in ``.pytest_cache/records``.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "CONTRIBUTING.md"
RECORDS = ROOT / ".pytest_cache" / "records"
BEGIN, END = "<!-- test times: tools/test_times.py -->\n", "<!-- end of test times -->\n"
SLOWEST = 10
TARGETS = {"core": "make test", "not core": "make test-rest"}


def section(runs: list[dict[str, Any]], machine: str) -> str:
    """Return the Markdown of the section: a table of markers, and one of slow tests for each run.

    Args:
        runs: what ``pytest --times`` wrote.
        machine: processor and number of cores.
    """
    lines = [
        f"Measured on {machine}:",
        "",
        "| command | seconds | cases by marker |",
        "|---|---:|---|",
    ]
    for run in runs:
        counts = ", ".join(f"{name} {count:,}" for name, count in sorted(run["cases"].items()))
        lines.append(f"| `{TARGETS[run['tier']]}` | {run['seconds']:.0f} | {counts} |")
    for run in runs:
        lines += ["", f"| slowest of `{TARGETS[run['tier']]}` | seconds |", "|---|---:|"]
        slowest = sorted(run["tests"].items(), key=lambda test: -test[1])[:SLOWEST]
        lines += [f"| `{name}` | {seconds:.1f} |" for name, seconds in slowest]
    return "\n".join(lines) + "\n"


def processor() -> str:
    """Return the name of this processor and its family and model, which show its generation."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return platform.processor() or platform.machine()
    text = path.read_text(encoding="utf-8")
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.+)$", text, re.MULTILINE))
    cores = len(re.findall(r"^processor\s*:", text, re.MULTILINE))
    if "model name" not in found:
        return f"{platform.machine()}, {cores} cores"
    generation = f"family {found['cpu family']}, model {found['model']}"
    return f"{found['model name'].strip()} ({generation}), {cores} cores"


def main() -> None:
    """Replace the section between the two comments of CONTRIBUTING.md."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument(
        "runs",
        nargs="*",
        type=Path,
        default=[RECORDS / "core.json", RECORDS / "rest.json"],
        help="files that `pytest --times` wrote; default: those of the last `make test-all`",
    )
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args()
    runs = [json.loads(path.read_text(encoding="utf-8")) for path in options.runs]
    unknown = [run["tier"] for run in runs if run["tier"] not in TARGETS]
    if unknown:
        sys.exit(f"expected runs of {' and '.join(TARGETS.values())}, got -m {unknown[0]}")
    before, _, rest = options.page.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    text = before + BEGIN + "\n" + section(runs, processor()) + "\n" + END + after
    options.page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
