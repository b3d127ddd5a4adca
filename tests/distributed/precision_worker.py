"""Two processes on machines that are fastest in different ways: each writes what it computes in,
and how torch is configured."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from interlingua.encoder.executors.training_passes import Way
from interlingua.kernels import calls
from interlingua.training.config import RunConfig
from interlingua.training.machine import engine as engine_module
from interlingua.training.machine.engine import Engine


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


def settings(model: nn.Module) -> dict[str, object]:
    """Return the settings of the group of all processes, and of DDP if it averages gradients."""
    group = dist.group.WORLD._get_backend(torch.device("cpu"))
    found = {"timeout_seconds": group.options._timeout.total_seconds()}
    for part in model.modules():
        if isinstance(part, DistributedDataParallel):
            found["broadcast_buffers"] = part.broadcast_buffers
            found["gradient_as_bucket_view"] = part.gradient_as_bucket_view
    return found


def main() -> None:
    folder, strategy, *fastest = sys.argv[1:]
    own = fastest[int(os.environ.get("LOCAL_RANK", "0"))]
    # The machine that is faster in fp32 is so by torch.
    executor = {"bf16": "kernel", "fp32": "torch"}[own]
    engine_module.fastest_way = lambda *_: Way(own, executor)
    config = RunConfig(
        output=Path("unused"), max_steps=1, device="cpu", threads=1, devices=2, strategy=strategy
    )
    with Engine(config) as engine:
        product = Product()
        model = engine._fabric.setup_module(product)
        losses, doubles = model(torch.ones(2, 2))
        computed = [
            own,
            engine.precision,
            calls.chosen.executor,
            product.dtype,
            losses.dtype,
            doubles.dtype,
        ]
        found = {"computed": " ".join(map(str, computed)), "settings": settings(model)}
        Path(folder, f"{engine.rank}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
