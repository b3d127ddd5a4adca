"""Accelerator keys of menus and buttons: ``&File``, ``_File``, ``~File``, ``ファイル(&F)``."""

from __future__ import annotations

import re

from interlingua.mining.rules.rule import PairRule

_MARKED = {
    # Not an entity (&amp;), not a pair of capitals (R&D).
    "&": re.compile(r"(?<!&)(?:(?<![A-Z])&|&(?![A-Z]))(?!#?\w+;)(?=\w)(?!\w*=)"),
    # Not a part of an identifier (file_name).
    "_": re.compile(r"(?<![\w/.@-])_(?=[^\W_])(?!\w*_)"),
    "~": re.compile(r"(?<![\w/.@~-])~(?=[^\W\d_])(?!\w*/)"),
}
_INSIDE = re.compile(r"(?<=[^\W\d_])[_~](?=[^\W\d_])")
"""A mark inside of a word, such as ``E_xit``."""
_LONGEST = 80
"""Characters of a label; longer texts are prose."""
_ADDRESS = re.compile(r"://|www\.|\w=\w|[<>{}$\\|]")


class AcceleratorKeys(PairRule):
    """Both sides have equally many accelerator keys."""

    name = "keys"
    measures = "number of accelerator keys that only one side has"
    reason = "accelerator keys differ"
    label = "accelerator keys that differ"
    signs = "&_~"

    def differences(self, source: str, target: str) -> list[str]:
        """Return the marks of keys that only one side has."""
        found = []
        for mark in self.signs:
            if mark not in source and mark not in target:
                continue
            counts = count_keys(source, mark), count_keys(target, mark)
            if counts[0] == counts[1]:
                continue
            # A mark inside a word counts as the mark of a key if the other side has a key.
            if 1 in counts and counts[0] + counts[1] == 1:
                other = target if counts[0] else source
                if other.count(mark) == 1 and _INSIDE.search(other):
                    continue
            which = "is missing" if counts[0] > counts[1] else "is not in the source"
            found.append(f"the key after {mark} {which}")
        return found


def count_keys(text: str, mark: str) -> int:
    """Count the accelerator keys of a label with one of the marks ``&``, ``_`` and ``~``.

    It is 0 or 1: a text with several marks is no label.
    """
    if text.count(mark) != 1 or len(text) > _LONGEST or _ADDRESS.search(text):
        return 0
    return len(_MARKED[mark].findall(text))
