"""Two processes on machines that are fastest in different precisions: each writes what it computes
in."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch

from interlingua.train import engine as engine_module
from interlingua.train.config import RunConfig
from interlingua.train.engine import Engine


def main() -> None:
    folder, *fastest = sys.argv[1:]
    own = fastest[int(os.environ.get("LOCAL_RANK", "0"))]
    engine_module.fastest_on_cpu = lambda: own
    config = RunConfig(output=Path("unused"), max_steps=1, device="cpu", threads=1, devices=2)
    with Engine(config) as engine:
        with engine.autocast():
            product = torch.ones(2, 2) @ torch.ones(2, 2)
        found = f"{own} {engine.precision} {product.dtype}"
        Path(folder, str(engine.rank)).write_text(found, encoding="utf-8")


if __name__ == "__main__":
    main()
