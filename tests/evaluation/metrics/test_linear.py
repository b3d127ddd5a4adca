from __future__ import annotations

import pytest
import torch

from interlingua.evaluation.metrics.linear import class_numbers, linear_start


def test_it_is_the_start_of_torchs_own_layers():
    torch.manual_seed(7)
    layers = torch.nn.Linear(5, 3), torch.nn.Linear(3, 2)
    generator = torch.Generator().manual_seed(7)
    for layer in layers:
        weight, bias = linear_start(layer.in_features, layer.out_features, generator)
        assert torch.equal(weight, layer.weight.detach())
        assert torch.equal(bias, layer.bias.detach())


def test_classes_are_numbered_in_their_order():
    assert class_numbers(["b", "a", "b"], ["a", "b"]).tolist() == [1, 0, 1]
    with pytest.raises(KeyError):
        class_numbers(["c"], ["a", "b"])
