"""experiments/mini/development.py: measures on development data."""

from __future__ import annotations

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(mini_script):
    return mini_script("development")


class Table:
    """An encoder that looks vectors up."""

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, texts, *, truncate_dim=None, prompt=""):
        return np.asarray([self.vectors[prompt + text][:truncate_dim] for text in texts], float)


def test_translations_are_nearer_than_other_meanings_in_any_language(script, tmp_path):
    rows = {"de": ["Hund", "Katze", "ja", "ja"], "en": ["dog", "cat", "yes", "yes"]}
    for language, texts in rows.items():
        lines = "".join(f"5.0\t{text}\tother\n" for text in texts)
        (tmp_path / f"{language}.dev.tsv").write_text(lines, "utf-8")
    # The German cat is nearer to the German dog than to the English cat; "ja" is no single row.
    vectors = {"Hund": [1, 0], "dog": [1, 0], "Katze": [0.8, 0.6], "cat": [0, 1]}
    encoder = Table(vectors)
    assert script.versions_accuracy(encoder, tmp_path, None, "") == pytest.approx(3 / 4)
    prompted = Table({f"p {text}": vector for text, vector in vectors.items()})
    assert script.versions_accuracy(prompted, tmp_path, None, "p ") == pytest.approx(3 / 4)
    # With one number all are nearest to one another, and a tie finds nothing.
    assert (
        script.versions_accuracy(
            Table({**vectors, "cat": [1, 0], "Katze": [1, 0]}), tmp_path, 1, ""
        )
        == 0
    )
