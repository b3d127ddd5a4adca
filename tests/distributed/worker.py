"""Run by torch in two processes: trains every method a few steps, sharded or not, and writes what
came out."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import torch

from interlingua.training.checkpoint import TrainState, load_checkpoint, save_checkpoint, weights_of
from interlingua.training.config import RunConfig
from interlingua.training.machine.engine import Engine, gather_tensor
from interlingua.training.step import gradients
from tests.methods.harness import PREFIXES, TINY_OPTIONS, share_of, tiny_batch, tiny_objective

STEPS = 4
HIDE = {"mask_ratio": 0.5}  # enough that no process has none and draws again
TERMS = TINY_OPTIONS["combination"]["terms"]
OPTIONS: dict[str, dict[str, Any]] = {
    "anchor": {
        "student_reads": "both",
        "side_weight": 1.0,
        "side_negatives": "language",
        "hard_weight": 1.0,
        "hard_kinds": ["word_order"],
    },
    "combination": {
        "terms": {
            label: term | (HIDE if label in ("hide", "momentum") else {})
            for label, term in TERMS.items()
        }
    },
    "cross_encoder": {"head_dropout": 0.0},
    "ems": {"negatives": "processes"},
    "infoxlm": {"mixup": False, **HIDE},
    "tlm": HIDE,
}
"""By method: where one process draws what two draw, and has the negatives that two have."""
NESTED = "+matryoshka"
"""Ends the name of a case with embeddings that can be cut."""
CONTRAST = "+contrast"
"""Ends the name of InfoXLM's case without language models, where nothing reads the upper layers."""
VARIANTS = {
    NESTED: PREFIXES,
    CONTRAST: {"tlm_weight": 0.0, "mlm_weight": 0.0, "contrast_depth": 0.5},
}
BY_PROCESS = {"mexma"}
"""Cases with means over a process's tokens, as in the released code: two processes are two
micro-batches."""


def of_case(case: str) -> tuple[str, dict[str, Any]]:
    """Return the method of a case, and the options of all its runs."""
    method, plus, variant = case.partition("+")
    return method, VARIANTS.get(plus + variant, {})


def run(engine: Engine, case: str, folder: Path) -> dict[str, object]:
    """Run four steps, then two from the second again; return losses and digests of weights."""
    method, options = of_case(case)
    losses: list[float] = []
    digests = []
    for first in (0, 2):
        objective = tiny_objective(method, options, dropout=0.1)
        unsharded = engine.unsharded_copy(objective)
        model = engine.setup(objective)
        # not fused: that kernel rounds otherwise at the end of a tensor, and a shard ends elsewhere
        trained = [parameter for parameter in objective.parameters() if parameter.requires_grad]
        optimizer = torch.optim.AdamW(trained, lr=3e-3)
        if first:
            load_checkpoint(folder / f"step-{first:08d}", objective, optimizer)
        for step in range(first, STEPS):
            batch = tiny_batch(method, step=step, seed=2 * step + engine.rank)
            found = gradients(model, objective, [batch], engine, seed=1, step=step)
            found["norm"] = engine.clip(objective, None)
            optimizer.step()
            optimizer.zero_grad()
            objective.after_step(step)
            losses += [engine.mean(value).item() for _, value in sorted(found.items())]
            if step + 1 == 2 and not first:
                save_checkpoint(
                    folder, objective, optimizer, TrainState(step=2), write=engine.is_main
                )
                engine.barrier()
        weights = weights_of(objective)
        engine.refresh(unsharded, objective)
        if engine.is_main:
            assert all(
                torch.equal(weights_of(unsharded)[name], weight) for name, weight in weights.items()
            )
        digests.append(digest(weights))
    return {"losses": losses, "straight": digests[0], "resumed": digests[1]}


def apart(engine: Engine, case: str) -> float:
    """Return the distance of loss and gradients of two processes from one process's.

    Two rounds, so that there is something in a queue; they move no weights but teachers'.
    """
    method, own = of_case(case)
    options = OPTIONS.get(method, {}) | own
    shared, alone = tiny_objective(method, options), tiny_objective(method, options)
    model = engine.setup(shared)
    furthest = 0.0
    for step in range(2):
        batch = tiny_batch(method, options, step=step, seed=step)
        found = gradients(model, shared, [share_of(batch, engine.rank)], engine, seed=1, step=step)
        parts = [share_of(batch, rank) for rank in (0, 1)] if method in BY_PROCESS else [batch]
        loss = torch.stack([alone(part).loss for part in parts]).mean()
        loss.backward()
        pairs = [
            (gather_tensor(a.grad), b.grad)
            for a, b in zip(shared.parameters(), alone.parameters(), strict=True)
            if b.grad is not None
        ]
        largest = max(b.abs().max() for _, b in pairs)
        differences = [(a - b).abs().max() / largest for a, b in pairs]
        differences.append(
            (engine.mean(found["loss"]) - loss.detach()).abs() / loss.detach().abs().clamp(min=1)
        )
        furthest = max(furthest, *map(float, differences))
        for objective in (shared, alone):
            objective.after_step(step)
            objective.zero_grad()
    return furthest


def digest(weights: dict[str, torch.Tensor]) -> str:
    found = hashlib.sha256()
    for name, tensor in sorted(weights.items()):
        found.update(name.encode() + tensor.detach().cpu().numpy().tobytes())
    return found.hexdigest()


def main() -> None:
    strategy, folder, *cases = sys.argv[1:]
    config = RunConfig(
        output=Path("unused"),
        max_steps=1,
        device="cpu",
        precision="fp32",
        threads=1,
        devices=2,
        strategy=strategy,
    )
    with Engine(config) as engine:
        found = {
            case: {**run(engine, case, Path(folder, strategy, case)), "apart": apart(engine, case)}
            for case in cases
        }
        if engine.is_main:
            Path(folder, f"{strategy}.json").write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main()
