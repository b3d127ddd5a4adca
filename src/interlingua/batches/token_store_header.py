"""The header of a token store, checked before any of its values are used.

The header's checksum detects damage. It does not authenticate the writer of the store, so names,
types and sizes are checked as well.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from interlingua.errors import DataError
from interlingua.storage.formats import TOKEN_STORE
from interlingua.storage.record import read_record

STORE_FILES = ("tokens.bin", "offsets.bin")
MAX_VOCABULARY = 1 << 32
"""Ids take four bytes at most."""
_NAME = re.compile(r"[\w.+-]{1,64}")
"""Pattern of a language's name."""


def read_header(path: Path) -> dict[str, Any]:
    """Read the header of a store and check the types and sizes of all its values.

    Raises:
        DataError: there is no store, or it is damaged, of another version or has invalid values.
    """
    file = path / "header.json"
    if not file.is_file():
        raise DataError(
            "the folder contains no token store (header.json not found); run: interlingua"
            " prepare CONFIG",
            path=path,
        )
    header = read_record(file, TOKEN_STORE)
    problem = _header_problem(header)
    if problem:
        raise DataError(
            f"is damaged or incomplete ({problem}); prepare the corpus again", path=file
        )
    return header


def _header_problem(header: dict[str, Any]) -> str:
    """Return the first error in a header, or an empty text.

    A header with a correct checksum can have errors too, but this library writes no such header.
    """
    numbers = {"vocabulary_size": MAX_VOCABULARY, "closing_tokens": 1 << 16}
    for key, most in numbers.items():
        if not _is_count(header.get(key), most):
            return (
                f"{key}: expected a whole number from 0 to {most}, found {_brief(header.get(key))}"
            )
    if not isinstance(header.get("vocabulary_digest"), str):
        return (
            f"vocabulary_digest: expected a text, found {_brief(header.get('vocabulary_digest'))}"
        )
    # The vocabulary's size, which the checks above have found to be a number, decides how ids are
    # stored.
    dtype = id_dtype(header["vocabulary_size"]).str
    if header.get("dtype") != dtype:
        return f"dtype: expected {dtype!r} for this vocabulary, found {_brief(header.get('dtype'))}"
    pairs = header.get("language_pairs")
    if not isinstance(pairs, list) or not all(map(_is_pair_record, pairs)):
        return "language_pairs: expected entries of source, target and rows"
    names = [(pair["source"], pair["target"]) for pair in pairs]
    if names != sorted(set(names)):
        return "language_pairs: expected each pair once, in order"
    rows = sum(pair["rows"] for pair in pairs)
    return _problem_of_files(header, rows, np.dtype(dtype).itemsize)


def _problem_of_files(header: dict[str, Any], rows: int, id_bytes: int) -> str:
    """Return the error in the sizes of the files of ``rows`` rows; empty if there is none."""
    for key in ("bytes", "sha256"):
        if not isinstance(header.get(key), dict) or header[key].keys() != set(STORE_FILES):
            return f"{key}: expected the files {' and '.join(STORE_FILES)}"
    # Two offsets a row and one at the end, 8 bytes each.
    sizes = header["bytes"]
    if sizes["offsets.bin"] != 8 * (2 * rows + 1):
        return f"offsets.bin has {_brief(sizes['offsets.bin'])} bytes for {rows} rows"
    if not _is_count(sizes["tokens.bin"], 1 << 62) or sizes["tokens.bin"] % id_bytes:
        return f"tokens.bin has {_brief(sizes['tokens.bin'])} bytes for ids of {id_bytes} bytes"
    return ""


def _is_pair_record(record: Any) -> bool:
    if not isinstance(record, dict) or record.keys() != {"source", "target", "rows"}:
        return False
    names = (record["source"], record["target"])
    are_names = all(isinstance(name, str) and _NAME.fullmatch(name) for name in names)
    return are_names and _is_count(record["rows"], 1 << 58)


def _is_count(value: Any, most: int) -> bool:
    """Return whether a value is an integer from 0 to ``most``; a bool does not count as one."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most


def _brief(value: Any) -> str:
    """Return a value of any type and length, shortened for a message."""
    return repr(value)[:60]


def id_dtype(vocabulary_size: int) -> np.dtype[Any]:
    """Return the type in which ids of a vocabulary are stored."""
    return np.dtype("<u2" if vocabulary_size <= 1 << 16 else "<u4")
