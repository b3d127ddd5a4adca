"""One resolver for language codes: whatever comes in, ``eng_Latn`` comes out.

The table is ``data/languages.tsv``: every language of FLORES-200, of LASER's Tatoeba test and of
ISO 639-1, and the smaller ones that software is translated into. A macro-language stands for its
usual member (``ara`` -> ``arb_Arab``). Families are Glottolog's top-level ones, Indo-European by
its branches (docs/data.md).
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import unicodedata
from dataclasses import dataclass, replace
from typing import NamedTuple

from interlingua.errors import DataError

MAX_NAME_CHARACTERS = 100
_SCRIPT_OF_VARIANT = {
    "latin": "Latn",
    "iqtelif": "Latn",
    "cyrillic": "Cyrl",
    "devanagari": "Deva",
    "arabic": "Arab",
}


@dataclass(frozen=True, slots=True)
class Language:
    """A written language: a language in one script."""

    code: str
    """FLORES-200 style, ``eng_Latn``: the name used everywhere inside."""
    iso3: str
    """ISO 639-3, ``eng``."""
    iso1: str | None
    """ISO 639-1 where there is one, ``en``; shared by the scripts of a language."""
    name: str
    """English name."""
    script: str
    """ISO 15924, ``Latn``."""
    family: str
    """``Uralic``; Indo-European with its branch, ``Indo-European: Slavic``."""

    @property
    def is_latin(self) -> bool:
        """Whether it is written in the Latin script."""
        return self.script == "Latn"


class LanguageTag(NamedTuple):
    """A language with the region its code named, which decides nothing but may be reported."""

    language: Language
    region: str | None
    """ISO 3166-1 or UN M.49, ``BR`` of ``pt_BR``."""


def resolve(code_or_name: str) -> Language:
    """Finds a language by any usual name for it.

    Args:
        code_or_name: a FLORES code (``eng_Latn``), ISO 639-1/-2/-3 (``en``, ``ger``, ``deu``),
            BCP-47 or a locale (``zh-Hant``, ``pt_BR``, ``sr@latin``), MTEB's ``eng-Latn``, an
            English name, or an alias (``cmn``, ``iw``).

    Raises:
        DataError: nothing is called so; the nearest code or name is offered.
    """
    return parse(code_or_name).language


def parse(code_or_name: str) -> LanguageTag:
    """Like ``resolve``, and tells which region the code named.

    Raises:
        DataError: see ``resolve``.
    """
    found = find(code_or_name)
    if found is None:
        raise _unknown(code_or_name)
    return found


def find(code_or_name: str) -> LanguageTag | None:
    """Like ``parse``, or None where nothing is called so, which is found out fast.

    In this order: the whole of it in the table, its language with its region (``zh-TW`` is another
    script than ``zh``), its language alone; then, where it names a script, that language in it.
    """
    if len(code_or_name) > MAX_NAME_CHARACTERS:
        return None
    index = _index()
    key = _key(code_or_name)
    base, script, region, others = _subtags(key)
    exact = index.get(key)
    if exact is not None:
        return LanguageTag(exact, region)
    language = _by_region(base, region, script)
    if language is None:
        language = index.get(base)
    # A base of more than three letters is a name, which takes no subtags.
    if language is None or len(base) > 3 or others:
        return None
    if script is None or script == language.script:
        return LanguageTag(language, region)
    # By the code itself, or else by the three letters of the language that it stands for.
    written = index.get(f"{base}-{script.lower()}")
    if written is None:
        written = index.get(f"{language.iso3}-{script.lower()}")
    # Any language may be written in any script that is one.
    if written is None and script not in scripts():
        return None
    return LanguageTag(written or _in_script(language, script), region)


def find_code(code_or_name: str) -> str | None:
    """The code of the language that is called so, or None where nothing is."""
    found = find(code_or_name)
    if found is None:
        return None
    return found.language.code


def _by_region(base: str, region: str | None, script: str | None) -> Language | None:
    """The language that the table has for a region, unless the code asks for another script."""
    if region is None:
        return None
    language = _index().get(f"{base}-{region.lower()}")
    if language is None or script not in (None, language.script):
        return None
    return language


@functools.cache
def known() -> tuple[Language, ...]:
    """Every language of the table, by ISO 639-3 code, each language's usual script first."""
    return tuple(language for language, _ in _table())


@functools.cache
def scripts() -> frozenset[str]:
    """The ISO 15924 codes of all scripts in the table."""
    return frozenset(language.script for language in known())


def _in_script(language: Language, script: str) -> Language:
    """A language in a script that the table does not have for it."""
    # The name may end with the usual script in parentheses, which it is not written in here.
    name = language.name.partition(" (")[0]
    code = f"{language.iso3}_{script}"
    return replace(language, code=code, name=f"{name} ({script})", script=script)


@functools.cache
def _table() -> tuple[tuple[Language, tuple[str, ...]], ...]:
    """The languages with their aliases."""
    file = importlib.resources.files("interlingua") / "data" / "languages.tsv"
    rows = []
    # The first line names the columns.
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        code, iso3, iso1, name, script, family, aliases = line.split("\t")
        language = Language(code, iso3, iso1 or None, name, script, family)
        rows.append((language, tuple(filter(None, aliases.split(",")))))
    return tuple(rows)


@functools.cache
def _index() -> dict[str, Language]:
    """Languages by all that they are called; what is put in first stays."""
    index: dict[str, Language] = {}
    # Codes before aliases before names: "ga" is Irish, though a language is named Ga. The usual
    # script of a language stands first in the table, so a bare code means that one.
    for language, _ in _table():
        for code in (language.code, language.iso3, language.iso1):
            if code is not None:
                index.setdefault(_key(code), language)
    for language, aliases in _table():
        for alias in aliases:
            index.setdefault(_key(alias), language)
    for language, _ in _table():
        index.setdefault(_key(language.name), language)
    return index


def _key(name: str) -> str:
    """How a code or name stands in the index, whatever its case, dashes and spaces."""
    text = unicodedata.normalize("NFKC", name).strip().casefold().replace("_", "-")
    # A locale of the system, pt_BR.UTF-8.
    if text.endswith(("utf-8", "utf8")):
        return text.partition(".")[0]
    return " ".join(text.split())


def _subtags(key: str) -> tuple[str, str | None, str | None, list[str]]:
    """Splits a BCP-47 tag or a locale; what is not a script, region or variant comes back last."""
    # A locale puts the script behind an @, as in sr@latin; BCP-47 among the subtags.
    tag, _, modifier = key.partition("@")
    base, *rest = tag.split("-")
    script = _SCRIPT_OF_VARIANT.get(modifier)
    region = None
    others = []
    for part in rest:
        if len(part) == 4 and part.isalpha():
            script = part.title()
        elif (len(part) == 2 and part.isalpha()) or (len(part) == 3 and part.isdigit()):
            region = part.upper()
        elif part in _SCRIPT_OF_VARIANT:
            script = _SCRIPT_OF_VARIANT[part]
        elif not _is_variant(part):
            others.append(part)
    return base, script, region, others


def _is_variant(part: str) -> bool:
    """Whether a subtag has the form of a BCP-47 variant, as nedis and 1996 have."""
    return 5 <= len(part) <= 8 or (len(part) == 4 and part[0].isdigit())


def _unknown(name: str) -> DataError:
    if len(name) > MAX_NAME_CHARACTERS:
        return DataError(
            f"unknown language {name[:40]!r}... of {len(name):,} characters; use a code such as"
            " eng_Latn"
        )
    near = difflib.get_close_matches(_key(name), list(_index()), n=1, cutoff=0.6)
    hint = "; use a code such as eng_Latn, en, eng, pt-BR, or an English name"
    if near:
        language = _index()[near[0]]
        hint = f"; did you mean {language.code} ({language.name})?"
    return DataError(f"unknown language {name!r}{hint}")
