"""Labeled texts with topics that can be seen in their vectors, more or less by language."""

from __future__ import annotations

import zlib

import numpy as np

TOPICS = ("sports", "health", "travel")


class Topics:
    """The vector of ``de sports 7`` points to its topic, with noise of its own and a little to its
    language."""

    def __init__(self, noise=0.6):
        self.noise, self.asked = noise, []

    def encode(self, texts, *, language=None):
        self.asked.append((language, list(texts)))
        return np.stack([self._vector(text) for text in texts]).astype(np.float32)

    def _vector(self, text):
        language, topic, *_ = text.split()
        own = np.random.default_rng(zlib.crc32(text.encode())).standard_normal(8)
        where = np.random.default_rng(zlib.crc32(language.encode())).standard_normal(8)
        return 3 * np.eye(8)[TOPICS.index(topic)] + self.noise * own + 0.4 * where


def topic_rows(language, size, first=0):
    """Return labels and texts of a number of examples, the labels in turn."""
    return [(TOPICS[n % 3], f"{language} {TOPICS[n % 3]} {n}") for n in range(first, first + size)]


def write_topics(folder, languages, *, train=36, dev=12, test=21):
    """Write the layout for user data: ``german.train.tsv``."""
    folder.mkdir(parents=True, exist_ok=True)
    for language in languages:
        for split, size, first in (("train", train, 0), ("dev", dev, 1000), ("test", test, 2000)):
            rows = "".join(
                f"{label}\t{text}\n" for label, text in topic_rows(language, size, first)
            )
            (folder / f"{language}.{split}.tsv").write_text(rows, encoding="utf-8")
    return folder
