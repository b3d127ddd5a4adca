"""Modules are made without memory, and without what torch imports to draw their initial values."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.meta_device import meta_device

IMPORTED = """
import sys
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.meta_device import meta_device

with meta_device():
    Backbone(BackboneConfig.preset("ems-tiny", vocab_size=50))
print(sorted({"torch._dynamo", "sympy"} & sys.modules.keys()))
"""


def test_shapes_are_those_of_the_usual_modules():
    config = BackboneConfig.preset("ems-tiny", vocab_size=50)
    with meta_device():
        found = Backbone(config)
    usual = Backbone(config)
    assert {name: tensor.shape for name, tensor in found.state_dict().items()} == {
        name: tensor.shape for name, tensor in usual.state_dict().items()
    }
    assert all(parameter.is_meta for parameter in found.parameters())
    assert not any(parameter.is_meta for parameter in usual.parameters())


def test_no_number_is_drawn():
    torch.manual_seed(0)
    expected = torch.rand(2)
    torch.manual_seed(0)
    with meta_device():
        Backbone(BackboneConfig.preset("ems-tiny", vocab_size=50))
    assert torch.equal(torch.rand(2), expected)


TORCH = tuple(map(int, torch.__version__.split(".")[:2]))


@pytest.mark.skipif(TORCH < (2, 13), reason="older versions of torch import more")
def test_the_compiler_is_not_imported():
    found = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "[]"
