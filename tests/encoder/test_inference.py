from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder import inference
from interlingua.encoder.backbone import ACTIVATIONS, Backbone, BackboneConfig
from interlingua.encoder.inference import FrozenBackbone, _Cast, _PackedLinear, batch_size


def backbone_with(activation="gelu"):
    torch.manual_seed(0)
    config = BackboneConfig(
        vocab_size=100,
        hidden_size=32,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_act=activation,
    )
    backbone = Backbone(config)
    backbone.initialize("torch")
    return backbone.eval()


@pytest.fixture(params=["onednn", "plain torch"])
def engine(request, monkeypatch):
    if request.param == "plain torch":
        monkeypatch.setattr(inference, "_onednn", lambda dtype: None)
    elif inference._onednn(torch.float32) is None:
        pytest.skip("this torch has no oneDNN")
    return request.param


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_fused_activations_are_the_plain_ones(activation):
    x = torch.linspace(-6, 6, 800).reshape(-1, 8)
    fused = _PackedLinear(torch.eye(8), torch.zeros(8), _Cast(torch.float32), activation)
    assert torch.allclose(fused(x), ACTIVATIONS[activation](x), atol=1e-5)


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_snapshot_computes_what_the_backbone_computes(activation, engine, random_batch):
    backbone, batch = backbone_with(activation), random_batch([1, 17, 4, 4, 90])
    frozen = FrozenBackbone(backbone, torch.float32)
    difference = frozen(batch.input_ids, batch.cu_seqlens) - backbone(
        batch.input_ids, batch.cu_seqlens
    )
    assert difference.abs().max() < 1e-5


def test_bfloat16_is_close(engine, random_batch):
    backbone, batch = backbone_with(), random_batch([12, 3, 30])
    states = FrozenBackbone(backbone, torch.bfloat16)(batch.input_ids, batch.cu_seqlens)
    assert states.dtype == torch.bfloat16
    assert (
        F.cosine_similarity(states.float(), backbone(batch.input_ids, batch.cu_seqlens)).min()
        > 0.999
    )


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_bytes_are_close(activation, engine, random_batch):
    backbone, batch = backbone_with(activation), random_batch([12, 3, 30])
    frozen = FrozenBackbone(backbone, torch.int8)
    states = frozen(batch.input_ids, batch.cu_seqlens)
    assert (frozen.dtype, states.dtype) == (torch.int8, torch.float32)
    assert (
        0.9995
        < F.cosine_similarity(states, backbone(batch.input_ids, batch.cu_seqlens)).min()
        < 1 - 1e-7
    )


def test_sizes_of_batches_are_few_and_close():
    sizes = [batch_size(tokens) for tokens in range(4097)]
    assert len(set(sizes)) == 97
    assert [sizes[tokens] for tokens in (0, 1, 8, 9, 128, 129, 256, 257, 2049, 4096)] == [
        0,
        8,
        8,
        16,
        128,
        136,
        256,
        272,
        2176,
        4096,
    ]
    assert all(0 <= size - tokens < max(8, tokens / 16) for tokens, size in enumerate(sizes))


def test_products_have_sizes_of_batches_alone(engine, random_batch, monkeypatch):
    backbone, rows = backbone_with(), set()
    call = _PackedLinear.__call__
    monkeypatch.setattr(
        _PackedLinear,
        "__call__",
        lambda self, x, plus=None: rows.add(len(x)) or call(self, x, plus),
    )
    frozen = FrozenBackbone(backbone, torch.float32)
    for tokens in range(1, 40):
        batch = random_batch([tokens])
        states = frozen(batch.input_ids, batch.cu_seqlens)
        assert (states - backbone(batch.input_ids, batch.cu_seqlens)).abs().max() < 1e-5
    assert rows == {8, 16, 24, 32, 40}


def test_onednn_refuses_dtypes_the_processor_lacks(monkeypatch):
    for name in inference.NEEDED_SUPPORT.values():
        monkeypatch.setattr(torch.ops.mkldnn, name, lambda: False)
    assert inference._onednn(torch.bfloat16) is None
    assert inference._onednn(torch.float16) is None
