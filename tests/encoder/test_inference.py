from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder import inference
from interlingua.encoder.backbone import ACTIVATIONS, Backbone, BackboneConfig
from interlingua.encoder.inference import FrozenBackbone


def backbone_with(activation="gelu"):
    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=100, hidden_size=32, num_attention_heads=4, intermediate_size=48, hidden_act=activation
    )
    backbone = Backbone(config)
    backbone.initialise("torch")
    return backbone.eval()


@pytest.fixture(params=["onednn", "plain torch"])
def engine(request, monkeypatch):
    if request.param == "plain torch":
        monkeypatch.setattr(inference, "_onednn", lambda: None)
    elif inference._onednn() is None:
        pytest.skip("this torch has no oneDNN")
    return request.param


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_snapshot_computes_what_the_backbone_computes(activation, engine, random_batch):
    backbone, batch = backbone_with(activation), random_batch([1, 17, 4, 4, 90])
    frozen = FrozenBackbone(backbone, torch.float32)
    difference = frozen(batch.input_ids, batch.cu_seqlens) - backbone(batch.input_ids, batch.cu_seqlens)
    assert difference.abs().max() < 1e-5


def test_bfloat16_is_close(engine, random_batch):
    backbone, batch = backbone_with(), random_batch([12, 3, 30])
    states = FrozenBackbone(backbone, torch.bfloat16)(batch.input_ids, batch.cu_seqlens)
    assert states.dtype == torch.bfloat16
    assert F.cosine_similarity(states.float(), backbone(batch.input_ids, batch.cu_seqlens)).min() > 0.999


def test_snapshot_outlives_changes_of_the_weights(random_batch):
    backbone, batch = backbone_with(), random_batch([6])
    frozen = FrozenBackbone(backbone, torch.float32)
    before = frozen(batch.input_ids, batch.cu_seqlens)
    with torch.no_grad():
        for layer in backbone.layers:
            layer.output.weight.mul_(2)
    assert torch.equal(frozen(batch.input_ids, batch.cu_seqlens), before)
    assert not before.requires_grad
