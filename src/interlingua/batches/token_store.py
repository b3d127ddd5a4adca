"""Token stores: tokenized parallel text on disk, read by row in constant memory.

A store is a folder of three files:

- ``tokens.bin``: the ids of all rows, a row being its source ids followed by its target ids;
- ``offsets.bin``: 2 R + 1 little-endian uint64, so that row r's source is ``tokens[o[2r] :
  o[2r+1]]`` and its target ``tokens[o[2r+1] : o[2r+2]]``; the rows of one language pair are
  consecutive;
- ``header.json``: language pairs and their rows, sizes, SHA-256 of both files, and a checksum of
  the header itself.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int, Int64

from interlingua.batches.token_store_header import STORE_FILES, id_dtype, read_header
from interlingua.config.languages import LanguagePair as LanguagePair
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, atomic_directory, open_raw, sha256_file
from interlingua.storage.formats import TOKEN_STORE
from interlingua.storage.record import record_checksum, write_record

_COUNTED_AT_ONCE = 1 << 20
"""Number of values of a file that are checked at once."""


class TokenRows(NamedTuple):
    """Rows of a store, packed: both sides with their lengths in tokens."""

    source_ids: Int64[np.ndarray, " s"]
    source_lengths: Int64[np.ndarray, " n"]
    target_ids: Int64[np.ndarray, " t"]
    target_lengths: Int64[np.ndarray, " n"]


class TokenStoreWriter:
    """Writer of a store, for any language pairs in any order, in bounded memory.

    The store appears at its path only when it is complete.

    Args:
        path: the folder to make.
        vocabulary_size: ids must be below it.
        vocabulary_digest: digest of the vocabulary that made the ids; a reader compares it with the
            digest of its own vocabulary.
        closing_tokens: number of special tokens at the end of every sequence (1 for ``</s>``),
            kept when a reader truncates.
        buffer_bytes: bytes of token ids that are held in memory before they go to the disk.
    """

    def __init__(
        self,
        path: PathLike,
        *,
        vocabulary_size: int,
        vocabulary_digest: str = "",
        closing_tokens: int = 0,
        buffer_bytes: int = 32 << 20,
    ) -> None:
        self._dtype = id_dtype(vocabulary_size)
        self._header: dict[str, Any] = {
            "vocabulary_size": vocabulary_size,
            "vocabulary_digest": vocabulary_digest,
            "closing_tokens": closing_tokens,
            "dtype": self._dtype.str,
        }
        self._buffer_bytes = buffer_bytes
        self._buffered = 0
        self._ids: dict[LanguagePair, list[np.ndarray]] = {}
        self._lengths: dict[LanguagePair, list[np.ndarray]] = {}
        self._rows: dict[LanguagePair, int] = {}
        self._exit = contextlib.ExitStack()
        self._folder = self._exit.enter_context(atomic_directory(path))

    def append(
        self,
        language_pair: LanguagePair,
        sources: Sequence[Sequence[int]],
        targets: Sequence[Sequence[int]],
    ) -> None:
        """Add rows of one language pair.

        Raises:
            DataError: the sides differ in number, a sequence is empty, or an id is not in the
                vocabulary.
        """
        if len(sources) != len(targets):
            raise DataError(
                f"{len(sources)} source and {len(targets)} target sequences; pass equal numbers"
                " of both"
            )
        if not sources:
            return
        # In the file's order: source, target, source, target.
        sides = [side for row in zip(sources, targets, strict=True) for side in row]
        lengths = np.fromiter(map(len, sides), dtype=np.uint32, count=len(sides))
        ids = np.fromiter(
            itertools.chain.from_iterable(sides), dtype=np.int64, count=int(lengths.sum())
        )
        self.append_packed(language_pair, ids, lengths)

    def append_packed(
        self,
        language_pair: LanguagePair,
        ids: Int[np.ndarray, " t"],
        lengths: Int[np.ndarray, " r"],
    ) -> None:
        """Add rows of one language pair from flat arrays.

        Args:
            language_pair: of all rows.
            ids: of the first source, the first target, the second source, and so on.
            lengths: of each of these sequences, in tokens; their sum is the number of ids.

        Raises:
            DataError: a sequence is empty, or an id is not in the vocabulary.
        """
        row = self._rows.get(language_pair, 0)
        if not lengths.all():
            empty = row + int(np.argmin(lengths)) // 2
            raise DataError(
                f"row {empty} of {'-'.join(language_pair)} has an empty side; remove empty texts"
                " first"
            )
        if len(ids) and (ids.min() < 0 or ids.max() >= self._header["vocabulary_size"]):
            raise DataError(
                f"{'-'.join(language_pair)}: expected token ids below"
                f" {self._header['vocabulary_size']}, found {ids.min()} to {ids.max()}; use the"
                " vocabulary that tokenized them"
            )
        self._ids.setdefault(language_pair, []).append(ids.astype(self._dtype))
        self._lengths.setdefault(language_pair, []).append(lengths.astype(np.uint32, copy=False))
        self._rows[language_pair] = row + len(lengths) // 2
        self._buffered += len(ids) * self._dtype.itemsize + lengths.nbytes
        if self._buffered >= self._buffer_bytes:
            self._spill()

    def __enter__(self) -> TokenStoreWriter:
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is not None:
            self._exit.__exit__(kind, *error)  # removes the unfinished folder
            return
        with self._exit:
            self._finish()

    def _spool(self, language_pair: LanguagePair, kind: str) -> Path:
        """Return the spool file of a language pair's ids or lengths.

        Rows of all pairs arrive in any order and are spooled by pair.
        """
        return self._folder / f"{'-'.join(language_pair)}.{kind}.spool"

    def _spill(self) -> None:
        """Append the rows held in memory to the spool files."""
        for kind, buffers in (("ids", self._ids), ("lengths", self._lengths)):
            for language_pair, arrays in buffers.items():
                with self._spool(language_pair, kind).open("ab") as file:
                    file.writelines(array.data for array in arrays)
            buffers.clear()
        self._buffered = 0

    def _finish(self) -> None:
        """Concatenate the spools, and write the header last."""
        self._spill()
        pairs = sorted(self._rows)
        with (
            (self._folder / "tokens.bin").open("wb") as tokens,
            (self._folder / "offsets.bin").open("wb") as offsets,
        ):
            end = np.zeros(1, dtype="<u8")
            offsets.write(end.tobytes())
            for language_pair in pairs:
                with self._spool(language_pair, "ids").open("rb") as spool:
                    while chunk := spool.read(1 << 20):
                        tokens.write(chunk)
                # Turn lengths into offsets, which continue those of the previous pair.
                with self._spool(language_pair, "lengths").open("rb") as spool:
                    while chunk := spool.read(1 << 20):
                        ends = end + np.cumsum(np.frombuffer(chunk, dtype=np.uint32), dtype="<u8")
                        offsets.write(ends.tobytes())
                        end = ends[-1:]
                for kind in ("ids", "lengths"):
                    self._spool(language_pair, kind).unlink()
        self._header["language_pairs"] = [
            {"source": source, "target": target, "rows": self._rows[source, target]}
            for source, target in pairs
        ]
        self._header["bytes"] = {name: (self._folder / name).stat().st_size for name in STORE_FILES}
        self._header["sha256"] = {name: sha256_file(self._folder / name) for name in STORE_FILES}
        write_record(self._folder / "header.json", TOKEN_STORE, self._header)


class TokenStore:
    """A store opened for reading; see the module for its files."""

    def __init__(self, path: PathLike, header: dict[str, Any]) -> None:
        self.path = Path(path)
        self.vocabulary_size: int = header["vocabulary_size"]
        self.vocabulary_digest: str = header["vocabulary_digest"]
        self.closing_tokens: int = header["closing_tokens"]
        self.digest: str = record_checksum(TOKEN_STORE, header)
        """Identifies the content: equal stores have equal digests."""
        self.language_pairs: tuple[LanguagePair, ...] = tuple(
            (pair["source"], pair["target"]) for pair in header["language_pairs"]
        )
        self.counts: tuple[int, ...] = tuple(pair["rows"] for pair in header["language_pairs"])
        self._header = header
        # First row of each language pair in the whole store, and the number of all rows.
        ends = np.cumsum(self.counts, dtype=np.int64)
        self._first_rows = np.concatenate([[0], ends]).astype(np.int64)
        self._tokens = _RandomReads(self.path / "tokens.bin", np.dtype(header["dtype"]))
        self._offsets = _RandomReads(self.path / "offsets.bin", np.dtype("<u8"))
        self._size = header["bytes"]["tokens.bin"] // np.dtype(header["dtype"]).itemsize

    @classmethod
    def open(cls, path: PathLike) -> TokenStore:
        """Open a store after checking the header's checksum and the sizes of its files.

        Raises:
            DataError: there is no store, or it is damaged or truncated.
        """
        header = read_header(Path(path))
        for name, expected in header["bytes"].items():
            file = Path(path) / name
            got = file.stat().st_size if file.is_file() else 0
            if got != expected:
                raise DataError(
                    f"is damaged or incomplete (expected {expected} bytes, found {got}); prepare"
                    " the corpus again",
                    path=file,
                )
        return cls(path, header)

    def verify(self) -> None:
        """Read both files whole, compare their SHA-256, and check their ids and offsets.

        The digests detect damage. A store that a faulty program wrote has correct digests, so its
        numbers are checked as well.

        Raises:
            DataError: a file has changed since it was written, or holds impossible numbers.
        """
        largest = 0
        for ids in self._verified("tokens.bin", self._header["dtype"]):
            largest = max(largest, int(ids.max(initial=0)))
        if largest >= self.vocabulary_size > 0:
            raise DataError(
                f"is damaged or incomplete (token id {largest} in a vocabulary of"
                f" {self.vocabulary_size} entries); prepare the corpus again",
                path=self.path / "tokens.bin",
            )
        are_possible = True
        end = -1
        for offsets in self._verified("offsets.bin", "<u8"):
            # Each offset must be greater than the previous one. Offsets from 2^63 on become
            # negative here, so they fail too.
            are_possible &= bool((np.diff(offsets.astype(np.int64), prepend=end) > 0).all())
            are_possible &= end >= 0 or int(offsets[0]) == 0
            end = int(offsets[-1].astype(np.int64))
        if not are_possible or end != self._size:
            raise DataError(
                "is damaged or incomplete (invalid offsets); prepare the corpus again",
                path=self.path / "offsets.bin",
            )

    def _verified(self, name: str, dtype: str) -> Iterator[np.ndarray]:
        """Yield the numbers of a file block by block, and compare its SHA-256 at the end."""
        digest = hashlib.sha256()
        with open_raw(self.path / name) as file:
            while block := file.read(_COUNTED_AT_ONCE * 8):
                digest.update(block)
                yield np.frombuffer(block, dtype=dtype)
        if digest.hexdigest() != self._header["sha256"][name]:
            raise DataError(
                "is damaged or incomplete (the digest differs); prepare the corpus again",
                path=self.path / name,
            )

    def __len__(self) -> int:
        return int(self._first_rows[-1])

    def token_counts(self) -> Int64[np.ndarray, " v"]:
        """Count the occurrences of each id of the vocabulary.

        The file is read in order, block by block.
        """
        counts = np.zeros(self.vocabulary_size, dtype=np.int64)
        dtype = self._header["dtype"]
        with (self.path / "tokens.bin").open("rb") as file:
            while len(block := np.fromfile(file, dtype=dtype, count=_COUNTED_AT_ONCE)):
                counts += np.bincount(block, minlength=self.vocabulary_size)
        return counts

    def read(
        self, pair_index: int, rows: Int[np.ndarray, " n"]
    ) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """Read rows of one language pair.

        Returns:
            the source and the target sequences, each int64.

        Raises:
            DataError: a row does not exist.
        """
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size == 0:
            return [], []
        if rows.min() < 0 or rows.max() >= self.counts[pair_index]:
            wrong = rows.min() if rows.min() < 0 else rows.max()
            raise DataError(
                f"row {wrong} of {'-'.join(self.language_pairs[pair_index])} does not exist; the"
                f" language pair has {self.counts[pair_index]} rows",
                path=self.path,
            )
        found = self.read_packed(np.full(len(rows), pair_index), rows)
        return (
            np.split(found.source_ids, np.cumsum(found.source_lengths)[:-1]),
            np.split(found.target_ids, np.cumsum(found.target_lengths)[:-1]),
        )

    def read_packed(
        self,
        pair_indices: Int[np.ndarray, " n"],
        rows: Int[np.ndarray, " n"],
        *,
        max_tokens: int | None = None,
    ) -> TokenRows:
        """Read rows of any language pairs at once.

        Args:
            pair_indices: the language pair of each row.
            rows: the row in its language pair.
            max_tokens: longer sides are cut to this many tokens, their closing special tokens kept.

        Raises:
            DataError: the store is damaged: it holds impossible offsets.
        """
        # A row's three offsets are consecutive: of its source, its target, and the next row.
        places = 2 * (self._first_rows[pair_indices] + rows)
        offsets = self._offsets.gather(places, np.full_like(places, 3))
        bounds = offsets.astype(np.int64).reshape(-1, 3)
        lengths = np.diff(bounds, axis=1)  # (n, 2): source and target
        # Check the offsets before anything is read by them.
        if (lengths < 1).any() or bounds.min(initial=0) < 0 or bounds.max(initial=0) > self._size:
            raise DataError(
                "is damaged or incomplete (invalid offsets); prepare the corpus again",
                path=self._offsets.path,
            )
        tokens = self._tokens.gather(bounds[:, 0], lengths.sum(axis=1)).astype(np.int64)
        # The end of each side in the tokens that were read, where source and target alternate.
        ends = np.cumsum(lengths).reshape(-1, 2)
        sides = [
            self._side(ends[:, side] - lengths[:, side], lengths[:, side], max_tokens)
            for side in (0, 1)
        ]
        (sources, source_lengths), (targets, target_lengths) = sides
        return TokenRows(tokens[sources], source_lengths, tokens[targets], target_lengths)

    def _side(
        self, starts: Int64[np.ndarray, " n"], full: Int64[np.ndarray, " n"], max_tokens: int | None
    ) -> tuple[Int64[np.ndarray, " t"], Int64[np.ndarray, " n"]]:
        """Return the positions of the tokens kept on one side, and their number in each row."""
        lengths = full
        closing = 0
        if max_tokens is not None:
            lengths = np.minimum(full, max_tokens)
            closing = min(self.closing_tokens, max_tokens)
        # Token t of a row goes from its start plus t to the row's new start plus t.
        ends = np.cumsum(lengths)
        shifts = np.repeat(starts - (ends - lengths), lengths)
        index = shifts + np.arange(len(shifts))
        # The closing tokens replace the last tokens of a cut sentence; if nothing was cut, the last
        # tokens are the closing ones already.
        for back in range(1, 1 + closing):
            index[ends - np.minimum(back, lengths)] = starts + full - np.minimum(back, full)
        return index, lengths


class _RandomReads:
    """Parts of a file of numbers, each read by its position.

    Not a memory map: touching one page of a map can make megabytes around it resident (Linux maps
    whole large folios), so a process that reads rows at random would grow to the size of the store.
    """

    def __init__(self, path: Path, dtype: np.dtype[Any]) -> None:
        self.path = path
        self._dtype = dtype
        self._file = os.open(path, os.O_RDONLY)
        weakref.finalize(self, os.close, self._file)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file, 0, 0, os.POSIX_FADV_RANDOM)

    def gather(
        self, starts: Int64[np.ndarray, " n"], lengths: Int64[np.ndarray, " n"]
    ) -> np.ndarray:
        """Return the numbers ``start : start + length`` of all parts, concatenated."""
        size = self._dtype.itemsize
        spans = zip((lengths * size).tolist(), (starts * size).tolist(), strict=True)
        # pread does not use the file's position, so several threads can share the file
        pieces = [os.pread(self._file, *span) for span in spans]
        return np.frombuffer(b"".join(pieces), dtype=self._dtype)
