"""Units of measurement behind numbers: the same number has the same unit on both sides."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Mapping

from interlingua.mining.rules.rule import PairRule

_SPELLINGS: Mapping[str, str] = {
    "%": "% ٪ ％ ﹪",
    "‰": "‰",
    "°C": "°C ℃ °С 摄氏度",
    "°F": "°F ℉",
    "km": "km км كم किमी 公里 千米 χλμ ק״מ กม",
    "m": "m",
    "cm": "cm см سم सेमी 厘米 公分 εκ ס״מ ซม",
    "mm": "mm мм مم मिमी 毫米 מ״מ มม",
    "kg": "kg кг كغ كجم كغم किग्रा 公斤 千克 ק״ג กก",
    "g": "g",
    "mg": "mg мг ملغ مجم मिग्रा 毫克",
    "ml": "ml мл مل मिली 毫升",
    "km/h": "km/h км/ч км/год kmph كم/س",
    "mph": "mph",
    "mi": "mi",
    "ft": "ft",
    "lb": "lb lbs",
    "oz": "oz",
    "kB": "kB KB KiB кБ КБ Ko",
    "MB": "MB MiB МБ Мб Mo",
    "GB": "GB GiB ГБ Гб Go",
    "TB": "TB TiB ТБ To",
    "Hz": "Hz Гц",
    "kHz": "kHz кГц",
    "MHz": "MHz МГц",
    "GHz": "GHz ГГц",
    "kW": "kW кВт",
    "kWh": "kWh",
}
_UNIT_OF = {spelling: unit for unit, some in _SPELLINGS.items() for spelling in some.split(" ")}
_UNIT_OF |= {spelling.replace("״", '"'): unit for spelling, unit in _UNIT_OF.items()}
_UNITS = "|".join(re.escape(one) for one in sorted(_UNIT_OF, key=len, reverse=True))
_NUMBER = r"\d[\d.,٫٬'’\u00a0\u202f ]*\d|\d"
_BEHIND = re.compile(rf"(?P<number>{_NUMBER})[\s\u00a0\u202f-]?(?P<unit>{_UNITS})(?![^\W\d_]|/)")
_BEFORE = re.compile(rf"(?P<unit>[%٪％])\s?(?P<number>{_NUMBER})")
"""Turkish, Basque, Arabic and Hebrew write the percent sign first."""


class UnitsAgree(PairRule):
    """A number that has a unit on both sides has the same one."""

    name = "units"
    measures = "numbers with another unit on the other side"
    reason = "units differ"
    label = "units that differ"

    def differences(self, source: str, target: str) -> list[str]:
        """Return the numbers with unlike units, and both units."""
        if not (_has_digit(source) and _has_digit(target)):
            return []
        left = units_of_numbers(source)
        if not left:
            return []
        right = units_of_numbers(target)
        return [
            f"{number} {'/'.join(sorted(left[number]))} became"
            f" {number} {'/'.join(sorted(right[number]))}"
            for number in left
            if number in right and left[number].isdisjoint(right[number])
        ]


def _has_digit(text: str) -> bool:
    return any(map(str.isdecimal, text))


def units_of_numbers(text: str) -> dict[str, set[str]]:
    """Return the units of those numbers in a text that have a unit.

    A number is compared by its digits, so that its separators do not matter.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for pattern in (_BEHIND, _BEFORE):
        for match in pattern.finditer(text):
            digits = "".join(str(unicodedata.decimal(c)) for c in match["number"] if c.isdecimal())
            found[digits].add(_UNIT_OF[match["unit"]])
    return dict(found)
