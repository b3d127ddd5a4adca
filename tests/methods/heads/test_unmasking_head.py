"""The unmasking head against torch's own padded transformer, with and without an opening token."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from interlingua.errors import ConfigError
from interlingua.methods.heads.unmasking_head import UnmaskingHead, UnmaskingHeadConfig

SMALL = UnmaskingHeadConfig(layers=2, heads=4, intermediate_size=24)


def torch_layers(head):
    """Build the same layers from torch's modules, with the same weights."""
    copies = []
    for layer in head.layers:
        spec = layer.spec
        copy = nn.TransformerEncoderLayer(
            spec.width,
            spec.heads,
            spec.inner,
            dropout=0.0,
            activation="gelu",
            layer_norm_eps=1e-12,
            batch_first=True,
        )
        weight, bias = layer.joint_projection()
        modules = [
            (copy.self_attn.out_proj, layer.attention_output),
            (copy.norm1, layer.attention_norm),
            (copy.linear1, layer.intermediate),
            (copy.linear2, layer.output),
            (copy.norm2, layer.output_norm),
        ]
        with torch.no_grad():
            copy.self_attn.in_proj_weight.copy_(weight)
            copy.self_attn.in_proj_bias.copy_(bias)
        for theirs, ours in modules:
            theirs.load_state_dict(ours.state_dict())
        copies.append(copy.to(weight.dtype))
    return copies


def padded_reference(head, states, cu_seqlens, vectors):
    """Compute the head's output on a padded rectangle with torch's layers."""
    skipped = int(head.replaces_first)
    sentences = [
        torch.cat([vectors[row : row + 1], part[skipped:]])
        for row, part in enumerate(states.split(cu_seqlens.diff().tolist()))
    ]
    x = nn.utils.rnn.pad_sequence(sentences, batch_first=True)
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    outside = torch.arange(x.shape[1]) >= lengths[:, None]
    for layer in torch_layers(head):
        x = layer(x, src_key_padding_mask=outside)
    return torch.cat(
        [row[1 - skipped : length] for row, length in zip(x, lengths.tolist(), strict=True)]
    )


@pytest.fixture(params=["plain", "framed"])
def one(request, encoder, framed_encoder):
    """An encoder with or without a token at the start of sentences."""
    return {"plain": encoder, "framed": framed_encoder}[request.param]


def case(encoder, lengths=(5, 2, 9, 5, 3)):
    torch.manual_seed(3)
    head = UnmaskingHead(SMALL, encoder).eval()
    for parameter in head.parameters():  # norms away from 1 and 0
        parameter.data += 0.05 * torch.randn_like(parameter)
    cu_seqlens = torch.tensor([0, *torch.tensor(lengths).cumsum(0)], dtype=torch.int32)
    states = torch.randn(sum(lengths), encoder.dim)
    return head, states, cu_seqlens, torch.randn(len(lengths), encoder.dim)


def test_it_is_torchs_padded_transformer(one):
    head, states, cu_seqlens, vectors = case(one)
    inputs = [tensor.clone().requires_grad_() for tensor in (states, vectors)]
    expected = padded_reference(head, inputs[0], cu_seqlens, inputs[1])
    found = head(states.requires_grad_(), head.arranged(cu_seqlens), vectors.requires_grad_())
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    upstream = torch.randn_like(found)
    wanted = torch.autograd.grad(expected, inputs, upstream)
    torch.testing.assert_close(
        torch.autograd.grad(found, (states, vectors), upstream), wanted, rtol=1e-3, atol=1e-4
    )


def test_the_vector_stands_in_for_the_opening_token(framed_encoder, encoder):
    for given, replaces in ((framed_encoder, True), (encoder, False)):
        head, states, cu_seqlens, vectors = case(given)
        changed = states.clone()
        changed[cu_seqlens[:-1].long()] += 1
        whole = head.arranged(cu_seqlens)
        same = torch.allclose(head(changed, whole, vectors), head(states, whole, vectors))
        assert same is replaces


@torch.no_grad()
def test_only_the_own_sentence_and_vector_matter(one):
    head, states, cu_seqlens, vectors = case(one)
    whole = head(states, head.arranged(cu_seqlens), vectors)
    for row, (start, end) in enumerate(
        zip(cu_seqlens[:-1].tolist(), cu_seqlens[1:].tolist(), strict=True)
    ):
        one_sentence = head.arranged(torch.tensor([0, end - start]))
        alone = head(states[start:end], one_sentence, vectors[row : row + 1])
        torch.testing.assert_close(alone, whole[start:end], rtol=1e-4, atol=1e-5)


def test_it_starts_as_torch_starts_layers(encoder):
    torch.manual_seed(0)
    head = UnmaskingHead(UnmaskingHeadConfig(heads=8), encoder)
    assert len(head.layers) == 6
    assert head.layers[0].intermediate.weight.shape == (3072, encoder.dim)
    limit = encoder.dim**-0.5  # uniform in [-limit, limit]
    for weight in (head.bias, head.layers[5].query.weight, head.layers[0].intermediate.bias):
        assert 0.9 * limit < weight.abs().max() <= limit
        assert weight.std().item() == pytest.approx(limit / 3**0.5, rel=0.1)
    assert head.layers[0].output_norm.weight.unique().tolist() == [1.0]
    assert head.layers[0].output_norm.eps == 1e-12
    assert head.layers[0].dropout_rates() == (0.1, 0.0)


def test_a_width_that_heads_do_not_divide(encoder):
    with pytest.raises(ConfigError, match=r"width 32 .* 5 heads"):
        UnmaskingHead(UnmaskingHeadConfig(heads=5), encoder)


@pytest.mark.parametrize(
    "wrong", [{"layers": 0}, {"heads": 0}, {"intermediate_size": -1}, {"dropout": 1.0}]
)
def test_sizes_are_checked(wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))}: expected"):
        UnmaskingHeadConfig(**wrong)
