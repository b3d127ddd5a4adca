"""Records: small JSON files that name their format and version and whose damage is detected.

A record is an object with the key ``format``. A sealed record ends with ``checksum``, the SHA-256
of everything else in it. The checksum detects damage; it does not authenticate the writer, so code
that computes with the values of a record checks them as well.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from interlingua.errors import DataError
from interlingua.storage.files import PathLike, atomic_write
from interlingua.storage.formats import Format
from interlingua.storage.json_text import as_json, parse_json, read_json_text

CHECKSUM = "checksum"
FORMAT_KEY = "format"


class RecordError(DataError):
    """A record is missing, damaged, of another version, or no record at all.

    Args:
        fault: the error, without a remedy.
        remedy: the remedy for the error.
        path: path of the record.

    Attributes:
        is_missing: whether there is no such file.
    """

    def __init__(
        self, fault: str, remedy: str, *, path: PathLike | None, is_missing: bool = False
    ) -> None:
        super().__init__(f"{fault}; {remedy}", path=path)
        self.fault = fault
        self.is_missing = is_missing


def write_record(path: PathLike, format: Format, content: Mapping[str, Any]) -> None:
    """Write a record, which appears under its name only when it is complete and on the disk.

    Raises:
        DataError: it can't be written.
    """
    with atomic_write(path) as file:
        file.write(render_record(format, content))


def render_record(format: Format, content: Mapping[str, Any]) -> str:
    """Return the text of a record.

    Args:
        format: format of the record.
        content: values by key, without the keys ``format`` and ``checksum``; each value is of a
            type that JSON has, a tuple or a path.
    """
    # As it will be read: keys are texts, tuples are lists.
    record = as_json({FORMAT_KEY: format.tag, **content})
    if format.is_sealed:
        record[CHECKSUM] = checksum_of(record)
    return json.dumps(record, ensure_ascii=False, indent=1) + "\n"


def read_record(path: PathLike, format: Format, *, remedy: str | None = None) -> dict[str, Any]:
    """Return the content of a record, without ``format`` and ``checksum``.

    Args:
        path: path of the record.
        format: format that the record must have.
        remedy: what to do if the record can't be read; default: the remedy of the format.

    Raises:
        RecordError: it is missing, damaged, of another format, or of another version.
    """
    remedy = remedy or format.remedy
    try:
        text = read_json_text(path)
    except FileNotFoundError as error:
        raise RecordError("file not found", remedy, path=path, is_missing=True) from error
    except OSError as error:
        raise RecordError(
            f"cannot be read ({error.strerror or error})", remedy, path=path
        ) from error
    except UnicodeDecodeError as error:
        raise RecordError("is damaged or incomplete (not UTF-8)", remedy, path=path) from error
    return parse_record(text, format, path=path, remedy=remedy)


def parse_record(
    text: str, format: Format, *, path: PathLike | None = None, remedy: str | None = None
) -> dict[str, Any]:
    """Return the content of a record's text; see ``read_record``."""
    remedy = remedy or format.remedy
    try:
        content = parse_json(text)
    except ValueError as error:
        raise RecordError(
            f"is damaged, or is not a record of {format.name} ({error})", remedy, path=path
        ) from error
    # Check format, version and checksum in this order: the first wrong one explains the fault best.
    if fault := fault_of(content, format):
        raise RecordError(fault, remedy, path=path)
    own: dict[str, Any] = content
    return {key: value for key, value in own.items() if key not in (FORMAT_KEY, CHECKSUM)}


def fault_of(content: Any, format: Format) -> str:
    """Return the fault of a record's JSON, or an empty text."""
    if not isinstance(content, dict):
        return f"expected a record of {format.name}, found no JSON object"
    tag = content.get(FORMAT_KEY)
    if tag is None:
        return f"expected a record of {format.name}, found no format"
    if not format.is_named_by(tag):
        return f"expected a record of {format.name}, found the format {str(tag)[:60]!r}"
    if tag != format.tag:
        return f"was written by another version of interlingua (expected {format.tag}, found {tag})"
    if format.is_sealed and content.get(CHECKSUM) != checksum_of(content):
        return "is damaged or incomplete (the checksum differs)"
    return ""


def record_checksum(format: Format, content: Mapping[str, Any]) -> str:
    """Return the checksum of the record with a content; equal contents have equal checksums."""
    return checksum_of({FORMAT_KEY: format.tag, **content})


def holds_record(path: PathLike, format: Format) -> bool:
    """Return whether a file is a record of a format, whatever its version and its damage."""
    # A damaged record is still ours, so it may be replaced, unlike an unknown file.
    try:
        content = parse_json(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(content, dict) and format.is_named_by(content.get(FORMAT_KEY))


def checksum_of(record: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in a record besides its ``checksum``."""
    # Sorted, so that the order in a file does not matter.
    content = {key: value for key, value in record.items() if key != CHECKSUM}
    text = json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
