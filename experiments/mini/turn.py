"""Gives the model that mini started as mini's axes and vocabulary, so that both can be averaged.

    python experiments/mini/turn.py models/mini-debiased models/mini-stock english.txt \
        -o models/mini-turned
    interlingua average models/mini-stock models/mini-turned --weights 0.6,0.4 \
        -o models/mini-shared

``mini-debiased`` and ``english.txt`` are those of mini.toml; earlier.py writes ``mini-stock``, mini
before the stage retrieval.toml. The layer behind pooling is turned by the rotation that brings the
texts' vectors nearest to mini's; it changes no cosine.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch

from interlingua.encoder.encoder import Encoder


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("debiased", type=Path)
    parser.add_argument("mini", type=Path)
    parser.add_argument("texts", type=Path, help="English sentences, one on a line")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    texts = given.texts.read_text(encoding="utf-8").splitlines()
    debiased, mini = (Encoder.load(folder).eval() for folder in (given.debiased, given.mini))

    rotation = nearest_rotation(debiased.encode(texts), mini.encode(texts))
    turned = Encoder.load(given.mini)
    with torch.no_grad():
        layers = dict(debiased.backbone.named_parameters())
        for name, values in turned.backbone.named_parameters():
            # The vectors of tokens are the same ones, of fewer pieces.
            if values.shape == layers[name].shape:
                values.copy_(layers[name])
        linear = debiased.post_pooling.dense_layers[-1].linear
        own = turned.post_pooling.dense_layers[-1].linear
        for values, before in zip(own.parameters(), linear.parameters(), strict=True):
            values.copy_(rotation @ before)
    turned.save(given.output)


def nearest_rotation(vectors: np.ndarray, targets: np.ndarray) -> torch.Tensor:
    """Compute the rotation R that minimizes |R v - targets| (orthogonal Procrustes)."""
    left, _, right = np.linalg.svd(targets.T @ vectors)
    return torch.from_numpy(left @ right).float()


if __name__ == "__main__":
    main()
