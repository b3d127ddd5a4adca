from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from interlingua.analysis.attention_entropy import AttentionEntropy, sentence_values
from interlingua.analysis.subject import Subject
from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.attention_weights import first_token_attention
from interlingua.errors import ConfigError
from tests.analysis.conftest import LINES, fixed_subject, random_vectors
from tests.encoder.builders import static_of

# Two heads; bos t t t eos.
ROWS = torch.tensor([[0.5, 0.2], [0.1, 0.2], [0.1, 0.2], [0.05, 0.2], [0.25, 0.2]])
SPECIAL = torch.tensor([True, False, False, False, True])


def test_the_conformance_case():
    values, heads = sentence_values(ROWS, SPECIAL, torch.zeros(5, dtype=torch.long), 1)
    np.testing.assert_allclose(heads[0], [1.3034508128, 1.6094379124], atol=1e-6)
    entropy, without, uniform, special = values[:, 0].tolist()
    assert entropy == pytest.approx(1.4564443626, abs=1e-6)
    assert without == pytest.approx(1.0767662283, abs=1e-6)
    assert uniform == pytest.approx(math.log(5))
    assert special == pytest.approx((0.75 + 0.4) / 2)


def test_sentences_do_not_mix():
    both = torch.cat([ROWS, torch.ones(1, 2)])
    sentence = torch.tensor([0] * 5 + [1])
    values, _ = sentence_values(both, torch.cat([SPECIAL, torch.tensor([True])]), sentence, 2)
    assert values[0, 0].item() == pytest.approx(1.4564443626, abs=1e-6)
    # Nothing but <s>: no text to look at, and no NaN.
    assert values[:, 1].tolist() == [0.0, 0.0, 0.0, 1.0]


def test_it_is_scipys():
    stats = pytest.importorskip("scipy.stats")
    weights = torch.softmax(torch.randn(9, 3, generator=torch.Generator().manual_seed(0)), dim=0)
    _, heads = sentence_values(
        weights, torch.zeros(9, dtype=torch.bool), torch.zeros(9, dtype=torch.long), 1
    )
    np.testing.assert_allclose(heads[0], stats.entropy(weights.numpy(), axis=0), rtol=1e-5)


@pytest.mark.parametrize("batch_tokens", [1, 4096])
def test_a_model_on_texts(folder, subject, batch_tokens):
    found = AttentionEntropy().run(subject._replace(batch_tokens=batch_tokens), folder)
    encoder = subject.encoder
    entropies = []
    for line in LINES["deu_Latn"]:
        batch = TokenBatch.from_lists(encoder.vocabulary.encode([line]), ("",))
        weights = first_token_attention(encoder.backbone, batch)
        entropies.append(float(-(weights * weights.log()).sum(0).mean()))
    measure = found["attention_entropy"]
    assert measure.by_language["deu_Latn"] == pytest.approx(np.mean(entropies), rel=1e-4)
    assert measure.value == pytest.approx(np.mean(list(measure.by_language.values())))
    assert measure.low < measure.value < measure.high
    assert measure.unit == "nats"
    assert measure.value < found["uniform_entropy"].value
    by_head = found.tables["attention_entropy_by_head"]
    assert list(by_head) == ["1", "2"]
    assert np.mean(list(by_head.values())) == pytest.approx(measure.value, rel=1e-5)
    assert found.notes == ()


def test_examples_name_every_token(folder, subject):
    found = AttentionEntropy().run(subject, folder)
    assert [(e["language"], e["line"]) for e in found.examples] == [
        ("eng_Latn", 1),
        ("deu_Latn", 1),
        ("fra_Latn", 1),
        ("eng_Latn", 2),
        ("deu_Latn", 2),
        ("fra_Latn", 2),
    ]
    tokens = found.examples[0]["tokens"]
    assert (tokens[0]["text"], tokens[0]["special"]) == ("<s>", True)
    assert (tokens[-1]["text"], tokens[-1]["special"]) == ("</s>", True)
    assert "".join(token["text"] for token in tokens[1:-1]).split() == LINES["eng_Latn"][0].split()
    assert sum(token["weight"] for token in tokens) == pytest.approx(1, abs=0.01)
    assert len(tokens[0]["heads"]) == 2


def test_maps_of_every_token_on_request(folder, subject):
    assert "maps" not in AttentionEntropy().run(subject, folder).examples[0]
    (example, *_) = AttentionEntropy(every_token=True, examples=1).run(subject, folder).examples
    maps = np.array(example["maps"])
    count = len(example["tokens"])
    assert maps.shape == (2, count, count)
    np.testing.assert_allclose(maps.sum(axis=2), 1, atol=0.01)
    first = np.array([token["heads"] for token in example["tokens"]])
    np.testing.assert_allclose(maps[:, 0], first.T, atol=2e-3)


def test_a_text_that_is_cut(folder, subject):
    settings = dataclasses.replace(subject.encoder.settings, max_tokens=5)
    short = Encoder(subject.encoder.backbone, subject.encoder.vocabulary, settings).eval()
    found = AttentionEntropy().run(subject._replace(encoder=short), folder)
    assert len(found.examples[0]["tokens"]) == 5
    assert found.examples[0]["tokens"][-1]["text"] == "</s>"


def test_one_language_will_do(folder, subject):
    assert AttentionEntropy(languages=("de",)).run(subject, folder).languages == ("deu_Latn",)


def test_a_mean_pooling_model_is_told_so(folder, subject):
    info = dataclasses.replace(subject.info, pooling="mean")
    assert (
        "is the mean of the tokens"
        in AttentionEntropy().run(subject._replace(info=info), folder).notes[0]
    )


def test_models_without_a_first_token(folder, short_words):
    assert AttentionEntropy().unfit(short_words) == "its vocabulary adds no token before a text"
    with pytest.raises(
        ConfigError,
        match=r"attention_entropy .*\[CLS\], but its vocabulary",
    ):
        AttentionEntropy().run(short_words, folder)
    assert (
        AttentionEntropy().unfit(fixed_subject(random_vectors(3, 4)))
        == "its hidden states cannot be read"
    )


@pytest.fixture
def short_words(word_vocabulary):
    from interlingua.encoder.modeling.backbone import BackboneConfig

    config = BackboneConfig.preset("ems-tiny", vocab_size=word_vocabulary.size)
    encoder = Encoder.from_scratch(config, word_vocabulary).eval()
    own = OwnEncoder(encoder, name="words")
    return Subject(own, own.info, "", encoder)


def test_token_vectors_have_no_attention(framed_encoder):
    static = static_of(framed_encoder.vocabulary, 8)
    own = OwnEncoder(static, name="tokens")
    assert "no layers" in AttentionEntropy().unfit(Subject(own, own.info, "", static))
