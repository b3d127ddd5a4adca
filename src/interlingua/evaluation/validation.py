"""Retrieval and similarity on a few held-out pairs, cheap enough to run during training."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from interlingua.corpus.formats.evaluation_sets import PairFile, read_pair_file
from interlingua.corpus.formats.labeled_pairs import LabeledPair, read_labeled
from interlingua.encoder.pair_scorer import PairScorer
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.data.folders import choose_languages, full_code, pair_files_by_key
from interlingua.evaluation.metrics.correlation import spearman
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")


@dataclass(frozen=True, slots=True)
class Evaluator:
    """A function that the training loop calls with a model and the step, and its metrics' names."""

    measure: Callable[[Any, int], dict[str, float]]
    names: tuple[str, ...]

    def __call__(self, model: Any, step: int) -> dict[str, float]:
        """Measure the model and return its metrics."""
        return self.measure(model, step)


def validation_evaluator(
    folder: PathLike,
    *,
    max_pairs_per_language: int = 200,
    languages: Sequence[str] | None = None,
    prompt: str | None = None,
) -> Evaluator:
    """Read a prepared corpus's ``valid_text`` once and return the training loop's evaluation.

    Args:
        folder: ``<a>-<b>.tsv`` files.
        max_pairs_per_language: pairs taken from each file, evenly spread over it; the candidates
            are the same pairs, so scores are comparable between steps and between runs with the
            same limit, but not with the whole Tatoeba test.
        languages: all by default.
        prompt: put before every text.

    Returns:
        A function of encoder and step that returns three fractions: ``tatoeba_accuracy`` (mean of
        both directions, then of the languages), ``tatoeba_accuracy_forward`` and
        ``tatoeba_accuracy_backward``.

    Raises:
        DataError: there are no pair files, or they are broken.
    """
    files = pair_files_by_key(Path(folder))
    if not files:
        raise DataError(
            "no <lang>-eng.tsv files found for the validation; prepare the corpus again",
            path=folder,
        )
    source_languages = {key: file.source_language for key, file in files.items()}
    pairs = []
    for key in choose_languages(languages, source_languages, {}, Path(folder)):
        sources, targets = read_pair_file(files[key])
        pairs.append((files[key], *spread_pairs(sources, targets, max_pairs_per_language)))

    # cuts are the same at every step, so they are warned of once
    is_reported = False

    def evaluate(encoder: TextEncoder, step: int) -> dict[str, float]:
        nonlocal is_reported
        # a pair scorer reads pairs and has no vectors
        if isinstance(encoder, PairScorer):
            return {}
        # a cache only for this step, since the next one has other weights
        with CachedEncoder(encoder, prompt=prompt) as cached:
            scores = np.array([_both_ways(cached, *pair) for pair in pairs])
        if cached.report and cached.report.cut_rows and not is_reported:
            log.warning("during validation, %s", cached.report.cuts)
            is_reported = True
        forward, backward = (float(mean) for mean in scores.mean(axis=0))
        return {
            "tatoeba_accuracy": (forward + backward) / 2,
            "tatoeba_accuracy_forward": forward,
            "tatoeba_accuracy_backward": backward,
        }

    return Evaluator(
        evaluate, ("tatoeba_accuracy", "tatoeba_accuracy_forward", "tatoeba_accuracy_backward")
    )


def similarity_evaluator(
    paths: Sequence[Path], *, languages: tuple[str, str] = ("eng_Latn", "eng_Latn")
) -> Evaluator:
    """Read similarity sets once and return the training loop's evaluation.

    Args:
        paths: files of pairs with scores (``interlingua.corpus.formats.labeled_pairs``); from
            files with splits, only the rows of dev are read.
        languages: of first and second sentences, if the files do not specify them.

    Returns:
        A function of the model (an encoder or a cross-encoder) and the step. It returns
        ``valid_spearman``: the rank correlation of cosines (or of the cross-encoder's scores) with
        people's scores, mean over the files.

    Raises:
        DataError: a file is missing or broken.
    """
    sets = [read_labeled(path, kind="sts", split="dev", languages=languages) for path in paths]

    def evaluate(model: Any, step: int) -> dict[str, float]:
        correlations = []
        for pairs in sets:
            labels = np.array([pair.label for pair in pairs])
            correlations.append(spearman(_similarities(model, pairs), labels))
        return {"valid_spearman": float(np.mean(correlations))}

    return Evaluator(evaluate, ("valid_spearman",))


def _similarities(model: Any, pairs: list[LabeledPair]) -> Float[ndarray, " n"]:
    """Compute each pair's cosine, or the cross-encoder's score."""
    found = np.empty(len(pairs), dtype=np.float32)

    def languages_of(row: int) -> tuple[Any, ...]:
        return pairs[row][3:]

    # sorted, because an encoder takes texts of one language at a time, and groupby only joins equal
    # languages that are next to each other
    order = sorted(range(len(pairs)), key=languages_of)
    with CachedEncoder(model) as cached:
        for codes, group in groupby(order, key=languages_of):
            rows = list(group)
            first = [pairs[row].a for row in rows]
            second = [pairs[row].b for row in rows]
            if isinstance(model, PairScorer):
                found[rows] = model.score(first, second, languages=codes)
            else:
                u = cached.encode(first, language=codes[0])
                v = cached.encode(second, language=codes[1])
                # Not computed by ``row_cosines``, which uses float64: other rounding may change
                # ranks, and with them the choice of a run's best checkpoint.
                lengths = np.linalg.norm(u, axis=1) * np.linalg.norm(v, axis=1)
                found[rows] = (u * v).sum(axis=1) / lengths.clip(1e-12)
    return found


def spread_pairs(sources: list[str], targets: list[str], most: int) -> tuple[list[str], list[str]]:
    """Return at most ``most`` pairs, spread evenly over a file and the same on each call."""
    rows = np.linspace(0, len(sources) - 1, min(most, len(sources))).round().astype(int)
    return [sources[row] for row in rows], [targets[row] for row in rows]


def _both_ways(
    encoder: CachedEncoder, file: PairFile, sources: list[str], targets: list[str]
) -> tuple[float, float]:
    x = encoder.encode(sources, language=full_code(file.source_language))
    y = encoder.encode(targets, language=full_code(file.target_language))
    nearest_target, nearest_source = nearest_both_ways(x, y)
    return float(is_right(nearest_target).mean()), float(is_right(nearest_source).mean())
