"""DAP against loops over pairs and tokens, and what each option does."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.masking import IGNORED
from interlingua.batches.sentences import join, take
from interlingua.errors import ConfigError, DataError
from interlingua.methods.dap import DAP, DAPConfig
from tests.encoder.naive import naive_backbone, naive_cross_entropy
from tests.methods.framed import framed_encoder, framed_pairs, rows
from tests.methods.harness import cosine

TOLD = {"languages": ("de", "fr", "en")}
MASK = 2


def build(encoder=None, *, training=False, **options):
    torch.manual_seed(1)
    objective = DAP(DAPConfig(**options), encoder or framed_encoder()).train(training)
    if objective.head is not None:
        torch.nn.init.normal_(objective.head.tell.bias)
        torch.nn.init.normal_(objective.head.backbone.word_embeddings.weight)
    return objective


def states_of(objective, batch):
    return [naive_backbone(objective.encoder.backbone, ids) for ids in rows(batch)]


def reference_ranking(objective, pairs, *, both=False):
    """Compute Eq. (5) with loops: cosines of projected [CLS] states / T."""
    x, y = (
        [objective.project(h[0]) for h in states_of(objective, side)] for side in (pairs.a, pairs.b)
    )
    temperature = objective.config.temperature
    s = [[cosine(u, v) / temperature for v in y] for u in x]
    forward = -sum(s[i][i] - math.log(sum(map(math.exp, s[i]))) for i in range(len(s))) / len(s)
    columns = [list(column) for column in zip(*s, strict=True)]
    back = -sum(c[i] - math.log(sum(map(math.exp, c))) for i, c in enumerate(columns)) / len(s)
    return (forward + back) / 2 if both else forward


def reference_reconstruction(objective, sources, targets, labels, *, languages=False):
    """Compute Eq. (4) and (6) with loops: [h_2 .. h_Sx, MASK x Sy] through the head.

    h_Sx, MASK x Sy] through the head, and each token predicted.
    """
    head, losses = objective.head, []
    words = head.backbone.word_embeddings.weight
    parts = zip(
        *(states_of(objective, side) for side in (sources, targets)),
        rows(targets, labels),
        strict=True,
    )
    for row, (h_x, h_y, told) in enumerate(parts):
        tag = 0.0
        if languages:
            tag = objective.tags.embedding.weight[objective.tags.index[targets.languages[row]]]
        shown = [
            words[MASK] + tag if label != IGNORED else h
            for label, h in zip(told[1:], h_y[1:], strict=True)
        ]
        g = torch.cat([h_x[1:], torch.stack(shown)])  # without [CLS] on either side
        places = [*range(1, len(h_x)), *range(1, len(h_y))]
        g = naive_backbone(head.backbone, [0] * len(g), places, words=g)[len(h_x) - 1 :]
        for state, label in zip(head.tell.transform(g), told[1:], strict=True):
            if label != IGNORED:
                losses.append(naive_cross_entropy(state, words, head.tell.bias, label))
    return sum(losses) / len(losses)


@pytest.mark.parametrize(
    ("options", "both"),
    [({}, False), ({"ranking": "both"}, True), ({"projection": False, "temperature": 0.3}, False)],
)
@torch.no_grad()
def test_ranking_is_equation_5(options, both):
    objective, pairs = build(**options), framed_pairs()
    expected = reference_ranking(objective, pairs, both=both)
    assert float(objective(pairs).terms["tr"]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("layers", [1, 2])
@torch.no_grad()
def test_reconstruction_is_equations_4_and_6(layers):
    objective, pairs = build(head_layers=layers), framed_pairs()
    expected = reference_reconstruction(objective, pairs.a, pairs.b, pairs.b.input_ids)
    torch.testing.assert_close(objective(pairs).terms["rtl"], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_share_of_tokens_is_reconstructed_from_the_others_states_too():
    objective, pairs = build(reconstruct=0.5), framed_pairs()
    labels = objective.labels(pairs.b, pairs.place("b"))
    share = float((labels != IGNORED).float().mean())
    assert 0.2 < share < 0.8
    expected = reference_reconstruction(objective, pairs.a, pairs.b, labels)
    torch.testing.assert_close(objective(pairs).terms["rtl"], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_the_other_direction_is_told_the_language():
    objective, pairs = build(direction="from_pivot", **TOLD), framed_pairs()
    expected = reference_reconstruction(
        objective, pairs.b, pairs.a, pairs.a.input_ids, languages=True
    )
    torch.testing.assert_close(objective(pairs).terms["rtl"], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_both_directions_share_the_pairs():
    objective, pairs = build(direction="both", **TOLD), framed_pairs(5)
    first, rest = [0, 1], [2, 3, 4]
    there = take(pairs.a, rest), take(pairs.b, rest)
    back = take(pairs.b, first), take(pairs.a, first)
    expected = (
        reference_reconstruction(objective, *there, there[1].input_ids)
        + reference_reconstruction(objective, *back, back[1].input_ids, languages=True)
    ) / 2
    torch.testing.assert_close(objective(pairs).terms["rtl"], expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_of_a_pair_the_same_tokens_are_hidden_whichever_way_it_goes(monkeypatch):
    """Compare the draws of row i, also if a half of the pairs is in each direction."""
    drawn = {}
    labels = DAP.labels
    for direction in ("to_pivot", "both"):
        found = drawn[direction] = []
        monkeypatch.setattr(
            DAP, "labels", lambda self, *a, found=found: found.append(labels(self, *a)) or found[-1]
        )
        told = {} if direction == "to_pivot" else TOLD
        build(direction=direction, reconstruct=0.5, **told)(framed_pairs(5))
    there, _ = drawn["both"]
    assert torch.equal(drawn["to_pivot"][0][-len(there) :], there)


@torch.no_grad()
def test_the_pivot_is_found_on_either_side():
    objective, pairs = build(), framed_pairs()
    turned = pairs._replace(a=pairs.b, b=pairs.a)
    for term, value in objective(pairs).terms.items():
        torch.testing.assert_close(objective(turned).terms[term], value)


def test_a_pair_without_the_pivot_is_an_error():
    with pytest.raises(DataError, match=r"no side in .*rus_Cyrl"):
        build(pivot="ru")(framed_pairs())


@torch.no_grad()
def test_words_that_are_all_alike_cost_the_logarithm_of_their_number():
    objective = build()
    objective.head.backbone.word_embeddings.weight.zero_()
    objective.head.tell.bias.zero_()
    size = objective.encoder.backbone.config.vocab_size
    assert float(objective(framed_pairs()).terms["rtl"]) == pytest.approx(math.log(size), rel=1e-6)


def test_the_first_token_carries_the_sentence_alone():
    objective, pairs = build(tr_weight=0.0), framed_pairs(2)
    seen = []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, out: seen.append(out) or out.retain_grad()
    )
    objective(pairs).loss.backward()
    first = torch.cat(
        [pairs.a.cu_seqlens[:-1], pairs.b.cu_seqlens[:-1] + pairs.a.cu_seqlens[-1]]
    ).long()
    assert seen[0].grad[first].abs().sum() == 0
    assert (seen[0].grad[1 : len(rows(pairs.a)[0])].abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize("term", ["tr", "rtl"])
def test_each_term_can_be_switched_off(term):
    objective, pairs = build(**{f"{term}_weight": 0.0}), framed_pairs()
    assert set(objective(pairs).terms) == {"tr", "rtl"} - {term}
    assert (objective.head is None) == (term == "rtl")


def test_the_encoder_runs_once_over_both_sides():
    objective, pairs, seen = build(), framed_pairs(), []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, out: seen.append(len(out))
    )
    objective(pairs)
    assert seen == [len(join(pairs.a, pairs.b).input_ids)]


def test_a_head_of_more_layers_than_the_encoder_is_an_error():
    with pytest.raises(ConfigError, match=r"head_layers: .* 2, .*found 3"):
        build(head_layers=3)


def test_languages_have_to_be_named_where_the_vocabulary_has_none():
    with pytest.raises(ConfigError, match="no language tags"):
        build(direction="both")
    with pytest.raises(DataError, match="deu_Latn has no tag"):
        build(direction="from_pivot", languages=("fr", "en"))(framed_pairs())
