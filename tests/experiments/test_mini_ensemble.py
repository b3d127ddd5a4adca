"""experiments/mini/ensemble.py: two teachers' vectors as one."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tests.adapt.invented import small_model


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("ensemble")


def units(rows, rank, width):
    rng = np.random.default_rng(rank)
    found = rng.standard_normal((rows, rank)) @ rng.standard_normal((rank, width))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def test_cosines_are_the_mean_of_both(script):
    first, second = (
        units(50, 4, 12),
        units(50, 5, 20),
    )  # together of a rank below 12: nothing is lost
    vectors = script.joined(first, second)
    assert vectors.shape == first.shape
    np.testing.assert_allclose(
        vectors @ vectors.T, (first @ first.T + second @ second.T) / 2, atol=1e-12
    )


def test_no_rotation_is_nearer_to_the_first_teacher(script):
    first, second = units(50, 4, 12), units(50, 5, 20)
    vectors = script.joined(first, second)
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1e-1, 1.0):
        turn = np.linalg.qr(np.eye(12) + scale * rng.standard_normal((12, 12)))[0]
        turn *= np.sign(np.diag(turn))
        assert np.linalg.norm(vectors - first) <= np.linalg.norm(vectors @ turn - first)


def test_the_same_teacher_twice_gives_its_vectors(script, tmp_path, monkeypatch, capsys):
    small_model(tmp_path / "model")
    texts = ["the tree sees", "the house", "a river takes bread"]
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in texts))
    call = [
        str(tmp_path / "none.txt"),
        *[str(tmp_path / "model")] * 2,
        "-o",
        str(tmp_path / "english.npy"),
    ]
    monkeypatch.setattr(sys, "argv", ["ensemble.py", *call])
    script.main()
    assert (np.load(tmp_path / "english.npy").shape, (tmp_path / "english.txt").read_text()) == (
        (0, 16),
        "",
    )
    call = [str(tmp_path / "texts.txt"), *[str(tmp_path / "model")] * 2, "--dtype", "float32"]
    monkeypatch.setattr(sys, "argv", ["ensemble.py", *call, "-o", str(tmp_path / "english.npy")])
    script.main()
    assert (tmp_path / "english.txt").read_text().splitlines() == texts
    vectors = np.load(tmp_path / "english.npy")
    np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1, atol=2e-3)
    assert (
        "3 sentences; 1.000 of the squared length kept; cosine with the first teacher 1.000"
        in capsys.readouterr().out
    )
