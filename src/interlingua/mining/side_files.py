"""The files of a side of a corpus, and the record that is written when all of them are on the disk.

The record has the size and the SHA-256 of each file. A side that was cut or changed since is noticed when it is opened;
that takes about as long as the digest of the input, which each run makes anyway.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from interlingua.errors import DataError
from interlingua.files import atomic_write, sha256_file, sync_file
from interlingua.json_text import parse_json
from interlingua.temporary import sync_folder

RECORD = "side.json"
FORMAT = "interlingua-side-1"
FILES = (
    "texts.text",
    "texts.ends",
    "names.text",
    "names.ends",
    "text_of_line.i64",
    "starts.i64",
    "lines.i64",
    "documents.u64",
)
SCRATCH = ("keys.u64", "cursor.i64")
"""That a side is made with."""
OF_VECTORS = ("model.json", "vectors.npy")
"""In the same folder, see ``vectors.embed_side``."""
JOURNALS = "vectors-*of*.journal"


@dataclass(frozen=True, kw_only=True, slots=True)
class SideRecord:
    """What ``side.json`` says.

    Attributes:
        what: tells the input and the settings from others.
        lines: of the input.
        texts: each once.
        files: name -> its bytes and their SHA-256.
    """

    what: str
    lines: int
    texts: int
    files: dict[str, list[int | str]]

    @classmethod
    def read(cls, folder: Path) -> SideRecord | None:
        """The record of a folder; nothing where no side was finished and nothing depends on one.

        Raises:
            DataError: it is damaged or missing, and there are vectors of its texts.
        """
        path = folder / RECORD
        try:
            found = parse_json(path.read_text(encoding="utf-8"))
            if found.pop("format") == FORMAT:
                return cls(**found)
            problem = "is of another version of interlingua"
        except FileNotFoundError:
            problem = "is missing"
        except (ValueError, KeyError, TypeError, AttributeError):
            problem = "is damaged"
        if not has_vectors(folder):
            return None
        raise DataError(
            f"{problem}, so it is not known what texts the vectors are of; remove {folder} or choose another --work"
            " folder",
            path=path,
        )

    def write(self, folder: Path) -> None:
        """Puts the record into a folder; then the side is finished."""
        with atomic_write(folder / RECORD) as file:
            json.dump({"format": FORMAT, **asdict(self)}, file)

    def damage(self, folder: Path) -> str:
        """Which file is not what was written; empty if all are."""
        for name in FILES:
            path = folder / name
            if not path.is_file():
                return f"{name} is missing"
            if [path.stat().st_size, sha256_file(path)] != self.files.get(name):
                return f"{name} was cut or changed since it was written"
        return ""


def describe(folder: Path) -> dict[str, list[int | str]]:
    """Bytes and SHA-256 of each file of a side, which are on the disk when this returns."""
    found: dict[str, list[int | str]] = {}
    for name in FILES:
        sync_file(folder / name)
        found[name] = [(folder / name).stat().st_size, sha256_file(folder / name)]
    sync_folder(folder)
    return found


def remove_files(folder: Path) -> None:
    """Removes the files of a side; its record, and what depends on it, only if no vectors are finished.

    The record of finished vectors stays until the next one takes its place, so that a run that is killed while it reads
    damaged texts again does not lose them.
    """
    names = [*FILES, *SCRATCH]
    if not has_vectors(folder):
        names += [RECORD, *OF_VECTORS, *(path.name for path in folder.glob(JOURNALS))]
    for name in names:
        (folder / name).unlink(missing_ok=True)


def has_vectors(folder: Path) -> bool:
    """Whether vectors of a side are finished."""
    return any(path.stat().st_size for path in folder.glob(JOURNALS))
