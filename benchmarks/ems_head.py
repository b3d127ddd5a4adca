"""Time and memory of EMS's token-level term over a large vocabulary, and its share of a step.

    python benchmarks/ems_head.py --rows 336 --vocabulary 60000 --width 512

Forward and backward of only the output layer, on random states and token distributions, in four
forms: as Eq. (6) is usually written (log-softmax and dense targets), ``token_divergence`` (sparse
targets), ``linear_token_divergence`` (one matrix, turned in place), and the latter under bf16
autocast. Then a step of ``ems-small`` with three layers, with its generative term and without. Each
line has a process of its own, one thread on the CPU; seconds are the median of processor time,
memory is the peak above inputs, weights and imports. Ratios come last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time

FORMS = {
    "dense": "kl_div(log_softmax(logits), dense targets)",
    "sparse": "token_divergence(h @ W.T, targets)",
    "fused": "linear_token_divergence(h, W, targets)",
    "fused, bf16": "the same under bf16 autocast",
}
STEPS = {
    "step": "a step of ems-small, three layers",
    "step without": "the same without the generative term",
}
MEBIBYTE = 2**20
TOKENS = 20  # in a sentence


def output_layer(form: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure seconds, peak memory and the loss of one form."""
    import torch
    from torch.nn import functional as F

    from interlingua.functional.token import (
        linear_token_divergence,
        token_divergence,
        token_targets,
    )

    torch.set_num_threads(1)
    torch.manual_seed(0)
    weight = (0.02 * torch.randn(options.vocabulary, options.width)).requires_grad_()
    states = torch.randn(options.rows, options.width).requires_grad_()
    ids = torch.randint(0, options.vocabulary, (options.rows * TOKENS,))
    targets = token_targets(ids, torch.arange(0, len(ids) + 1, TOKENS))

    def loss() -> torch.Tensor:
        if form == "dense":
            log_q = F.log_softmax(states @ weight.T, dim=1)
            return F.kl_div(log_q, targets.dense(options.vocabulary), reduction="none").sum(1)
        if form == "sparse":
            return token_divergence(states @ weight.T, targets)
        return linear_token_divergence(states, weight, targets)

    before, seconds, value = _status("VmRSS"), [], 0.0
    for _ in range(options.rounds):
        start = time.process_time()
        with torch.autocast("cpu", torch.bfloat16, enabled=form == "fused, bf16"):
            result = loss().sum()
        result.backward()
        seconds.append(time.process_time() - start)
        value = float(result.detach()) / options.rows
        weight.grad = states.grad = None
    grads = (weight.numel() + states.numel()) * 4 / MEBIBYTE  # every form makes these
    return {
        "seconds": _median(seconds),
        "mebibytes": _status("VmHWM") - before - grads,
        "loss": value,
    }


def training_step(form: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure seconds of forward and backward of a whole micro-batch."""
    import torch
    from tokenizers import Tokenizer, models

    from interlingua.batches.tokens import ParallelBatch, TokenBatch
    from interlingua.encoder.encoder import Encoder
    from interlingua.encoder.modeling.backbone import BackboneConfig
    from interlingua.methods.ems import EMS, EMSConfig
    from interlingua.vocabulary.vocabulary import Vocabulary

    torch.set_num_threads(1)
    torch.manual_seed(0)
    words = {
        token: index
        for index, token in enumerate(["<pad>", "<unk>", *map(str, range(options.vocabulary - 2))])
    }
    roles = {"pad_token": "<pad>", "unk_token": "<unk>"}
    vocabulary = Vocabulary(
        Tokenizer(models.WordLevel(words, unk_token="<unk>")).to_str(), special_tokens=roles
    )
    shape = {
        "vocab_size": options.vocabulary,
        "hidden_size": 384,
        "num_attention_heads": 6,
        "intermediate_size": 1536,
    }
    backbone = BackboneConfig(
        num_hidden_layers=3, hidden_act="silu", max_position_embeddings=120, **shape
    )
    config = (
        EMSConfig(generative="none")
        if form == "step without"
        else EMSConfig(languages=("de", "en"))
    )
    objective = EMS(config, Encoder.from_scratch(backbone, vocabulary)).train()
    sides = []
    for code in ("deu_Latn", "eng_Latn"):
        ids = torch.randint(2, options.vocabulary, (options.rows // 2, TOKENS)).numpy()
        sides.append(TokenBatch.from_lists(list(ids), [code] * len(ids)))
    batch, seconds = ParallelBatch(*sides, step=0), []
    for _ in range(options.rounds):
        start = time.process_time()
        objective(batch).loss.backward()
        seconds.append(time.process_time() - start)
        objective.zero_grad(set_to_none=True)
    return {"seconds": _median(seconds)}


def _median(seconds: list[float]) -> float:
    return sorted(seconds)[len(seconds) // 2]


def _status(key: str) -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=336, help="sentences, of both sides together")
    parser.add_argument("--vocabulary", type=int, default=60_000)
    parser.add_argument(
        "--width", type=int, default=512, help="of the head's last layer; a step's is its own"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--form", choices=[*FORMS, *STEPS], help="measure this one in this process")
    options = parser.parse_args()
    if options.form:
        print(
            json.dumps(
                (training_step if options.form in STEPS else output_layer)(options.form, options)
            )
        )
        return
    print(
        f"{options.rows} sentences of {TOKENS} tokens, {options.vocabulary:,} words, width"
        f" {options.width}, one thread"
    )
    found = {}
    for form, words in {**FORMS, **STEPS}.items():
        command = [sys.executable, __file__, *sys.argv[1:], "--form", form]
        made = found[form] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        memory = f"{made['mebibytes']:9.0f} MiB   loss {made['loss']:.4f}" if "loss" in made else ""
        print(f"  {words:<46}{made['seconds']:9.3f} s {memory}".rstrip(), flush=True)
    for form in ("sparse", "fused", "fused, bf16"):
        time_, memory_ = (
            found["dense"][key] / max(found[form][key], 1e-9) for key in ("seconds", "mebibytes")
        )
        print(
            f"{FORMS[form]}: {time_:.2f} times as fast, {memory_:.1f} times less memory than"
            f" {FORMS['dense']}"
        )
    share = 1 - found["step without"]["seconds"] / found["step"]["seconds"]
    print(f"the generative term takes {share:.0%} of a step")


if __name__ == "__main__":
    main()
