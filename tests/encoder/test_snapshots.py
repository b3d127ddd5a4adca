from __future__ import annotations

import copy
import pickle

import pytest
import torch

from interlingua.encoder import snapshots
from interlingua.encoder.executors.layers import AutomaticDtype
from interlingua.encoder.snapshots import SnapshotCache
from tests.encoder.shapes import tiny_backbone


def test_a_snapshot_is_kept_for_one_dtype():
    backbone, cache = tiny_backbone(), SnapshotCache()
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
    backbone.load_state_dict(
        {name: 0.9 * tensor for name, tensor in backbone.state_dict().items()}, assign=True
    )


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
        in_place,
        optimizer_step,
        through_the_state_dict,
        loaded,
        assigned,
        one_row_of_the_words,
        without_a_layer,
        with_another_norm,
    ],
)
def test_weights_that_change_make_a_new_snapshot(change, random_batch):
    backbone, cache, batch = tiny_backbone(), SnapshotCache(), random_batch([5, 9], low=7, high=9)
    old = cache.snapshot(backbone, torch.float32)
    change(backbone)
    new = cache.snapshot(backbone, torch.float32)
    assert new is not old
    difference = new(batch.input_ids, batch.cu_seqlens) - backbone(
        batch.input_ids, batch.cu_seqlens
    )
    assert difference.abs().max() < 1e-5
    assert cache.snapshot(backbone, torch.float32) is new


def test_new_weights_never_get_the_address_of_those_in_the_snapshot():
    backbone, cache = tiny_backbone(), SnapshotCache()
    old = cache.snapshot(backbone, torch.float32)
    for _ in range(20):  # the allocator gives a freed block to the next request of its size
        weight = backbone.layers[0].output.weight
        weight.data = torch.empty(0)
        weight.data = torch.ones(32, 48)
        new = cache.snapshot(backbone, torch.float32)
        assert new is not old
        old = new


def test_nothing_is_kept_in_training_nor_of_weights_without_a_version():
    backbone, cache = tiny_backbone().train(), SnapshotCache()
    assert cache.snapshot(backbone, torch.float32) is not cache.snapshot(backbone, torch.float32)
    with torch.inference_mode():
        uncounted = tiny_backbone()
    assert cache.snapshot(uncounted, torch.float32) is not cache.snapshot(uncounted, torch.float32)


@pytest.mark.parametrize(
    "make", [copy.copy, copy.deepcopy, lambda cache: pickle.loads(pickle.dumps(cache))]
)
def test_copies_of_a_cache_are_empty(make):
    backbone, cache = tiny_backbone(), SnapshotCache()
    kept = cache.snapshot(backbone, torch.float32)
    assert make(cache).snapshot(backbone, torch.float32) is not kept
    assert cache.snapshot(backbone, torch.float32) is kept
    cache.clear()
    assert cache.snapshot(backbone, torch.float32) is not kept


def test_auto_is_found_once_for_the_weights_as_they_are(monkeypatch):
    backbone, cache, calls = tiny_backbone(), SnapshotCache(), []

    def found(backbone):
        calls.append(backbone)
        return AutomaticDtype(dtype=torch.int8, choices={}, cosines={})

    monkeypatch.setattr(snapshots, "automatic_dtype", found)
    first = cache.snapshot(backbone, None)
    assert first.dtype == torch.int8
    assert cache.snapshot(backbone, None) is first
    assert len(calls) == 1
    in_place(backbone)
    assert cache.snapshot(backbone, None) is not first
    assert len(calls) == 2
