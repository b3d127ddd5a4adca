"""The ids of a collection's passages, in one string of bytes with the offset of each."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Sequence
from typing import overload

from interlingua.errors import DataError
from interlingua.evaluation.key_index import KEY_BYTES, KeyIndex


class PassageIds(Sequence[str]):
    """Ids in the order of their passages, in little memory.

    Each id takes its own bytes plus 8 for the offset of its end; in a list it would take about 70.

    While ids are added, another 24 bytes per id are used to detect duplicates; see ``KeyIndex``.

    Args:
        language: of the passages, named in errors.
    """

    def __init__(self, language: str) -> None:
        self._language = language
        self._bytes = bytearray()
        self._ends = array("q", [0])
        self._present: KeyIndex | None = KeyIndex()

    def extend(self, ids: Sequence[str]) -> None:
        """Add ids.

        Raises:
            DataError: an id is a duplicate.
        """
        if self._present is None:
            raise ValueError("ids cannot be added to a closed table")
        encoded = [name.encode(errors="surrogatepass") for name in ids]
        digests = [hashlib.blake2b(name, digest_size=KEY_BYTES).digest() for name in encoded]
        # the index knows the ids of earlier calls, the set those of this one
        rows = self._present.find(digests).tolist()
        in_this_call: set[bytes] = set()
        for name, digest, row in zip(ids, digests, rows, strict=True):
            if row >= 0 or digest in in_this_call:
                raise DataError(
                    f"the passage id {name!r} occurs twice in {self._language}; use unique ids"
                )
            in_this_call.add(digest)
        self._present.add(digests, range(len(self), len(self) + len(ids)))
        for own_bytes in encoded:
            self._bytes += own_bytes
            self._ends.append(len(self._bytes))

    def close(self) -> None:
        """Accept no more ids, and free the memory that adding needed."""
        self._present = None

    def __len__(self) -> int:
        return len(self._ends) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> list[str]: ...

    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            return [self[row] for row in range(*place.indices(len(self)))]
        # range converts a negative place to a row, and raises IndexError beyond the end
        row = range(len(self))[place]
        return self._bytes[self._ends[row] : self._ends[row + 1]].decode(errors="surrogatepass")
