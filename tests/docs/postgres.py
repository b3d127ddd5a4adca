"""A PostgreSQL with pgvector for one test, on a folder of its own that is gone with the test.

The programs are Debian's, or those of the package pgserver, which has both for systems without
Debian's pgvector.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

VARIABLE = "INTERLINGUA_TEST_POSTGRES"
"""URL of an empty database with pgvector, where another one is to be used."""


def programs() -> Path | None:
    """Find PostgreSQL with pgvector on the search path, in Debian's folder or in pgserver."""
    on_path = shutil.which("initdb")
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*([Path(on_path).resolve().parent] if on_path else []), *folders]:
        # PREFIX/lib/postgresql/17/bin belongs to PREFIX/share/postgresql/17.
        version = folder.parent.name
        extensions = folder.parents[3] / "share" / "postgresql" / version / "extension"
        if (folder / "initdb").is_file() and (extensions / "vector.control").is_file():
            return folder
    package = importlib.util.find_spec("pgserver")
    if package is None or package.origin is None:
        return None
    installed = Path(package.origin).parent / "pginstall"
    return (
        installed / "bin"
        if (installed / "share/postgresql/extension/vector.control").is_file()
        else None
    )


@contextlib.contextmanager
def running(folder: Path) -> Iterator[str]:
    """Yield the URL of an empty database on a server that runs until the block ends.

    Args:
        folder: of the programs.
    """
    # Not pytest's own folder: that of root is closed to the user postgres.
    place = Path(tempfile.mkdtemp(prefix="interlingua-postgres-"))
    as_user = []
    if os.geteuid() == 0:  # PostgreSQL refuses to run as root
        shutil.chown(place, "postgres")
        as_user = ["runuser", "-u", "postgres", "--"]
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def run(program: str, *options: str) -> None:
        command = [*as_user, str(folder / program), "-D", str(place / "data"), *options]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=place)

    try:
        run(
            "initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync"
        )
        run(
            "pg_ctl",
            "-w",
            "-l",
            str(place / "log"),
            "-o",
            f"-p {port} -k {place} -h 127.0.0.1",
            "start",
        )
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/postgres"
        finally:
            run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(place, ignore_errors=True)
