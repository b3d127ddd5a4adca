"""The ranges of int8 vectors, measured on texts.

``encoder/vector_format.py`` divides each range into steps.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Protocol

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encode import windows
from interlingua.encoder.protocol import TextEncoder
from interlingua.encoder.vector_format import Int8Ranges, VectorFormat
from interlingua.errors import DataError


class MeasurableModel(TextEncoder, Protocol):
    """A model whose vectors ``calibrate_ranges`` measures, and whose settings hold the ranges."""

    settings: EncodingSettings


def calibrate_ranges(
    encoder: MeasurableModel,
    texts: Iterable[str],
    *,
    dims: Iterable[int] = (),
    prompt: str | None = None,
    language: str | None = None,
) -> None:
    """Measure the ranges of int8 vectors on texts and keep them in the model's settings.

    ``save`` writes them. Some thousand texts of the kind that will be embedded are enough; values
    beyond the measured range are set to its nearest end.

    Args:
        encoder: the model.
        texts: any iterable.
        dims: widths of vectors; default: the model's width, and the smaller widths to which its
            vectors were trained to be cut.
        prompt: see ``encode``.
        language: see ``encode``.

    Raises:
        DataError: there are no texts.
    """
    settings = encoder.settings
    smaller = [dim for dim in settings.matryoshka_dims if dim < encoder.dim]
    widths = tuple(dims) or (encoder.dim, *smaller)
    found: dict[int, Int8Ranges] = {}
    for window in windows(texts):
        whole = encoder.encode(window, prompt=prompt, language=language)
        # Each width has its own ranges: cut vectors are scaled to length 1 again.
        for width in widths:
            form = VectorFormat.of(
                settings, encoder.dim, dim=width, normalize=True, precision="float32"
            )
            ranges = Int8Ranges.of(form.cut(whole))
            if width in found:
                ranges = found[width].joined(ranges)
            found[width] = ranges
    if not found:
        raise DataError("no texts to measure ranges on; pass a few thousand typical texts")
    encoder.settings = dataclasses.replace(settings, int8_ranges={**settings.int8_ranges, **found})
