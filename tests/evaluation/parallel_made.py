"""Line-aligned texts and their vectors, made on the spot."""

from __future__ import annotations

import numpy as np

from tests.evaluation import files

LINES = {
    "eng_Latn": ["The cat sits on the mat.", "One two three four.", "Yes.", "The cat is seven."],
    "deu_Latn": [
        "Die Katze sitzt auf der Matte.",
        "Eins zwei drei vier.",
        "Ja.",
        "Die Katze ist sieben.",
    ],
    "fra_Latn": [
        "Le chat est assis sur le tapis.",
        "Un deux trois quatre.",
        "Oui.",
        "Le chat a sept ans.",
    ],
}
LANGUAGES = tuple(sorted(LINES))


def unit(rows):
    rows = np.asarray(rows, dtype=np.float32)
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def random_vectors(languages=3, lines=7, width=5, *, seed=0, shared=1.0):
    """Draw vectors of translations: a shared part, and a part of each one's own."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((1, lines, width))
    return unit(shared * common + rng.standard_normal((languages, lines, width)))


def write_lines(folder, lines=LINES):
    for code, texts in lines.items():
        files.write_rows(folder / f"{code}.txt", texts)
    return folder


class Fixed:
    """Encoder that looks up vectors by text."""

    def __init__(self, vectors, lines=LINES):
        self.table = {
            text: vector
            for rows, texts in zip(vectors, (lines[c] for c in sorted(lines)), strict=True)
            for vector, text in zip(rows, texts, strict=True)
        }
        self.dim = vectors.shape[2]

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        return np.stack([self.table[text] for text in texts])
