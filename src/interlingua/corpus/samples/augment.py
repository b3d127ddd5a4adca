"""Silver pairs for Augmented SBERT (Thakur et al. 2021): neighbors that a model has scored.

Pairs that people have scored (gold) are few, and their sentences can be paired in many more ways.
Each sentence of the gold pairs is paired with its nearest neighbors by cosine of a bi-encoder's
vectors, which gives pairs that are more similar than random pairs. A better and slower model,
mostly a cross-encoder, scores them. The pairs that it scored are silver.

The caller passes the models: one that embeds sentences to find pairs, and one that scores pairs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int64
from numpy import ndarray

from interlingua.corpus.cleaning.keys import text_keys
from interlingua.corpus.formats.labeled_pairs import MAX_SCORE, LabeledPair, read_labeled
from interlingua.errors import DataError
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import atomic_directory, sha256_file, stem_and_suffix
from interlingua.storage.formats import SILVER
from interlingua.storage.record import holds_record, write_record

PAIRS_FILE = "silver.tsv"
MANIFEST = "manifest.json"
HELD_OUT = {"dev", "devel", "development", "valid", "validation", "eval", "test"}
"""Parts of a file's name that show that it is not a training split."""
_SPLITS = ("train", "dev", "test")
_ROWS = 1024
"""Number of sentences whose similarities to all others are in memory at a time."""
ScorePairs = Callable[[Sequence[str], Sequence[str], str], Float[ndarray, " n"]]
"""Function from first sentences, second sentences and their language to scores in [0, 1]."""
EmbedSentences = Callable[[Sequence[str], str], Float32[ndarray, "n d"]]
"""Function from sentences and their language to one vector of each."""


class SilverCandidates(NamedTuple):
    """Pairs to be scored, and counts of those left out."""

    pairs: list[tuple[str, str]]
    gold: int
    """Neighbors left out because people have scored the pair already."""
    repeated: int
    """Neighbors left out because the pair was found from its other sentence."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SilverReport:
    """Counts of the sentences and of their pairs."""

    sentences: int
    """Distinct sentences of the gold pairs."""
    neighbors: int
    """Nearest neighbors looked at, per sentence."""
    gold_removed: int
    """Neighbors left out because people have scored the pair already, in whatever split."""
    repeated_removed: int
    """Neighbors left out because the pair was found from its other sentence."""
    pairs: int
    """Silver pairs written."""
    mean_score: float
    """Mean score of the silver pairs, 0 to 5."""


def make_silver(
    gold: Sequence[Path],
    folder: Path,
    *,
    embed: EmbedSentences,
    score: ScorePairs,
    neighbors: int = 10,
    languages: tuple[str, str] = ("eng_Latn", "eng_Latn"),
    exclude: Sequence[Path] = (),
    models: Mapping[str, Any],
) -> SilverReport:
    """Find pairs among the sentences of gold pairs and write them with their scores.

    The folder then holds ``silver.tsv`` next to ``manifest.json``.

    Args:
        gold: files of scored pairs; only training rows may be used, as test sentences must stay
            unseen.
        folder: to write; if it contains silver pairs, the whole folder is replaced.
        embed: gives the vectors by which each sentence's neighbors are found, by cosine.
        score: labels the pairs.
        neighbors: number of nearest neighbors per sentence, not counting the sentence itself.
        languages: of first and second sentences, if the files do not name them.
        exclude: further files of scored pairs, those of the other splits; their pairs never become
            silver pairs. The pairs in the gold files are always left out, too.
        models: notes on the models for the manifest.

    Raises:
        DataError: a gold file is missing, broken, named as a test or validation split, or has
            several languages.
    """
    pairs = _training_pairs(gold, languages)
    language = pairs[0].language_a
    # A dict keeps the order in which the sentences first occur: equal files give equal pairs.
    sentences = list(dict.fromkeys(text for pair in pairs for text in (pair.a, pair.b)))
    nearest = nearest_others(embed(sentences, language), neighbors)
    found = candidates(sentences, nearest, _scored_pairs([*gold, *exclude], languages))
    first = [a for a, _ in found.pairs]
    second = [b for _, b in found.pairs]
    # A file of similarity pairs has scores from 0 to 5, a model gives them from 0 to 1.
    scores = MAX_SCORE * score(first, second, language)
    report = SilverReport(
        sentences=len(sentences),
        neighbors=nearest.shape[1],
        gold_removed=found.gold,
        repeated_removed=found.repeated,
        pairs=len(found.pairs),
        mean_score=round(float(scores.mean()), 4) if len(scores) else 0.0,
    )
    with atomic_directory(folder, overwrite=True, ours=_is_silver) as temporary:
        with (temporary / PAIRS_FILE).open("w", encoding="utf-8", newline="\n") as file:
            for (a, b), y in zip(found.pairs, scores, strict=True):
                file.write(f"{_line(a)}\t{_line(b)}\t{y:.4f}\n")
        record = {
            "models": dict(models),
            "gold": {str(path): sha256_file(path) for path in gold},
            "excluded": {str(path): sha256_file(path) for path in exclude},
            "language": language,
            "report": asdict(report),
            "sha256": sha256_file(temporary / PAIRS_FILE),
        }
        write_record(temporary / MANIFEST, SILVER, record)
    return report


def _is_silver(folder: Path) -> bool:
    return holds_record(folder / MANIFEST, SILVER)


def nearest_others(vectors: Float32[ndarray, "n d"], k: int) -> Int64[ndarray, "n k"]:
    """Return, for each vector, the indices of the other vectors of largest cosine, best first.

    Of equal cosines the lower index comes first.
    """
    unit = normalize_rows(vectors)
    k = min(k, len(unit) - 1)
    nearest = np.empty((len(unit), k), dtype=np.int64)
    if k == 0:
        return nearest
    for start in range(0, len(unit), _ROWS):
        similarities = unit[start : start + _ROWS] @ unit.T
        rows = np.arange(len(similarities))
        similarities[rows, start + rows] = -np.inf  # a sentence is not a neighbor of itself
        # The k-th best of each row; only values that reach it are sorted. A partition would choose
        # arbitrarily among equal values at the edge.
        edge = -np.partition(-similarities, k - 1, axis=1)[:, k - 1]
        for row in rows:
            near = np.flatnonzero(similarities[row] >= edge[row])
            # The candidates ascend and the sort is stable, so equals stay in order of their index.
            nearest[start + row] = near[np.argsort(-similarities[row, near], kind="stable")][:k]
    return nearest


def candidates(
    sentences: Sequence[str], nearest: Int64[ndarray, "n k"], gold: set[frozenset[int]]
) -> SilverCandidates:
    """Pair each sentence with each of its neighbors, without pairs that people have scored.

    Every unordered pair occurs once.

    Args:
        sentences: each once.
        nearest: rows of each sentence's neighbors.
        gold: pairs of text keys, so that a pair that differs only in punctuation or case is left
            out too.
    """
    keys = text_keys(sentences).tolist()
    seen: set[frozenset[int]] = set()
    found = SilverCandidates([], 0, 0)
    in_gold = repeated = 0
    for row, neighbors in enumerate(nearest.tolist()):
        for other in neighbors:
            pair = frozenset((row, other))
            if frozenset((keys[row], keys[other])) in gold:
                in_gold += 1
            elif pair in seen:
                repeated += 1
            else:
                seen.add(pair)
                found.pairs.append((sentences[row], sentences[other]))
    return found._replace(gold=in_gold, repeated=repeated)


def _training_pairs(gold: Sequence[Path], languages: tuple[str, str]) -> list[LabeledPair]:
    pairs: list[LabeledPair] = []
    for path in gold:
        # Whole parts of the name, so that "contest.tsv" is not a test split.
        split = HELD_OUT & set(re.split(r"[.\-_]", stem_and_suffix(path)[0].lower()))
        if split:
            raise DataError(
                f"the file name says that this is a {split.pop()} split, which must not be used"
                " for training; pass training pairs",
                path=path,
            )
        pairs += read_labeled(path, kind="sts", languages=languages)
    codes = sorted({code for pair in pairs for code in pair[3:]})
    if len(codes) > 1:
        raise DataError(
            f"found sentences in {', '.join(codes)}; make silver pairs for one language at a time",
            path=gold[0],
        )
    return pairs


def _scored_pairs(paths: Sequence[Path], languages: tuple[str, str]) -> set[frozenset[int]]:
    """Return the pairs of all splits of files, as text keys.

    All splits are read, because a sentence of the training pairs may occur in a test pair too.
    """
    found: set[frozenset[int]] = set()
    for path in paths:
        for split in _SPLITS:
            # A file of a single split has none of the others.
            pairs = read_labeled(
                path, kind="sts", split=split, languages=languages, may_be_empty=True
            )
            keys_a = text_keys([pair.a for pair in pairs]).tolist()
            keys_b = text_keys([pair.b for pair in pairs]).tolist()
            found |= set(map(frozenset, zip(keys_a, keys_b, strict=True)))
    return found


def _line(text: str) -> str:
    """Return a text without tabs and line ends, which the file's format does not allow."""
    return " ".join(text.split())
