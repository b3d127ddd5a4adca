"""RetroMAE's decoders against loops over sentences and tokens."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from interlingua.batches.masking import IGNORED, LabeledTokens, random_context
from interlingua.batches.tokens import BatchPosition
from interlingua.encoder.encoder import Encoder
from interlingua.methods.decoders.masked_decoders import MaskedDecoder
from tests.encoder.naive import naive_embed, naive_layer

PLACE = BatchPosition(seed=5, step=2, side="decoder a", first_row=3)


def parts(encoder, random_batch, *, layers=1, skip):
    torch.manual_seed(3)
    decoder = MaskedDecoder(encoder.backbone, layers, skip=skip).eval()
    batch = random_batch([4, 6, 2, 4])
    labels = torch.where(torch.arange(16) % 3 > 0, batch.input_ids, IGNORED)
    return decoder, batch, labels, torch.randn(4, encoder.dim)


def chosen(labels):
    """Return the places of a loop's labels, and the labels."""
    labels = torch.cat(labels)
    places = (labels != IGNORED).nonzero()[:, 0]
    return LabeledTokens(places, labels[places])


@pytest.mark.parametrize(("skip", "model_type"), [(0, "bert"), (1, "bert"), (1, "xlm-roberta")])
@torch.no_grad()
def test_enhanced_decoding_is_equations_4_to_7(framed_encoder, random_batch, skip, model_type):
    config = dataclasses.replace(
        framed_encoder.backbone.config, model_type=model_type
    )  # where positions start
    encoder = Encoder.from_scratch(config, framed_encoder.vocabulary).eval()
    backbone = encoder.backbone
    decoder, batch, labels, h = parts(encoder, random_batch, skip=skip)
    arrangement = decoder.arranged(batch, labels)
    states = decoder.enhanced(backbone, arrangement, h, PLACE, hidden=0.5)
    expected, targets = [], []
    sentences = zip(
        *(t.split(batch.lengths.tolist()) for t in (batch.input_ids, labels)), strict=True
    )
    for row, (ids, label) in enumerate(sentences):
        places = torch.arange(skip, len(ids))
        positions = backbone.position_embeddings.weight[places + config.first_position]
        h_1 = torch.cat([h[row : row + 1], h[row] + positions])  # Eq. (4)
        h_2 = torch.cat([h[row : row + 1], naive_embed(backbone, ids[skip:], places)])
        shown = random_context(PLACE, torch.tensor([row]), len(h_1), hidden=0.5)[0]  # Eq. (7)
        for i in range(len(h_1)):
            shown[i, i] = False
            shown[i, 0] = True
        expected.append(naive_layer(decoder.layers[0], h_1, context=h_2, shown=shown))  # Eq. (5)
        targets.append(torch.cat([torch.tensor([IGNORED]), label[skip:]]))
    torch.testing.assert_close(states, torch.cat(expected), rtol=1e-4, atol=1e-5)
    assert all(map(torch.equal, arrangement.labeled, chosen(targets)))


@pytest.mark.parametrize(("skip", "layers"), [(0, 1), (1, 2)])
@torch.no_grad()
def test_basic_decoding_is_equation_2(framed_encoder, random_batch, skip, layers):
    decoder, batch, labels, h = parts(framed_encoder, random_batch, layers=layers, skip=skip)
    arrangement = decoder.arranged(batch, labels)
    states = decoder(framed_encoder.backbone, arrangement, h)
    expected, targets = [], []
    sentences = zip(
        *(t.split(batch.lengths.tolist()) for t in (batch.input_ids, labels)), strict=True
    )
    for row, (ids, label) in enumerate(sentences):
        embedded = naive_embed(framed_encoder.backbone, ids[skip:], torch.arange(skip, len(ids)))
        x = torch.cat([h[row : row + 1], embedded])
        for layer in decoder.layers:
            x = naive_layer(layer, x)
        expected.append(x)
        targets.append(torch.cat([torch.tensor([IGNORED]), label[skip:]]))
    torch.testing.assert_close(states, torch.cat(expected), rtol=1e-4, atol=1e-5)
    assert all(map(torch.equal, arrangement.labeled, chosen(targets)))


@torch.no_grad()
def test_no_token_sees_itself_but_all_see_the_vector(framed_encoder, random_batch):
    decoder, batch, labels, h = parts(framed_encoder, random_batch, skip=0)

    def states(ids, vectors):
        changed = decoder.arranged(batch._replace(input_ids=ids), labels)
        return decoder.enhanced(framed_encoder.backbone, changed, vectors, PLACE, hidden=0.5)

    before = states(batch.input_ids, h)
    ids = batch.input_ids.clone()
    ids[6] += 1  # third token of the second sentence, behind two vectors
    after = states(ids, h)
    changed = (before != after).any(dim=1).nonzero()[:, 0].tolist()
    assert 8 not in changed
    assert changed
    assert set(changed) <= {6, 7, 9, 10, 11}
    everywhere = (before != states(batch.input_ids, h + 1)).any(dim=1)
    assert everywhere.all()


@torch.no_grad()
def test_with_all_hidden_only_vector_and_position_tell(framed_encoder, random_batch):
    decoder, batch, labels, h = parts(framed_encoder, random_batch, skip=1)
    others = batch._replace(input_ids=batch.input_ids.flip(0))
    one, other = (
        decoder.enhanced(
            framed_encoder.backbone, decoder.arranged(ids, labels), h, PLACE, hidden=1.0
        )
        for ids in (batch, others)
    )
    torch.testing.assert_close(one, other)
