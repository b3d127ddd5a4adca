"""EMS against its equations written out sentence by sentence, and what each option does."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch

from interlingua.batches.sentences import take
from interlingua.batches.tokens import TokenBatch
from interlingua.config.languages import known
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.errors import ConfigError, DataError
from interlingua.methods.ems import EMS, EMSConfig
from tests.methods.conftest import tiny_encoder, tiny_pairs, tiny_vocabulary
from tests.methods.harness import alone, cosine, token_lists

ABLATIONS = {
    "EMS": {},
    "- langs tok": {"language_tag": False},
    "- L_cntrs": {"contrastive": "none"},
    "- L_XTR": {"generative": "none"},
    "- L_cntrs_mlp": {"mlp": False},
    "share L_emb": {"shared_embedding": True},
    "share L_emb, - langs tok": {"shared_embedding": True, "language_tag": False},
    "XTR -> UGT": {"generative": "ugt"},
    "LaBSE-EMS-vanilla": {"contrastive": "ams", "generative": "none", "mlp": False},
    "LaBSE-EMS-MLP": {"contrastive": "ams", "generative": "none"},
    "LaBSE-EMS-joint": {"contrastive": "ams"},
    "released code": {"code_targets": True, "code_masking": True},
    "margin after temperature": {
        "contrastive": "ams",
        "margin": 0.2,
        "margin_after_temperature": True,
    },
    "weights": {"xtr_weight": 0.3, "contrastive_weight": 2.0, "temperature": 0.07},
}


def build(*, training=False, **options):
    encoder = tiny_encoder()
    torch.manual_seed(1)
    return EMS(EMSConfig(**options), encoder).train(training)


def reference_xtr(objective, batch, *, extra=None, kind="paper"):
    """Compute Eq. (2)-(7) with loops: the embedding of each side predicts the other's tokens."""
    encoder, head = objective.encoder, objective.predict
    a, b, _ = objective.masked(batch)
    told = (b, a) if kind == "code" else (batch.b, batch.a)
    weight = encoder.backbone.word_embeddings.weight if head.output is None else head.output.weight
    total = 0.0
    for side, (read, tell) in enumerate(zip((a, b), told, strict=True)):
        for row, (ids, words) in enumerate(zip(token_lists(read), token_lists(tell), strict=True)):
            u = alone(encoder, ids, "eng_Latn")
            if head.tags is not None:
                position = ["deu_Latn", "eng_Latn", "fra_Latn"].index(tell.languages[row])
                u = torch.cat([head.tags.norm(head.tags.embedding.weight[position]), u])
            z = head.dense(u)
            q = torch.softmax(weight @ head.norm(z * torch.sigmoid(z)), 0).tolist()
            counts = Counter([*words, *([extra[side][row]] if extra else [])])
            for word, count in counts.items():
                p = (count if kind == "paper" else 1) / (len(words) + bool(extra))
                total += p * math.log(p / q[word])
    return total / batch.a.batch_size


def reference_contrastive(
    objective, batch, *, margin=0.0, temperature=0.1, after=False, excluded=()
):
    """Compute Eq. (8)-(11) with loops."""
    a, b, _ = objective.masked(batch)
    h = [
        [objective.project(alone(objective.encoder, ids, "eng_Latn")) for ids in token_lists(side)]
        for side in (a, b)
    ]
    s = [[cosine(x, y) / temperature for y in h[1]] for x in h[0]]
    size, total = len(s), 0.0
    for j in range(size):
        positive = s[j][j] - (margin if after else margin / temperature)
        kept = [k for k in range(size) if k != j and (j, k) not in excluded]
        for others in ([s[j][k] for k in kept], [s[k][j] for k in kept]):
            total -= positive - math.log(math.exp(positive) + sum(map(math.exp, others)))
    return total / size


@pytest.mark.parametrize("name", ABLATIONS)
def test_terms_sum_to_the_loss_and_all_weights_learn(name):
    objective, pairs = build(training=True, **ABLATIONS[name]), tiny_pairs()
    output = objective(pairs)
    torch.testing.assert_close(output.loss.detach(), sum(output.terms.values()))
    kinds = {"xtr": objective.config.generative, "contrastive": objective.config.contrastive}
    assert set(output.terms) == {name for name, kind in kinds.items() if kind != "none"}
    output.loss.backward()
    idle = [
        n for n, p in objective.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
    ]
    assert idle == []


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"language_tag": False},
        {"shared_embedding": True},
        {"code_targets": True, "code_masking": True},
    ],
)
@torch.no_grad()
def test_xtr_is_equations_2_to_7(options):
    objective, pairs = build(**options), tiny_pairs()
    kind = "code" if options.get("code_targets") else "paper"
    expected = reference_xtr(objective, pairs, kind=kind)
    assert float(objective(pairs).terms["xtr"]) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_ugt_also_tells_the_masked_token():
    objective, pairs = build(generative="ugt"), tiny_pairs()
    a, b, hidden = objective.masked(pairs)
    size = pairs.a.batch_size
    extra = [hidden[:size].tolist(), hidden[size:].tolist()]
    mask_id = objective.encoder.vocabulary.mask_id
    for masked, side, tokens in ((a, pairs.a, extra[0]), (b, pairs.b, extra[1])):
        for now, before, token in zip(token_lists(masked), token_lists(side), tokens, strict=True):
            changed = [
                place for place, (x, y) in enumerate(zip(now, before, strict=True)) if x != y
            ]
            assert len(changed) == 1
            assert (now[changed[0]], before[changed[0]]) == (mask_id, token)
    expected = reference_xtr(objective, pairs, extra=extra)
    assert float(objective(pairs).terms["xtr"]) == pytest.approx(expected, rel=1e-5)


@torch.no_grad()
def test_code_masking_hides_one_token_of_one_side():
    objective, pairs = build(code_masking=True), tiny_pairs(16)
    a, b, hidden = objective.masked(pairs)
    mask_id = objective.encoder.vocabulary.mask_id
    on_a, on_b = ([ids.count(mask_id) for ids in token_lists(side)] for side in (a, b))
    assert hidden is None
    assert all(x + y == 1 for x, y in zip(on_a, on_b, strict=True))
    assert 0 < sum(on_a) < 16


@torch.no_grad()
def test_masks_differ_by_step_and_repeat_for_the_same_step():
    objective, pairs = build(generative="ugt"), tiny_pairs(16)
    first, again = objective.masked(pairs)[0], objective.masked(pairs)[0]
    later = objective.masked(pairs._replace(step=4))[0]
    assert torch.equal(first.input_ids, again.input_ids)
    assert not torch.equal(first.input_ids, later.input_ids)


@pytest.mark.parametrize(
    ("options", "reference"),
    [
        ({}, {}),
        ({"mlp": False}, {}),
        ({"temperature": 0.5}, {"temperature": 0.5}),
        ({"contrastive": "ams", "mlp": False, "generative": "none"}, {"margin": 0.3}),
        ({"contrastive": "ams"}, {"margin": 0.3}),
        (
            {"contrastive": "ams", "margin": 0.7, "margin_after_temperature": True},
            {"margin": 0.7, "after": True},
        ),
    ],
)
@torch.no_grad()
def test_contrastive_is_equations_8_to_11(options, reference):
    objective, pairs = build(**options), tiny_pairs()
    expected = reference_contrastive(objective, pairs, **reference)
    assert float(objective(pairs).terms["contrastive"]) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_sides_of_the_pairs_can_be_exchanged():
    objective, pairs = build(), tiny_pairs()
    exchanged = pairs._replace(a=pairs.b, b=pairs.a)
    torch.testing.assert_close(objective(exchanged).loss, objective(pairs).loss)


@torch.no_grad()
def test_only_the_contrastive_term_sees_the_rest_of_the_batch():
    objective, pairs = build(), tiny_pairs(6)
    halves = [
        pairs._replace(a=take(pairs.a, rows), b=take(pairs.b, rows))
        for rows in ([0, 1, 2], [3, 4, 5])
    ]
    whole, parts = objective(pairs).terms, [objective(half).terms for half in halves]
    torch.testing.assert_close(whole["xtr"], (parts[0]["xtr"] + parts[1]["xtr"]) / 2)
    assert whole["contrastive"] > (parts[0]["contrastive"] + parts[1]["contrastive"]) / 2


@torch.no_grad()
@pytest.mark.parametrize("language_tag", [True, False])
def test_the_tag_tells_the_target_language(language_tag):
    objective, pairs = build(language_tag=language_tag), tiny_pairs()
    french = pairs._replace(b=pairs.b._replace(languages=("fra_Latn",) * 5))
    same = torch.equal(objective(french).loss, objective(pairs).loss)
    assert same is not language_tag


@torch.no_grad()
def test_repeated_sentences_are_no_negatives_if_so_asked():
    pairs = tiny_pairs(5)
    ids = token_lists(pairs.b)
    ids[3] = ids[1]  # two translations of one English sentence
    pairs = pairs._replace(b=TokenBatch.from_lists(ids, pairs.b.languages))
    objective = build(exclude_repeats=True)
    expected = reference_contrastive(objective, pairs, excluded={(1, 3), (3, 1)})
    assert float(objective(pairs).terms["contrastive"]) == pytest.approx(expected, rel=1e-4)
    assert expected < reference_contrastive(objective, pairs)


def test_without_the_contrast_a_single_pair_is_enough():
    assert build(contrastive="none")(tiny_pairs(1)).loss > 0


def test_sizes_are_the_paper_s():
    objective = build(language_dim=8, projection_dim=5)
    shapes = {
        name: tuple(p.shape)
        for name, p in objective.named_parameters()
        if not name.startswith("encoder")
    }
    assert shapes["predict.tags.embedding.weight"] == (3, 8)
    assert shapes["predict.dense.weight"] == (24, 24)
    assert shapes["predict.output.weight"] == (objective.encoder.vocabulary.size, 24)
    assert shapes["project.0.weight"] == (16, 16)
    assert shapes["project.2.weight"] == (5, 16)
    assert "predict.output.bias" not in shapes


def test_numbers_are_the_paper_s():
    config, shape = EMSConfig(), BackboneConfig.preset("ems-base", vocab_size=60_000)
    assert (config.temperature, config.margin, config.xtr_weight, config.contrastive_weight) == (
        0.1,
        0.3,
        1.0,
        1.0,
    )
    assert (config.projection_dim, config.language_dim, config.tag_dropout) == (128, 128, 0.1)
    assert (
        shape.hidden_dropout_prob,
        shape.attention_probs_dropout_prob,
        shape.layer_norm_eps,
    ) == (0.1, 0.1, 1e-12)
    assert (shape.hidden_act, shape.max_tokens, shape.type_vocab_size) == ("silu", 120, 0)


def test_the_real_size_is_that_of_the_released_code():
    with torch.device("meta"):
        encoder = Encoder(
            Backbone(BackboneConfig.preset("ems-base", vocab_size=60_000)), tiny_vocabulary()
        )
        objective = EMS(
            EMSConfig(languages=tuple(language.code for language in known()[:62])), encoder
        )
    millions = [
        sum(p.numel() for p in module.parameters()) / 1e6
        for module in (objective.encoder, objective)
    ]
    assert millions == pytest.approx([137.1, 208.8], abs=0.05)


def test_shared_embedding_learns_from_both_uses():
    objective = build(shared_embedding=True)
    assert objective.predict.output is None
    assert tuple(objective.predict.dense.weight.shape) == (16, 16 + 128)
    unused = objective.encoder.vocabulary.size - 1  # never read, but predicted
    objective(tiny_pairs()).loss.backward()
    assert objective.encoder.backbone.word_embeddings.weight.grad[unused].abs().sum() > 0


def test_languages_may_be_named_in_the_config():
    objective = build(languages=("de", "fr", "English", "deu"))
    assert list(objective.predict.tags.index) == ["deu_Latn", "fra_Latn", "eng_Latn"]


def test_a_language_without_a_tag_is_an_error():
    with pytest.raises(DataError, match="fra_Latn has no tag"):
        build(languages=("deu_Latn", "eng_Latn"))(tiny_pairs())


def test_a_vocabulary_without_tags_is_an_error():
    encoder = tiny_encoder()
    encoder.vocabulary.__dict__["language_tags"] = {}
    with pytest.raises(ConfigError, match="no language tags"):
        EMS(EMSConfig(), encoder)
    EMS(EMSConfig(language_tag=False), encoder)
