"""Inline tags of HTML, XLIFF and TMX: the same ones on both sides, paired and nested right."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from jaxtyping import Float64
from numpy import ndarray

from interlingua.mining.checks import Pairs
from interlingua.mining.rules.rule import PairRule, one_sided

_TAG = re.compile(
    r"<(?P<close>/?)(?P<name>[A-Za-z][\w:.-]*|\d{1,3})"
    r"(?P<attributes>(?:\s+[\w:.-]+(?:\s*=\s*(?:\"[^\"<]*\"|'[^'<]*'|[^\s\"'<>/]+))?)*)"
    r"\s*(?P<empty>/?)>"
)
_ID = re.compile(r"\b(?:id|rid|x|i)\s*=\s*[\"']?([\w.-]+)")
_HTML_NAMES = (
    "a abbr acronym b bdi bdo big blockquote br button center cite code dd del dfn div dl dt em"
    " font h1 h2 h3 h4 h5 h6 hr i img input ins kbd label li mark nobr ol p pre q rp rt ruby s"
    " samp small span strike strong sub sup table tbody td th thead tr tt u ul var wbr"
)
_XLIFF_NAMES = "g x bx ex bpt ept ph it mrk pc sc ec sm em cp ut hi"
_STANDALONE_NAMES = "br hr img input wbr x bx ex ph bpt ept it sc ec sm cp ut"
_OPTIONAL_NAMES = "li p dd dt td th tr tbody thead"
_HTML = frozenset(_HTML_NAMES.split())
_XLIFF = frozenset(_XLIFF_NAMES.split())
_STANDALONE = frozenset(_STANDALONE_NAMES.split())
"""Tags that have no closing tag."""
_OPTIONAL = frozenset(_OPTIONAL_NAMES.split())
"""Tags that may stay open in HTML."""


SOURCE_TAGS = "source_tags"
TARGET_TAGS = "target_tags"
"""Fields of a pair with the tags that its reader has taken out of the texts."""


class Tag(NamedTuple):
    """A tag of a text.

    Attributes:
        name: in lowercase, with the number of a tag of XLIFF or TMX.
        closes: whether it is a closing tag.
        is_single: whether it needs no closing tag.
    """

    name: str
    closes: bool
    is_single: bool

    def __str__(self) -> str:
        return f"</{self.name}>" if self.closes else f"<{self.name}>"


class InlineTags(PairRule):
    """Both sides have the same inline tags, and the target's are paired as the source's are."""

    name = "tags"
    measures = "inline tags that only one side has, or that are not closed in the target"
    reason = "tags differ"
    label = "tags that differ"
    signs = "<"
    needs_fields = True

    def score(self, pairs: Pairs) -> Float64[ndarray, " n"]:
        """Count the differences of each pair, also of tags that a reader has taken out."""
        if not any(fields.get(SOURCE_TAGS) or fields.get(TARGET_TAGS) for fields in pairs.fields):
            return super().score(pairs)
        found = zip(pairs.sources, pairs.targets, pairs.fields, strict=True)
        marked = [with_tags(source, target, fields) for source, target, fields in found]
        texts = Pairs(
            [source for source, _ in marked], [target for _, target in marked], pairs.hubs
        )
        return super().score(texts)

    def differences(self, source: str, target: str) -> list[str]:
        """Return the tags that only one side has, or those that are not paired in the target."""
        left = inline_tags(source)
        right = inline_tags(target)
        found = one_sided(Counter(map(str, left)), Counter(map(str, right)))
        if found or is_nested(left) == is_nested(right) or not is_nested(left):
            return found
        return ["tags are not paired, or are nested incorrectly"]


def with_tags(source: str, target: str, fields: Mapping[str, Any]) -> tuple[str, str]:
    """Return both texts with the tags that their reader has taken out, ``g:1 x:2``, at their ends.

    Their places are not known, so that only the tags themselves are compared.
    """
    tags = []
    for name in (SOURCE_TAGS, TARGET_TAGS):
        parts = [tag.partition(":") for tag in str(fields.get(name) or "").split()]
        tags.append("".join(f'<{kind} id="{number}"/>' for kind, _, number in parts))
    return source + tags[0], target + tags[1]


def inline_tags(text: str) -> list[Tag]:
    """Return the tags of a text.

    A name in angle brackets, such as ``<file>``, is a tag only if HTML, XLIFF or TMX defines it, or
    if the text closes it too.
    """
    if "<" not in text:
        return []
    matches = list(_TAG.finditer(text))
    closed = {match["name"].lower() for match in matches if match["close"]}
    return [tag for match in matches if (tag := _tag(match, closed)) is not None]


def _tag(match: re.Match[str], closed: Iterable[str]) -> Tag | None:
    name = match["name"].lower()
    is_known = name in _HTML or name in _XLIFF or name in closed
    if not is_known and not match["empty"]:
        return None
    identifier = _ID.search(match["attributes"])
    label = name
    if name in _XLIFF and identifier is not None:
        label = f"{name} id={identifier[1]}"
    is_single = bool(match["empty"]) or name in _STANDALONE
    return Tag(label, bool(match["close"]), is_single)


def is_nested(tags: Sequence[Tag]) -> bool:
    """Return whether each tag that needs a closing tag has one, the inner tags first."""
    opened: list[str] = []
    for tag in tags:
        # A closing tag of XLIFF has no number.
        name = tag.name.split()[0]
        if tag.is_single or name in _OPTIONAL:
            continue
        if not tag.closes:
            opened.append(name)
        elif not opened or opened.pop() != name:
            return False
    return not opened
