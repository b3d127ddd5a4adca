"""An encoder of invented words: translations have the same vector, and a text has the sum of its
words'."""

from __future__ import annotations

import re

import numpy as np

WIDTH = 64


def embed(texts):
    """Encode ``de5`` and ``en5`` as one word, with any prefix of the number."""
    vectors = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in enumerate(texts):
        for number in re.findall(r"\d+", text):
            vectors[row] += np.random.default_rng(int(number)).standard_normal(WIDTH)
    return vectors


def encode(texts, *, language=None, report=None):
    """Encode with the signature of this library's encoders."""
    vectors = embed(texts)
    if report is not None:
        report.texts += len(texts)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
