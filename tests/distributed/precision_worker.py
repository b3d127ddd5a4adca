"""Two processes on machines that are fastest in different ways: each writes what it computes in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch
from torch import nn

from interlingua.kernels import calls
from interlingua.train import engine as engine_module
from interlingua.train.config import RunConfig
from interlingua.train.engine import Engine
from interlingua.train.precision import Way


class Product(nn.Module):
    """Remembers the type in which it multiplies."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(2, 2)
        self.dtype = None

    def forward(self, x):
        product = self.linear(x)
        self.dtype = product.dtype
        return product.square(), x.double()


def main() -> None:
    folder, strategy, *fastest = sys.argv[1:]
    own = fastest[int(os.environ.get("LOCAL_RANK", "0"))]
    # The machine that is faster in fp32 is so by torch.
    executor = {"bf16": "kernel", "fp32": "torch"}[own]
    engine_module.fastest_on_cpu = lambda *_: Way(own, executor)
    config = RunConfig(
        output=Path("unused"), max_steps=1, device="cpu", threads=1, devices=2, strategy=strategy
    )
    with Engine(config) as engine:
        product = Product()
        losses, doubles = engine._fabric.setup_module(product)(torch.ones(2, 2))
        found = [
            own,
            engine.precision,
            calls.chosen.executor,
            product.dtype,
            losses.dtype,
            doubles.dtype,
        ]
        Path(folder, str(engine.rank)).write_text(" ".join(map(str, found)), encoding="utf-8")


if __name__ == "__main__":
    main()
