"""A small lexicon of opposites: negated and plain phrases, and antonyms.

It has languages of many families. ``data/contrasts.toml`` has some dozens of frequent words per
language, as they occur in a text: no inflection is known, so only the forms that are listed are
found. It is made for altering sentences, not for understanding them.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources

from interlingua.config.languages import resolve_language

UNSPACED = frozenset({"Hans", "Hant", "Jpan", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"})
"""Scripts without spaces, in which a phrase may be inside of other text."""
_KINDS = ("negation", "antonym")


@dataclass(frozen=True, slots=True)
class Opposites:
    """The opposites of one kind in one language.

    Attributes:
        table: phrase in lower case, with a plain apostrophe -> its possible replacements; an empty
            replacement removes the phrase.
        pattern: finds the phrases in a text, the longest first, in any case and with either
            apostrophe.
        spaced: a phrase starts and ends where a word does.
    """

    table: Mapping[str, tuple[str, ...]]
    pattern: re.Pattern[str]
    spaced: bool


@functools.cache
def contrasts(language: str) -> dict[str, Opposites]:
    """Return kind -> opposites for a language (any code); empty for languages without entries."""
    found = resolve_language(language)
    entries = _lexicon().get(found.code, {})
    spaced = found.script not in UNSPACED
    return {kind: _opposites(entries[kind], spaced) for kind in _KINDS if kind in entries}


def languages() -> tuple[str, ...]:
    """Return the languages of the lexicon."""
    return tuple(_lexicon())


@functools.cache
def _lexicon() -> dict[str, dict[str, str]]:
    text = (resources.files("interlingua") / "data" / "contrasts.toml").read_text("utf-8")
    return tomllib.loads(text)


def _opposites(entries: str, spaced: bool) -> Opposites:
    """Parse ``a|b, c>d``: a and b replace each other, but only d replaces c."""
    table: dict[str, list[str]] = {}
    for entry in entries.split(","):
        phrase = " ".join(entry.split())
        first, is_mutual, second = phrase.partition("|")
        if not is_mutual:
            first, _, second = phrase.partition(">")
        table.setdefault(first, []).append(second)
        if is_mutual:
            table.setdefault(second, []).append(first)
    # A regular expression takes the first alternative that fits, so that a phrase must come before
    # any shorter phrase that it starts with.
    longest_first = sorted(table, key=lambda phrase: (-len(phrase), phrase))
    pattern = "|".join(re.escape(phrase).replace("'", "['\u2019]") for phrase in longest_first)
    return Opposites(
        {phrase: tuple(others) for phrase, others in table.items()},
        re.compile(pattern, re.I),
        spaced,
    )
