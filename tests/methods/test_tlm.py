"""XLM's language models against loops over pairs, and what each option does."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.masking import IGNORED
from interlingua.batches.sentences import take
from interlingua.errors import DataError
from interlingua.methods.tlm import TLM, TLMConfig
from tests.encoder.naive import naive_backbone, naive_cross_entropy
from tests.methods.conftest import tiny_encoder
from tests.methods.framed import framed_encoder, framed_pairs, rows
from tests.methods.harness import tiny_batch


def build(encoder=None, **options):
    torch.manual_seed(1)
    objective = TLM(TLMConfig(**options), encoder or framed_encoder())
    torch.nn.init.normal_(objective.head.bias)
    return objective.eval()


def told(objective, states, labels):
    """Compute cross-entropies of the labeled tokens of one sequence."""
    words = objective.encoder.backbone.word_embeddings.weight
    hidden = objective.head.transform(states)
    return [
        naive_cross_entropy(h, words, objective.head.bias, label)
        for h, label in zip(hidden, labels, strict=True)
        if label != IGNORED
    ]


def reference_tlm(objective, pairs, *, skip=0, reset=True):
    """Encode each pair separately as [a; b], and predict the hidden tokens of both."""
    (a, labels_a), (b, labels_b) = (objective.mask(getattr(pairs, s), pairs.place(s)) for s in "ab")
    losses = []
    for x, lx, y, ly in zip(rows(a), rows(a, labels_a), rows(b), rows(b, labels_b), strict=True):
        ids, labels = torch.cat([x, y[skip:]]), torch.cat([lx, ly[skip:]])
        positions = [*range(len(x)), *range(skip, len(y))] if reset else range(len(ids))
        losses += told(
            objective, naive_backbone(objective.encoder.backbone, ids, positions), labels
        )
    return sum(losses) / len(losses)


def reference_mlm(objective, batch, place):
    masked = objective.mask(batch, place)
    losses = []
    for ids, labels in zip(rows(masked.batch), rows(batch, masked.labels), strict=True):
        losses += told(objective, naive_backbone(objective.encoder.backbone, ids), labels)
    return sum(losses) / len(losses)


@pytest.mark.parametrize("transform", [True, False])
@torch.no_grad()
def test_translation_modeling_pair_by_pair(transform):
    objective, pairs = build(mask_ratio=0.4, transform=transform), framed_pairs()
    torch.testing.assert_close(objective(pairs).terms["tlm"], reference_tlm(objective, pairs))


@torch.no_grad()
def test_running_positions_leave_out_the_second_begin():
    objective, pairs = build(mask_ratio=0.4, reset_positions=False), framed_pairs()
    expected = reference_tlm(objective, pairs, skip=1, reset=False)
    torch.testing.assert_close(objective(pairs).terms["tlm"], expected)
    assert abs(expected - reference_tlm(objective, pairs)) > 1e-4


@torch.no_grad()
def test_masked_modeling_of_each_side_alone():
    objective, pairs = build(mask_ratio=0.4), framed_pairs()
    places = (pairs.place(side)._replace(side=f"mlm {side}") for side in "ab")
    sides = [
        reference_mlm(objective, side, at)
        for side, at in zip((pairs.a, pairs.b), places, strict=True)
    ]
    torch.testing.assert_close(objective(pairs).terms["mlm"], sum(sides) / 2)


@torch.no_grad()
def test_masked_modeling_of_monolingual_text():
    options = {"mlm_text": "monolingual"}
    assert TLM.feeds_for(TLMConfig()) == ("parallel",)
    objective, batch = build(tiny_encoder(), mask_ratio=0.4, **options), tiny_batch("tlm", options)
    assert list(batch) == ["parallel", "monolingual"]
    sentences = batch["monolingual"]
    expected = reference_mlm(objective, sentences.sentences, sentences.place())
    torch.testing.assert_close(objective(batch).terms["mlm"], expected)


@torch.no_grad()
def test_words_that_are_all_alike_cost_the_logarithm_of_their_number():
    objective, pairs = build(), framed_pairs()
    objective.encoder.backbone.word_embeddings.weight.zero_()
    objective.head.bias.zero_()
    terms = objective(pairs).terms
    size = objective.encoder.backbone.config.vocab_size
    assert [float(term) for term in terms.values()] == pytest.approx([math.log(size)] * 2, rel=1e-6)


@torch.no_grad()
def test_only_translation_modeling_looks_at_the_translation():
    objective, pairs = build(mask_ratio=0.4, mlm_text="monolingual"), framed_pairs()
    ids = pairs.b.input_ids.clone()
    labels = objective.mask(pairs.b, pairs.place("b")).labels
    shown = ((labels == IGNORED) & (ids > 4)).nonzero()[0]
    ids[shown] += 1
    other = pairs._replace(b=pairs.b._replace(input_ids=ids))
    one, changed = (objective.masked_pairs(batch) for batch in (pairs, other))
    assert not torch.equal(
        objective.translation_modeling(changed), objective.translation_modeling(one)
    )
    one, same = (objective.masked_sentences(batch.a, batch.place("a")) for batch in (pairs, other))
    assert torch.equal(objective.alone(one), objective.alone(same))


@torch.no_grad()
def test_pairs_do_not_see_one_another():
    objective, pairs = build(mask_ratio=1.0, tlm_weight=1.0, mlm_weight=0.0), framed_pairs(2)
    alone = [
        pairs._replace(a=take(pairs.a, [row]), b=take(pairs.b, [row]), first_row=row)
        for row in range(2)
    ]
    counts = [sum(len(ids) - 2 for ids in (rows(p.a)[0], rows(p.b)[0])) for p in alone]
    expected = sum(objective(p).loss * n for p, n in zip(alone, counts, strict=True)) / sum(counts)
    torch.testing.assert_close(objective(pairs).loss, expected)


@pytest.mark.parametrize("term", ["tlm", "mlm"])
def test_each_term_can_be_switched_off(term):
    objective = build(**{f"{term}_weight": 0.0})
    both, one = build()(framed_pairs()), objective(framed_pairs())
    assert set(both.terms) - set(one.terms) == {term}
    torch.testing.assert_close(both.loss - one.loss, both.terms[term])


def test_two_sentences_that_don_t_fit_are_an_error():
    objective = build(framed_encoder(max_position_embeddings=12), reset_positions=False)
    with pytest.raises(DataError, match=r"12 positions; .*reset_positions"):
        objective(framed_pairs())
    build(framed_encoder(max_position_embeddings=12))(framed_pairs())
