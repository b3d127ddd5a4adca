"""The new linear layer: least squares by hand and by numpy, and what a run with a bank starts
with."""

from __future__ import annotations

import numpy as np
import torch
from torch.nn import functional as F

from interlingua.batches.sentences import sentence_keys
from interlingua.encoder.encoder import Encoder
from interlingua.training.loop import run_training
from interlingua.training.optimization.dense_start import least_squares
from tests.training.test_banks import config, parts, teacher  # noqa: F401 (a fixture)


def test_a_line_by_hand():
    """Use points (0, 1), (2, 5): slope 2, intercept 1."""
    weight, bias = least_squares(
        torch.tensor([[0.0], [2.0]]), torch.tensor([[1.0], [5.0]]), ridge=0.0
    )
    assert (float(weight), float(bias)) == (2.0, 1.0)


def test_without_a_penalty_it_is_numpy_s():
    draw = np.random.default_rng(0)
    x, y = draw.normal(size=(50, 4)), draw.normal(size=(50, 3))
    expected = np.linalg.lstsq(np.c_[x, np.ones(50)], y, rcond=None)[0]
    weight, bias = least_squares(torch.from_numpy(x), torch.from_numpy(y), ridge=0.0)
    np.testing.assert_allclose(weight.numpy(), expected[:4].T)
    np.testing.assert_allclose(bias.numpy(), expected[4])


def test_a_direction_that_never_varies_is_left_alone():
    x = torch.randn(20, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    x[:, 2] = 1.0
    weight, _ = least_squares(x, x)
    assert float(weight[:, 2].abs().max()) < 1e-9
    torch.testing.assert_close(weight[:2, :2], torch.eye(2, dtype=torch.float64), rtol=0, atol=0.01)


@torch.no_grad()
def test_a_student_begins_near_its_teachers(config, tmp_path):  # noqa: F811
    made = parts(config(encoder={"dense": True}))
    names = [
        teacher(tmp_path / str(seed), made.objective.encoder.vocabulary, seed=seed)
        for seed in (1, 2)
    ]

    def distance(new_dense):
        made = parts(config(encoder={"dense": True}, teachers=names))
        made.fill(tmp_path / f"bank{new_dense}", new_dense=new_dense)
        batch = made.batches(0)[0].b
        bank = F.normalize(made.anchors.bank.vectors(sentence_keys(batch)), dim=1)
        return float(
            (F.normalize(made.objective.encoder(batch), dim=1) - bank).square().sum(dim=1).mean()
        )

    assert distance(new_dense=True) < 0.5 * distance(new_dense=False)


def test_the_layer_is_trained_and_saved(config, tmp_path):  # noqa: F811
    result = run_training(
        config(encoder={"dense": True}, run={"output": str(tmp_path / "run")}), progress=False
    )
    (layer,) = Encoder.load(result.model).post_pooling.dense_layers
    start = parts(config(encoder={"dense": True}))
    start.fill(tmp_path, new_dense=True)
    assert not torch.equal(
        layer.linear.weight, start.objective.encoder.post_pooling.dense_layers[0].linear.weight
    )


def test_without_a_bank_it_begins_as_the_identity(config):  # noqa: F811
    (layer,) = parts(config(encoder={"dense": True})).objective.encoder.post_pooling.dense_layers
    assert torch.equal(layer.linear.weight, torch.eye(16))
    assert not layer.linear.bias.any()
