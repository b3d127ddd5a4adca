"""Retrieval on a few held-out pairs, cheap enough to run every few thousand steps of training."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from interlingua.corpus.evaluation_sets import PairFile, pair_files, read_pair_file
from interlingua.encoder.encoder import EmbedsText
from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.evaluation.tasks.folders import choose_languages, full_code
from interlingua.files import PathLike


def validation_evaluator(
    folder: PathLike,
    *,
    max_pairs_per_language: int = 200,
    languages: Sequence[str] | None = None,
    prompt: str | None = None,
) -> Callable[[EmbedsText, int], dict[str, float]]:
    """Reads a prepared corpus's ``valid_text`` once and returns what the training loop calls.

    Args:
        folder: ``<a>-<b>.tsv`` files.
        max_pairs_per_language: pairs taken from each file, evenly spread over it; the candidates are these too, so
            the score is comparable between steps and runs of one limit, not with the whole Tatoeba test.
        languages: all by default.
        prompt: put before every text.

    Returns:
        A function of encoder and step that gives ``tatoeba_accuracy`` (mean of both directions, then of the
        languages), ``tatoeba_accuracy_forward`` and ``tatoeba_accuracy_backward``: fractions.

    Raises:
        DataError: there are no pair files, or they are broken.
    """
    files = {file.name.removesuffix("-eng"): file for file in pair_files(Path(folder))}
    if not files:
        raise DataError("no <lang>-eng.tsv files here to validate on; prepare the corpus again", path=folder)
    chosen = choose_languages(languages, {key: file.source_language for key, file in files.items()}, {}, Path(folder))
    pairs = [(files[key], *_spread(*read_pair_file(files[key]), max_pairs_per_language)) for key in chosen]

    def evaluate(encoder: EmbedsText, step: int) -> dict[str, float]:
        with CachedEncoder(encoder, prompt=prompt) as cached:
            scores = np.array([_both_ways(cached, *pair) for pair in pairs])
        forward, backward = (float(mean) for mean in scores.mean(axis=0))
        return {
            "tatoeba_accuracy": (forward + backward) / 2,
            "tatoeba_accuracy_forward": forward,
            "tatoeba_accuracy_backward": backward,
        }

    return evaluate


def _spread(sources: list[str], targets: list[str], most: int) -> tuple[list[str], list[str]]:
    rows = np.linspace(0, len(sources) - 1, min(most, len(sources))).round().astype(int)
    return [sources[row] for row in rows], [targets[row] for row in rows]


def _both_ways(encoder: CachedEncoder, file: PairFile, sources: list[str], targets: list[str]) -> tuple[float, float]:
    x = encoder.encode(sources, language=full_code(file.source_language))
    y = encoder.encode(targets, language=full_code(file.target_language))
    nearest_target, nearest_source = nearest_both_ways(x, y)
    return float(is_right(nearest_target).mean()), float(is_right(nearest_source).mean())
