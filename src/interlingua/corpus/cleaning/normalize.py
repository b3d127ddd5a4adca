"""One spelling for every text.

That is NFC, one symbol for each kind of quote, hyphen and dash, plain spaces and no controls. It
follows the calibrated-similarity recipe: "all double quotes, single quotes, hyphens and dashes"
become one symbol each. Quotes are those with Unicode's property Quotation_Mark (corner brackets
included) and the primes and accents typed in their place; hyphens include the minus sign.
Everything runs on a batch of texts at once.
"""

from __future__ import annotations

import functools
import html
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

import numpy as np
from jaxtyping import UInt32
from numpy import ndarray

from interlingua.corpus.cleaning.codepoints import (
    PLANES,
    SEPARATOR,
    CodePoints,
    decode,
    encode_codepoints,
    find_text_bounds,
    in_categories,
    join_lines,
)

Markup = Literal["keep", "strip", "unify"]

SINGLE_QUOTES = "'`´‘’‚‛‹›′‵ʹʻʼʽˈ『』﹃﹄❛❜＇｀"
DOUBLE_QUOTES = '"“”„‟«»″‶‴「」﹁﹂｢｣〝〞〟❝❞＂ʺ˝'
HYPHENS = "-‐‑−⁃֊־᠆﹣－"
DASHES = "–‒—―⸺⸻︱︲﹘"
# Soft hyphen, zero-width spaces, direction marks. Joiners stay: Persian and the scripts of India
# write words with them.
_DELETED = "\u00ad\u180e\u200b\u200e\u200f\u2060\ufeff"
_SPACE = 32

_TAG = (
    r"<!--[^\n]*?-->"
    r"|</?(?P<tag>[A-Za-z][\w:.-]*|\d{1,3})(?:[^\S\n][^<>\n]{0,500}=[^<>\n]{0,500})?[^\S\n]*/?>"
)
_ENTITY = r"&(?:[A-Za-z][A-Za-z0-9]{1,31}|#\d{1,7}|#[xX][0-9a-fA-F]{1,6});"
_PLACEHOLDER = (
    r"%\(\w{1,64}\)[-+#0-9.]*[a-zA-Z]"  # %(name)s
    r"|(?<![\d%])%(?:\d+\$)?[-+#0]*(?:\d+|\*)?(?:\.(?:\d+|\*))?(?:hh?|ll?|[Lqjzt])?[diouxXeEfFgGcsra@](?![A-Za-z])"
    r"|\{\{[^{}\n]{1,100}\}\}|\{%[^{}\n]{1,100}%\}"  # {{ value }} and {% tag %}
    r"|\$?\{[\w.\-\[\]!:,]{0,64}\}"  # {name}, {0:.2f}, ${name}
)
_MARKUP = re.compile(f"{_TAG}|(?P<entity>{_ENTITY})|(?P<placeholder>{_PLACEHOLDER})")
_BREAKING = frozenset(
    ("br", "p", "li", "div", "td", "th", "tr", "hr", "h1", "h2", "h3", "h4", "para")
)


def normalize_texts(texts: Sequence[str], *, markup: Markup = "keep") -> list[str]:
    """Normalize texts: markup, quotes, hyphens, dashes, NFC, controls, white space.

    Args:
        texts: any strings; a line break counts as white space.
        markup: handling of tags, entities and format placeholders, see `replace_markup`.

    Returns:
        one normalized text for each text; normalizing it again changes nothing (unless stripped
        markup uncovers more markup).
    """
    return decode(normalize_codes(texts, markup=markup).codes).split("\n")[:-1]


def normalize_codes(texts: Sequence[str], *, markup: Markup = "keep") -> CodePoints:
    """Return the result of `normalize_texts` as code points."""
    joined = replace_markup(join_lines(texts), markup)
    return find_text_bounds(
        _collapse_spaces(encode_codepoints(join_lines(_respell(joined, "NFC"))))
    )


def folded_texts(texts: Sequence[str]) -> list[str]:
    """Return texts in a uniform spelling that ignores case, from which their keys are made.

    Spaces are not normalized, because the keys omit them.
    """
    return [
        text.casefold() if text.isascii() else unicodedata.normalize("NFKC", text.casefold())
        for text in _respell(join_lines(texts), "NFKC")
    ]


def replace_markup(text: str, markup: Markup) -> str:
    """Replace HTML/XML tags, entities and printf, brace and template placeholders.

    Args:
        text: any text.
        markup: ``"strip"`` removes tags and placeholders (a space stays where they separate words),
            ``"unify"`` writes ``<>`` and ``{}`` in their place; both decode entities. ``"keep"``
            changes nothing.
    """
    if markup == "keep":
        return text
    tag, breaking_tag, placeholder = "", " ", " "
    if markup == "unify":
        tag, breaking_tag, placeholder = "<>", "<>", "{}"

    def replacement(match: re.Match[str]) -> str:
        if match["entity"]:  # &#10; is a line feed, which ends a text in this form
            return html.unescape(match["entity"]).replace("\n", " ")
        if match["placeholder"]:
            return placeholder
        if (match["tag"] or "").lower() in _BREAKING:  # a comment has no tag
            return breaking_tag
        return tag

    return _MARKUP.sub(replacement, text)


def _respell(joined: str, form: Literal["NFC", "NFKC"]) -> list[str]:
    """Unify symbols, then compose.

    This order is necessary because NFKC decomposes the double prime and the acute. Compatibility
    forms have a meaning in a text (10\u2075 is not 105), so that NFKC is used only for keys.
    """
    codes = _spelling()[encode_codepoints(joined)]
    texts = decode(codes[codes != 0]).split("\n")[:-1]
    return [text if text.isascii() else unicodedata.normalize(form, text) for text in texts]


@functools.cache
def _spelling() -> UInt32[ndarray, " planes"]:
    """Return the replacement of every code point; 0 for removed ones."""
    table = np.arange(PLANES, dtype=np.uint32)
    table[in_categories(("Cc", "Cs", "Co"))] = 0
    table[in_categories(("Z",))] = _SPACE
    for characters, symbol in (
        (SINGLE_QUOTES, "'"),
        (DOUBLE_QUOTES, '"'),
        (HYPHENS, "-"),
        (DASHES, "–"),
    ):
        table[list(map(ord, characters))] = ord(symbol)
    table[list(map(ord, _DELETED))] = 0
    table[0x202A:0x202F] = 0  # embeddings and overrides of direction
    table[0x2061:0x2070] = 0  # invisible operators
    # These are controls, which were all taken out above.
    table[list(map(ord, "\t\v\f\r\x1c\x1d\x1e\x1f\x85"))] = _SPACE
    table[SEPARATOR] = SEPARATOR
    return table


def _collapse_spaces(codes: UInt32[ndarray, " c"]) -> UInt32[ndarray, " d"]:
    """Leave one space between words and none at either end of a text."""
    space = codes == _SPACE
    end = codes == SEPARATOR
    # A space before another one or before a text's end: the last of several spaces stays.
    idle = space[:-1] & (space | end)[1:]
    if idle.any():
        codes = codes[~np.append(idle, False)]
        space = codes == _SPACE
        end = codes == SEPARATOR
    # The space that is left at the start of a text, after the separator of the previous text.
    leading = space & np.concatenate(([True], end[:-1]))[: len(space)]
    if leading.any():
        codes = codes[~leading]
    return codes
