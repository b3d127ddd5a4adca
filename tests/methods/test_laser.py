"""LASER's objective against loops over pairs and tokens, and what each option does."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.errors import ConfigError, DataError
from interlingua.methods.laser import LASER, LASERConfig
from tests.encoder.naive import naive_backbone, naive_cross_entropy
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.framed import framed_encoder, framed_pairs, rows

SMALL = {
    "token_dim": 4,
    "hidden_dim": 10,
    "language_dim": 2,
    "languages": ("de", "fr", "en"),
    "dropout": 0.0,
}
LSTM = {**SMALL, "output_dim": 6}
TRANSFORMER = {**SMALL, "decoder": "transformer", "decoder_heads": 2, "decoder_layers": 2}
KINDS = {
    "lstm": LSTM,
    "transformer": TRANSFORMER,
    "positions": {**TRANSFORMER, "autoregressive": False},
}


def build(kind="lstm", encoder=None, **options):
    torch.manual_seed(1)
    return LASER(LASERConfig(**{**KINDS[kind], **options}), encoder or framed_encoder()).eval()


def reference(objective, pairs, *, only=None):
    """Predict every target token of every direction separately by the decoder's softmax."""
    losses, decoder, end = [], objective.decoder, objective.end
    for read, tell in ((pairs.b, pairs.a), (pairs.a, pairs.b)):
        for x, y, code in zip(rows(read), rows(tell), tell.languages, strict=True):
            if only is not None and code not in only:
                continue
            vector = naive_backbone(objective.encoder.backbone, x)[0]
            tag = (
                [objective.tags.embedding.weight[objective.tags.index[code]]]
                if objective.tags is not None
                else []
            )
            words = y[1:-1]  # the decoder has an end of its own in the place of <s> and </s>
            inputs, told = (
                torch.cat([torch.tensor([end]), words]),
                torch.cat([words, torch.tensor([end])]),
            )
            arrangement = decoder.arranged(torch.tensor([0, len(inputs)]))
            states = decoder(inputs, arrangement, torch.cat([vector, *tag])[None])
            losses += [
                naive_cross_entropy(state, decoder.output.weight, decoder.output.bias, word)
                for state, word in zip(states, told, strict=True)
            ]
    return sum(losses) / len(losses)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_translation_token_by_token(kind):
    objective, pairs = build(kind), framed_pairs()
    torch.testing.assert_close(
        objective(pairs).loss, reference(objective, pairs), rtol=1e-4, atol=1e-5
    )


@torch.no_grad()
def test_only_the_targets_are_translated_into():
    objective, pairs = build(targets=("eng", "spa"), languages=()), framed_pairs()
    assert list(objective.tags.index) == ["eng_Latn", "spa_Latn"]
    expected = reference(objective, pairs, only=("eng_Latn",))
    torch.testing.assert_close(objective(pairs).loss, expected, rtol=1e-4, atol=1e-5)
    x, y = objective.directions(pairs)
    assert torch.equal(x.input_ids, pairs.a.input_ids)
    assert torch.equal(y.input_ids, pairs.b.input_ids)


def test_a_batch_without_a_target_is_an_error():
    with pytest.raises(DataError, match=r"targets spa_Latn, .* deu_Latn, eng_Latn, fra_Latn"):
        build(targets=("es",))(framed_pairs())


@torch.no_grad()
def test_the_decoder_can_go_untold_of_the_language():
    objective, pairs = build(language_dim=0, languages=()), framed_pairs()
    assert objective.tags is None
    torch.testing.assert_close(
        objective(pairs).loss, reference(objective, pairs), rtol=1e-4, atol=1e-5
    )
    turned = pairs._replace(a=pairs.a._replace(languages=("fra_Latn",) * 5))
    assert torch.equal(objective(turned).loss, objective(pairs).loss)
    told = build()
    told.tags.embedding.weight.mul_(50)
    assert not torch.equal(told(turned).loss, told(pairs).loss)


@torch.no_grad()
def test_words_that_are_all_alike_cost_the_logarithm_of_their_number():
    objective = build()
    objective.decoder.output.weight.zero_()
    objective.decoder.output.bias.zero_()
    size = objective.encoder.backbone.config.vocab_size + 1  # and the end
    assert float(objective(framed_pairs()).loss) == pytest.approx(math.log(size), rel=1e-6)


@torch.no_grad()
def test_a_vocabulary_without_frame_gets_the_same_shifts():
    objective, pairs = build(encoder=tiny_encoder()), tiny_pairs(3)
    inputs, told, bounds = objective.shifted(pairs.a)
    assert bounds.diff().tolist() == [len(ids) + 1 for ids in rows(pairs.a)]
    for before, after, ids in zip(
        inputs.split(bounds.diff().tolist()),
        told.split(bounds.diff().tolist()),
        rows(pairs.a),
        strict=True,
    ):
        assert before.tolist() == [objective.end, *ids.tolist()]
        assert after.tolist() == [*ids.tolist(), objective.end]


@pytest.mark.parametrize("kind", KINDS)
def test_the_vector_is_all_that_is_known_of_the_source(kind):
    objective, pairs, seen = build(kind), framed_pairs(), []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, out: seen.append(out) or out.retain_grad()
    )
    objective(pairs).loss.backward()
    x = objective.directions(pairs)[0]
    others = torch.ones(len(seen[0]), dtype=torch.bool).index_fill(
        0, x.cu_seqlens[:-1].long(), False
    )
    assert (seen[0].grad[~others].abs().sum(dim=1) > 0).all()
    assert seen[0].grad[others].abs().sum() == 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_weight_learns_and_bfloat16_is_near(kind):
    objective, pairs = build(kind).train(), framed_pairs()
    exact = objective(pairs)
    exact.loss.backward()
    assert [name for name, weight in objective.named_parameters() if weight.grad is None] == []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        torch.testing.assert_close(objective(pairs).loss, exact.loss, rtol=0.03, atol=0)


def test_sizes_are_laser_s():
    encoder = framed_encoder(hidden_size=1024, num_hidden_layers=1, num_attention_heads=16)
    objective = LASER(LASERConfig(targets=("en", "es")), encoder)
    shapes = {name: tuple(weight.shape) for name, weight in objective.decoder.named_parameters()}
    size = encoder.backbone.config.vocab_size + 1
    assert shapes["tokens.weight"] == (size, 320)
    assert shapes["lstm.weight_ih_l0"] == (4 * 2048, 320 + 1024 + 32)
    assert shapes["initial.weight"] == (2 * 2048, 1024)
    assert shapes["output.weight"] == (size, 512)


def test_a_vocabulary_without_tags_needs_languages():
    with pytest.raises(ConfigError, match=r"no language tags; .*method\.languages"):
        build(languages=())


def test_heads_have_to_divide_the_width():
    with pytest.raises(ConfigError, match=r"decoder_heads: 5 .*18 \(token_dim, language_dim"):
        build("transformer", decoder_heads=5)
