"""Add a training method of your own: a class with the loss, and a run with it.

    python examples/add_a_method.py

It has all that the library's own methods have: checkpoints, resuming, evaluation, monitors.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch.nn import functional

import interlingua
import toy
from interlingua.batches.tokens import ParallelBatch
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class CloseAndApartConfig:
    """Options of the method; they are the keys of ``[method]`` in train.toml."""

    apart_weight: float = 5.0


class CloseAndApart(Objective):
    """Translations lie close to each other, and other sentences do not."""

    Config = CloseAndApartConfig

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute the loss of a batch: B sentences and their translations."""
        a = functional.normalize(self.encoder(batch.a))  # (B, D)
        b = functional.normalize(self.encoder(batch.b))  # (B, D)
        cosines = a @ b.T
        others = cosines[~torch.eye(len(a), dtype=torch.bool)]
        # Each term is multiplied by its weight, close_weight and apart_weight; one that has none
        # counts 1.
        return self.weighted(close=1 - cosines.diagonal().mean(), apart=others.square().mean())


def main() -> None:
    """Train with the method, and search translations with the trained model."""
    method = {"name": "add_a_method:CloseAndApart", "apart_weight": 5.0}  # module:class
    config = toy.run("own-method", method, steps=120)
    [trained] = interlingua.train(config, resume="never")
    encoder = interlingua.load(trained.best or trained.model)

    rows = toy.sentences(100, seed=7)
    german = encoder.encode([row["de"] for row in rows])
    english = encoder.encode([row["en"] for row in rows])
    nearest = (german @ english.T).argmax(axis=1)
    found = sum(rows[place]["en"] == row["en"] for place, row in zip(nearest, rows, strict=True))
    print(f"{found} of {len(rows)} German sentences have their translation as nearest neighbor")


if __name__ == "__main__":
    main()
