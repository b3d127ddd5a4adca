from __future__ import annotations

import pytest
import torch

from interlingua.encoder.modeling.architectures import Stacked
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES


def test_stacked_rows_are_split_and_swapped():
    a, b, c = (torch.full((2, 3), value) for value in (1.0, 2.0, 3.0))
    joined = Stacked(("q", "k", "v"), ("qkv",))
    assert torch.equal(joined.to_theirs([a, b, c])[0], torch.cat([a, b, c]))
    assert all(map(torch.equal, joined.to_ours([torch.cat([a, b, c])]), [a, b, c]))
    swapped = Stacked(("x",), ("x",), swaps_halves=True)
    assert torch.equal(swapped.to_ours([torch.cat([a, b])])[0], torch.cat([b, a]))
    assert torch.equal(
        swapped.to_theirs(swapped.to_ours([torch.cat([a, b])]))[0], torch.cat([a, b])
    )


@pytest.mark.parametrize("model_type", list(FAMILIES))
def test_a_shape_is_written_and_read_unchanged(model_type):
    family = FAMILIES[model_type]
    values = {
        "model_type": model_type,
        "vocab_size": 9,
        "hidden_size": 8,
        "num_attention_heads": 2,
        **family.fixed,
    }
    types = {"type_vocab_size": 2} if family.has_types else {}
    config = BackboneConfig(**values, **types, num_hidden_layers=2, hidden_dropout_prob=0.25)
    assert family.shape(family.described(config)) == config
