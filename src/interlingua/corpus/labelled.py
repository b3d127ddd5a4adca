"""Pairs of sentences with a label: natural language inference and similarity sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from interlingua.errors import DataError
from interlingua.files import open_text

NLI_CLASSES = ("contradiction", "entailment", "neutral")
"""Index = class, in sentence-transformers' order."""


class LabelledPair(NamedTuple):
    """Two sentences and what relates them."""

    a: str
    b: str
    label: float
    """Index in ``NLI_CLASSES``, or similarity in [0, 1]."""
    language_a: str
    language_b: str


def read_labelled(
    path: Path, *, kind: Literal["nli", "sts"], split: str = "train", languages: tuple[str, str]
) -> Iterator[LabelledPair]:
    """Reads ``a<TAB>b<TAB>label`` lines; similarity scores run from 0 to 5.

    Raises:
        DataError: the file is missing or a line is not of this shape.
    """
    with open_text(path) as lines:
        for number, line in enumerate(lines, 1):
            fields = line.rstrip("\r\n").split("\t")
            if len(fields) != 3:
                raise DataError(f"{len(fields)} fields; expected a<TAB>b<TAB>label", path=path, line=number)
            if kind == "nli" and fields[2] not in NLI_CLASSES:
                raise DataError(f"label {fields[2]!r} is none of {', '.join(NLI_CLASSES)}", path=path, line=number)
            label = NLI_CLASSES.index(fields[2]) if kind == "nli" else float(fields[2]) / 5
            yield LabelledPair(fields[0], fields[1], label, *languages)
