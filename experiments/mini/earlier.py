"""Write mini as it was before one of its stages, from the repository's history.

    python experiments/mini/earlier.py retrieval -o models/mini-stock
    python experiments/mini/earlier.py second -o models/mini-first-edition

Before ``retrieval.toml`` mini found most translations and fewest passages; ``second`` is the second
edition, second.py. The folder is a stock model, as ``interlingua_mini.folder()`` wrote it then.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "models" / "mini" / "src"))
from interlingua_mini.unpacking import DIGEST, WEIGHTS, write_stock

ROOT = Path(__file__).resolve().parents[2]
PACKED = "models/mini/src/interlingua_mini/model"


class Edition(NamedTuple):
    """Packed weights in the history."""

    commit: str
    digest: str
    """First characters of ``packed.sha256``."""


EDITIONS = {
    "retrieval": Edition("1f4e4268", "36b12f1bc6c0b6f1"),
    "second": Edition("325a5213", "e724860223906d0d"),
}
"""Stage -> the last weights before it."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=EDITIONS, help="the first stage that is left out")
    parser.add_argument("--repository", type=Path, default=ROOT)
    parser.add_argument("-o", "--output", type=Path, required=True, help="a new folder")
    given = parser.parse_args(arguments)
    if given.output.exists():
        sys.exit(f"earlier.py: {given.output} exists; remove it or choose another folder")
    given.output.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=given.output.parent, prefix=".earlier.") as name:
        edition = EDITIONS[given.stage]
        extract(given.repository, edition.commit, Path(name))
        packed, stock = Path(name) / PACKED, Path(name) / "stock"
        digest = (packed / DIGEST).read_text(encoding="ascii")
        if not digest.startswith(edition.digest):
            sys.exit(
                f"earlier.py: {edition.commit} has the weights {digest[:16]}, not {edition.digest};"
                " correct EDITIONS"
            )
        stock.mkdir()
        write_stock(stock, packed)
        (stock / WEIGHTS).chmod(0o644)  # safetensors makes it readable by its owner only
        stock.rename(given.output)


def extract(repository: Path, commit: str, folder: Path) -> None:
    """Extract the packed model of a commit."""
    command = ["git", "-C", str(repository), "archive", "--format=tar", commit, PACKED]
    try:
        done = subprocess.run(command, capture_output=True, check=False)
    except FileNotFoundError:
        sys.exit("earlier.py: git is not installed; it has the earlier weights")
    if done.returncode:
        reason = done.stderr.decode(errors="replace").strip()
        sys.exit(
            f"earlier.py: no weights of {commit} ({reason}); a clone without its whole history gets"
            " them with `git fetch --unshallow`"
        )
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")


if __name__ == "__main__":
    main()
