"""Checks of pooling, prompt and scale on a small probe: is the encoder used as it was trained?

The probe is a file of sentences with their translations and paraphrases. An encoder that is used
with the wrong pooling, or without its prompt, finds fewer of them. A warning is issued only if
another *reading* (pooling or prompt) is better by a margin that chance does not explain (a sign
test on the searches in which the two differ).
"""

from __future__ import annotations

import functools
import importlib.resources
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float32
from numpy import ndarray

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.finite_vectors import zeros_unreported
from interlingua.encoder.model_info import ModelInfo, prompt_text
from interlingua.encoder.pooling import POOLING_MODES, HiddenStates
from interlingua.encoder.protocol import TextEncoder
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways
from interlingua.storage.arrays import normalize_rows

COMMON_PROMPT = "query: "
"""Tried on a model that names no prompts of its own; many were trained with it."""
MOST_COSINE = 0.9
"""Mean cosine of unrelated sentences above which a threshold on cosines is unreliable."""
_LEAST_GAIN = 0.05
"""Minimum gain, as a fraction of all searches, at which another reading counts as better."""
LEAST_DEVIATIONS = 3.0
"""Minimum gain in standard deviations, over the searches in which the two readings differ."""
UNEQUAL_LENGTHS = 0.01
"""Spread of the vectors' lengths, as a fraction of their mean, above which inner products are not
cosines."""
SAME = 1e-6
"""Vectors are the same if their largest difference in any place is at most this fraction of the
largest number."""
MOST_CUT = 0.05
"""Share of cut texts above which scores measure only the starts of texts."""
ProbeVectors = list[Float32[ndarray, "n d"]]
"""The vectors of each column of the probe."""


class Sanity(NamedTuple):
    """The outcome of the probe.

    Attributes:
        warnings: a line for everything that looks wrong.
        measured: the numbers that the warnings are based on.
    """

    warnings: tuple[str, ...]
    measured: Mapping[str, Any]


def check_sanity(
    encoder: TextEncoder,
    model: ModelInfo,
    *,
    prompt: str | None = None,
    dot_tasks: Sequence[str] = (),
) -> Sanity:
    """Try an encoder on sentences with known translations and paraphrases.

    Args:
        encoder: the one to be measured.
        model: facts about it.
        prompt: the prompt that is used in the measurement.
        dot_tasks: names of tasks that compare vectors by inner product.
    """
    start = time.perf_counter()
    # No warning is shown for these texts, because the user cannot change them. For the texts of the
    # tasks, warnings are still shown.
    with zeros_unreported():
        readings = _readings(encoder, model, prompt)
    retrieved = {label: _retrieved(columns) for label, columns in readings.items()}
    # scale and sameness are checked on the reading that will be measured
    vectors = readings["as requested"]
    lengths = np.linalg.norm(np.concatenate(vectors), axis=1)
    spread = float(lengths.std() / max(lengths.mean(), 1e-12))
    cosine = _unrelated_cosine(vectors)
    measured = {
        "sentences": sum(len(texts) for _, texts in probe()),
        "retrieved": {label: float(right.mean()) for label, right in retrieved.items()},
        "unrelated_cosine": cosine,
        "length_spread": spread,
        "seconds": time.perf_counter() - start,
    }
    warnings = [
        *_on_pooling(encoder, model),
        *_on_readings(retrieved),
        *(_on_sameness(vectors) or _on_scale(cosine, spread, dot_tasks)),
    ]
    return Sanity(tuple(warnings), measured)


@functools.cache
def probe() -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return columns of language and sentences.

    Row i of all columns has the same meaning; the second column paraphrases the first.

    Neighboring rows have similar sentences, so the topic does not suffice to distinguish them. The
    sentences were written for this project.
    """
    file = importlib.resources.files("interlingua") / "data" / "probe.tsv"
    text = file.read_text(encoding="utf-8")
    # the first line of the file names the languages, so each column starts with its language
    columns = zip(*(line.split("\t") for line in text.splitlines()), strict=True)
    return tuple((language, tuple(sentences)) for language, *sentences in columns)


def cut_note(texts: int, cut: int | None, max_tokens: int | None) -> list[str]:
    """Return a note for the result if many of its texts were cut."""
    if not cut or cut <= MOST_CUT * texts:
        return []
    return [
        f"{100 * cut / texts:.0f} % of the texts were cut to {max_tokens} tokens; the"
        " scores are for the truncated texts"
    ]


def _embedded(encoder: TextEncoder, prompt: str | None) -> ProbeVectors:
    own = getattr(encoder, "encoder", encoder)
    options: dict[str, Any] = {"prompt": prompt}
    # an encoder that receives a report does not warn of cut texts itself
    if isinstance(own, Encoder):
        options["report"] = EncodeReport()
    columns = []
    for code, sentences in probe():
        vectors = encoder.encode(list(sentences), language=code, **options)
        columns.append(np.asarray(vectors, np.float32))
    return columns


def _readings(encoder: Any, model: ModelInfo, prompt: str | None) -> dict[str, ProbeVectors]:
    """Embed the probe in several ways: as requested, with other poolings, with a prompt.

    Other poolings are tried if token states are available, and a prompt if none is set.

    One pass over the probe computes all poolings. A prompt needs another pass; the prompt is the
    first of the model's own prompts, or a common one. The model's name is not used: a model that
    was trained further may need another prompt, or none.
    """
    pooled = _pooled(encoder, prompt)
    by_mode: dict[str, ProbeVectors] = {}
    if pooled:
        for language, texts in probe():
            for mode, vectors in pooled(texts, language).items():
                by_mode.setdefault(mode, []).append(vectors)
    requested = by_mode.pop(str(model.pooling), None) or _embedded(encoder, prompt)
    # the requested reading comes first: of equally good readings, max() returns the first
    found = {"as requested": requested}
    for mode, columns in by_mode.items():
        found[f"pooling={mode}"] = columns
    if not prompt_text(encoder, prompt):
        own = getattr(getattr(encoder, "settings", None), "prompts", {}).values()
        text = next((text for text in own if text), COMMON_PROMPT)
        found[f"prompt={text!r}"] = _embedded(encoder, text)
    return found


def _pooled(encoder: Any, prompt: str | None) -> Any:
    """Return a function that embeds texts of a language with every pooling.

    None if the encoder exposes no token states.
    """
    own = getattr(encoder, "encoder", encoder)
    if isinstance(own, Encoder):
        return lambda texts, language: own_poolings(own, texts, language=language, prompt=prompt)
    # ONNX graphs that give token states
    poolings = getattr(encoder, "poolings", None)
    if not poolings:
        return None
    return lambda texts, _: poolings(texts, prompt=prompt)


@torch.inference_mode()
def own_poolings(
    encoder: Encoder, texts: Sequence[str], *, language: str, prompt: str | None
) -> dict[str, Float32[ndarray, "n d"]]:
    """Return the vectors of every pooling, from one pass of one of our encoders.

    They have length 1 if the model normalizes them.
    """
    before = encoder.settings.prompt_text(prompt)
    ids = encoder.vocabulary.encode(
        [before + text for text in texts], language=language, max_tokens=encoder.max_tokens
    )
    batch = TokenBatch.from_lists(ids, (language,) * len(ids)).to(encoder.device)
    # as encode does: no dropout
    backbone = encoder.frozen_backbone(torch.float32)
    states = backbone(batch.input_ids, batch.cu_seqlens)
    is_special = torch.isin(batch.input_ids, encoder.special_ids)
    hidden = HiddenStates(states, batch.cu_seqlens, is_special)
    pooled: dict[str, Float32[ndarray, "n d"]] = {}
    for mode in POOLING_MODES:
        vectors = hidden.pool(mode, include_special=encoder.settings.include_special)
        pooled[mode] = vectors.cpu().numpy()
        if encoder.settings.normalize:
            pooled[mode] = normalize_rows(pooled[mode])
    return pooled


def _retrieved(columns: ProbeVectors) -> Bool[ndarray, " m"]:
    """Return for each search whether the nearest sentence is a translation.

    Searches run from the first column to each other column and back.
    """
    found = [nearest_both_ways(columns[0], column) for column in columns[1:]]
    return np.concatenate([is_right(nearest) for both in found for nearest in both])


def _unrelated_cosine(columns: ProbeVectors) -> float:
    """Compute the mean cosine of sentences of different rows, within and across the columns."""
    unit = np.stack([normalize_rows(column) for column in columns])
    rows = unit.shape[1]
    # (rows, rows): the mean cosine of two rows over all pairs of columns
    cosines = np.einsum("ard,bsd->rs", unit, unit) / len(columns) ** 2
    # sentences of one row say the same, so the diagonal is left out
    return float((cosines.sum() - np.trace(cosines)) / (rows * rows - rows))


def _on_pooling(encoder: Any, model: ModelInfo) -> list[str]:
    own = getattr(encoder, "own_pooling", None)
    if model.pooling_from != "requested" or own in (None, model.pooling):
        return []
    return [
        f"pooling {model.pooling} differs from the model's own {own}; remove --pooling to"
        " use that of the model"
    ]


def _on_readings(retrieved: Mapping[str, Bool[ndarray, " m"]]) -> list[str]:
    """Return a warning that names the best other reading, if it is clearly better."""
    requested = retrieved["as requested"]
    label, best = max(retrieved.items(), key=lambda one: one[1].mean())
    won = int((best & ~requested).sum())
    lost = int((requested & ~best).sum())
    # sign test: if neither reading were better, won - lost would have the standard deviation
    # sqrt(won + lost)
    is_significant = won - lost >= LEAST_DEVIATIONS * np.sqrt(won + lost)
    if best.mean() - requested.mean() < _LEAST_GAIN or not is_significant:
        return []
    scores = (
        f"the right sentence in {100 * best.mean():.0f} % of {len(best)} searches instead"
        f" of {100 * requested.mean():.0f} %"
    )
    return [
        f"on a probe of translations, {label} retrieves {scores}; check that the model is"
        " used as it was trained"
    ]


def _on_sameness(columns: ProbeVectors) -> list[str]:
    """Return a warning if all sentences have the same vector."""
    vectors = np.concatenate(columns)
    largest = float(np.abs(vectors).max())
    if float(np.ptp(vectors, axis=0).max()) > SAME * largest:
        return []
    what = "the same" if largest else "zero"
    return [
        f"the vectors of all sentences are {what}, so the scores are meaningless; check"
        " the model's weights and the texts"
    ]


def _on_scale(cosine: float, spread: float, dot_tasks: Sequence[str]) -> list[str]:
    found = []
    if cosine > MOST_COSINE:
        found.append(
            f"unrelated sentences have a mean cosine of {cosine:.2f}; rankings can still be right,"
            " but a threshold on cosines is unreliable: use a margin"
        )
    if dot_tasks and spread > UNEQUAL_LENGTHS:
        found.append(
            f"{', '.join(dot_tasks)} uses the inner product, but the lengths of the vectors vary"
            f" by {100 * spread:.0f} %; if the model was not trained with the inner product, set"
            " similarity=cosine"
        )
    return found
