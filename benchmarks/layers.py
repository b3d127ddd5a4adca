"""Layers of encoders with shapes of their own, by every executor, in one run.

    python benchmarks/layers.py

Each is a backbone of random weights with the widths of a published model, as speed does not depend
on the weights. The executors run in turns on one thread, by processor time, as where
``interlingua`` chooses one. Tokens per second through one layer; last, how many times as fast the
compiled kernel is as the fastest executor without one.
"""

from __future__ import annotations

import os
import tempfile

import torch

from interlingua.encoder.executors.layers import AUTOMATIC, choose_layer_executor
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES

LAYERS = 3
"""Layers of each kind: a third of an int8 encoder's layers is in a finer type."""
NO_BIASES = {
    "norm_bias": False,
    "attention_bias": False,
    "intermediate_bias": False,
    "output_bias": False,
}
SHAPES = {
    "modernbert": {**NO_BIASES, "local_layers": (1, 2)},
    "nomic_bert": {"hidden_act": "silu"},
    "gte": {},
    "jina_bert": {},
}
"""By family, what its models chose where it leaves a choice."""
MODELS = {
    "mmBERT-small": ("modernbert", 384, 6, 1152),
    "mmBERT-base": ("modernbert", 768, 12, 1152),
    "gte-multilingual-base": ("gte", 768, 12, 3072),
    "nomic-embed-text-v1.5": ("nomic_bert", 768, 12, 3072),
    "jina-embeddings-v2-small": ("jina_bert", 512, 8, 2048),
}
"""The family, the width, heads, and the width of the feed-forward block."""


def rates(name: str, dtype: torch.dtype) -> dict[str, float]:
    """Measure tokens per second through one layer, by executor."""
    family, width, heads, inner = MODELS[name]
    config = BackboneConfig(
        vocab_size=1000,
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=inner,
        num_hidden_layers=LAYERS,
        **{**FAMILIES[family].fixed, **SHAPES[family]},
    )
    torch.manual_seed(0)
    return dict(choose_layer_executor(Backbone(config).eval(), dtype, always_measure=True).rates)


def main() -> None:
    ratios = []
    with tempfile.TemporaryDirectory() as cache:
        # Nothing remembered counts, and nothing is to be remembered.
        os.environ["XDG_CACHE_HOME"] = cache
        for name in MODELS:
            for dtype in AUTOMATIC:
                found = rates(name, dtype)
                shown = ", ".join(f"{executor} {rate:,.0f}" for executor, rate in found.items())
                print(f"{name}, {str(dtype).removeprefix('torch.')}: {shown}")
                ours = [rate for executor, rate in found.items() if "kernel" in executor]
                others = [rate for executor, rate in found.items() if "kernel" not in executor]
                if ours:
                    ratio = max(ours) / max(others)
                    ratios.append(f"{name}, {str(dtype).removeprefix('torch.')}: {ratio:.2f}")
    print("\nkernel / fastest other executor")
    print("\n".join(ratios))


if __name__ == "__main__":
    main()
