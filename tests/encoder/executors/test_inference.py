from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

from interlingua.encoder.executors import inference
from interlingua.encoder.executors.inference import FrozenBackbone, _PackedLinear, batch_size
from interlingua.encoder.modeling.backbone import ACTIVATIONS
from tests.encoder.shapes import states_of, tiny_backbone


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
    fused = _PackedLinear(torch.eye(8), torch.zeros(8), activation, dtype=torch.float32)
    assert torch.allclose(fused(x), ACTIVATIONS[activation].function(x), atol=1e-5)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("activation", list(ACTIVATIONS))
def test_snapshot_computes_what_the_backbone_computes(activation, random_batch):
    backbone, batch = tiny_backbone(hidden_act=activation), random_batch([1, 17, 4, 4, 90])
    frozen = FrozenBackbone(backbone, torch.float32)
    assert (states_of(frozen, batch) - states_of(backbone, batch)).abs().max() < 1e-5


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize(
    ("dtype", "activation", "least"),
    [
        (torch.bfloat16, "gelu", 0.999),
        *((torch.int8, activation, 0.9995) for activation in ACTIVATIONS),
    ],
)
def test_fewer_bits_are_close(dtype, activation, least, random_batch):
    backbone, batch = tiny_backbone(hidden_act=activation), random_batch([12, 3, 30])
    frozen = FrozenBackbone(backbone, dtype)
    states = states_of(frozen, batch)
    assert frozen.dtype == dtype
    assert states.dtype == (torch.float32 if dtype == torch.int8 else dtype)
    cosines = F.cosine_similarity(states.float(), states_of(backbone, batch))
    assert least < cosines.min() < 1 - 1e-7


def test_sizes_of_batches_are_few_and_close():
    sizes = [batch_size(tokens) for tokens in range(4097)]
    assert len(set(sizes)) == 97
    by_hand = {0: 0, 1: 8, 8: 8, 9: 16, 128: 128, 129: 136, 256: 256, 257: 272, 2049: 2176}
    assert {tokens: sizes[tokens] for tokens in by_hand} == by_hand
    assert sizes[4096] == 4096
    assert all(0 <= size - tokens < max(8, tokens / 16) for tokens, size in enumerate(sizes))


@pytest.mark.usefixtures("engine")
def test_products_have_sizes_of_batches_alone(random_batch, monkeypatch):
    backbone, rows = tiny_backbone(), set()
    call = _PackedLinear.__call__
    monkeypatch.setattr(
        _PackedLinear,
        "__call__",
        lambda self, x, plus=None: rows.add(len(x)) or call(self, x, plus),
    )
    frozen = FrozenBackbone(backbone, torch.float32)
    for tokens in range(1, 40):
        batch = random_batch([tokens])
        assert (states_of(frozen, batch) - states_of(backbone, batch)).abs().max() < 1e-5
    assert rows == {8, 16, 24, 32, 40}


def test_onednn_refuses_dtypes_the_processor_lacks(monkeypatch):
    for name in inference.NEEDED_SUPPORT.values():
        monkeypatch.setattr(torch.ops.mkldnn, name, lambda: False)
    assert inference._onednn(torch.bfloat16) is None
    assert inference._onednn(torch.float16) is None
