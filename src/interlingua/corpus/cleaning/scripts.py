"""Script of each code point, by Unicode block, for every script that languages.py names.

Blocks are exact enough to distinguish text in the wrong script from text in the right one, and the
whole table is one byte per code point.
"""

from __future__ import annotations

import functools

import numpy as np
from jaxtyping import Bool, Float32, UInt8
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import PLANES, in_categories

# ISO 15924 script -> ranges of code points, both ends included. "Kana" is both kana, "Hani" all Han
# characters, because the blocks do not distinguish simplified from traditional ones.
BLOCKS: dict[str, tuple[tuple[int, int], ...]] = {
    "Latn": ((0x41, 0x24F), (0x250, 0x2AF), (0x1D00, 0x1DBF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F),
             (0xA720, 0xA7FF), (0xAB30, 0xAB6F), (0xFF21, 0xFF5A)),
    "Grek": ((0x370, 0x3FF), (0x1F00, 0x1FFF)),
    "Cyrl": ((0x400, 0x52F), (0x1C80, 0x1C8F), (0x2DE0, 0x2DFF), (0xA640, 0xA69F)),
    "Armn": ((0x530, 0x58F), (0xFB13, 0xFB17)),
    "Hebr": ((0x590, 0x5FF), (0xFB1D, 0xFB4F)),
    "Arab": ((0x600, 0x6FF), (0x750, 0x77F), (0x870, 0x8FF), (0xFB50, 0xFDFF), (0xFE70, 0xFEFE)),
    "Syrc": ((0x700, 0x74F), (0x860, 0x86F)),
    "Thaa": ((0x780, 0x7BF),),
    "Nkoo": ((0x7C0, 0x7FF),),
    "Deva": ((0x900, 0x97F), (0xA8E0, 0xA8FF)),
    "Beng": ((0x980, 0x9FF),),
    "Guru": ((0xA00, 0xA7F),),
    "Gujr": ((0xA80, 0xAFF),),
    "Orya": ((0xB00, 0xB7F),),
    "Taml": ((0xB80, 0xBFF),),
    "Telu": ((0xC00, 0xC7F),),
    "Knda": ((0xC80, 0xCFF),),
    "Mlym": ((0xD00, 0xD7F),),
    "Sinh": ((0xD80, 0xDFF),),
    "Thai": ((0xE00, 0xE7F),),
    "Laoo": ((0xE80, 0xEFF),),
    "Tibt": ((0xF00, 0xFFF),),
    "Mymr": ((0x1000, 0x109F), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F)),
    "Geor": ((0x10A0, 0x10FF), (0x1C90, 0x1CBF), (0x2D00, 0x2D2F)),
    "Hang": ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF)),
    "Ethi": ((0x1200, 0x139F), (0x2D80, 0x2DDF), (0xAB00, 0xAB2F)),
    "Cher": ((0x13A0, 0x13FF), (0xAB70, 0xABBF)),
    "Cans": ((0x1400, 0x167F), (0x18B0, 0x18FF)),
    "Khmr": ((0x1780, 0x17FF),),
    "Mong": ((0x1800, 0x18AF),),
    "Olck": ((0x1C50, 0x1C7F),),
    "Tfng": ((0x2D30, 0x2D7F),),
    "Kana": ((0x3040, 0x30FF), (0x31F0, 0x31FF), (0xFF66, 0xFF9F)),
    "Hani": ((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3100, 0x312F), (0x3400, 0x4DBF),
             (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF)),
    "Yiii": ((0xA000, 0xA4CF),),
    "Mtei": ((0xAAE0, 0xAAFF), (0xABC0, 0xABFF)),
    "Goth": ((0x10330, 0x1034F),),
    "Avst": ((0x10B00, 0x10B3F),),
}  # fmt: skip
OTHER = len(BLOCKS) + 1
"""Script number of letters that belong to no script above; 0 is for all that is not a letter."""

_NUMBER = {script: number for number, script in enumerate(BLOCKS, start=1)}
# Scripts in language codes that correspond to several of the scripts above, or to another one.
_MIXED = {
    "Hans": ("Hani",),
    "Hant": ("Hani",),
    "Jpan": ("Kana", "Hani"),
    "Kore": ("Hang", "Hani"),
    "Hang": ("Hang", "Hani"),
}
# Languages that are commonly written in a second script under the same code.
_SECOND_SCRIPT = {
    "srp": ("Latn", "Cyrl"), "hbs": ("Latn", "Cyrl"), "bos": ("Latn", "Cyrl"), "cnr": ("Latn",
    "Cyrl"), "uzn": ("Latn", "Cyrl"), "uzb": ("Latn", "Cyrl"), "tat": ("Cyrl", "Latn"),
    "crh": ("Latn", "Cyrl"), "ber": ("Latn", "Tfng"), "tzm": ("Latn", "Tfng"), "zgh": ("Latn",
    "Tfng"),
}  # fmt: skip


@functools.cache
def script_numbers() -> UInt8[ndarray, " planes"]:
    """Return the script number of every code point; 0 if it is neither a letter nor a mark."""
    numbers = np.zeros(PLANES, np.uint8)
    letters = in_categories(("L", "M"))
    numbers[letters] = OTHER
    for script, ranges in BLOCKS.items():
        for first, last in ranges:
            # Blocks also have digits and punctuation, which stay 0.
            block = numbers[first : last + 1]
            block[letters[first : last + 1]] = _NUMBER[script]
    return numbers


@functools.cache
def scripts_of(code: str) -> Bool[ndarray, " scripts"]:
    """Mark the script numbers that a language (such as ``"jpn_Jpan"``) is written in.

    Mark all of them if the script of the language is not known.
    """
    iso3, _, script = code.partition("_")
    names = set(_MIXED.get(script, (script,))) | set(_SECOND_SCRIPT.get(iso3, ()))
    expected = np.zeros(OTHER + 1, dtype=bool)
    expected[[_NUMBER[name] for name in names if name in _NUMBER]] = True
    if not expected.any():
        return ~expected
    return expected


@functools.cache
def letter_widths() -> Float32[ndarray, " scripts"]:
    """Return the number of Latin letters to which one character of each script is equivalent.

    The values are from the lengths of the same sentences in FLORES-200 devtest.
    """
    widths = np.ones(OTHER + 1, np.float32)
    for script, width in {"Hani": 3.0, "Kana": 2.0, "Hang": 2.0, "Yiii": 3.0, "Ethi": 1.5}.items():
        widths[_NUMBER[script]] = width
    return widths
