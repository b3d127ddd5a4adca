"""Wrong neighbors kept for a reader: the query, the expected answer and the retrieved one."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool, Float32, Int64
from numpy import ndarray

from interlingua.errors import DataError
from interlingua.evaluation.scores import Example
from interlingua.storage.files import atomic_write
from interlingua.storage.json_text import parse_json

PER_SUBSET = 20
"""Wrong items kept per language pair by default."""
PER_RESULT = 2_000
"""Maximum number of wrong items in one file, over all language pairs: less than about 3 MB."""
TEXT_CHARACTERS = 400
"""Longer texts are cut."""


def choose_examples(
    wrong: Bool[ndarray, " n"], texts: Sequence[str], limit: int, *, of: str = ""
) -> list[int]:
    """Choose the wrong items to keep: those with the lowest checksums of their texts.

    The sample does not depend on the size of the errors. It is the same for every encoder as far as
    the same items are wrong (bottom-k sampling), so encoders can be compared side by side. The
    first entries of a sample are a smaller sample of the same kind.

    Args:
        wrong: whether each item is wrong.
        texts: of the items.
        limit: maximum number to keep.
        of: the name of the sample; another name results in another sample of the same texts.
    """
    items = np.flatnonzero(wrong).tolist()
    # the item's number decides between equal texts, so the order is never left to chance
    return sorted(items, key=lambda item: (rank(of + texts[item]), item))[:limit]


def wrong_neighbors(
    right: Bool[ndarray, " n"],
    predicted: Int64[ndarray, " n"],
    queries: Sequence[str],
    candidates: Sequence[str],
    score: Callable[[int, int], float],
    *,
    languages: tuple[str, str],
    limit: int,
    measure: str = "cosine",
) -> tuple[Example, ...]:
    """Return a bounded sample of the queries for which a wrong candidate was retrieved.

    Candidate i is the translation of query i.

    Args:
        right: whether the translation of each query was found.
        predicted: the candidate retrieved for each query.
        queries: their texts.
        candidates: their texts.
        score: of query i and candidate j.
        languages: of the queries and of the candidates.
        limit: examples kept.
        measure: name of the score.
    """

    def example_of(item: int) -> Example:
        retrieved = int(predicted[item])
        return Example(
            item=item,
            query=cut(queries[item]),
            expected=cut(candidates[item]),
            retrieved=cut(candidates[retrieved]),
            expected_score=score(item, item),
            retrieved_score=score(item, retrieved),
            languages=languages,
            measure=measure,
        )

    # the checksum includes the languages: otherwise, the same English sentences would be chosen for
    # all languages
    sampled = choose_examples(~right, queries, limit, of="-".join(languages))
    return tuple(map(example_of, sampled))


def cosine_of(
    x: Float32[ndarray, "n d"], y: Float32[ndarray, "m d"]
) -> Callable[[int, int], float]:
    """Return a function that computes the cosine of row i of x and row j of y."""

    def cosine(i: int, j: int) -> float:
        # in float32, as in the search that found the neighbors, and not by ``row_cosines``, which
        # uses float64; the vectors need not have length 1; a vector of zeros has a cosine of 0
        lengths = float(np.linalg.norm(x[i]) * np.linalg.norm(y[j]))
        return float(x[i] @ y[j]) / max(lengths, 1e-12)

    return cosine


def bounded(
    examples: Mapping[str, Sequence[Example]], most: int = PER_RESULT
) -> dict[str, tuple[Example, ...]]:
    """Limit each language pair to an equal share of ``most`` examples, at least one."""
    share = max(1, most // max(1, len(examples)))
    return {subset: tuple(found[:share]) for subset, found in examples.items() if found}


def examples_path(path: Path) -> Path:
    """Return the path of the wrong neighbors: ``{Task}.examples.jsonl`` next to the result."""
    return path.with_suffix(".examples.jsonl")


def write_examples(path: Path, examples: Mapping[str, Sequence[Example]]) -> None:
    """Write one JSON object per wrong item, at most ``PER_RESULT``."""
    with atomic_write(path) as file:
        for subset, found in bounded(examples).items():
            for one in found:
                content = {"subset": subset, **one._asdict()}
                file.write(json.dumps(content, ensure_ascii=False) + "\n")


def read_examples(path: Path) -> dict[str, tuple[Example, ...]]:
    """Read the examples that ``write_examples`` wrote; none if the file does not exist.

    Raises:
        DataError: a line does not have the form that ``write_examples`` writes.
    """
    if not path.exists():
        return {}
    examples: dict[str, list[Example]] = {}
    with path.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            try:
                subset, example = _from_json(parse_json(line))
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise DataError(
                    f"not a wrong neighbor ({error}); run `interlingua evaluate` again",
                    path=path,
                    line=number,
                ) from error
            examples.setdefault(subset, []).append(example)
    return {subset: tuple(found) for subset, found in examples.items()}


def _from_json(content: dict[str, Any]) -> tuple[str, Example]:
    subset = content.pop("subset")
    first, second = content.pop("languages")
    return str(subset), Example(**content, languages=(first, second))


def rank(text: str) -> int:
    """Return the checksum that decides which wrong items are kept."""
    return zlib.crc32(text.encode(errors="surrogatepass"))


def cut(text: str) -> str:
    """Cut a text to at most ``TEXT_CHARACTERS``.

    An unpaired surrogate, which JSON can contain as an escape, is replaced by a question mark.
    """
    if len(text) > TEXT_CHARACTERS:
        text = f"{text[: TEXT_CHARACTERS - 1]}…"
    return text.encode(errors="replace").decode()
