"""Helpers of classifiers over embeddings: initial weights, and numbers of classes."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy import ndarray
from torch import Tensor, nn


def linear_start(
    inputs: int, outputs: int, generator: torch.Generator, *, dtype: torch.dtype = torch.float32
) -> tuple[Float[Tensor, "o i"], Float[Tensor, " o"]]:
    """Return the initial parameters of ``nn.Linear(inputs, outputs)`` after ``torch.manual_seed``.

    Args:
        inputs: width of the vectors.
        outputs: number of units.
        generator: in its state after seeding, or after drawing the parameters of the previous
            layers.
        dtype: of the result; the numbers are drawn in float32, as ``nn.Linear`` draws them.
    """
    # weights before biases, as nn.Linear draws them
    weight = torch.empty(outputs, inputs)
    nn.init.kaiming_uniform_(weight, a=math.sqrt(5), generator=generator)
    bound = 1 / math.sqrt(inputs)
    bias = torch.empty(outputs).uniform_(-bound, bound, generator=generator)
    return weight.to(dtype), bias.to(dtype)


def class_numbers(labels: Sequence[str], classes: Sequence[str]) -> Int64[ndarray, " n"]:
    """Return the index of each label among the classes.

    Raises:
        KeyError: a label is not a class.
    """
    number_of = {label: number for number, label in enumerate(classes)}
    return np.array([number_of[label] for label in labels], dtype=np.int64)
