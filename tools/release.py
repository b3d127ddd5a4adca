"""Build, check and try the three distributions, and check a tag.

    python tools/release.py build dist     # sdists and wheels of interlingua, mini and nano
    python tools/release.py check dist     # their sizes, their metadata (twine)
    python tools/release.py try dist       # install the wheels in an empty environment and use them
    python tools/release.py tag v0.1.0     # the tag fits the version and the changelog

`make dist` does the first three. The environment of ``try`` has no C compiler on its PATH. What it
installs, it downloads, unless ``PIP_CONSTRAINT`` and the like name other versions. Arguments after
``--`` are passed to pip, for example ``--extra-index-url`` for a torch without CUDA.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for a run as a script

from tools.rules.release import ASSIGNMENT, SOURCE

ROOT = Path(__file__).resolve().parent.parent
PROJECTS = (".", "models/mini", "models/nano")
DISTRIBUTIONS = ("interlingua", "interlingua_mini", "interlingua_nano")
MAX_BYTES = 100_000_000
"""PyPI's limit for one file."""
TRIAL = """
import numpy, interlingua
texts = ["The dog is sleeping.", "Where is the train station?"]
german = ["Der Hund schläft.", "Wo ist der Bahnhof?"]
for name in ("mini", "nano"):
    encoder = interlingua.load(name)
    nearest = (encoder.encode(german) @ encoder.encode(texts).T).argmax(axis=1)
    assert nearest.tolist() == [0, 1], (name, nearest)
    print(name, encoder.dim, "finds both translations")
"""
"""A Python program that uses the installed models without a network."""


def read_version(root: Path = ROOT) -> str:
    """Return the version of the library."""
    match = re.search(ASSIGNMENT, (root / SOURCE).read_text(encoding="utf-8"), re.MULTILINE)
    if match is None:
        sys.exit(f"{SOURCE} has no __version__")
    return match[1]


def find_files(folder: Path, version: str) -> list[Path]:
    """Return the sdist and the wheels of each distribution, or exit with what is missing."""
    found = []
    for name in DISTRIBUTIONS:
        for pattern in (f"{name}-{version}.tar.gz", f"{name}-{version}-*.whl"):
            files = sorted(folder.glob(pattern))
            if not files:
                sys.exit(f"{folder} has no {pattern}; build it with: make dist")
            found += files
    return found


def build_files(folder: Path) -> None:
    """Build an sdist and a wheel of each distribution."""
    for project in PROJECTS:
        run([sys.executable, "-m", "build", "--outdir", str(folder), str(ROOT / project)])


def check_files(folder: Path) -> None:
    """Refuse a file above PyPI's limit, and run twine's checks of the metadata."""
    files = find_files(folder, read_version())
    for file in files:
        size = file.stat().st_size
        print(f"{size / 1e6:6.1f} MB  {file.name}")
        if size > MAX_BYTES:
            sys.exit(f"{file.name}: {size / 1e6:.1f} MB, PyPI takes at most {MAX_BYTES / 1e6:g} MB")
    run([sys.executable, "-m", "twine", "check", "--strict", *map(str, files)])


def try_wheels(folder: Path, pip_arguments: Sequence[str]) -> None:
    """Install the wheels in an empty environment without a compiler, and use the models."""
    wheels = [file for file in find_files(folder, read_version()) if file.suffix == ".whl"]
    with tempfile.TemporaryDirectory() as place:
        environment = Path(place) / "environment"
        run([sys.executable, "-m", "venv", str(environment)])
        # The programs of the environment and nothing else: pip must not compile anything.
        programs = environment / ("Scripts" if os.name == "nt" else "bin")
        settings = {**os.environ, "PATH": str(programs), "HF_HUB_OFFLINE": "1"}
        settings["XDG_CACHE_HOME"] = str(Path(place) / "cache")
        for name in ("CC", "PYTHONPATH"):
            settings.pop(name, None)
        python = str(programs / "python")
        install = [python, "-m", "pip", "install", "--quiet", "--only-binary=:all:"]
        run([*install, *pip_arguments, *map(str, wheels)], settings, place)
        run([str(programs / "interlingua"), "info"], settings, place)
        run([python, "-c", TRIAL], settings, place)


def check_tag(tag: str, root: Path = ROOT) -> str | None:
    """Return what is wrong with the tag of a release, or None."""
    version = read_version(root)
    if tag != f"v{version}":
        return f"the tag is {tag}, expected v{version}: {SOURCE} has version {version}"
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    heading = re.search(r"^## .*", changelog, re.MULTILINE)
    expected = rf"## {re.escape(version)} \(\d{{4}}-\d{{2}}-\d{{2}}\)"
    if heading is None or not re.fullmatch(expected, heading[0]):
        return (
            f"the first heading of CHANGELOG.md is {heading[0] if heading else 'missing'!r}, "
            f"expected '## {version} (YEAR-MONTH-DAY)'"
        )
    return None


def run(
    command: Sequence[str], environment: dict[str, str] | None = None, folder: str | None = None
) -> None:
    """Run a command, and exit if it fails."""
    print("$", " ".join(command[:8]), flush=True)
    status = subprocess.run(command, env=environment, cwd=folder, check=False).returncode
    if status:
        sys.exit(f"{command[0]} failed with status {status}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Do one step, and return the exit status."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    place = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(description="Build, check and try the three distributions.")
    parser.add_argument("step", choices=("build", "check", "try", "tag"))
    parser.add_argument("target", help="the folder of the distributions, or the tag")
    options = parser.parse_args(given[:place])
    if options.step == "tag":
        problem = check_tag(options.target)
        if problem:
            print(problem)
        return int(problem is not None)
    folder = Path(options.target).resolve()
    if options.step == "build":
        build_files(folder)
    elif options.step == "check":
        check_files(folder)
    else:
        try_wheels(folder, given[place + 1 :])
    return 0


if __name__ == "__main__":
    sys.exit(main())
