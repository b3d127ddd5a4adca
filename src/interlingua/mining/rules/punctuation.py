"""The ends of texts: their last punctuation mark, and the spaces around them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from interlingua.mining.checks import Pairs
from interlingua.mining.rules.rule import PairRule

_MARKS: Mapping[str, str] = {
    "period": ".。．｡।॥۔։።။།᭟｡",
    "question mark": "?？؟\u037e፧⸮",
    "exclamation mark": "!！՜",
    "ellipsis": "…⋯‥",
    "colon": ":：፦៖",
    "comma": ",、，،፣",
    "semicolon": ";；؛·፤",
}
_KIND_OF = {sign: kind for kind, signs in _MARKS.items() for sign in signs}
_TAG = re.compile(r"(?:</?[A-Za-z][^<>]*>\s*)+$")
_ELLIPSIS = re.compile(r"(?:\.\s?){3,}$|。{2,}$")
_ASKS = re.compile(r"[?？؟][?？؟!！.…。]*$")
_CLOSING = frozenset("\"'”’»«›‹“‘„」』】》〉）)]}*_`~\u200b\u200c\u200d\u200e\u200f\ufeff")
_UNPUNCTUATED = frozenset(("tha", "lao", "khm", "mya", "bod", "dzo", "shn"))
"""Languages that write questions, and most sentences, without a mark."""
_QUESTION_WORDS = {"jpn": ("か", "かい", "の", "ね", "かな"), "kor": ("까", "니", "가", "요", "나")}
"""Last syllables of questions that need no mark."""
_SOFT = 0.5
"""Difference of marks that translators choose freely: a period or none, an exclamation mark."""
_WEIGHTY = frozenset(("question mark", "colon"))
"""Marks that a translation must have too; other differences are a matter of style."""
_ENDS_WIDE = frozenset("。．，、：；！？…」』）】》")
_OWN_ENDS: Mapping[str, tuple[str, str]] = {
    "ell": (";", "question mark"),
    "hye": (":", "period"),
    "amh": ("፡፡", "period"),
    # Bengali typists use a letter that looks like a colon.
    "ben": ("ঃ", "colon"),
}
"""Signs that end a sentence in one language only, with their kind."""
_STRESS = "՞"
"""Sign on the stressed word of a question in Armenian."""


class EndPunctuation(PairRule):
    """Both sides end with the same kind of punctuation mark."""

    name = "ending"
    measures = "1 if only one side ends with a question mark or colon, 0.5 for other differences"
    reason = "different end"
    label = "ends that differ"

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Compute the difference of the ends of each pair, 0 to 1."""
        codes = tuple(language[:3] for language in self.languages)
        texts = zip(pairs.sources, pairs.targets, strict=True)
        values = (ending_difference(source, target, codes)[0] for source, target in texts)
        return np.fromiter(values, np.float64, len(pairs.sources))

    def differences(self, source: str, target: str) -> list[str]:
        """Return the kinds of the two ends."""
        codes = tuple(language[:3] for language in self.languages)
        value, text = ending_difference(source, target, codes)
        return [text] if value else []


def ending_difference(source: str, target: str, codes: tuple[str, ...]) -> tuple[float, str]:
    """Compare the ends of two texts.

    Args:
        source: text.
        target: text.
        codes: of their languages, of three letters; empty where one is not known.

    Returns:
        1, 0.5 or 0 as ``EndPunctuation.measures`` says, and the difference in words.
    """
    ends = ending(source, codes[0]), ending(target, codes[1])
    for text, code, end in ((source, codes[0], ends[0]), (target, codes[1], ends[1])):
        # The sign ¿ is required only if both sides end as questions.
        if code == "spa" and ends[0] == ends[1] == end == "question mark" and "¿" not in text:
            return 1.0, "¿ is missing"
    # In Greek, the sign for a question is also a semicolon.
    if ends[0] == ends[1] or ("ell" in codes and set(ends) == {"question mark", "semicolon"}):
        return 0.0, ""
    words = f"{ends[0] or 'no mark'} in the source, {ends[1] or 'no mark'} in the target"
    # A side without a letter, such as "???", has no sentence that could end.
    if not (any(map(str.isalpha, source)) and any(map(str.isalpha, target))):
        return 0.0, ""
    if not _WEIGHTY & set(ends) or _is_question_by_words((source, target), codes):
        return _SOFT, words
    return 1.0, words


def _is_question_by_words(texts: tuple[str, str], codes: tuple[str, ...]) -> bool:
    """Return whether a side may be a question without a mark, by its language or last syllable."""
    for text, code in zip(texts, codes, strict=True):
        if code in _UNPUNCTUATED:
            return True
        ends = _QUESTION_WORDS.get(code)
        if ends and text.strip().rstrip("。.、 ").endswith(ends):
            return True
    return False


def ending(text: str, code: str = "") -> str:
    """Return the kind of the last punctuation mark, or an empty text.

    Closing quotes, brackets and tags are passed over.

    Args:
        text: any text.
        code: three letters of its language; empty if that is not known.
    """
    text = text.rstrip()
    if text.endswith(">"):
        text = _TAG.sub("", text).rstrip()
    while text and text[-1] in _CLOSING:
        text = text[:-1].rstrip()
    if not text:
        return ""
    if code == "hye" and _STRESS in re.split("[։:]", text.rstrip("։:. "))[-1]:
        return "question mark"
    sign, kind = _OWN_ENDS.get(code, ("", ""))
    if sign and text.endswith(sign):
        return kind
    kind = _KIND_OF.get(text[-1], "")
    # "?!" and "?.." end questions too.
    if kind and _ASKS.search(text):
        return "question mark"
    if kind == "period" and _ELLIPSIS.search(text):
        return "ellipsis"
    return kind


class OuterSpaces(PairRule):
    """Both sides have the same kind of white space, or none, at their starts and at their ends."""

    name = "spaces"
    measures = "ends of the texts, 0 to 2, where only one side has white space or a line end"
    reason = "spaces at the ends differ"
    label = "ends that differ in spaces"

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Count the ends of each pair with different white space."""
        found = np.zeros(len(pairs.sources))
        for row, (source, target) in enumerate(zip(pairs.sources, pairs.targets, strict=True)):
            # By far most texts have no white space at their ends.
            if (source.strip() != source or target.strip() != target) and source and target:
                found[row] = len(self.differences(source, target))
        return found

    def differences(self, source: str, target: str) -> list[str]:
        """Return the ends that differ."""
        if not source.strip() or not target.strip():
            return []
        found = []
        for name, at_end in (("leading", False), ("trailing", True)):
            kinds = _outer_space(source, at_end), _outer_space(target, at_end)
            if kinds[0] == kinds[1]:
                continue
            # Full-width punctuation includes a space.
            inner = [text.rstrip()[-1] if at_end else "" for text in (source, target)]
            if "line end" not in kinds and not _ENDS_WIDE.isdisjoint(inner):
                continue
            missing = "missing" if kinds[0] else "not in the source"
            found.append(f"{name} {kinds[0] or kinds[1]} is {missing}")
        return found


def _outer_space(text: str, at_end: bool) -> str:
    """Return ``space``, ``line end`` or nothing, for the start or the end of a text."""
    outer = text[len(text.rstrip()) :] if at_end else text[: len(text) - len(text.lstrip())]
    if not outer:
        return ""
    return "line end" if "\n" in outer else "space"
