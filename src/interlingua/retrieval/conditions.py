"""Conditions in SQL that name the fields of metadata as they are written in the files.

``year >= 2024 AND topic = 'science'`` becomes a condition that LanceDB can read. In LanceDB,
metadata is one column of JSON, and each value is a text. A value is compared as a number if the
other side of the comparison is a number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from interlingua.errors import ConfigError
from interlingua.retrieval.lance_table import CHECKED_COLUMNS

NAMED_COLUMNS = tuple(name for name in CHECKED_COLUMNS if name != "vector")
"""Columns that a condition can name; other columns of the table are not useful in conditions."""
OWN_COLUMNS = frozenset((*NAMED_COLUMNS, "_rowid"))
_WORDS = """
and or not in is null like ilike between true false case when then else end as cast try_cast escape
similar exists distinct
"""
SQL_WORDS = frozenset(_WORDS.split())
"""Words of SQL, which are not names unless they are quoted."""
_SOFT_WORDS = """
to from any all interval date time timestamp int integer bigint smallint double float real
string varchar char boolean bool decimal array
"""
SOFT_WORDS = frozenset(_SOFT_WORDS.split())
"""Words of SQL that count as names where a value is expected: ``date = '2024-01-02'``."""
COMPARISONS = ("in", "not", "is", "between", "like", "ilike")
ARITHMETIC = ("+", "-", "*", "/", "%")
METADATA = "metadata."
"""Prefix for a metadata field that has the same name as a column of the index:
``metadata.file``."""
ENDS_OF_OPERAND = ("", ")", "and", "or")
TOKEN = re.compile(
    r"(?P<string>'(?:[^']|'')*')"
    r'|(?P<quoted>"(?:[^"]|"")*"|`[^`]*`)'
    r"|(?P<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"|(?P<name>[^\W\d][\w.]*)"
    r"|(?P<operator><=|>=|<>|!=|==|=|<|>)"
    r"|(?P<space>\s+)"
    r"|(?P<other>.)",
    re.DOTALL,
)
Tokens = Sequence[tuple[str, str]]
"""The tokens of a condition except white space, each with its kind and its text."""


def with_metadata(where: str, is_field: Callable[[str], bool]) -> str:
    """Return a condition with the fields of metadata written as LanceDB reads them.

    Args:
        where: a condition in SQL.
        is_field: returns whether a passage has a field of metadata with this name.

    Raises:
        ConfigError: a name is neither a column nor a field of metadata.
    """
    tokens = [(str(match.lastgroup), match.group()) for match in TOKEN.finditer(where)]
    places = [place for place, (kind, _) in enumerate(tokens) if kind != "space"]
    dense = [tokens[place] for place in places]
    written = [text for _, text in tokens]
    for number, place in enumerate(places):
        name = _field_name(dense, number)
        if name is None:
            continue
        if not is_field(name):
            raise ConfigError(
                f"--where {where!r}: unknown field {name!r}; use a field of the passages' metadata"
                f" or one of: {', '.join(NAMED_COLUMNS)} (if a metadata field has one of these"
                f" names, put {METADATA} before it: {METADATA}file);"
                " write texts in single quotes: 'science', and names with spaces"
                ' in double quotes: "page no"'
            )
        value = f"json_get_string(metadata, '{name.replace(chr(39), chr(39) * 2)}')"
        kind = _compared_with(dense, number)
        if kind in ("number", "boolean"):
            value = f"try_cast({value} AS {'DOUBLE' if kind == 'number' else 'BOOLEAN'})"
        written[place] = value
    return "".join(written)


def _field_name(tokens: Tokens, number: int) -> str | None:
    """Return the field that a token names; None if it is a column, a function or a word of SQL."""
    kind, text = tokens[number]
    if kind == "quoted":
        name = text[1:-1].replace('""', '"')
        return None if name in OWN_COLUMNS else name.removeprefix(METADATA)
    is_function = _text(tokens, number + 1) == "("
    if kind != "name" or is_function or text.lower() in SQL_WORDS or text in OWN_COLUMNS:
        return None
    if text.startswith(METADATA):
        return text.removeprefix(METADATA)
    if text.lower() in SOFT_WORDS and not _is_value(tokens, number):
        return None
    return text


def _is_value(tokens: Tokens, number: int) -> bool:
    """Return whether a word is compared or passed to a function, unlike words of SQL."""
    previous = _text(tokens, number - 1)
    following = _text(tokens, number + 1)
    if previous in ("as", ":"):  # CAST(x AS date), x::date
        return False
    if following in (*COMPARISONS, *ARITHMETIC) or _is_operator(tokens, number + 1):
        return True
    if previous in ("(", ","):
        return following in (")", ",", "as")
    return _is_operator(tokens, number - 1) and following in ENDS_OF_OPERAND


def _is_operator(tokens: Tokens, number: int) -> bool:
    return _kind_of_token(tokens, number) == "operator"


def _kind_of_token(tokens: Tokens, number: int) -> str:
    return tokens[number][0] if 0 <= number < len(tokens) else ""


def _is_argument(tokens: Tokens, number: int) -> bool:
    """Return whether a name is an argument of a function."""
    previous = _text(tokens, number - 1)
    if previous == "(":
        called = number - 2
        return _kind_of_token(tokens, called) == "name" and _text(tokens, called) not in SQL_WORDS
    return previous == ","


def _compared_with(tokens: Tokens, number: int) -> str:
    """Return the kind of value that a name is compared with: number, boolean or string."""
    at = number + 1
    if _text(tokens, at) == "not":  # NOT IN, NOT BETWEEN
        at += 1
    following = _text(tokens, at)
    is_counted = following in ARITHMETIC or _text(tokens, number - 1) in ARITHMETIC
    # In price +3, the sign is a part of the number.
    if is_counted or _kind_of_token(tokens, at) == "number":
        return "number"
    if following in ENDS_OF_OPERAND:
        if _is_argument(tokens, number):
            return "string"
        # Either the value comes before the name, as in 2020 < year, or there is no value: then the
        # field itself is true or false.
        is_last = _is_operator(tokens, number - 1)
        return _kind(tokens, number - 2) if is_last else "boolean"
    if following == "in":
        return _kind(tokens, at + 2)
    if following == "between" or _is_operator(tokens, at):
        return _kind(tokens, at + 1)
    return "string"


def _kind(tokens: Tokens, number: int) -> str:
    """Return the kind of the value at a place."""
    if not 0 <= number < len(tokens):
        return "string"
    if tokens[number][1].lower() in ("true", "false"):
        return "boolean"
    return "number" if tokens[number][0] == "number" else "string"


def _text(tokens: Tokens, number: int) -> str:
    return tokens[number][1].lower() if 0 <= number < len(tokens) else ""
