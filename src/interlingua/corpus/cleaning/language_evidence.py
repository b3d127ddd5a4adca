"""Compare a text with its declared language, before any work.

The script of the letters is evidence: Hangul is not Kanuri, whatever the file's name is. If
the name of the language is also the code of a country (``kr``, ``se``, ``br``), the languages of
that country are tried, by script and by frequent words. A language that the user names is never
replaced; a contradiction is reported in one line.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config.languages import (
    Language,
    LanguageCode,
    known,
    languages_of_region,
    region_of,
    resolve_language,
)
from interlingua.corpus.cleaning.codepoints import encode_codepoints, join_lines
from interlingua.corpus.cleaning.named_languages import is_contradicted, is_supported, is_word
from interlingua.corpus.cleaning.scripts import (
    BLOCKS,
    OTHER,
    letter_widths,
    script_numbers,
    scripts_of,
)
from interlingua.errors import LanguageError
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
SUPPORTING_TEXTS = 1000
LOOKED_AT = 200
"""Number of texts that are examined first."""
LOOKED_AT_IN_DOUBT = 20_000
"""Number of texts that are examined if the first ones contradict the language, because sorted
files start with foreign names."""
LEAST_LETTERS = 20
LEAST_HAN = 60
"""Minimum length from which a text of only Han characters counts as neither Japanese nor Korean.
The length is the number of Latin letters that the characters represent."""
_LEAST_SHARE = 0.02
"""Minimum share of the letters in the script of the language. All other letters may be those of
product names and copies."""
MOST_SHARE = 0.7
"""Minimum share of the letters in one other script for the text to contradict the language."""
HANGUL_SHARE = 0.05
KANA_SHARE = 0.01
KANA_IN_CHINESE = 0.2
USUAL_LANGUAGE = {"Hani": "zho_Hans", "Kana": "jpn_Jpan", "Hang": "kor_Hang", "Hebr": "heb_Hebr"}
"""Usual languages of scripts in which several languages are written."""
OTHER_COUNTRY_CODES = {"uk": "GB"}
"""Common codes of countries that have another code in ISO 3166-1."""


def script_counts(texts: Sequence[str]) -> Float32[ndarray, " scripts"]:
    """Count letters by script number, each as the number of Latin letters that it represents.

    Number 0, which is no letter, is left out.
    """
    numbers = script_numbers()[encode_codepoints(join_lines(texts))]
    counts = np.bincount(numbers, minlength=OTHER + 1).astype(np.float32)
    counts[0] = 0
    found: Float32[ndarray, " scripts"] = counts * letter_widths()
    return found


def contradicting_script(texts: Sequence[str], code: str) -> str | None:
    """Return the script of the texts if a language is not written in it.

    Args:
        texts: some of the file.
        code: of the language.

    Returns:
        ISO 15924; None if the texts fit, or are too few to decide.
    """
    counts = script_counts(texts)
    total = float(counts.sum())
    if total < LEAST_LETTERS:
        return None
    shares = dict(zip(BLOCKS, (counts[1:-1] / total).tolist(), strict=True))
    own = float(counts[scripts_of(code)].sum()) / total
    found = max(shares, key=lambda script: shares[script])
    if own < _LEAST_SHARE:
        return found if shares[found] >= MOST_SHARE else None
    # Texts in every script contain names and links in Latin letters. So a few Latin letters are no
    # support of a language in Latin script, and a text in another script may be mostly such names.
    is_own = bool(scripts_of(code)[1:-1][list(BLOCKS).index(found)])
    if not is_own and found != "Latn" and shares[found] >= MOST_SHARE:
        return found
    # East Asian scripts share Han characters, so that other characters decide.
    script = resolve_language(code).script
    kana = shares["Kana"]
    if script in ("Hans", "Hant", "Hang", "Kore") and kana >= KANA_IN_CHINESE:
        return "Kana"
    is_han = shares["Hani"] >= MOST_SHARE and total >= LEAST_HAN
    if is_han and script == "Jpan" and kana < KANA_SHARE:
        return "Hani"
    if is_han and script in ("Hang", "Kore") and shares["Hang"] < HANGUL_SHARE:
        return "Hani"
    return None


def checked_language(
    texts: Iterable[str],
    code: str,
    path: PathLike,
    option: str,
    *,
    is_given: bool,
    other: str = "",
) -> str:
    """Return the language of a file, compared with its texts.

    Args:
        texts: of the file; some of them are read.
        code: of the language.
        path: path of the file, for errors.
        option: name of the option that sets the language, for errors.
        is_given: the user, and not the file, named the language.
        other: language of the other side of pairs, which is never returned for this side.

    Returns:
        The code of the language. If its name is also the code of a country, and the texts are in
        another language of that country, the code of that language.

    Raises:
        LanguageError: the texts are in another script.
    """
    stream = iter(texts)
    sample = list(islice(stream, LOOKED_AT))
    script = contradicting_script(sample, code)
    if script is not None:
        sample += islice(stream, LOOKED_AT_IN_DOUBT - len(sample))
        script = contradicting_script(sample, code)
    spoken = _language_of_country(code, script, sample)
    if spoken is not None and not is_given and spoken.code != other:
        _tell_once(os.fspath(path), getattr(code, "name", code), spoken, option)
        return LanguageCode(spoken.code, region_of(code))
    if script is None:
        return code
    # Japanese and Korean names and addresses may be only in Han characters.
    if script == "Hani" and resolve_language(code).script in ("Jpan", "Hang", "Kore"):
        _warn_once(os.fspath(path), _contradiction(code, script, option, spoken))
        return code
    raise LanguageError(_contradiction(code, script, option, spoken), path=path)


@functools.cache
def _warn_once(path: str, message: str) -> None:
    """Log a contradiction that is no error, only once, although a file may be read again."""
    log.warning("%s: %s", path, message)


@functools.cache
def _tell_once(path: str, name: str, spoken: Language, option: str) -> None:
    """Log how a name was understood, only once, although a file may be read again."""
    log.warning(
        "%s: %s is read as %s (%s), because its texts are in that language; pass the right"
        " language with %s if this is wrong",
        *(path, name, spoken.code, spoken.name, option),
    )


def _contradiction(code: str, script: str, option: str, spoken: Language | None) -> str:
    """Return the error's text: the scripts expected and found, and the language to pass."""
    language = resolve_language(code)
    named = getattr(code, "name", code)
    other = spoken or usual_language(script)
    same = f"{language.iso3}_{script} if it is {language.name} in that script"
    if script in ("Hani", "Kana"):  # no code has these for its script
        same = ""
    remedies = [same]
    if other is not None:
        remedies.insert(0, f"{other.code} ({other.name})")
    remedy = ", or ".join(filter(None, remedies))
    return (
        f"the language is {named} ({language.code}, {language.name}), written in the script"
        f" {language.script}, but the letters are in the script {script}; pass {option} {remedy},"
        " or the actual language"
    )


def usual_language(script: str) -> Language | None:
    """Return the language that a script is mostly used for; None if there are several."""
    if script in USUAL_LANGUAGE:
        return resolve_language(USUAL_LANGUAGE[script])
    written = [language for language in known() if language.script == script and language.iso1]
    if len({language.iso3 for language in written}) != 1:
        return None
    return written[0]


def _language_of_country(code: str, script: str | None, texts: Sequence[str]) -> Language | None:
    """Return the language of the texts if it is spoken in the country that the code's name means.

    Return None if the name is not that of a country, or the texts do not decide.
    """
    name = getattr(code, "name", "")
    spoken = languages_of_region(OTHER_COUNTRY_CODES.get(name.lower(), name))
    if not spoken or spoken[0].iso3 == resolve_language(code).iso3:
        return None
    if script is not None:
        fitting = [own for own in spoken if contradicting_script(texts, own.code) is None]
        # Words decide between languages in Latin script; otherwise the first fitting one is used.
        if len(fitting) == 1 or (fitting and script != "Latn"):
            is_other = script == "Latn" and is_contradicted(texts, fitting[0].code)
            return None if is_other else fitting[0]
        spoken = tuple(fitting)
    return next((language for language in spoken if is_supported(texts, language.code)), None)


def is_meant(texts: Iterable[str], code: str) -> bool:
    """Return whether texts support a language that was found by a word in a name.

    The word may also be the code of a country, and the texts in a language of that country.
    """
    sample = list(islice(texts, SUPPORTING_TEXTS))
    if is_supported(sample, code):
        return True
    return _language_of_country(code, contradicting_script(sample, code), sample) is not None


def check_words(
    pairs: Sequence[tuple[str, str, str, str, float | None]],
    path: PathLike,
    given: tuple[bool, bool],
) -> None:
    """Compare texts of pairs with languages that were found by words in names.

    If both languages were found so (``is-it.tsv``), the texts must support both. If only one was
    (``en-it.tsv``), they must not contradict it. Copies of the other side are ignored.

    Raises:
        LanguageError: the word is probably no language here.
    """
    codes = pairs[0][2:4]
    words = [not named and is_word(code) for code, named in zip(codes, given, strict=True)]
    for side, option in enumerate(("--source-language", "--target-language")):
        if not words[side]:
            continue
        texts = [(pair[0], pair[1])[side] for pair in pairs if pair[0] != pair[1]]
        if is_meant(texts, codes[side]):
            continue
        if all(words) or is_contradicted(texts, codes[side]):
            language = resolve_language(codes[side])
            name = getattr(codes[side], "name", codes[side])
            raise LanguageError(
                f"{name} in the file name is also a word, and the texts do not look like"
                f" {language.name}; pass {option} {language.code} if they are in this language,"
                " otherwise the actual language",
                path=path,
            )


def sampled(lines: Iterable[str]) -> Iterator[str]:
    """Return the texts of lines that hold more than white space, without an id in front."""
    for line in lines:
        if text := line.rpartition("\t")[2].strip():
            yield text
