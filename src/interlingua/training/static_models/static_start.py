"""Initial token vectors for training: a transformer's vectors of single tokens.

Model2Vec distils them in four steps: embed each token by itself, subtract the mean, keep the
directions of largest variance, and weight tokens by how rare they are (smooth inverse frequency,
Arora et al. 2017). The mean of such vectors is already a fair sentence vector; training starts from
there.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float32, Float64, Int64
from numpy import ndarray

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.protocol import TextEncoder
from interlingua.encoder.static import STATIC_MAX_TOKENS, StaticBackbone, static_model_config
from interlingua.errors import ConfigError
from interlingua.vocabulary.vocabulary import Vocabulary

FREQUENT = 1e-3
"""The a of the weight a / (a + p): a token with this share of all tokens has half the weight of a
rare token (Arora et al. 2017)."""


def static_start(
    teacher: TextEncoder,
    vocabulary: Vocabulary,
    counts: Int64[ndarray, " v"],
    *,
    dim: int | None = None,
) -> Encoder:
    """Distill an encoder of token vectors like Model2Vec, ready to be trained or used.

    Each token's spelling is embedded as a text of its own. The mean of these vectors, their common
    part, is subtracted. The directions of largest variance are kept. The more often a token is
    seen, the less weight it gets. The vocabulary need not be the teacher's.

    Args:
        teacher: the transformer.
        vocabulary: tokens that get a vector.
        counts: number of occurrences of each.
        dim: width of the vectors; default: the teacher's.

    Raises:
        ConfigError: the teacher's vectors are not that wide.
    """
    width = dim or teacher.dim
    if not 1 <= width <= teacher.dim:
        raise ConfigError(
            f"dim: expected a number from 1 to {teacher.dim}, the width of the teacher's"
            f" vectors, found {width}"
        )
    spelled = [spelling(vocabulary.decode([token])) for token in range(vocabulary.size)]
    vectors = np.asarray(teacher.encode(spelled), dtype=np.float64)
    # Each is counted once more than it is seen, so that no token has a share of 0.
    shares = (counts + 1) / (counts + 1).sum()
    table = principal(vectors - shares @ vectors, shares, width)
    table *= (FREQUENT / (FREQUENT + shares))[:, None]
    table[list(vocabulary.special_ids)] = 0
    # Scale to a root mean square length of 1, which changes no cosine.
    table /= max(float(np.sqrt((table**2).sum(axis=1).mean())), 1e-12)
    backbone = StaticBackbone(
        static_model_config(len(table), width, pad_token_id=vocabulary.pad_id)
    )
    with torch.no_grad():
        backbone.word_embeddings.weight.copy_(torch.from_numpy(table))
    settings = EncodingSettings(include_special=False, max_tokens=STATIC_MAX_TOKENS)
    return Encoder(backbone, vocabulary, settings).eval()


def spelling(token: str) -> str:
    """Return a token's text without SentencePiece's and WordPiece's marks of word starts."""
    return token.replace("▁", " ").removeprefix("##").strip()


def principal(
    centered: Float64[ndarray, "v d"], shares: Float64[ndarray, " v"], width: int
) -> Float64[ndarray, "v w"]:
    """Compute the coordinates along the directions of largest variance, largest first.

    Args:
        centered: vectors around 0.
        shares: weight of each; they sum to 1.
        width: number of directions.
    """
    # eigh gives the eigenvalues in rising order, so the last columns are the first directions.
    _, directions = np.linalg.eigh(centered.T @ (centered * shares[:, None]))
    kept: Float32[ndarray, "d w"] = directions[:, ::-1][:, :width]
    return np.asarray(centered @ kept)
