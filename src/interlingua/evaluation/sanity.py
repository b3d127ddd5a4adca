"""Is the encoder read as it wants to be read? Pooling, prompt and scale, tried on two hundred
sentences of our own.
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

from interlingua.arrays import normalize_rows
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import ModelInfo, prompt_text
from interlingua.encoder.pooling import POOLING_MODES, HiddenStates
from interlingua.encoder.protocol import TextEncoder
from interlingua.evaluation.metrics.retrieval import is_right, nearest_both_ways

COMMON_PROMPT = "query: "
"""Tried on a model that names no prompts of its own; many were trained with it."""
MOST_COSINE = 0.9
"""Unrelated sentences above this leave thresholds no room."""
LEAST_GAIN = 0.05
"""What another reading must retrieve more of the probe, as a fraction, to be called better ..."""
LEAST_DEVIATIONS = 3.0
"""... and how many standard deviations of the items on which the two differ."""
UNEQUAL_LENGTHS = 0.01
"""Spread of the vectors' lengths, as a fraction of their mean, from which on an inner product is no
cosine."""
SAME = 1e-6
"""Largest difference of vectors in any place, as a fraction of the largest number, up to which they
are the same."""
MOST_CUT = 0.05
"""Share of cut texts from which on the scores are those of beginnings."""
Columns = list[Float32[ndarray, "n d"]]
"""The vectors of each column of the probe."""


class Sanity(NamedTuple):
    """What the probe found.

    Attributes:
        warnings: a line for everything that looks wrong.
        measured: the numbers behind them.
    """

    warnings: tuple[str, ...]
    measured: Mapping[str, Any]


def check_encoder(
    encoder: TextEncoder,
    model: ModelInfo,
    *,
    prompt: str | None = None,
    dot_tasks: Sequence[str] = (),
) -> Sanity:
    """Tries an encoder on sentences with known translations and paraphrases.

    Args:
        encoder: as it is going to be measured.
        model: what is known of it.
        prompt: as it is going to be measured with.
        dot_tasks: names of tasks that compare vectors by inner product.
    """
    start = time.perf_counter()
    readings = _readings(encoder, model, prompt)
    retrieved = {label: _retrieved(columns) for label, columns in readings.items()}
    vectors = readings["as asked"]
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
    """Columns of language and sentences.

    Row i of each says the same, the second column in other words than the first.

    Neighboring rows have similar sentences, so that the topic alone does not tell them apart. The
    sentences are ours.
    """
    text = (importlib.resources.files("interlingua") / "data" / "probe.tsv").read_text(
        encoding="utf-8"
    )
    columns = zip(*(line.split("\t") for line in text.splitlines()), strict=True)
    return tuple((language, tuple(sentences)) for language, *sentences in columns)


def cut_note(texts: int, cut: int | None, max_tokens: int | None) -> list[str]:
    """What a result says where many of its texts were not read to their end."""
    if not cut or cut <= MOST_CUT * texts:
        return []
    return [
        f"{100 * cut / texts:.0f} % of the texts were cut to {max_tokens} tokens; the scores are"
        " of their beginnings"
    ]


def _embedded(encoder: TextEncoder, prompt: str | None) -> Columns:
    own = getattr(encoder, "encoder", encoder)
    extra: dict[str, Any] = (
        {"report": EncodeReport()} if isinstance(own, Encoder) else {}
    )  # keeps it from telling of cuts
    return [
        np.asarray(encoder.encode(list(t), prompt=prompt, language=code, **extra), np.float32)
        for code, t in probe()
    ]


def _readings(encoder: Any, model: ModelInfo, prompt: str | None) -> dict[str, Columns]:
    """The probe as requested, with other poolings if token states can be had, and with a prompt if
    none is set.

    One pass over the probe gives all poolings; a prompt, the first of the model's own or a common
    one, takes another. What the model is called decides nothing: a model that was trained further
    may need another prompt, or none.
    """
    pooled = _pooled(encoder, prompt)
    by_mode: dict[str, Columns] = {}
    for language, texts in probe() if pooled else ():
        for mode, vectors in pooled(texts, language).items():
            by_mode.setdefault(mode, []).append(vectors)
    requested = by_mode.pop(str(model.pooling), None) or _embedded(encoder, prompt)
    found = {
        "as asked": requested,
        **{f"pooling={mode}": columns for mode, columns in by_mode.items()},
    }
    if not prompt_text(encoder, prompt):
        own = getattr(getattr(encoder, "settings", None), "prompts", {}).values()
        text = next((text for text in own if text), COMMON_PROMPT)
        found[f"prompt={text!r}"] = _embedded(encoder, text)
    return found


def _pooled(encoder: Any, prompt: str | None) -> Any:
    """What gives the vectors of every pooling for texts of a language.

    None where there is no such thing.
    """
    own = getattr(encoder, "encoder", encoder)
    if isinstance(own, Encoder):
        return lambda texts, language: own_poolings(own, texts, language=language, prompt=prompt)
    tries = getattr(encoder, "poolings", None)  # ONNX graphs that give token states
    return tries and (lambda texts, _: tries(texts, prompt=prompt))


@torch.inference_mode()
def own_poolings(
    encoder: Encoder, texts: Sequence[str], *, language: str, prompt: str | None
) -> dict[str, Float32[ndarray, "n d"]]:
    """The vectors of every pooling, by one pass of one of our encoders.

    Of length 1 where the model makes them so.
    """
    before = encoder.settings.prompt_text(prompt)
    ids = encoder.vocabulary.encode(
        [before + text for text in texts], language=language, max_tokens=encoder.max_tokens
    )
    batch = TokenBatch.from_lists(ids, (language,) * len(ids)).to(encoder.device)
    states = encoder.frozen_backbone(torch.float32)(
        batch.input_ids, batch.cu_seqlens
    )  # as encode does: no dropout
    hidden = HiddenStates(
        states, batch.cu_seqlens, torch.isin(batch.input_ids, encoder.special_ids)
    )
    special = encoder.settings.include_special
    pooled = {
        mode: hidden.pool(mode, include_special=special).cpu().numpy() for mode in POOLING_MODES
    }
    return {
        mode: normalize_rows(v) if encoder.settings.normalize else v for mode, v in pooled.items()
    }


def _retrieved(columns: Columns) -> Bool[ndarray, " m"]:
    """Whether the nearest sentence is the same in other words, from the first column to each other
    and back.
    """
    found = [nearest_both_ways(columns[0], column) for column in columns[1:]]
    return np.concatenate([is_right(nearest) for both in found for nearest in both])


def _unrelated_cosine(columns: Columns) -> float:
    """The mean cosine of sentences of different rows, within and across the columns."""
    unit = np.stack([normalize_rows(column) for column in columns])
    rows = unit.shape[1]
    cosines = np.einsum("ard,bsd->rs", unit, unit) / len(columns) ** 2
    return float((cosines.sum() - np.trace(cosines)) / (rows * rows - rows))


def _on_pooling(encoder: Any, model: ModelInfo) -> list[str]:
    own = getattr(encoder, "own_pooling", None)
    if model.pooling_from != "asked" or own in (None, model.pooling):
        return []
    return [
        f"pooling {model.pooling} is not the model's own {own}; drop --pooling to read it as it"
        " was made"
    ]


def _on_readings(retrieved: Mapping[str, Bool[ndarray, " m"]]) -> list[str]:
    """The best other reading, where it is clearly better."""
    requested = retrieved["as asked"]
    label, best = max(retrieved.items(), key=lambda one: one[1].mean())
    won = int((best & ~requested).sum())
    lost = int((requested & ~best).sum())
    if best.mean() - requested.mean() < LEAST_GAIN or won - lost < LEAST_DEVIATIONS * np.sqrt(
        won + lost
    ):
        return []
    scores = (
        f"{100 * best.mean():.0f} % of {len(best)} searches instead of"
        f" {100 * requested.mean():.0f} %"
    )
    return [
        f"with {label} it finds its sentence in {scores} on a probe of translations; is it read as"
        " it was trained?"
    ]


def _on_sameness(columns: Columns) -> list[str]:
    """Vectors that tell no sentence from another."""
    vectors = np.concatenate(columns)
    largest = float(np.abs(vectors).max())
    if float(np.ptp(vectors, axis=0).max()) > SAME * largest:
        return []
    what = "the same" if largest else "zero"
    return [
        f"the vectors of all sentences are {what}, so no score means anything; are its weights and"
        " the text read?"
    ]


def _on_scale(cosine: float, spread: float, dot_tasks: Sequence[str]) -> list[str]:
    found = []
    if cosine > MOST_COSINE:
        found.append(
            f"unrelated sentences have a mean cosine of {cosine:.2f}; rankings can be right, but a"
            " threshold on cosines means little: use a margin"
        )
    if dot_tasks and spread > UNEQUAL_LENGTHS:
        found.append(
            f"{', '.join(dot_tasks)} compares by inner product, but the vectors' lengths vary by"
            f" {100 * spread:.0f} %; is that what it was trained with? say similarity=cosine if not"
        )
    return found
