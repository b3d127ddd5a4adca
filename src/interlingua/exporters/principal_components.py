"""Rotation of vectors to their principal components, so that the first elements vary most.

Most models spread information over all elements, so that cutting vectors reduces accuracy. A
rotation onto the principal components of the vectors of some texts changes no cosine between whole
vectors. It sorts the elements by their mean square: for every n, no other rotation has a larger
share of the sum of squares in the first n elements.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

import numpy as np
import torch
from jaxtyping import Float

from interlingua.encoder.encode import windows
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import Dense, PostPooling
from interlingua.errors import ConfigError, DataError
from interlingua.functional.anchoring import principal_components


def in_components(encoder: Encoder, texts: Iterable[str]) -> Encoder:
    """Rotate an encoder's vectors onto their principal components, the strongest first.

    The components are those of the second moments, without centering, because centering would
    change the cosines. The result has no ranges of int8 vectors, because the old ranges were those
    of other elements.

    Args:
        encoder: the encoder; the result shares its weights.
        texts: texts of the kind to be embedded, at least as many as the vectors have elements;
            several thousand are recommended.

    Raises:
        ConfigError: the encoder's vectors are cut already, or shifted by language.
        DataError: the texts are fewer than the elements.
    """
    width = encoder.full_dim
    if encoder.settings.truncate_dim is not None:
        raise ConfigError(
            f"components: the vectors are already truncated to {encoder.dim} elements; use the"
            " model before truncation"
        )
    if encoder.language_shift is not None:
        raise ConfigError(
            "components: the vectors are shifted by language; use the model before the shift"
        )
    # Sum x x^T over all texts in float64, because sums of thousands of products in float32 would
    # lose digits. The texts are processed in windows and are never all in memory.
    moments = np.zeros((width, width))
    count = 0
    for window in windows(texts):
        vectors = encoder.encode(window, normalize_embeddings=True).astype(np.float64)
        moments += vectors.T @ vectors
        count += len(vectors)
    # Fewer texts span fewer directions; the components beyond them would be arbitrary.
    if count < width:
        raise DataError(
            f"components: {count:,} texts are too few for vectors of {width} elements; pass at"
            " least as many texts as elements"
        )
    basis, _ = principal_components(torch.from_numpy(moments / count), width)
    settings = dataclasses.replace(encoder.settings, int8_ranges={})
    layers = rotated(encoder.post_pooling, basis.T.numpy())
    return Encoder(encoder.backbone, encoder.vocabulary, settings, layers).train(encoder.training)


def rotated(layers: PostPooling, rotation: Float[np.ndarray, "d d"]) -> PostPooling:
    """Append a rotation to the layers, or merge it into the last one if that is affine.

    Q (W x + b) = (Q W) x + Q b, so the rotation costs nothing in the last layer.
    """
    last = layers[-1] if len(layers) else None
    if not isinstance(last, Dense) or last.activation != "identity":
        return PostPooling([*layers, Dense.of(rotation, np.zeros(len(rotation)))])
    weight = last.linear.weight.detach().double().numpy()
    bias = np.zeros(len(weight))
    if last.linear.bias is not None:
        bias = last.linear.bias.detach().double().numpy()
    return PostPooling([*[*layers][:-1], Dense.of(rotation @ weight, rotation @ bias)])
