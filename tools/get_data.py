#!/usr/bin/env python3
"""Fetches evaluation sets and the papers' training data from their publishers.

docs/data.md names all of them.

    python tools/get_data.py tatoeba_laser flores200_devtest --out ~/data
    python tools/get_data.py --list

Needs a network, and git for sets that are a folder of a repository: only that folder is fetched, at
one revision, and it lands whole or not at all. Sets of single files resume where they stopped. Sets
that want a form to be filled in, or another layout, are described in docs/data.md.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from interlingua.errors import DataError, InterlinguaError
from interlingua.storage.files import atomic_directory

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # for a run as a script
from tools.published_files import FILES, fetch_files


@dataclass(frozen=True, slots=True)
class Published:
    """Location of a set."""

    repository: str
    """On the server, ``owner/name``."""
    revision: str
    """The commit."""
    folder: str
    """Inside the repository."""


SETS = {
    "tatoeba_laser": Published(
        "facebookresearch/LASER", "74bc6ae7ffb7cba670fe0f428d0ede9f666fb821", "data/tatoeba/v1"
    ),
    "flores200_devtest": Published(
        "Helsinki-NLP/OPUS-MT-testsets",
        "ac0f19c0be3cb4e0d9450fcb2d7a9847c4bdd180",
        "datasets/facebook/flores/flores200_dataset/devtest",
    ),
    "NTREX-128": Published(
        "MicrosoftTranslator/NTREX", "c9f006f2c132c932b83ccd7aaa6a35930dd9c370", "NTREX-128"
    ),
    "stsb": Published(
        "PhilipMay/stsb-multi-mt", "30de0dec4ee199b7f42351d3f1a0b19592955385", "data"
    ),
    "xquad_r": Published(
        "google-research-datasets/lareqa", "9bc8c7fb6dd8d01d72a05a93c2cb96882b0d299c", "xquad-r"
    ),
    "sib200": Published(
        "dadelani/sib-200", "593cea88519930f776c1a4a1980b6a35b39dca57", "data/annotated"
    ),
}
SERVER = "https://github.com"


def fetch(name: str, out: Path, *, server: str = SERVER) -> Path:
    """Put a set into its folder below ``out``.

    Args:
        name: one of ``SETS``.
        out: the folder that ``INTERLINGUA_DATA`` is to name.
        server: the part before ``/owner/name`` in a repository's address; a mirror, or
            ``file:///...``.

    Raises:
        DataError: the folder is there already, git is missing, or the repository can't be had.
    """
    one, folder = SETS[name], out / name
    if folder.exists():
        raise DataError("is there already; remove it to fetch it again", path=folder)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out, prefix=".get_data-") as work:
        address = f"{server.rstrip('/')}/{one.repository}"
        git(work, "init", "--quiet")
        git(work, "sparse-checkout", "set", one.folder)
        git(work, "fetch", "--quiet", "--depth=1", "--filter=blob:none", address, one.revision)
        git(work, "-c", f"remote.{address}.promisor=true", "checkout", "--quiet", "FETCH_HEAD")
        made = Path(work, one.folder)
        if not made.is_dir():
            raise DataError(f"{address} has no folder {one.folder} at {one.revision}")
        with atomic_directory(folder) as new:
            shutil.copytree(made, new, dirs_exist_ok=True)
    return folder


def git(folder: str, *arguments: str) -> None:
    """Run git in a folder.

    Raises:
        DataError: with git's reason.
    """
    try:
        done = subprocess.run(
            ["git", "-C", folder, *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError as error:
        raise DataError(
            "git is not installed; install it, or fetch the set as docs/data.md says"
        ) from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        reason = next((line for line in lines if line.startswith(("fatal:", "error:"))), lines[-1])
        raise DataError(f"git {next(a for a in arguments if not a.startswith('-'))}: {reason}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Parse the command line and fetch.

    One line on standard error and exit code 2 on failure.
    """
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "sets",
        nargs="*",
        choices=[[], *SETS, *FILES],
        metavar="SET",
        help=", ".join((*SETS, *FILES)),
    )
    parser.add_argument("--out", type=Path, help="folder to put them into")
    parser.add_argument("--server", default="", help="a mirror with the same repositories or files")
    parser.add_argument("--list", action="store_true", help="say what there is")
    options = parser.parse_args(arguments)
    if options.list:
        for name, one in SETS.items():
            print(f"{name:<20}{one.repository} {one.folder} at {one.revision[:12]}")
        for name, files in FILES.items():
            print(f"{name:<20}{files.note}: {len(files.files)} files")
        return
    if not options.sets or options.out is None:
        parser.error("name a set and --out FOLDER, or ask for --list")
    try:
        for name in options.sets:
            if name in FILES:
                there, lacking = fetch_files(FILES[name], options.out, server=options.server)
                print(
                    f"{options.out / FILES[name].folder}: {there} files, {lacking} that the"
                    " servers don't have"
                )
                continue
            folder = fetch(name, options.out, server=options.server or SERVER)
            print(f"{folder}: {sum(path.is_file() for path in folder.rglob('*'))} files")
    except InterlinguaError as error:
        print(f"get_data: {' '.join(str(error).split())}", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main()
