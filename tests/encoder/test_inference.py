from __future__ import annotations

import copy
import pickle

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder import inference
from interlingua.encoder.backbone import ACTIVATIONS, Backbone, BackboneConfig
from interlingua.encoder.inference import FrozenBackbone, SnapshotCache, _Cast, _PackedLinear


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
    difference = frozen(batch.input_ids, batch.cu_seqlens) - backbone(batch.input_ids, batch.cu_seqlens)
    assert difference.abs().max() < 1e-5


def test_bfloat16_is_close(engine, random_batch):
    backbone, batch = backbone_with(), random_batch([12, 3, 30])
    states = FrozenBackbone(backbone, torch.bfloat16)(batch.input_ids, batch.cu_seqlens)
    assert states.dtype == torch.bfloat16
    assert F.cosine_similarity(states.float(), backbone(batch.input_ids, batch.cu_seqlens)).min() > 0.999


@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_bytes_are_close(activation, engine, random_batch):
    backbone, batch = backbone_with(activation), random_batch([12, 3, 30])
    frozen = FrozenBackbone(backbone, torch.int8)
    states = frozen(batch.input_ids, batch.cu_seqlens)
    assert (frozen.dtype, states.dtype) == (torch.int8, torch.float32)
    assert 0.9995 < F.cosine_similarity(states, backbone(batch.input_ids, batch.cu_seqlens)).min() < 1 - 1e-7


def test_a_snapshot_is_kept_for_one_dtype(engine):
    backbone, cache = backbone_with(), SnapshotCache()
    first = cache.snapshot(backbone, torch.float32)
    assert cache.snapshot(backbone, torch.float32) is first
    half = cache.snapshot(backbone, torch.bfloat16)
    assert half.dtype == torch.bfloat16
    assert cache.snapshot(backbone, torch.bfloat16) is half
    assert cache.snapshot(backbone, torch.int8).dtype == torch.int8
    assert cache.snapshot(backbone, torch.float32) is not first


def in_place(backbone):
    with torch.no_grad():
        backbone.layers[0].output.weight.mul_(2)


def optimizer_step(backbone):
    sum(weight.sum() for weight in backbone.parameters()).backward()
    torch.optim.AdamW(backbone.parameters(), lr=0.1).step()


def through_the_state_dict(backbone):
    backbone.state_dict()["position_embeddings.weight"].add_(1)


def loaded(backbone):
    backbone.load_state_dict({name: 0.9 * tensor for name, tensor in backbone.state_dict().items()})


def assigned(backbone):
    backbone.load_state_dict({name: 0.9 * tensor for name, tensor in backbone.state_dict().items()}, assign=True)


def one_row_of_the_words(backbone):
    with torch.no_grad():
        backbone.word_embeddings.weight[7] = 0


def without_a_layer(backbone):
    backbone.layers = backbone.layers[:1]


def with_another_norm(backbone):
    backbone.layers[0].output_norm = torch.nn.LayerNorm(32, 1e-12)


@pytest.mark.parametrize(
    "change",
    [
        in_place, optimizer_step, through_the_state_dict, loaded, assigned, one_row_of_the_words, without_a_layer,
        with_another_norm,
    ],
)  # fmt: skip
def test_weights_that_change_make_a_new_snapshot(change, engine, random_batch):
    backbone, cache, batch = backbone_with(), SnapshotCache(), random_batch([5, 9], low=7, high=9)
    old = cache.snapshot(backbone, torch.float32)
    change(backbone)
    new = cache.snapshot(backbone, torch.float32)
    assert new is not old
    difference = new(batch.input_ids, batch.cu_seqlens) - backbone(batch.input_ids, batch.cu_seqlens)
    assert difference.abs().max() < 1e-5
    assert cache.snapshot(backbone, torch.float32) is new


def test_new_weights_never_get_the_address_of_those_in_the_snapshot():
    backbone, cache = backbone_with(), SnapshotCache()
    old = cache.snapshot(backbone, torch.float32)
    for _ in range(20):  # the allocator gives a freed block to the next request of its size
        weight = backbone.layers[0].output.weight
        weight.data = torch.empty(0)
        weight.data = torch.ones(32, 48)
        new = cache.snapshot(backbone, torch.float32)
        assert new is not old
        old = new


def test_nothing_is_kept_in_training_nor_of_weights_without_a_version():
    backbone, cache = backbone_with().train(), SnapshotCache()
    assert cache.snapshot(backbone, torch.float32) is not cache.snapshot(backbone, torch.float32)
    with torch.inference_mode():
        uncounted = backbone_with()
    assert cache.snapshot(uncounted, torch.float32) is not cache.snapshot(uncounted, torch.float32)


@pytest.mark.parametrize("make", [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))])
def test_copies_of_a_cache_are_empty(make):
    backbone, cache = backbone_with(), SnapshotCache()
    kept = cache.snapshot(backbone, torch.float32)
    assert make(cache).snapshot(backbone, torch.float32) is not kept
    assert cache.snapshot(backbone, torch.float32) is kept
    cache.clear()
    assert cache.snapshot(backbone, torch.float32) is not kept


def test_onednn_refuses_dtypes_the_processor_lacks(monkeypatch):
    for name in inference.NEEDED_SUPPORT.values():
        monkeypatch.setattr(torch.ops.mkldnn, name, lambda: False)
    assert inference._onednn(torch.bfloat16) is None
    assert inference._onednn(torch.float16) is None
