"""LASER's classifier: the networks trained side by side against one at a time, as LASER's script
trains them."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from interlingua.evaluation.metrics.mlp import train_mlps

SEEDS = (1, 2, 5)


def laser(x, y, dev_x, dev_y, *, classes, seed, epochs):
    """Train one network in torch's plain words: a DataLoader, nn.Dropout, optim.Adam.

    The last of the best epochs.
    """
    train = DataLoader(TensorDataset(x, y), batch_size=12, shuffle=True)
    dev = DataLoader(TensorDataset(dev_x, dev_y), batch_size=12)
    torch.manual_seed(seed)
    sizes, layers = (x.shape[1], 10, 8, classes), []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Dropout(0.2), nn.Linear(inputs, outputs), nn.Tanh()]
    net = nn.Sequential(*layers[:-1]).to(x.dtype)
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
    best, kept = 0, []
    for _ in range(epochs):
        net.train()
        for inputs, labels in train:
            optimizer.zero_grad()
            nn.functional.cross_entropy(net(inputs), labels).backward()
            optimizer.step()
        net.eval()
        right = sum(int((net(inputs).argmax(1) == labels).sum()) for inputs, labels in dev)
        if right >= best:
            best, kept = right, [parameter.detach().clone() for parameter in net.parameters()]
    return best, kept


@pytest.fixture(scope="module")
def noisy():
    """Two languages with two dev sets of 30, three classes that overlap."""
    generator = torch.Generator().manual_seed(0)
    means = torch.randn(3, 16, generator=generator)
    y, dev_y = (torch.randint(3, (2, size), generator=generator) for size in (50, 30))
    x, dev_x = (
        (means[of] + 2 * torch.randn(*of.shape, 16, generator=generator)).double()
        for of in (y, dev_y)
    )
    return x, y, dev_x, dev_y


def test_side_by_side_is_one_at_a_time(noisy):
    x, y, dev_x, dev_y = noisy
    together = train_mlps(*noisy, classes=3, seeds=SEEDS, epochs=40)
    for language in range(2):
        for place, seed in enumerate(SEEDS):
            sets = (x[language], y[language], dev_x[language], dev_y[language])
            right, parameters = laser(*sets, classes=3, seed=seed, epochs=40)
            assert int(together.dev_right[language, place]) == right
            for (weight, bias), (their_weight, their_bias) in zip(
                together.layers, zip(parameters[::2], parameters[1::2], strict=True), strict=True
            ):
                torch.testing.assert_close(
                    weight[language, place], their_weight, rtol=0, atol=1e-12
                )
                torch.testing.assert_close(bias[language, place, 0], their_bias, rtol=0, atol=1e-12)
    assert together.dev_right.unique().numel() > 2  # the seeds did not all find the same


def test_of_equally_good_epochs_the_last_is_kept():
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    y = torch.tensor([[0, 1]])
    # a dev example of each class at one point: always one right
    dev_x, dev_y = torch.zeros(1, 2, 2), torch.tensor([[0, 1]])
    last = train_mlps(x, y, dev_x, dev_y, classes=2, seeds=(1,), epochs=20)
    longer = train_mlps(x, y, dev_x, dev_y, classes=2, seeds=(1,), epochs=21)
    assert int(last.dev_right) == int(longer.dev_right) == 1
    assert not torch.equal(last.layers[0][0], longer.layers[0][0])


def test_what_is_easily_told_apart_is_learned():
    y = torch.arange(60).remainder(4)[None]
    x = nn.functional.one_hot(y, 8).float() * 4
    nets = train_mlps(x, y, x, y, classes=4, seeds=(1, 2), epochs=150)
    assert nets.dev_right.tolist() == [[60, 60]]
    assert (nets.predict(x[0], 0) == y[0]).all()
    assert nets.predict(x[0, :5], 0).shape == (2, 5)
