"""MEXMA against its equations written out sentence by sentence, and what each option does."""

from __future__ import annotations

import dataclasses
import math
from itertools import chain
from statistics import fmean

import pytest
import torch
from tokenizers import Tokenizer, processors

from interlingua.batches.masking import IGNORED
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.uniformity import koleo
from interlingua.methods.heads.unmasking_head import UnmaskingHeadConfig
from interlingua.methods.mexma import MEXMA, MEXMAConfig
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.methods.conftest import tiny_encoder, tiny_pairs, tiny_vocabulary
from tests.methods.framed import rows as parts
from tests.methods.heads.test_unmasking_head import padded_reference

HEAD = UnmaskingHeadConfig(layers=2, heads=2, intermediate_size=24, dropout=0.0)
TABLE_11 = {
    "(1) non-symmetrical": {
        "symmetrical": False,
        "token_gradients": False,
        "align_weight": 0,
        "koleo_weight": 0,
    },
    "(2) + symmetrical": {"token_gradients": False, "align_weight": 0, "koleo_weight": 0},
    "(3) + alignment clean-dirty": {
        "token_gradients": False,
        "alignment": "masked",
        "koleo_weight": 0,
    },
    "(4) clean-clean": {"token_gradients": False, "koleo_weight": 0},
    "(5) + token gradients": {"koleo_weight": 0},
    "(6) + KoLeo": {},
}
OTHERS = {
    "contrastive": {"alignment": "contrastive", "koleo_weight": 0},
    "contrastive, inner product": {
        "alignment": "contrastive",
        "cosine": False,
        "temperature": 2.0,
        "koleo_weight": 0,
    },
    "contrastive alone": {"alignment": "contrastive", "koleo_weight": 0, "mlm_weight": 0},
    "always the mask": {"mask": "always", "mask_ratio": 0.7},
    "KoLeo as printed": {"koleo_normalize": False, "koleo_distinct": True},
    "weights": {"mlm_weight": 0.5, "align_weight": 2.0, "koleo_weight": 0.3},
    "masked alignment alone": {"alignment": "masked", "mlm_weight": 0, "koleo_weight": 0},
}
ALL = {**TABLE_11, **OTHERS}


def framed_encoder(**sizes):
    """Build a tiny encoder with <s> and </s> around a sentence, pooled by <s>."""
    plain = tiny_vocabulary()
    tokenizer = Tokenizer.from_str(plain.tokenizer.to_str())
    tokenizer.add_special_tokens(["<s>", "</s>"])
    ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=ids
    )
    vocabulary = Vocabulary(tokenizer.to_str(), special_tokens=plain.special_tokens)
    shape = dataclasses.replace(tiny_encoder(**sizes).backbone.config, vocab_size=vocabulary.size)
    torch.manual_seed(0)
    return Encoder.from_scratch(shape, vocabulary, "cls")


def framed_pairs(encoder, count=6, *, step=3):
    """Tokenize pairs of sentences of the vocabulary's words."""
    generator = torch.Generator().manual_seed(step)

    def side(languages):
        lengths = torch.randint(1, 9, (count,), generator=generator).tolist()
        texts = [
            " ".join(f"w{word}" for word in torch.randint(0, 40, (n,), generator=generator))
            for n in lengths
        ]
        return TokenBatch.from_lists(encoder.vocabulary.encode(texts), languages)

    return tiny_pairs(count, step=step)._replace(
        a=side(["deu_Latn"] * count), b=side(["eng_Latn"] * count)
    )


def build(*, training=False, framed=True, **options):
    encoder = framed_encoder() if framed else tiny_encoder()
    torch.manual_seed(1)
    shape = {} if options.get("mlm_weight") == 0 else {"head": HEAD}
    pooling = {} if framed else {"pooling": "any"}
    objective = MEXMA(MEXMAConfig(**{**shape, **pooling, **options}), encoder).train(training)
    return objective, framed_pairs(encoder) if framed else tiny_pairs(6)


def alone(objective, ids):
    """Return token states and sentence vector of one separately encoded sentence."""
    hidden = objective.encoder.tokens(TokenBatch.from_lists([ids.tolist()], ["eng_Latn"]))
    return hidden.states, hidden.pool(objective.encoder.pooling)[0]


def told(objective, masked, labels, vector):
    """Compute cross-entropy of one sentence's hidden tokens from softmax over all words."""
    states, _ = alone(objective, masked)
    bounds = torch.tensor([0, len(masked)])
    states = padded_reference(objective.head, states, bounds, vector[None])
    logits = states @ objective.encoder.backbone.word_embeddings.weight.T + objective.head.bias
    probabilities = logits.double().softmax(1)
    return [
        -math.log(probabilities[at, word])
        for at, word in enumerate(labels.tolist())
        if word != IGNORED
    ]


def reference(objective, batch):
    """Compute the terms of MEXMA's loss, sentence by sentence."""
    config, size = objective.config, batch.a.batch_size
    masked, clean = objective.views(batch)
    s = torch.stack([alone(objective, ids)[1] for ids in parts(clean)])
    terms = {}
    if config.align_weight:
        of_a = s
        if config.alignment == "masked":
            of_a = torch.stack([alone(objective, ids)[1] for ids in parts(masked.batch)[:size]])
        a, b = of_a[:size], s[size:]
        if config.alignment == "contrastive":
            compare = (
                torch.cosine_similarity(a[:, None], b[None], dim=2) if config.cosine else a @ b.T
            )
            scores = compare / config.temperature
            rows, columns = scores.softmax(1).diag(), scores.softmax(0).diag()
            terms["align"] = -float((rows.log() + columns.log()).mean()) / 2
        else:
            terms["align"] = sum(float(x) for x in ((a - b) ** 2).flatten()) / a.numel()
    if config.mlm_weight:
        sentences = list(zip(parts(masked.batch), parts(masked.batch, masked.labels), strict=True))
        context = [*s[size:], *s[:size]] if config.symmetrical else s
        losses = [
            told(objective, *sentence, vector)
            for sentence, vector in zip(sentences, context, strict=True)
        ]
        sides = [losses[:size], losses[size:]] if config.symmetrical else [losses]
        terms["mlm"] = fmean(fmean(chain.from_iterable(side)) for side in sides)
    if config.koleo_weight:
        terms["koleo"] = float(koleo(s[:size], normalize=config.koleo_normalize)) / 2
        terms["koleo"] += float(koleo(s[size:], normalize=config.koleo_normalize)) / 2
    return {name: getattr(config, f"{name}_weight") * term for name, term in terms.items()}


def test_numbers_are_the_released_code_s():
    config = MEXMAConfig()
    assert (config.align_weight, config.mlm_weight, config.koleo_weight) == (1.0, 1.0, 0.01)
    assert (config.mask_ratio, config.mask, config.random_specials) == (0.4, "80-10-10", True)
    assert (config.attention_dropout, config.temperature, config.cosine) == (0.0, 0.05, True)
    assert config.head == UnmaskingHeadConfig(
        layers=6, heads=8, intermediate_size=3072, dropout=0.1
    )


@pytest.mark.parametrize("framed", [True, False])
@pytest.mark.parametrize("name", ALL)
@torch.no_grad()
def test_terms_are_the_equations(name, framed):
    objective, batch = build(framed=framed, **ALL[name])
    terms = {name: float(term) for name, term in objective(batch).terms.items()}
    assert terms == pytest.approx(reference(objective, batch), rel=1e-4)


@pytest.mark.parametrize("name", ALL)
def test_terms_sum_to_the_loss_and_all_weights_learn(name):
    objective, batch = build(training=True, **ALL[name])
    output = objective(batch)
    torch.testing.assert_close(output.loss.detach(), sum(output.terms.values()))
    weights = {
        term: getattr(objective.config, f"{term}_weight") for term in ("align", "mlm", "koleo")
    }
    assert set(output.terms) == {term for term, weight in weights.items() if weight}
    output.loss.backward()
    idle = [
        n for n, p in objective.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0
    ]
    assert idle == []


def test_without_token_gradients_the_masked_tokens_do_not_train_the_encoder():
    gradients = {}
    for token_gradients in (True, False):
        objective, batch = build(token_gradients=token_gradients, align_weight=0, koleo_weight=0)
        masked, clean = objective.views(batch)
        read = join(masked.batch, clean)
        rows = (
            objective.encoder.backbone.word_embeddings.weight[read.input_ids]
            .detach()
            .requires_grad_()
        )
        tokens = objective.encoder.tokens
        objective.encoder.tokens = lambda joined, rows=rows, tokens=tokens: tokens(
            joined, word_embeddings=rows
        )
        objective(batch).loss.backward()
        gradients[token_gradients] = rows.grad.split([len(masked.labels), len(clean.input_ids)])
    assert gradients[True][0].abs().sum() > 0
    assert gradients[False][0].abs().sum() == 0
    torch.testing.assert_close(
        gradients[True][1], gradients[False][1]
    )  # through the sentence vectors, the same
    assert gradients[False][1].abs().sum() > 0


@pytest.mark.parametrize("token_gradients", [True, False])
def test_words_that_nobody_reads_learn_from_being_told_apart(token_gradients):
    objective, batch = build(
        token_gradients=token_gradients, align_weight=0, koleo_weight=0, mask="always"
    )
    words = objective.encoder.backbone.word_embeddings.weight
    unread = torch.ones(len(words), dtype=torch.bool)
    masked, clean = objective.views(batch)
    unread[join(masked.batch, clean).input_ids] = False
    objective(batch).loss.backward()
    assert unread.any()
    assert (words.grad[unread].abs().sum(dim=1) > 0).all()


@torch.no_grad()
def test_what_is_read_masked_and_clean():
    objective, batch = build(mask_ratio=0.5)
    masked, clean = objective.views(batch)
    both = join(batch.a, batch.b)
    assert torch.equal(clean.input_ids, both.input_ids)
    hidden = masked.labels != IGNORED
    assert torch.equal(masked.labels[hidden], both.input_ids[hidden])
    assert torch.equal(masked.batch.input_ids[~hidden], both.input_ids[~hidden])
    special = torch.isin(both.input_ids, torch.tensor(objective.encoder.vocabulary.special_ids))
    assert not (hidden & special).any()
    assert hidden[: len(batch.a.input_ids)].any()
    assert hidden[len(batch.a.input_ids) :].any()


@torch.no_grad()
def test_sides_are_masked_independently_and_anew_in_each_step():
    objective, batch = build(mask_ratio=0.5)
    same = batch._replace(b=batch.a)
    size = len(batch.a.input_ids)
    labels = objective.views(same)[0].labels
    assert not torch.equal(labels[:size], labels[size:])
    assert torch.equal(labels, objective.views(same)[0].labels)
    assert not torch.equal(labels, objective.views(same._replace(step=4))[0].labels)


@torch.no_grad()
def test_not_symmetrical_one_side_is_masked_and_the_other_clean():
    objective, _ = build(**TABLE_11["(1) non-symmetrical"], mask_ratio=1.0, mask="always")
    batch = framed_pairs(objective.encoder, 24)
    masked, clean = objective.views(batch)
    a, b = parts(batch.a), parts(batch.b)
    sides = []
    for row in range(24):
        ids, labels = parts(masked.batch)[row], parts(masked.batch, masked.labels)[row]
        restored = torch.where(labels == IGNORED, ids, labels)
        sides.append("a" if torch.equal(restored, a[row]) else "b")
        read, other = (a, b) if sides[-1] == "a" else (b, a)
        assert torch.equal(restored, read[row])
        assert torch.equal(parts(clean)[row], other[row])
    assert 5 < sides.count("a") < 19


def test_four_passes_have_dropout_of_their_own():
    encoder = framed_encoder(hidden_dropout_prob=0.3)
    objective = MEXMA(MEXMAConfig(head=HEAD, mask_ratio=1e-6), encoder).train()
    batch = framed_pairs(encoder)
    seen = []
    tokens = encoder.tokens
    encoder.tokens = lambda joined: seen.append(tokens(joined)) or seen[-1]
    objective(batch._replace(b=batch.a))
    vectors = seen[0].cls().chunk(4)  # all four read the same sentences, but for a token or two
    assert all(not torch.allclose(vectors[i], vectors[j]) for i in range(4) for j in range(i))


def test_attention_dropout_is_off_in_encoder_and_head_and_the_model_keeps_its_own(tmp_path):
    encoder = framed_encoder(attention_probs_dropout_prob=0.2)
    objective = MEXMA(MEXMAConfig(head=HEAD), encoder).train()
    layers = [*encoder.backbone.layers, *objective.head.layers]
    assert [layer.dropout_rates()[1] for layer in layers] == [0.0] * 4
    objective.save(tmp_path / "model")
    assert Encoder.load(tmp_path / "model").backbone.config.attention_probs_dropout_prob == 0.2
    objective = MEXMA(MEXMAConfig(head=HEAD, attention_dropout=0.15), framed_encoder()).train()
    layers = [*objective.encoder.backbone.layers, *objective.head.layers]
    assert [layer.dropout_rates()[1] for layer in layers] == [0.15] * 4


@torch.no_grad()
def test_repeats_are_no_negatives_and_no_neighbors_if_so_asked():
    plain, batch = build(alignment="contrastive", mlm_weight=0)
    ids = [part.tolist() for part in parts(batch.b)]
    ids[3] = ids[1]  # two translations of one English sentence
    batch = batch._replace(b=TokenBatch.from_lists(ids, batch.b.languages))
    spared, _ = build(
        alignment="contrastive", mlm_weight=0, exclude_repeats=True, koleo_distinct=True
    )
    with_repeats, without = plain(batch).terms, spared(batch).terms
    assert without["align"] < with_repeats["align"]
    s = [
        torch.stack([alone(plain, part)[1] for part in parts(side)]) for side in (batch.a, batch.b)
    ]
    kept = [row for row in range(6) if row != 3]
    expected = 0.01 * (koleo(s[0]) + koleo(s[1][kept])) / 2
    torch.testing.assert_close(without["koleo"], expected)
    assert with_repeats["koleo"] > expected + 0.01


def test_a_side_without_masked_tokens_counts_as_nothing():
    objective, batch = build(training=True)
    empty = [[ids[0], ids[-1]] for ids in (part.tolist() for part in parts(batch.a))]  # <s> </s>
    nothing = TokenBatch.from_lists(empty, batch.a.languages)
    one = objective(batch._replace(a=nothing)).terms["mlm"]
    both = objective(batch._replace(a=nothing, b=nothing))
    assert one > 0
    assert both.terms["mlm"] == 0
    both.loss.backward()
    assert all(torch.isfinite(weight.grad).all() for weight in objective.parameters())


def test_one_sentence_has_no_neighbor():
    objective, _ = build()
    with pytest.raises(ConfigError, match=r"run.micro_batch_size"):
        objective(framed_pairs(objective.encoder, 1))
    without, _ = build(koleo_weight=0)
    assert torch.isfinite(without(framed_pairs(without.encoder, 1)).loss)


def test_an_encoder_that_pools_otherwise():
    with pytest.raises(ConfigError, match=r'mean; .*"cls" in \[encoder\]'):
        MEXMA(MEXMAConfig(head=HEAD), tiny_encoder())


def test_a_vocabulary_without_mask():
    encoder = framed_encoder()
    roles = {
        name: token
        for name, token in encoder.vocabulary.special_tokens.items()
        if name != "mask_token"
    }
    encoder.vocabulary = Vocabulary(encoder.vocabulary.tokenizer.to_str(), special_tokens=roles)
    with pytest.raises(ConfigError, match="vocabulary has no mask_token"):
        MEXMA(MEXMAConfig(head=HEAD), encoder)
    assert MEXMA(MEXMAConfig(mlm_weight=0), encoder).head is None


def test_a_width_that_the_heads_do_not_divide():
    with pytest.raises(ConfigError, match=r"width 20 .* 8 heads"):
        MEXMA(MEXMAConfig(), framed_encoder(hidden_size=20))


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_attention_dropout_is_a_probability(rate):
    with pytest.raises(ConfigError, match="attention_dropout: expected"):
        MEXMA(MEXMAConfig(attention_dropout=rate), framed_encoder())
