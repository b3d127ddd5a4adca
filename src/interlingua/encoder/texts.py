"""Checks of the texts to embed: an iterable of strings.

A missing value, bytes or a whole table raises an error that names the row.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, KeysView, Mapping, Set
from typing import Any

from interlingua.config.options import is_frame
from interlingua.corpus.frames import arrow_values, is_arrow
from interlingua.errors import ConfigError, DataError, with_article

PAIRS = "pairs"
"""Name of an iterable of pairs in errors."""
VISIBLE = re.compile(
    # Anything but white space, control characters, soft hyphens, zero-width spaces, and marks of
    # text direction or byte order.
    r"[^\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]"
)


def is_blank(text: str) -> bool:
    """Return whether a text has no visible character, and so no meaning for a vector.

    ``encode`` gives such a text the zero vector, which is similar to nothing. Servers and indexes,
    which return or store vectors, refuse such texts.
    """
    return VISIBLE.search(text) is None


def checked_texts(texts: Iterable[str], what: str = "texts") -> Iterator[str]:
    """Return the texts, each checked when it is read; the container is checked at once.

    Args:
        texts: a list, a column of a table, an array of Arrow, a generator.
        what: name of the container in errors.

    Raises:
        ConfigError: it is a single text, a table, a dictionary or a set, or can't be iterated over.
        DataError: (later) an element is not a text, or UTF-8 can't encode it.
    """
    # Checked now, since the generator below checks nothing until it is read.
    refuse_container(texts, what)
    if is_arrow(texts):
        texts = arrow_values(texts)
    return (check_text(text, row, what) for row, text in enumerate(texts))


def refuse_container(texts: Any, what: str) -> None:
    """Refuse a container that cannot be a list of texts.

    Raises:
        ConfigError: see ``checked_texts``.
    """
    if isinstance(texts, str):
        raise ConfigError(f"{what}: expected a list of texts, found one string; put it in a list")
    if isinstance(texts, bytes | bytearray):
        raise ConfigError(
            f"{what}: expected a list of texts, found bytes; decode them and put the text in a list"
        )
    # Tables of pandas, polars and Arrow have columns, and a loop would go over their names.
    if isinstance(texts, Mapping) or is_frame(texts):
        kind = type(texts).__name__
        if what == PAIRS:
            raise ConfigError(
                f"{what}: expected pairs of texts, found {with_article(kind)}; pass two columns:"
                " zip(table['de'], table['en'])"
            )
        raise ConfigError(
            f"{what}: expected a list of texts, found {with_article(kind)}; pass one column, for"
            " example table['text']"
        )
    # The keys of a dictionary are a set, too, but one in order.
    if isinstance(texts, Set) and not isinstance(texts, KeysView):
        raise ConfigError(
            f"{what}: expected a list of texts, found a set, which has no order; pass sorted(texts)"
        )
    # An array of zero dimensions has __iter__, which raises.
    if not isinstance(texts, Iterable) or getattr(texts, "ndim", 1) == 0:
        raise ConfigError(
            f"{what}: expected a list of texts, found {type(texts).__name__}; pass a list"
        )


def check_text(text: Any, row: int, what: str = "texts") -> str:
    """Return the value if it is a text.

    Args:
        text: anything.
        row: of the text, from 0.
        what: name of the container in errors.

    Raises:
        DataError: it is not a text, or UTF-8 can't encode it.
    """
    place = f"{what}: row {row:,} (counted from 0)"
    if not isinstance(text, str):
        raise DataError(f"{place} is {_described(text)}")
    # Text decoded with a wrong encoding may have half of a surrogate pair. ASCII needs no check.
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            broken = ascii(text[error.start])
            raise DataError(
                f"{place} contains an incomplete character, {broken}, which UTF-8 cannot encode;"
                " decode the data with its own encoding, or remove the character:"
                " text.encode(errors='ignore').decode()"
            ) from None
    return text


def _described(value: Any) -> str:
    """Describe a value that is not a text, and the remedy."""
    # None, pandas.NA, or NaN (the only value that is not equal to itself).
    is_missing = (
        value is None
        or (isinstance(value, float) and value != value)
        or type(value).__name__ == "NAType"
    )
    if is_missing:
        return (
            f"{value!r}, a missing value; remove such rows (table.dropna()) or fill them"
            " (table.fillna(''))"
        )
    if isinstance(value, bytes | bytearray):
        return "bytes; decode them: text.decode('utf-8')"
    if isinstance(value, list | tuple) or hasattr(value, "shape"):
        return f"{with_article(type(value).__name__)}; flatten the nested list to one text per row"
    return f"{repr(value)[:40]}, {with_article(type(value).__name__)}; expected a text"
