"""Placeholders and variables of messages: each of the source's is in the target, and no other.

Recognized are ``{0}``, ``{}``, ``{name}``, ``{{name}}``, ``${name}``, ``%s``, ``%1$s``,
``%(name)s``, ``%{name}``, ``%@``, Qt's ``%1``, and the arguments of ICU messages
(``{count, plural, ...}``).
"""

from __future__ import annotations

import re
from collections import Counter

from interlingua.mining.rules.rule import Rule, one_sided

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
_LETTERS = str.maketrans("iXEGF", "dxegf")
"""Letters of printf that take the same argument."""


class Placeholders(Rule):
    """The same placeholders occur on both sides."""

    name = "placeholders"
    measures = "placeholders and variables that only one side has"
    reason = "placeholders differ"
    label = "placeholders that differ"
    signs = "%{"

    def differences(self, source: str, target: str) -> list[str]:
        """Return the placeholders that only one side has."""
        found = placeholders(source), placeholders(target)
        if found[0] == found[1]:
            return []
        left, right = (Counter(dict.fromkeys(one, 1)) for one in found)
        # A percent sign before its number, as Turkish and Arabic write it, is no placeholder.
        for own, other_text in ((left, target), (right, source)):
            for sign in [sign for sign in own if re.fullmatch(r"%[1-9]", sign)]:
                if sign not in other_text and re.search(rf"{sign[1]}\s*[%٪]", other_text):
                    del own[sign]
        return one_sided(left, right)


def placeholders(text: str) -> list[str]:
    """Return the placeholders of a text in one spelling, in their order.

    Placeholders without a number are numbered as they come, so that ``%s of %s`` and
    ``%2$s of %1$s`` have the same ones.
    """
    found = []
    unnumbered = Counter[str]()
    for match in _PATTERN.finditer(text):
        if match["escape"]:
            continue
        sign = match["icu"]
        if sign:
            found.append(f"{{{sign}, {match['kind']}}}")
            continue
        letter = match["letter"] or match["glued"]
        if letter:
            number = match["number"] or match["glued_number"]
            if not number:
                unnumbered["%"] += 1
                number = str(unnumbered["%"])
            found.append(f"%{number}${letter.translate(_LETTERS)}")
        elif match["key"]:
            found.append(f"%({match['key']})")
        elif match["qt"]:
            found.append(f"%{match['qt']}")
        elif match[0].startswith("{") and not match["double"]:
            name = match["brace"]
            if name is None:
                name = str(unnumbered["{"])
                unnumbered["{"] += 1
            found.append(f"{{{name}}}")
        else:
            found.append("".join(match[0].split()))
    return found
