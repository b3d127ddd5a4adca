"""RetroMAE against loops over sentences, and what each option does."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.feeds import SentenceBatch
from interlingua.batches.masking import IGNORED, random_context
from interlingua.methods.retromae import RetroMAE, RetroMAEConfig
from interlingua.training.build import feeds_of
from interlingua.training.config import MethodConfig
from tests.encoder.naive import naive_backbone, naive_cross_entropy, naive_embed, naive_layer
from tests.methods.framed import framed_encoder, framed_pairs, rows


def build(**options):
    torch.manual_seed(1)
    objective = RetroMAE(RetroMAEConfig(**options), framed_encoder()).eval()
    torch.nn.init.normal_(objective.head.bias)
    return objective


def sentences(count=5):
    return SentenceBatch(framed_pairs(count).a, step=3, first_row=2, seed=7)


def told(objective, states, labels):
    words = objective.encoder.backbone.word_embeddings.weight
    return [
        naive_cross_entropy(objective.head.transform(h), words, objective.head.bias, label)
        for h, label in zip(states, labels, strict=True)
        if label != IGNORED
    ]


def reference(objective, batch, place):
    """Compute algorithm 1 with loops, sentence by sentence: (L_enc, L_dec)."""
    config, backbone = objective.config, objective.encoder.backbone
    masked = objective.mask(batch, place, ratio=config.encoder_ratio)
    aside = place._replace(side=f"decoder {place.side}")
    again = objective.mask(batch, aside, ratio=config.decoder_ratio, replace="always")
    enc, dec = [], []
    parts = zip(
        rows(batch),
        rows(masked.batch),
        rows(batch, masked.labels),
        rows(again.batch),
        rows(batch, again.labels),
        strict=True,
    )
    for row, (ids, seen, labels, shown_ids, hidden) in enumerate(parts):
        states = naive_backbone(backbone, seen)
        enc += told(objective, states, labels)
        h = states[:1]  # Eq. (1); it replaces the first token
        places = range(1, len(ids))
        if config.enhanced:
            h_1 = torch.cat([h, h + backbone.position_embeddings.weight[1 : len(ids)]])
            h_2 = torch.cat([h, naive_embed(backbone, ids[1:], places)])
            shown = random_context(
                aside, torch.tensor([row]), len(ids), hidden=config.decoder_ratio
            )[0]
            shown[range(len(ids)), range(len(ids))] = False
            shown[:, 0] = True
            out = naive_layer(objective.decoder.layers[0], h_1, context=h_2, shown=shown)
            dec += told(objective, out[1:-1], ids[1:-1])  # neither <s> nor </s>
        else:
            out = torch.cat([h, naive_embed(backbone, shown_ids[1:], places)])
            for layer in objective.decoder.layers:
                out = naive_layer(layer, out)
            dec += told(objective, out[1:], hidden[1:])
    return sum(enc) / len(enc), sum(dec) / len(dec)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"decoder_ratio": 0.9},
        {"enhanced": False},
        {"enhanced": False, "decoder_layers": 2, "encoder_ratio": 0.15},
    ],
)
@torch.no_grad()
def test_both_losses_are_algorithm_1(options):
    objective, batch = build(**options), sentences()
    enc, dec = reference(objective, batch.sentences, batch.place())
    terms = objective(batch).terms
    torch.testing.assert_close(terms["encoder"], enc, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(terms["decoder"], dec, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_pairs_are_two_sentences():
    objective, pairs = build(text="pairs"), framed_pairs()
    sides = [
        reference(objective, side, pairs.place(name))
        for side, name in ((pairs.a, "a"), (pairs.b, "b"))
    ]
    terms = objective(pairs).terms
    for place, name in enumerate(("encoder", "decoder")):
        torch.testing.assert_close(
            terms[name], (sides[0][place] + sides[1][place]) / 2, rtol=1e-4, atol=1e-5
        )


def test_text_decides_the_feed():
    feeds = [
        feeds_of(MethodConfig(name="retromae", options=RetroMAEConfig(text=t)))
        for t in ("monolingual", "pairs")
    ]
    assert feeds == [("monolingual",), ("parallel",)]


@torch.no_grad()
def test_words_that_are_all_alike_cost_the_logarithm_of_their_number():
    objective = build()
    objective.encoder.backbone.word_embeddings.weight.zero_()
    objective.head.bias.zero_()
    size = objective.encoder.backbone.config.vocab_size
    terms = objective(sentences()).terms
    assert [float(term) for term in terms.values()] == pytest.approx([math.log(size)] * 2, rel=1e-6)


def test_the_reconstruction_trains_the_encoder_through_the_vector():
    objective, seen = build(encoder_weight=0.0, decoder_ratio=1.0), []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, out: seen.append(out) or out.retain_grad()
    )
    batch = sentences()
    output = objective(batch)
    assert set(output.terms) == {"decoder"}
    output.loss.backward()
    first = batch.sentences.cu_seqlens[:-1].long()
    others = torch.ones(len(seen[0]), dtype=torch.bool).index_fill(0, first, False)
    assert (seen[0].grad[first].abs().sum(dim=1) > 0).all()
    assert seen[0].grad[others].abs().sum() == 0
