"""Rounds the weights of a model to eight bits with small changes of the outputs of its layers.

ship.py uses it. Each column's error is compensated by the columns after it (GPTQ: Frantar et al.
2023, Algorithm 1; here the columns with the largest inputs come first), and the bias compensates
the mean of the remaining error (bias correction: Nagel et al. 2019, section 4.2). The inputs are
those of the unrounded model, for held-out sentences of the corpus, single and joined to passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy import ndarray

LARGEST = 127
"""Largest integer of ``interlingua_mini.packing``."""
BLOCK = 128
"""Columns after which the errors go to all columns that follow."""
DAMPING = 0.01
"""Share of the mean square of the inputs that is added to each."""
JOINED = 6
"""Sentences of a passage."""
PASSAGES, SENTENCES = 4, 4
"""Texts of each kind, per language."""


class Inputs(NamedTuple):
    """Moments of the inputs of a linear layer."""

    mean: ndarray
    """(columns)"""
    gram: ndarray
    """(columns, columns): mean of x x^T."""


def calibration_texts(corpus: Path) -> list[str]:
    """Return held-out sentences of each language, and passages that are joined from others."""
    texts = []
    for path in sorted((corpus / "valid_text").iterdir()):
        rows = [line.split("\t")[:2] for line in path.read_text(encoding="utf-8").splitlines()]
        for side in zip(*rows, strict=True):
            texts += side[-SENTENCES:]
            texts += [
                " ".join(side[first : first + JOINED])
                for first in range(0, min(len(side), PASSAGES * JOINED), JOINED)
            ]
    return texts


def inputs_of_layers(folder: Path, texts: Iterable[str]) -> dict[str, Inputs]:
    """Compute the moments of the inputs of each linear layer of a stock model.

    Args:
        folder: a model that sentence-transformers reads.
        texts: embedded one by one, so that no input is padding.

    Returns:
        Name of the layer in the file of weights -> moments.
    """
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu").eval()
    sums: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
    counts: dict[str, int] = {}

    def watch(name: str) -> Callable[[torch.nn.Module, tuple[torch.Tensor, ...]], None]:
        def add(layer: torch.nn.Module, given: tuple[torch.Tensor, ...]) -> None:
            x = given[0].detach().flatten(0, -2).float()
            for total, found in zip(sums[name], (x.sum(dim=0), x.T @ x), strict=True):
                total += found
            counts[name] += len(x)

        return add

    for name, layer in model[0].auto_model.named_modules():
        if isinstance(layer, torch.nn.Linear):
            width, exact = layer.in_features, torch.float64
            sums[name] = torch.zeros(width, dtype=exact), torch.zeros(width, width, dtype=exact)
            counts[name] = 0
            layer.register_forward_pre_hook(watch(name))
    with torch.inference_mode():
        for text in texts:
            model.encode([text], show_progress_bar=False)
    return {
        name: Inputs(*(total.numpy() / counts[name] for total in totals))
        for name, totals in sums.items()
        if counts[name]
    }


def round_layers(
    tensors: Mapping[str, ndarray], inputs: Mapping[str, Inputs]
) -> dict[str, ndarray]:
    """Return the weights with the matrices of layers on the grid of eight bits.

    ``interlingua_mini.packing.pack`` stores these matrices up to the rounding of float32.

    Args:
        tensors: name -> values; those of ``embeddings`` are returned as they are.
        inputs: moments of the inputs of the layers.

    Raises:
        ValueError: a layer has no inputs.
    """
    rounded = dict(tensors)
    matrices = {
        name.removesuffix(".weight")
        for name, values in tensors.items()
        if values.ndim == 2 and "embeddings" not in name
    }
    if matrices != set(inputs):
        different = sorted(matrices ^ set(inputs))
        raise ValueError(f"layers and inputs differ: {', '.join(different)}")
    for layer, found in inputs.items():
        weights = tensors[f"{layer}.weight"]
        centered = found.gram - np.outer(found.mean, found.mean)
        values = round_matrix(weights, centered)
        rounded[f"{layer}.weight"] = values
        bias = tensors[f"{layer}.bias"] + (weights - values) @ found.mean
        rounded[f"{layer}.bias"] = bias.astype(np.float32)
    return rounded


def round_matrix(weights: ndarray, gram: ndarray) -> ndarray:
    """Round a matrix W to Q, 127 steps per row, with a low mean of |(W - Q) x|^2.

    Args:
        weights: (rows, columns).
        gram: (columns, columns), mean of x x^T over the inputs.

    Returns:
        Integers times the row's step, in float32. The largest value of a row stays.
    """
    values = weights.astype(np.float64)
    steps = np.abs(values).max(axis=1) / LARGEST
    steps[steps == 0] = 1.0
    power = np.diagonal(gram)
    order = np.argsort(-power, kind="stable")
    damped = gram[np.ix_(order, order)] + DAMPING * power.mean() * np.eye(len(power))
    # U of U^T U = H^-1, whose rows hold the share of an error that each later column takes.
    shares = np.linalg.cholesky(np.linalg.inv(damped)).T
    values = values[:, order]
    largest = np.abs(values).argmax(axis=1)
    signs = np.sign(np.take_along_axis(values, largest[:, None], axis=1)[:, 0])
    result = np.empty_like(values)
    for first in range(0, len(power), BLOCK):
        block = slice(first, min(first + BLOCK, len(power)))
        errors = np.zeros((len(values), block.stop - first))
        for column in range(first, block.stop):
            codes = np.clip(np.rint(values[:, column] / steps), -LARGEST, LARGEST)
            codes = np.where(largest == column, LARGEST * signs, codes)
            result[:, column] = codes * steps
            error = (values[:, column] - result[:, column]) / shares[column, column]
            rest = slice(column, block.stop)
            values[:, rest] -= np.outer(error, shares[column, rest])
            errors[:, column - first] = error
        values[:, block.stop :] -= errors @ shares[block, block.stop :]
    # safetensors writes the buffer in memory order.
    return np.ascontiguousarray(result[:, np.argsort(order)], dtype=np.float32)
