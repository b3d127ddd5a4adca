from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pytest
import torch

from interlingua.encoder.backends.foreign import Choices, ForeignEncoder, as_vectors, check_vectors
from interlingua.encoder.encode import EncodeReport
from interlingua.errors import ConfigError, TaskError


@dataclass(frozen=True, kw_only=True, slots=True)
class Options:
    scale: float = 1.0
    patience: int = field(default=3, metadata={"changes_vectors": False})


class Lengths(ForeignEncoder):
    """Encoder that embeds a text by its length, and cuts with a report at five characters."""

    Options = Options
    portion_texts = 2
    counts_tokens = True

    def __init__(self, scale=1.0):
        self.dim, self.scale, self.portions = 0, scale, []

    @classmethod
    def load(cls, model, choices):
        options, _ = cls.own_options(choices, "lengths")
        return cls(options.scale)

    def _embed(self, texts, prompt, batch_tokens, report):
        self.portions.append(texts)
        report.cut_rows.extend(
            report.texts + row for row, text in enumerate(texts) if len(text) > 5
        )
        return [[self.scale * len(prompt + text), 1.0] for text in texts]


def test_portions_prompts_and_cuts_keep_the_order():
    encoder, report = Lengths(), EncodeReport()
    vectors = encoder.encode(
        iter(["a", "bcdefgh", "ij", "", "klmnop"]), prompt="p: ", report=report
    )
    assert vectors.dtype == np.float32
    assert vectors[:, 0].tolist() == [4, 10, 5, 3, 9]
    assert encoder.portions == [["a", "bcdefgh"], ["ij", ""], ["klmnop"]]
    assert (encoder.dim, report.texts, list(report.cut_rows)) == (2, 5, [1, 4])


def test_a_file_holds_what_would_have_been_returned(tmp_path):
    texts = ["a", "bcd", "ef"]
    mapped = Lengths().encode(texts, normalize_embeddings=True, out=tmp_path / "out.npy")
    assert np.array_equal(np.load(tmp_path / "out.npy"), mapped)
    assert np.array_equal(mapped, Lengths().encode(texts, normalize_embeddings=True))
    assert np.allclose(np.linalg.norm(mapped, axis=1), 1)
    assert Lengths().encode([]).shape == (0, 0)


def test_options_are_checked_and_those_that_change_vectors_are_told():
    made, changed = Lengths.own_options(
        Choices(name="x", options={"scale": 2.0, "patience": 9}), "lengths"
    )
    assert (made.scale, made.patience, changed) == (2.0, 9, ("lengths.scale=2.0",))
    assert Lengths.load("x", Choices(name="x", options={"scale": 3})).scale == 3
    with pytest.raises(ConfigError, match=r"--set lengths: .*'scael'; .*'scale'"):
        Lengths.load("x", Choices(name="x", options={"scael": 2.0}))


@pytest.mark.parametrize(
    ("vectors", "dim", "message"),
    [
        (np.ones((1, 4)), 0, r"shape \(1, 4\), expected \(2, d\)"),
        (np.ones(2), 0, r"shape \(2,\), expected \(2, d\)"),
        (np.ones((2, 4)), 5, r"shape \(2, 4\), expected \(2, 5\)"),
        (np.array([[1.0], [np.nan]]), 0, "NaN .*'b'; "),
    ],
)
def test_vectors_that_cant_be_scored(vectors, dim, message):
    with pytest.raises(TaskError, match=message):
        check_vectors(vectors, ["a", "b"], dim)


@pytest.mark.parametrize("found", [["a", "b"], [[1.0], [1.0, 2.0]], [{}, {}]])
def test_what_is_no_array_of_numbers(found):
    with pytest.raises(TaskError, match=r"array .*\(n, d\)"):
        as_vectors(found)


def test_tensors_of_any_kind_are_numbers():
    """Use tensors with gradients and of types that NumPy lacks, as from a forward pass."""
    for dtype in (torch.float32, torch.bfloat16):
        found = as_vectors(torch.tensor([[1.0, 2.5]], dtype=dtype, requires_grad=True))
        assert (found.tolist(), found.dtype) == ([[1.0, 2.5]], np.float32)
    for wrong in (np.array([[1j]]), [torch.ones(2, requires_grad=True)]):
        with pytest.raises(TaskError, match=r"array .*\(n, d\)"):
            as_vectors(wrong)
