"""Arrays of untrusted ``.npy`` and ``.npz`` files, and rows of vectors scaled to length 1.

Every fault of such a file raises a ``DataError`` with a one-line message. Pickles are never read,
because they could run code.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray
from numpy.typing import NDArray

from interlingua.errors import DataError, InterlinguaError
from interlingua.storage import limits
from interlingua.storage.files import PathLike

ARCHIVE = b"PK"
"""First bytes of a ``.npz`` file."""


def map_array(path: PathLike) -> np.ndarray[Any, Any]:
    """Map the array of a ``.npy`` file, which stays on disk.

    Raises:
        DataError: it is missing, or not an array that can be mapped.
    """
    try:
        # numpy opens an archive even if mmap_mode is set, and does not close a damaged one.
        with open(path, "rb") as file:
            if file.read(len(ARCHIVE)) == ARCHIVE:
                raise ValueError("the file is an archive of arrays")
        found: np.ndarray[Any, Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    # numpy parses the header as Python, which raises SyntaxError, TypeError, MemoryError and more.
    except Exception as error:
        raise DataError(
            f"cannot be mapped as an array ({_reason(error)}); save it with numpy.save",
            path=path,
        ) from error
    return found


def arrays_of(path: PathLike) -> Iterator[tuple[str, np.ndarray[Any, Any]]]:
    """Yield name and content of each array of a ``.npz`` file.

    Raises:
        DataError: it is missing, damaged, or grows beyond the limits when it is unpacked.
    """
    try:
        _check_members(path)
        with np.load(path, allow_pickle=False) as archive:
            for name in archive.files:
                yield name, archive[name]
    except InterlinguaError:
        raise
    except OSError as error:
        raise DataError(
            f"cannot be read ({error.strerror or error}); check the path", path=path
        ) from error
    # The errors listed in map_array, and all errors of zipfile and zlib.
    except Exception as error:
        raise DataError(
            f"cannot be read as arrays ({_reason(error)}); write the file again", path=path
        ) from error


def _check_members(path: PathLike) -> None:
    """Refuse an archive by its table of contents, before anything is unpacked."""
    with zipfile.ZipFile(Path(path)) as archive:
        members = archive.infolist()
    if len(members) > limits.MAX_MEMBERS:
        raise DataError(
            f"the file contains {len(members):,} arrays, more than {limits.MAX_MEMBERS:,}; save"
            " fewer",
            path=path,
        )
    packed = Path(path).stat().st_size
    unpacked = sum(member.file_size for member in members)
    if unpacked > max(limits.FREE_EXPANSION_BYTES, limits.max_expansion() * packed):
        raise DataError(
            f"the file of {packed:,} bytes would expand to {unpacked:,} bytes; save it with"
            " numpy.savez",
            path=path,
        )


def _reason(error: Exception) -> str:
    """Return an error on one line, truncated because it may quote the file."""
    return " ".join(f"{type(error).__name__}: {error}".split())[:200]


SMALLEST_LENGTH = 1e-12
"""Smallest divisor of a vector: a shorter vector is divided by it, so that zeros stay zeros."""


def normalize_rows(vectors: NDArray[np.floating]) -> Float32[ndarray, "n d"]:
    """Return a copy with rows of length 1, for cosines by inner products; rows of zeros stay."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, SMALLEST_LENGTH), dtype=np.float32)


def row_cosines(x: NDArray[np.floating], y: NDArray[np.floating]) -> Float64[ndarray, " n"]:
    """Compute the cosine of each pair of rows, in float64; 0 if a row is zero.

    The vectors may have any length.
    """
    x = x.astype(np.float64)
    y = y.astype(np.float64)
    lengths = np.linalg.norm(x, axis=1) * np.linalg.norm(y, axis=1)
    return np.asarray((x * y).sum(axis=1) / np.maximum(lengths, SMALLEST_LENGTH**2))


def unit_rows(vectors: NDArray[np.floating]) -> Float32[ndarray, "n d"]:
    """Return a copy of external vectors, which may hold any values, with rows of length 1.

    A row that is not finite or too long for float32 becomes NaN; a row of zeros stays. The lengths
    are computed in float64, in which no square of a float32 is too large.
    """
    # numpy warns of some of the bit patterns that mean NaN when it converts them.
    with np.errstate(over="ignore", invalid="ignore"):
        wide = np.asarray(vectors, dtype=np.float64)
        lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    # Dividing by NaN makes the whole row NaN; the caller can count such rows.
    lengths[lengths > np.finfo(np.float32).max] = np.nan
    return np.asarray(wide / lengths, dtype=np.float32)
