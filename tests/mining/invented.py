"""Invented words, each with one translation, and an encoder that knows them: texts of the same
words are near."""

from __future__ import annotations

import random
import re

import numpy as np

WORDS = 400
WIDTH = 24
_VECTORS = np.random.default_rng(7).standard_normal((WORDS, WIDTH)).astype(np.float32)


def embed(texts, **_):
    """Sum the vectors of all words: ``de17`` and ``en17`` have the same.

    A little of the text itself.
    """
    rows = []
    for text in texts:
        numbers = [int(number) % WORDS for number in re.findall(r"[a-z](\d+)", text)]
        row = _VECTORS[numbers].sum(axis=0) + 1e-3
        noise = np.random.default_rng(sum(map(ord, text)) + len(text)).standard_normal(WIDTH)
        rows.append(row + 0.2 * np.linalg.norm(row) * noise / np.sqrt(WIDTH))
    table = np.array(rows, dtype=np.float64).reshape(len(rows), WIDTH)
    return (table / np.linalg.norm(table, axis=1, keepdims=True)).astype(np.float32)


def sentence(draw: random.Random) -> list[int]:
    return [draw.randrange(WORDS) for _ in range(draw.randint(4, 9))]


def text(numbers, language):
    return " ".join(f"{language}{number}" for number in numbers)


def corpora(shared=30, alone=40, *, seed=0):
    """Return texts of two sides, some of them translations: sources, targets, and index pairs."""
    draw = random.Random(seed)
    both = [sentence(draw) for _ in range(shared)]
    sides, places = [], []
    for language in ("de", "en"):
        texts = [text(numbers, language) for numbers in both]
        texts += [text(sentence(draw), language) for _ in range(alone)]
        order = list(range(len(texts)))
        draw.shuffle(order)
        sides.append([texts[place] for place in order])
        places.append([order.index(place) for place in range(shared)])
    return sides[0], sides[1], list(zip(*places, strict=True))


def write_lines(path, texts):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in texts), encoding="utf-8")
    return path
