"""Compare how many texts a second two models embed, in turns on the same texts.

    python experiments/mini/speed.py mini models/multilingual-e5-small --prompts "" "query: " \
        --texts $INTERLINGUA_DATA/flores200_devtest/{eng,deu,jpn,rus}_*.txt --dtype bfloat16

One thread, and processor time, which other work on the machine hardly moves. Each model reads what
a user gives it: its own prompt in front of each text. The last lines are the ratios of the first
model's median to the others'.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch

import interlingua
from interlingua.encoder.encode import Dtype
from interlingua.encoder.encoder import Encoder


def main() -> None:
    """Read the command line and print a line for each model."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+")
    parser.add_argument(
        "--prompts", nargs="+", help="of the models, in their order; none by default"
    )
    parser.add_argument("--texts", nargs="+", type=Path, required=True, help="a sentence a line")
    parser.add_argument("--lines", type=int, default=100, help="of each file")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    prompts = given.prompts or [""] * len(given.models)
    if len(prompts) != len(given.models):
        parser.error(f"--prompts: expected {len(given.models)}, got {len(prompts)}")

    torch.set_num_threads(1)
    texts = first_lines(given.texts, given.lines)
    encoders = [interlingua.load(name, device="cpu") for name in given.models]
    seconds: list[list[float]] = [[] for _ in encoders]
    for repeat in range(given.repeats + 1):
        for taken, encoder, prompt in zip(seconds, encoders, prompts, strict=True):
            one = processor_seconds(encoder, texts, prompt, given.dtype)
            if repeat:  # the first turn warms up
                taken.append(one)

    print(f"{len(texts):,} texts, {given.dtype}, one thread")
    medians = [float(np.median(taken)) for taken in seconds]
    for name, median in zip(given.models, medians, strict=True):
        print(f"{name:40} {len(texts) / median:8.0f} texts a second")
    for name, median in zip(given.models[1:], medians[1:], strict=True):
        print(f"{given.models[0]} / {name}: {median / medians[0]:.2f}")


def first_lines(paths: list[Path], count: int) -> list[str]:
    """Read the first lines of each file."""
    texts: list[str] = []
    for path in paths:
        texts += path.read_text(encoding="utf-8").splitlines()[:count]
    return texts


def processor_seconds(encoder: Encoder, texts: list[str], prompt: str, dtype: Dtype) -> float:
    """Measure the processor time of one pass over the texts."""
    start = time.process_time()
    encoder.encode(texts, prompt=prompt, dtype=dtype)
    return time.process_time() - start


if __name__ == "__main__":
    main()
