"""A bank of a frozen teacher's vectors on disk, found by the tokens of their sentences.

A bank is a folder: ``keys.npy`` (one 64-bit key per sentence, see
``batches.sentences.sentence_keys``), ``groups.npy`` (sentences of one group translate a common
sentence, so none is a negative of another), ``vectors.npy`` (float16) and ``bank.json``. The
sentences of the pivot language that serve as negatives come first, in the order of their keys,
which is a random order. Sentences that are only looked up (translations, held-out sentences)
follow.

Which negatives a step sees is a pure function of (seed, step): all of them, or a window of ``size``
neighbors that moves after each ``every`` steps. So a resumed run sees the same negatives as a run
without interruption.

A bank appears whole or not at all, with the digests of its files. It is not a workspace: the lock
of a workspace keeps other runs out, but several runs may read one bank.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32, Int64
from torch import Tensor
from torch.nn import functional as F

from interlingua.config import from_mapping
from interlingua.errors import ConfigError, DataError
from interlingua.runtime.seeds import seed_for
from interlingua.storage.digests import are_digests, file_digests, find_damage
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.formats import TEACHER_BANK
from interlingua.storage.record import holds_record, read_record, write_record

log = logging.getLogger("interlingua")
_RECORD = "bank.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class BankRecord:
    """The contents of ``bank.json``."""

    digest: str
    """Digest of the teachers, of the way in which they are joined, and of the sentences."""
    negatives: int
    """Sentences of the pivot language that serve as negatives."""
    sentences: int
    """Number of all sentences in the bank."""
    largest_group: int
    """Negatives in the largest group."""
    teachers: tuple[str, ...]
    widths: tuple[int, ...]
    """Widths of the teachers' vectors."""
    explained_variance: float | None = None
    """Share of the joined vectors' variance that was kept; None if the vectors of one teacher are
    stored unchanged."""
    cpu_seconds: float
    """Processor time that the vectors took."""


class BankWindow(NamedTuple):
    """The negatives of a step."""

    keys: Int64[Tensor, " n"]
    groups: Int64[Tensor, " n"]
    vectors: Float[Tensor, "n d"]
    """Vectors of length 1."""


class BankRequest(NamedTuple):
    """The required contents of a bank."""

    folder: str
    """Its folder; empty = in the run's folder."""
    pivot: str
    """The language of the negatives."""
    known_languages: tuple[str, ...] = ()
    """Languages of translations to include too."""
    size: int = 1 << 15
    """Negatives of a step."""
    every: int = 100
    """Steps between two windows."""


class TeacherBank:
    """A bank opened for reading; only the vectors of the current window are in memory.

    Args:
        path: the folder.
        size: negatives that a step sees, at most.
        every: steps between two windows.
        seed: decides the starts of windows.

    Raises:
        DataError: there is no bank, or it is damaged.
    """

    def __init__(
        self, path: PathLike, *, size: int = 1 << 15, every: int = 100, seed: int = 0
    ) -> None:
        self.path = Path(path)
        self.size = size
        self.every = every
        self.seed = seed
        record = read_bank_record(self.path)
        if record is None:
            raise DataError(
                "the folder contains no bank of teacher vectors; remove the folder and run the"
                " same command again",
                path=path,
            )
        self.record = record
        # Mapped, not read: a bank of a corpus is larger than the memory.
        self._keys = np.load(self.path / "keys.npy", mmap_mode="r")
        self._groups = np.load(self.path / "groups.npy", mmap_mode="r")
        self._vectors = np.load(self.path / "vectors.npy", mmap_mode="r")
        lengths = {len(self._keys), len(self._groups), len(self._vectors)}
        if lengths != {record.sentences}:
            raise DataError(
                "the files of the bank have different lengths; remove the folder and run the"
                " same command again",
                path=path,
            )
        self._window: tuple[int, torch.device, BankWindow] | None = None

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        return int(self._vectors.shape[1])

    def vectors(self, keys: Int64[Tensor, " b"]) -> Float32[Tensor, "b d"]:
        """Return the teacher's vectors of sentences.

        Raises:
            DataError: a sentence is not in the bank.
        """
        rows = self.rows(keys)
        if (rows < 0).any():
            missing = int((rows < 0).sum())
            raise DataError(
                f"{missing} of {len(rows)} sentences of a batch have no vector in the bank;"
                " remove the folder and run the same command again",
                path=self.path,
            )
        return torch.from_numpy(self._vectors[rows].astype(np.float32)).to(keys.device)

    def groups(self, keys: Int64[Tensor, " b"]) -> Int64[Tensor, " b"]:
        """Return the group of each sentence.

        It is -1 for a sentence that is not a negative of the bank.
        """
        rows = self.rows(keys)
        is_negative = (rows >= 0) & (rows < self.record.negatives)
        # Row 0 replaces missing rows, and is masked out.
        groups = np.where(is_negative, self._groups[np.maximum(rows, 0)], -1)
        return torch.from_numpy(groups.astype(np.int64)).to(keys.device)

    def rows(self, keys: Int64[Tensor, " b"]) -> Int64[np.ndarray, " b"]:
        """Return the row of each sentence in the bank, -1 if it is not there."""
        sought = keys.cpu().numpy()
        negatives = self.record.negatives
        rows = np.full(len(sought), -1, dtype=np.int64)
        # Each part is sorted by itself. The negatives are searched last, so that a sentence that is
        # in both parts gets its row among the negatives.
        for first, last in ((negatives, self.record.sentences), (0, negatives)):
            part = self._keys[first:last]
            if len(part):
                # A key beyond the last one would be found behind the end.
                found = np.minimum(np.searchsorted(part, sought), len(part) - 1)
                rows = np.where(part[found] == sought, found + first, rows)
        return rows

    def window(self, step: int, device: torch.device) -> BankWindow:
        """Return the negatives of a step."""
        negatives = self.record.negatives
        # A bank that fits into a window has one window for all steps.
        turn = 0
        if negatives > self.size:
            turn = step // self.every
        if self._window is None or self._window[:2] != (turn, device):
            rows = np.arange(min(self.size, negatives))
            # The window starts at a random place and wraps around at the end. Neighbors in the
            # order of the keys are a random sample.
            if negatives > self.size:
                rows = (rows + seed_for(self.seed, "bank window", turn) % negatives) % negatives
            vectors = torch.from_numpy(self._vectors[rows].astype(np.float32)).to(device)
            keys = torch.from_numpy(np.asarray(self._keys[rows]).astype(np.int64))
            groups = torch.from_numpy(np.asarray(self._groups[rows]).astype(np.int64))
            window = BankWindow(keys.to(device), groups.to(device), F.normalize(vectors, dim=1))
            self._window = (turn, device, window)
        return self._window[2]

    def __deepcopy__(self, memo: dict[int, object]) -> TeacherBank:
        """Return the same bank, because a copy of an objective shares the files."""
        return self


def write_bank(
    path: PathLike,
    record: BankRecord,
    keys: Int64[np.ndarray, " n"],
    groups: Int64[np.ndarray, " n"],
    parts: Sequence[Float[np.ndarray, "_ d"]],
) -> None:
    """Write a bank, which appears only when it is complete.

    Args:
        path: the folder, replaced if a bank is in it.
        record: the record of the bank.
        keys: sorted within the negatives and within the rest.
        groups: of all sentences.
        parts: the vectors of all sentences, in consecutive parts.

    Raises:
        ConfigError: the folder holds something else.
        DataError: the disk is full.
    """
    with atomic_directory(path, overwrite=True, ours=_is_ours) as folder:
        np.save(folder / "keys.npy", keys)
        np.save(folder / "groups.npy", groups)
        # Written part by part into a mapped file, which is never in memory as a whole.
        shape = (len(keys), parts[0].shape[1])
        vectors = np.lib.format.open_memmap(
            folder / "vectors.npy", mode="w+", dtype=np.float16, shape=shape
        )
        done = 0
        for part in parts:
            vectors[done : done + len(part)] = part
            done += len(part)
        vectors.flush()
        write_record(
            folder / _RECORD, TEACHER_BANK, {**asdict(record), "files": file_digests(folder)}
        )


def read_bank_record(path: Path, *, verify: bool = False) -> BankRecord | None:
    """Return the record of a folder's bank; None if it has no bank that this version can use.

    Args:
        path: the folder.
        verify: compare its files with their digests, which reads all of them.
    """
    # The checksum does not authenticate the writer.
    try:
        found = read_record(path / _RECORD, TEACHER_BANK)
        files = found.pop("files", None)
        if not are_digests(files):
            return None
        if verify and (fault := find_damage(path, files)):
            log.warning("%s: %s; the bank is rebuilt", path, fault)
            return None
        known = {key: value for key, value in found.items() if value is not None}
        return from_mapping(BankRecord, known, where=_RECORD)
    except (DataError, ConfigError):
        return None


def _is_ours(path: Path) -> bool:
    return holds_record(path / _RECORD, TEACHER_BANK)
