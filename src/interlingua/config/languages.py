"""The resolver of language codes: any code in, ``eng_Latn`` out.

The table is ``data/languages.tsv``: every language of FLORES-200, of LASER's Tatoeba test and of
ISO 639-1, and smaller languages into which software is translated. A macro-language is resolved to
its usual member (``ara`` -> ``arb_Arab``). Families are the top-level families of Glottolog;
Indo-European is divided into its branches (docs/data.md).
"""

from __future__ import annotations

import difflib
import functools
import importlib.resources
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from interlingua.errors import DataError

ENGLISH = "eng_Latn"
LanguagePair = tuple[str, str]
"""The language of a source and of its target."""
MAX_NAME_CHARACTERS = 100
_LANGUAGE_FIRST = frozenset(("ar", "be", "ca", "et", "ml", "ps", "sv", "tt", "ug"))
"""Codes of widely used languages that are also codes of countries with other languages."""
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
    """Code in the style of FLORES-200, ``eng_Latn``, which the library uses internally."""
    iso3: str
    """ISO 639-3, ``eng``."""
    iso1: str | None
    """ISO 639-1 where there is one, ``en``; shared by the scripts of a language."""
    name: str
    """English name."""
    script: str
    """ISO 15924, ``Latn``."""
    family: str
    """Family such as ``Uralic``, or with a branch: ``Indo-European: Slavic``."""

    @property
    def is_latin(self) -> bool:
        """True if it is written in the Latin script."""
        return self.script == "Latn"


class LanguageCode(str):
    """A language's code with the region that its tag named, such as ``deu_Latn`` of ``de-CH``.

    It is equal to the code without a region, so that only readers and writers of formats with
    regions need to handle the region. Values cached by code must not depend on the region.
    """

    region: str | None
    """ISO 3166-1 or UN M.49, ``CH`` of ``de-CH``."""
    name: str
    """The name of the language as the input spells it."""

    def __new__(cls, code: str, region: str | None = None, name: str = "") -> LanguageCode:
        """Make the code of a tag."""
        found = super().__new__(cls, code)
        found.region = region
        found.name = name or code
        return found

    def __reduce__(self) -> tuple[type[LanguageCode], tuple[str, str | None, str]]:
        """Return the class and the arguments that rebuild a copied or pickled code."""
        return LanguageCode, (str(self), self.region, self.name)


class NamedCode(LanguageCode):
    """The code of a language from the name of a file or of a column.

    The name may mean something else: ``is`` is the code of Icelandic, but also an English word.
    """


class LanguageTag(NamedTuple):
    """A language with the region its code named."""

    language: Language
    region: str | None
    """ISO 3166-1 or UN M.49, ``BR`` of ``pt_BR``."""


def resolve_language(code_or_name: str) -> Language:
    """Find a language by any usual name for it.

    Args:
        code_or_name: a FLORES code (``eng_Latn``), ISO 639-1/-2/-3 (``en``, ``ger``, ``deu``),
            BCP-47 or a locale (``zh-Hant``, ``pt_BR``, ``sr@latin``), MTEB's ``eng-Latn``, an
            English name, or an alias (``cmn``, ``iw``).

    Raises:
        DataError: no language has this name; the error offers the nearest code or name.
    """
    return parse(code_or_name).language


def parse(code_or_name: str) -> LanguageTag:
    """Resolve a language as ``resolve_language`` does, and return which region the code named.

    Raises:
        DataError: see ``resolve_language``.
    """
    found = look_up_language(code_or_name)
    if found is None:
        raise _unknown(code_or_name)
    return found


def look_up_language(code_or_name: str) -> LanguageTag | None:
    """Return the result of ``parse``, or None if there is no such language.

    Returning None is fast, because no similar name is searched for.

    The lookup tries, in this order: the whole code; its language with its region (``zh-TW`` has
    another script than ``zh``); only its language. If the code names a script, the language that
    was found is then returned in that script.
    """
    if len(code_or_name) > MAX_NAME_CHARACTERS:
        return None
    index = _index()
    if isinstance(code_or_name, LanguageCode) and code_or_name.region:
        return LanguageTag(resolve_language(str(code_or_name)), code_or_name.region)
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
    # Find the language in this script by its code as given, or else by its code of three letters.
    written = index.get(f"{base}-{script.lower()}")
    if written is None:
        written = index.get(f"{language.iso3}-{script.lower()}")
    # Any language may be combined with any known script.
    if written is None and script not in scripts():
        return None
    return LanguageTag(written or _in_script(language, script), region)


def find_code(code_or_name: str) -> LanguageCode | None:
    """Return the code of the language with this name, or None if there is none."""
    found = look_up_language(code_or_name)
    if found is None:
        return None
    return LanguageCode(found.language.code, found.region, code_or_name)


def resolve_code(code_or_name: str) -> LanguageCode:
    """Return the code of a language, with the region that its tag names.

    Raises:
        DataError: no language has this name.
    """
    found = parse(code_or_name)
    return LanguageCode(found.language.code, found.region, code_or_name)


def as_code(language: str) -> LanguageCode:
    """Return a ``LanguageCode`` unchanged, or resolve any other spelling of a language.

    Raises:
        DataError: no language has this name.
    """
    if isinstance(language, LanguageCode):
        return language
    return resolve_code(language)


def region_of(code: str) -> str | None:
    """Return the region that the code's tag named, or None."""
    return getattr(code, "region", None)


def written_tag(code: str) -> str:
    """Return the BCP 47 tag of a code: ``de``, ``de-CH``, ``sr-Cyrl``, ``zh-Hans``.

    The script is written if the language has several.
    """
    tag = _tag_without_region(str(code))
    region = region_of(code)
    if region is None:
        return tag
    return f"{tag}-{region}"


def written_code(code: str) -> str:
    """Return a code for a column of languages: ``deu_Latn``, or ``de-CH`` if it has a region."""
    if region_of(code) is None:
        return code
    return written_tag(code)


@functools.cache
def _tag_without_region(code: str) -> str:
    language = resolve_language(code)
    written = {other.script for other in known() if other.iso3 == language.iso3}
    tag = language.iso1 or language.iso3
    if written == {language.script}:
        return tag
    return f"{tag}-{language.script}"


def choose_code(requested: str, codes: Sequence[str | None]) -> int | None:
    """Return the index of the first code that fits a request; None if there is none.

    A request without a region accepts codes with any region. A request with a region prefers a code
    with that region, and otherwise accepts a code without a region.
    """
    region = region_of(requested)
    same = [place for place, code in enumerate(codes) if code is not None and code == requested]
    for wanted in (region, None):
        for place in same:
            if region is None or region_of(codes[place] or "") == wanted:
                return place
    return None


def accepts(requested: str | None, code: str) -> bool:
    """Return whether a code fits a request (see ``choose_code``); None accepts any code."""
    return requested is None or choose_code(requested, [code]) is not None


class Region(NamedTuple):
    """A country and the languages of the software that is made for it."""

    name: str
    languages: tuple[str, ...]
    """Tags, the most usual one first."""


@functools.cache
def regions() -> dict[str, Region]:
    """Return the countries of ``data/regions.tsv`` by ISO 3166-1 code."""
    file = importlib.resources.files("interlingua") / "data" / "regions.tsv"
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines()[1:]:
        code, name, tags = line.split("\t")
        found[code] = Region(name, tuple(tags.split(",")))
    return found


def languages_of_region(code: str) -> tuple[Language, ...]:
    """Return the languages of a country; none if there is no such country in the table."""
    region = regions().get(code.upper())
    if region is None:
        return ()
    return tuple(resolve_language(tag) for tag in region.languages)


def is_locale(first: str, second: str) -> bool:
    """Return whether two parts of a file's name are a language and its region, not two languages.

    ``pt-br`` is the Portuguese of Brazil, although ``br`` is also Breton; ``ca-es`` is Catalan and
    Spanish.
    """
    language = look_up_language(first)
    spoken = languages_of_region(second)
    if language is None or language.language.iso3 not in {known.iso3 for known in spoken}:
        return False
    if second.isupper() and not first.isupper():
        return True
    other = look_up_language(second)
    if other is None:
        return True
    # The second part is the code of a country and also of its most usual language, such as "es".
    if other.language.iso3 == spoken[0].iso3:
        return other.language.iso3 == language.language.iso3
    return second.lower() not in _LANGUAGE_FIRST


def find_in_name(part: str) -> LanguageCode | None:
    """Return the code that a part of a file's name represents, or None."""
    pieces = re.split("[-_]", part)
    if len(pieces) == 2 and len(pieces[0]) in (2, 3) and len(pieces[1]) == 2:
        is_region = pieces[1].isupper() and not pieces[0].isupper()
        if not is_region and _key(part) not in _index() and not is_locale(*pieces):
            return None
    return as_named(find_code(part))


def as_named(code: LanguageCode | None) -> NamedCode | None:
    """Convert a code to a ``NamedCode``; return None for None."""
    if code is None:
        return None
    return NamedCode(str(code), code.region, code.name)


def _by_region(base: str, region: str | None, script: str | None) -> Language | None:
    """Return the table's language for a region, unless the code requests another script."""
    if region is None:
        return None
    language = _index().get(f"{base}-{region.lower()}")
    if language is None or script not in (None, language.script):
        return None
    return language


@functools.cache
def known() -> tuple[Language, ...]:
    """Return all languages of the table by ISO 639-3 code, the usual script of a language first."""
    return tuple(language for language, _ in _table())


@functools.cache
def scripts() -> frozenset[str]:
    """Return the ISO 15924 codes of all scripts in the table."""
    return frozenset(language.script for language in known())


def _in_script(language: Language, script: str) -> Language:
    """Return a language in a script that the table does not have for it."""
    # The name may end with the usual script in parentheses, which is not the script here.
    name = language.name.partition(" (")[0]
    code = f"{language.iso3}_{script}"
    return replace(language, code=code, name=f"{name} ({script})", script=script)


@functools.cache
def _table() -> tuple[tuple[Language, tuple[str, ...]], ...]:
    """Return the languages with their aliases."""
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
    """Return the languages by all of their names; the first entry of a name is kept."""
    index: dict[str, Language] = {}
    # Codes before aliases before names: "ga" is Irish, though a language is named Ga. The usual
    # script of a language comes first in the table, so a bare code means that one.
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
    """Return the key of a code or name in the index, with uniform case, dashes and spaces."""
    text = unicodedata.normalize("NFKC", name).strip().casefold().replace("_", "-")
    # A locale of the system, pt_BR.UTF-8.
    if text.endswith(("utf-8", "utf8")):
        return text.partition(".")[0]
    return " ".join(text.split())


def _subtags(key: str) -> tuple[str, str | None, str | None, list[str]]:
    """Split a BCP-47 tag or a locale; return the unknown parts as the last element."""
    # A locale writes the script after an @, as in sr@latin; BCP-47 writes it among the subtags.
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
    """Return whether a subtag has the form of a BCP-47 variant, as nedis and 1996 have."""
    return 5 <= len(part) <= 8 or (len(part) == 4 and part[0].isdigit())


def _unknown(name: str) -> DataError:
    if len(name) > MAX_NAME_CHARACTERS:
        return DataError(
            f"unknown language {name[:40]!r}... of {len(name):,} characters; use a code such as"
            " eng_Latn"
        )
    hint = "; use a code such as eng_Latn, en, eng, pt-BR, or an English name"
    key = _key(name)
    spoken = languages_of_region(key)
    if spoken:
        offered = ", ".join(f"{language.code} ({language.name})" for language in spoken[:4])
        country = regions()[key.upper()].name
        return DataError(
            f"unknown language {name!r}, a code of the country {country}; use one of: {offered}"
        )
    # Every code of two or three letters resembles another one, so a suggestion means nothing.
    near = []
    if len(key) > 3:
        near = difflib.get_close_matches(key, list(_index()), n=1, cutoff=0.6)
    if near:
        language = _index()[near[0]]
        hint = f"; did you mean {language.code} ({language.name})?"
    return DataError(f"unknown language {name!r}{hint}")
