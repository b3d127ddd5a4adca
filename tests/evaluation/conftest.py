from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest

from tests.evaluation.encoders import tiny_encoder
from tests.evaluation.files import write_rows


class NumberEncoder:
    """Encoder that embeds a sentence by its numbers: "drei 3" and "three 3" are equal.

    Counts what is requested.
    """

    def __init__(self, dim=32):
        self.dim, self.calls, self.texts = dim, [], []

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        self.calls.append((prompt, language, batch_tokens))
        self.texts += texts
        return np.stack([self.vector(text) for text in texts])

    def vector(self, text):
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        return np.sum(
            [np.random.default_rng(number).standard_normal(self.dim) for number in numbers], axis=0
        )


class TableEncoder:
    """Encoder that looks up every text's vector."""

    def __init__(self, table):
        self.table = {text: np.asarray(vector, dtype=np.float32) for text, vector in table.items()}
        self.dim = len(next(iter(self.table.values())))

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        return np.stack([self.table[text] for text in texts])


def write_pairs(folder, name, pairs):
    folder.mkdir(parents=True, exist_ok=True)
    write_rows(folder / f"{name}.tsv", (f"{a}\t{b}" for a, b in pairs))


@pytest.fixture
def number_encoder():
    return NumberEncoder()


@pytest.fixture
def table_encoder():
    return TableEncoder


@pytest.fixture
def short_encoder(word_vocabulary):
    """An encoder of this library that reads three words of a text."""
    encoder = tiny_encoder(word_vocabulary)
    encoder.settings = dataclasses.replace(encoder.settings, max_tokens=3)
    return encoder


@pytest.fixture
def pair_folder(tmp_path):
    """Three languages, ten pairs each.

    French has two pairs with swapped numbers, so P@1 is 0.8 there.
    """
    folder = tmp_path / "tatoeba_laser"
    for code, word in (("deu", "Zahl"), ("rus", "число"), ("fra", "nombre")):
        numbers = list(range(10))
        other = [1, 0, *range(2, 10)] if code == "fra" else numbers
        pairs = [(f"{word} {a}", f"number {b}") for a, b in zip(numbers, other, strict=True)]
        write_pairs(folder, f"{code}-eng", pairs)
    return folder


@pytest.fixture
def aligned_folder(tmp_path):
    """English and two languages, eight lines each.

    Hindi has two lines swapped, so its error is 0.25.
    """
    folder = tmp_path / "flores200_devtest"
    folder.mkdir()
    for code, word, order in (
        ("eng_Latn", "number", range(8)),
        ("ita_Latn", "numero", range(8)),
        ("hin_Deva", "संख्या", [1, 0, *range(2, 8)]),
    ):
        write_rows(folder / f"{code}.txt", (f"{word} {n}" for n in order))
    return folder
