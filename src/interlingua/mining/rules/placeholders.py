"""Placeholders and variables of messages: the target has those of the source, and no others.

Recognized are ``{0}``, ``{}``, ``{name}``, ``{{name}}``, ``${name}``, ``%s``, ``%1$s``,
``%(name)s``, ``%{name}``, ``%@``, Qt's ``%1``, and the arguments of ICU messages
(``{count, plural, ...}``).
"""

from __future__ import annotations

import re
from collections import Counter

from interlingua.mining.rules.rule import PairRule, one_sided

_PATTERN = re.compile(
    r"""
    (?P<escape>%%)
  | (?P<double>\{\{\{?\s*[#/^]?[\w.-]+\s*\}?\}\})
  | (?P<dollar>\$\{[\w.]+\})
  | (?P<ruby>%\{\w+\})
  | \{\s*(?P<icu>\w+)\s*,\s*(?P<kind>plural|selectordinal|select|number|date|time|choice)\b
  | \{(?P<brace>\d+|[A-Za-z_][\w.]*)?(?:\[\w+\])?(?:![rsa])?(?:[:,][^{}\s]*)?\}
  | (?<![\d%])%\((?P<key>\w+)\)[-+0\#]*\d*(?:\.\d+)?[a-zA-Z]
  | (?<![\d%])%(?:(?P<number>\d+)\$)?[-+0\#']*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[Lqjzt])?
    (?P<letter>[diouxXeEfFgGcspn@])(?![A-Za-z])
  | (?<![\d%])%(?:(?P<glued_number>\d+)\$)?(?P<glued>[sd@])
  | (?<![\d%])%L?(?P<qt>[1-9])(?![\d$.,])
    """,
    re.VERBOSE,
)
_QT = re.compile(r"%L?[1-9]")
_LETTERS = str.maketrans("iXEGF", "dxegf")
"""Letters of printf, mapped to the letters that take the same kind of argument."""


class Placeholders(PairRule):
    """The same placeholders occur on both sides."""

    name = "placeholders"
    measures = "placeholders and variables that only one side has"
    reason = "placeholders differ"
    label = "placeholders that differ"
    signs = "%{"

    def differences(self, source: str, target: str) -> list[str]:
        """Return the placeholders that only one side has."""
        found = placeholders(source), placeholders(target)
        if found[0].keys() == found[1].keys():
            return []
        left = Counter(written for sign, written in found[0].items() if sign not in found[1])
        right = Counter(written for sign, written in found[1].items() if sign not in found[0])
        # A percent sign before its number, as Turkish and Arabic write it, is no placeholder.
        for own, other in ((left, target), (right, source)):
            for sign in list(own):
                if _QT.fullmatch(sign) and re.search(rf"{sign[-1]}\s*[%٪]", other):
                    del own[sign]
        return one_sided(left, right)


def placeholders(text: str) -> dict[str, str]:
    """Map each placeholder of a text, in a uniform spelling, to its spelling in the text.

    Placeholders without a number are numbered as they come, so that ``%s of %s`` and
    ``%2$s of %1$s`` have the same ones.
    """
    found: dict[str, str] = {}
    unnumbered = Counter[str]()
    for match in _PATTERN.finditer(text):
        if not match["escape"]:
            sign = _spelling(match, unnumbered)
            # Only the start of an ICU argument is matched.
            found.setdefault(sign, sign if match["icu"] else match[0])
    return found


def _spelling(match: re.Match[str], unnumbered: Counter[str]) -> str:
    """Return a placeholder's uniform spelling; ``unnumbered`` counts those without a number."""
    if match["icu"]:
        return f"{{{match['icu']}, {match['kind']}}}"
    letter = match["letter"] or match["glued"]
    if letter:
        unnumbered["%"] += 1
        number = match["number"] or match["glued_number"] or unnumbered["%"]
        return f"%{number}${letter.translate(_LETTERS)}"
    if match["key"]:
        return f"%({match['key']})"
    if match["qt"]:
        return f"%{match['qt']}"
    if match[0].startswith("{") and not match["double"]:
        name = match["brace"]
        if name is None:
            name = str(unnumbered["{"])
            unnumbered["{"] += 1
        return f"{{{name}}}"
    return "".join(match[0].split())
