"""Time and memory of predicting masked tokens over a large vocabulary.

Logits at all positions, and as it is done here.

    python benchmarks/unmasking.py --tokens 1024 --width 384 --precision fp32

Forward and backward of only MEXMA's output layer, on random states, in three forms: the released
code's (logits at every position, the loss at masked ones), the same at masked positions only, and
``linear_cross_entropy`` there. Each form has a process of its own, one thread on the CPU; seconds
are the median of processor time (of wall time on a GPU), memory is the peak above inputs, weights
and imports. The ratios to the first form come last.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

FORMS = {
    "all": "logits at all positions",
    "masked": "logits at masked positions",
    "tiled": "masked positions, vocabulary in tiles",
}
MEBIBYTE = 2**20


def one(form: str, options: argparse.Namespace) -> dict[str, float]:
    """Measure seconds, peak memory and the loss of one form."""
    import time

    import torch
    from torch.nn import functional as F

    from interlingua.functional.masked_lm import linear_cross_entropy

    torch.set_num_threads(1)
    torch.manual_seed(0)
    on_gpu, device = options.device == "cuda", options.device
    words = (0.02 * torch.randn(options.vocabulary, options.width)).to(device).requires_grad_()
    bias = torch.zeros(options.vocabulary, device=device, requires_grad=True)
    states = torch.randn(options.tokens, options.width).to(device).requires_grad_()
    ids = torch.randint(0, options.vocabulary, (options.tokens,), device=device)
    hidden = (torch.arange(options.tokens, device=device) * options.ratio) % 1 < options.ratio

    def loss() -> torch.Tensor:
        if form == "all":
            logits = F.linear(states, words, bias)
            return F.cross_entropy(logits.float(), torch.where(hidden, ids, -100))
        if form == "masked":
            return F.cross_entropy(F.linear(states[hidden], words, bias).float(), ids[hidden])
        return linear_cross_entropy(states[hidden], words, bias, ids[hidden]).mean()

    def clock() -> float:
        if on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter() if on_gpu else time.process_time()

    before, seconds, value = resident(on_gpu), [], 0.0
    for _ in range(options.rounds):
        start = clock()
        with torch.autocast(device, torch.bfloat16, enabled=options.precision == "bf16"):
            result = loss()
        result.backward()
        seconds.append(clock() - start)
        value = float(result.detach())
        for tensor in (words, bias, states):
            tensor.grad = None
    return {
        "seconds": sorted(seconds)[len(seconds) // 2],
        "mebibytes": peak(on_gpu) - before,
        "loss": value,
    }


def resident(on_gpu: bool) -> float:
    """Return the memory in use now, MiB."""
    import torch

    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
        return torch.cuda.memory_allocated() / MEBIBYTE
    return _status("VmRSS")


def peak(on_gpu: bool) -> float:
    """Return the peak memory so far, MiB."""
    import torch

    return torch.cuda.max_memory_allocated() / MEBIBYTE if on_gpu else _status("VmHWM")


def _status(key: str) -> float:
    with open("/proc/self/status", encoding="ascii") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(key))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--tokens", type=int, default=1024, help="positions, of which a share is masked"
    )
    parser.add_argument("--ratio", type=float, default=0.4, help="the share that is masked")
    parser.add_argument("--vocabulary", type=int, default=250_002)
    parser.add_argument("--width", type=int, default=384)
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--form", choices=FORMS, help="measure this one in this process")
    options = parser.parse_args()
    if options.form:
        print(json.dumps(one(options.form, options)))
        return
    print(
        f"{options.tokens} tokens, {options.ratio:.0%} masked, {options.vocabulary:,} words, width"
        f" {options.width}, {options.precision}, {options.device}"
    )
    found = {}
    for form, words in FORMS.items():
        command = [sys.executable, __file__, *sys.argv[1:], "--form", form]
        found[form] = json.loads(
            subprocess.run(command, check=True, capture_output=True, text=True).stdout
        )
        print(
            f"  {words:<40}{found[form]['seconds']:9.3f} s {found[form]['mebibytes']:9.0f} MiB"
            f"   loss {found[form]['loss']:.4f}",
            flush=True,
        )
    for form in ("masked", "tiled"):
        time, memory = (
            found["all"][key] / max(found[form][key], 1e-9) for key in ("seconds", "mebibytes")
        )
        print(
            f"{FORMS[form]}: {time:.1f} times as fast, {memory:.1f} times less memory than at all"
            " positions"
        )


if __name__ == "__main__":
    main()
