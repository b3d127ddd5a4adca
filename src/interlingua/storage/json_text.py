r"""Strict parsing of untrusted JSON: every input that Python's parser can't handle is a DataError.

Such inputs are: nesting so deep that it overflows the stack; whole numbers of hundreds of digits,
which no float can hold; and ``\ud800``, half a surrogate pair of UTF-16, which is not a character
and can't be written as UTF-8.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import chain
from typing import Any

from interlingua.errors import DataError
from interlingua.storage.files import open_bytes, open_text
from interlingua.storage.limits import read_limited

MAX_DIGITS = 300
_MAX_DEPTH = 200
"""Maximum depth of nested lists, which recursive code can process."""


def whole_number(text: str) -> int:
    """Parse a whole number of at most ``MAX_DIGITS`` digits.

    Raises:
        ValueError: the number has more digits.
    """
    if len(text) > MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")
    return int(text)


_DECODER = json.JSONDecoder(parse_int=whole_number)


def _plain_float(digits: str) -> float:
    # Adding 0.0 turns -0.0 into 0.0.
    return float(digits) + 0.0


_FLOATS = json.JSONDecoder(parse_int=_plain_float, parse_float=_plain_float)


def parse_json(text: str, decoder: json.JSONDecoder = _DECODER) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, nested too deeply, or holds a number or a text that can't be
            used.
    """
    # JSON has no byte-order mark, but editors on Windows write one.
    try:
        value = decoder.decode(text.removeprefix("\ufeff"))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    check_value(value, text)
    return value


def as_json(value: Any) -> Any:
    """Return a value in the form that JSON reads back, to compare it with a stored one."""
    return json.loads(json.dumps(value, default=os.fspath))


def canonical_json(text: str) -> str:
    """Return a JSON text in a form that does not depend on spaces, order of keys, or number forms.

    Raises:
        ValueError: see ``parse_json``.
    """
    return json.dumps(parse_json(text, _FLOATS), ensure_ascii=False, sort_keys=True)


def parse_json_value(text: str, start: int) -> tuple[Any, int]:
    """Return the value at a position of a text, and its end.

    Raises:
        ValueError: see ``parse_json``.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    check_value(value, text[start:end])
    return value, end


def check_value(value: Any, text: str) -> None:
    """Refuse a parsed value that is nested too deeply or holds half a surrogate pair.

    Args:
        value: the parsed value.
        text: its JSON.

    Raises:
        ValueError: the value is nested too deeply or holds half a surrogate pair.
    """
    # Surrogates can only come from escapes, and nesting from brackets: most values need no walk.
    may_be_deep = text.count("[") + text.count("{") > _MAX_DEPTH
    may_be_broken = "\\ud" in text or "\\uD" in text
    if may_be_deep:
        _refuse_depth(value)
    if may_be_broken:
        for item in _texts(value):
            if not item.isascii():
                refuse_surrogates(item)


def refuse_surrogates(text: str) -> None:
    """Refuse a text with half a surrogate pair.

    Raises:
        ValueError: it has one.
    """
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise ValueError(
            f"a text contains {text[error.start]!a}, an incomplete character; correct or remove it"
        ) from None


def read_json_text(path: str | os.PathLike[str]) -> str:
    """Read the text of a plain file, for callers that report its faults themselves.

    Raises:
        DataError: the file is too large, or is a device without an end.
        OSError: it can't be read.
        UnicodeDecodeError: it is not UTF-8.
    """
    with open(path, "rb") as file:
        return read_limited(file, path).decode("utf-8")


def load_json(path: str | os.PathLike[str]) -> Any:
    """Read the value of a whole JSON file, plain or compressed.

    Raises:
        DataError: it is missing, too large or not JSON.
    """
    with open_bytes(path) as file:
        content = read_limited(file, path)
    try:
        return parse_json(content.decode("utf-8-sig"))
    except json.JSONDecodeError as error:
        raise DataError(
            f"not JSON ({error.msg}); correct it, or download it again",
            path=path,
            line=error.lineno,
        ) from error
    # The error holds the byte's position; its line number is the number of line feeds before it,
    # plus one.
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        byte = content[error.start]
        raise DataError(
            f"not UTF-8 (byte 0x{byte:02x}); convert it to UTF-8", path=path, line=line
        ) from error
    except ValueError as error:
        raise DataError(f"the JSON cannot be used ({error}); correct it", path=path) from error


def json_values(path: str | os.PathLike[str]) -> Iterator[tuple[int, Any]]:
    """Yield the number of each line of a JSON Lines file, and its value; skip blank lines.

    Raises:
        DataError: a line is not JSON; see also ``files.open_text``.
    """
    with open_text(path, is_json=True) as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                value = parse_json(line)
            except ValueError as error:
                raise DataError(
                    f"not JSON ({error}); correct or remove the line",
                    path=path,
                    line=number,
                ) from error
            yield number, value


def json_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the ``json_values`` of a file of objects.

    Raises:
        DataError: a line is not JSON, or not an object; see also ``files.open_text``.
    """
    for number, record in json_values(path):
        if not isinstance(record, dict):
            raise DataError(
                f"expected a JSON object, found {type(record).__name__}; correct or remove the"
                " line",
                path=path,
                line=number,
            )
        yield number, record


def _refuse_depth(value: Any) -> None:
    """Refuse a value of more than ``_MAX_DEPTH`` levels.

    A vocabulary may have a hundred thousand entries, so each level is filtered at once, lists and
    objects separately. A level without lists, or without objects, is not filtered for them.
    """
    lists = [value] if isinstance(value, list) else []
    objects = [value] if isinstance(value, dict) else []
    for _ in range(_MAX_DEPTH):
        if not lists and not objects:
            return
        inner = list(chain.from_iterable(lists))
        inner += chain.from_iterable(found.values() for found in objects)
        # The parser creates only these two classes, and no subclasses of them.
        kinds = set(map(type, inner))
        lists = [item for item in inner if type(item) is list] if list in kinds else []
        objects = [item for item in inner if type(item) is dict] if dict in kinds else []
    raise ValueError("nested too deeply")


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts in a value, including keys, level by level, without recursion."""
    level = [value]
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                yield item
            elif isinstance(item, dict):
                inner += item.keys()
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        level = inner
