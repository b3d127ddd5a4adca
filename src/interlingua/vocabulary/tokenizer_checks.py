"""Checks of an untrusted ``tokenizer.json``, before the tokenizers library reads it.

The checks refuse definitions that would fill the memory, or crash the process inside that library.
Two kinds of steps can produce more text than they get. A normalizer replaces a character by a text,
and the effects of several normalizers multiply. A post-processor puts special tokens around a text,
or repeats the text. Both effects are computed from the definition, before any text is tokenized.

SentencePiece's map of characters is a trie in an array. Its numbers are indices into that array and
into a list of texts. The library follows them without bounds checks, so this module first visits
and checks everything that can be reached from the root.
"""

from __future__ import annotations

import base64
import math
import struct
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from jaxtyping import UInt32
from numpy import ndarray

from interlingua.errors import DataError

MAX_GROWTH = 100
"""Maximum number of characters that one character may become; Unicode's NFKC makes at most 18
characters of one."""
_MAX_PIECES = 100
"""Maximum number of special tokens around a text, and of entries in a template."""
MAX_STEPS = 100
"""Maximum number of steps of a part of a tokenizer; each step copies the whole text."""
_PARTS = {
    "normalizer": "normalizers",
    "pre_tokenizer": "pretokenizers",
    "post_processor": "processors",
    "decoder": "decoders",
}
"""Parts of a tokenizer -> the key under which a sequence of this part lists its steps."""
_BYTES = np.arange(1, 256)
"""Bytes that a text may hold; 0 ends it."""
_LABEL = 0x8000_00FF
_VALUE = 0x7FFF_FFFF
"""Bits of a unit of the trie; a unit with the highest bit set is a value, not a child."""


def check_definition(definition: dict[str, Any]) -> None:
    """Check a definition before the tokenizers library reads it.

    The library itself refuses malformed definitions.

    Args:
        definition: content of ``tokenizer.json``.

    Raises:
        DataError: there are more steps than in any known tokenizer, texts would grow more than in
            any known tokenizer, or a map of characters is damaged.
    """
    # Count the steps before any is checked: the library takes minutes for thousands of steps.
    for part, inner in _PARTS.items():
        steps = list(islice(_steps(definition.get(part), inner), MAX_STEPS + 1))
        if len(steps) > MAX_STEPS:
            raise DataError(
                f"tokenizer.json: {part} has more than {MAX_STEPS} steps; download the model again"
            )
    normalizers = list(_steps(definition.get("normalizer"), "normalizers"))
    growth = math.prod(_most_characters(step) for step in normalizers)
    # Prefixes of a text add up, even if each step adds one character.
    growth = max(growth, 1 + sum(len(step.get("prepend", "")) for step in normalizers))
    if growth > MAX_GROWTH:
        raise DataError(
            f"tokenizer.json: the normalizer expands one character to {growth:,} characters,"
            f" expected at most {MAX_GROWTH}; download the model again"
        )
    pieces = sum(_pieces(step) for step in _steps(definition.get("post_processor"), "processors"))
    if pieces > _MAX_PIECES:
        raise DataError(
            f"tokenizer.json: the post_processor adds {pieces:,} tokens to a text, expected at"
            f" most {_MAX_PIECES}; download the model again"
        )


def _steps(step: dict[str, Any] | None, inner: str) -> Iterator[dict[str, Any]]:
    """Yield the step itself, or, if it is a sequence, the single steps in it."""
    if step is None:
        return
    if step.get("type") != "Sequence":
        yield step
    for part in step.get(inner, ()):
        yield from _steps(part, inner)


def _most_characters(normalizer: dict[str, Any]) -> int:
    """Return the most characters that a normalizer makes of a character, or puts before a text."""
    kind = normalizer.get("type")
    if kind == "Replace":
        return max(1, len(normalizer["content"]))
    if kind == "Prepend":
        return max(1, len(normalizer["prepend"]))
    if kind == "Precompiled":
        return _longest_mapped(normalizer["precompiled_charsmap"])
    return 1


def _longest_mapped(charsmap: str) -> int:
    """Return the number of characters of the longest text in SentencePiece's map.

    The map consists of the size of a trie in bytes, the trie itself, and texts that each end with a
    zero byte.
    """
    try:
        content = base64.b64decode(charsmap, validate=True)
        (trie_bytes,) = struct.unpack_from("<I", content)
        units = np.frombuffer(content[4 : 4 + trie_bytes], "<u4")
        texts = content[4 + trie_bytes :]
        longest = max(map(len, texts.decode("utf-8").split("\0")))
        is_whole = 4 * len(units) == trie_bytes and _is_inside(units, texts)
    except (ValueError, struct.error):
        # No base64, no whole units, or no UTF-8.
        is_whole = False
    if not is_whole:
        raise DataError(
            "tokenizer.json: precompiled_charsmap is damaged or incomplete; download the model"
            " again"
        )
    return max(1, longest)


def _is_inside(units: UInt32[ndarray, " n"], texts: bytes) -> bool:
    """Return whether a walk from the root of a double-array trie stays in it, and in the texts.

    Each value must point to the first byte of a character. A node is the place p of a unit. Its
    child by byte c is the unit at p ^ c if this unit has the label c. The child's own place is
    p ^ c ^ the offset in that unit; if the child has a value, the unit at this place holds it
    (Yata's darts-clone).
    """
    # In UTF-8 all bytes of a character but the first one are 10xxxxxx.
    begins = np.frombuffer(texts, np.uint8) & 0xC0 != 0x80
    nodes = _offsets(units[:1]).astype(np.int64)
    # The walk goes level by level, all nodes of a level at once. No node is visited twice, so that
    # the walk ends even if a damaged trie contains a cycle.
    seen = np.zeros(len(units), bool)
    if not len(nodes):
        return False
    while len(nodes):
        if nodes.max() >= len(units):
            return False
        # np.unique would give the same, but it imports numpy.ma, which takes a tenth of the time to
        # load a small model.
        nodes = np.sort(nodes[~seen[nodes]])
        nodes = nodes[np.diff(nodes, prepend=-1) > 0]
        seen[nodes] = True
        # (nodes, 255): for each byte the place where the child would be.
        children = nodes[:, None] ^ _BYTES
        if children.size and children.max() >= len(units):
            return False
        found = units[children]
        is_child = (found & _LABEL) == _BYTES
        next_nodes = children[is_child] ^ _offsets(found[is_child])
        # Bit 8 says that a text ends at the child, so that the unit at its place is a value.
        ends = next_nodes[(found[is_child] >> 8 & 1).astype(bool)]
        if len(ends) and ends.max() >= len(units):
            return False
        values = units[ends] & _VALUE
        if len(values) and (values.max() >= len(texts) or not begins[values].all()):
            return False
        nodes = next_nodes
    return True


def _offsets(units: UInt32[ndarray, " n"]) -> UInt32[ndarray, " n"]:
    """Return the offset from each node to the positions of its children.

    The ninth bit indicates that the number is in steps of 256.
    """
    # Bit 9, shifted down by 6, has the value 8: then the offset is shifted by a byte.
    return (units >> 10) << ((units & (1 << 9)) >> 6)


def _pieces(processor: dict[str, Any]) -> int:
    """Return the number of parts that a template names, plus the ids of its special tokens."""
    template = processor.get("single", ())
    ids = {name: len(token["ids"]) for name, token in processor.get("special_tokens", {}).items()}
    names = [piece["SpecialToken"]["id"] for piece in template if "SpecialToken" in piece]
    return len(template) + sum(ids.get(name, 0) for name in names)
