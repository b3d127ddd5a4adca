import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.weights import to_huggingface_names
from interlingua.encoder.pair_scorer import PairHead, PairScorer, PairTemplate
from interlingua.errors import CheckpointError, ConfigError
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.shapes import tiny_encoder

WORDS = [f"w{index}" for index in range(30)]
TEXTS = (["w1", "w2 w3 w4 w5", "w6 w7"], ["w8 w9 w10", "w11", "w12 w13 w14 w15"])


def vocabulary(single, pair):
    """Build words and the special tokens of a template, ``<s> $A </s>``, or none if it is empty."""
    special = ["<pad>", "<s>", "</s>", "<unk>", "<mask>"]
    ids = {token: index for index, token in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(ids, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(special)
    if single:
        tokens = [(token, ids[token]) for token in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single=single, pair=pair, special_tokens=tokens
        )
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return Vocabulary(tokenizer.to_str(), special_tokens=roles)


XLMR = ("<s> $A </s>", "<s> $A </s> </s> $B </s>")
BERT = ("<s> $A </s>", "<s> $A </s> $B </s>")


SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 20,
    "layer_norm_eps": 1e-5,
}


def scorer(**options):
    return PairScorer(
        tiny_encoder(vocabulary(*XLMR), model_type="xlm-roberta", **SIZES), **options
    ).eval()


def sides(own):
    return (TokenBatch.from_lists(own.encode(texts), [""] * 3) for texts in TEXTS)


@pytest.mark.parametrize("template", [XLMR, BERT], ids=["XLM-R", "BERT"])
def test_joined_as_the_tokenizer_joins(template):
    own = vocabulary(*template)
    joined = PairTemplate.of(own).join(*sides(own))
    bounds = joined.cu_seqlens.tolist()
    expected = [own.tokenizer.encode(a, b).ids for a, b in zip(*TEXTS, strict=True)]
    assert [joined.input_ids[i:j].tolist() for i, j in pairwise(bounds)] == expected
    assert joined.max_seqlen >= max(map(len, expected))


def test_the_mask_token_separates_where_the_tokenizer_puts_nothing():
    own = vocabulary("", "")
    joined = PairTemplate.of(own).join(*sides(own))
    assert own.decode(joined.input_ids[:5], skip_special_tokens=False) == "w1 <mask> w8 w9 w10"


def test_a_tokenizer_with_a_way_of_its_own():
    own = vocabulary("<s> $A </s>", "<s> $B </s> $A </s> </s>")
    with pytest.raises(ConfigError, match="joins pairs"):
        PairTemplate.of(own)


def test_it_is_the_classification_model_of_transformers():
    transformers = pytest.importorskip("transformers")
    model = scorer()
    config = transformers.XLMRobertaConfig(
        vocab_size=model.encoder.backbone.config.vocab_size,
        type_vocab_size=1,
        pad_token_id=0,
        num_labels=1,
        **SIZES,
    )
    peer = transformers.XLMRobertaForSequenceClassification(config).eval()
    weights = to_huggingface_names(
        model.encoder.backbone.state_dict(), model.encoder.backbone.config
    )
    state = peer.state_dict()
    for name, tensor in weights.items():
        state[f"roberta.{name}"] = tensor
    for ours, theirs in (("dense", "dense"), ("output", "out_proj")):
        for kind in ("weight", "bias"):
            state[f"classifier.{theirs}.{kind}"] = model.head.state_dict()[f"{ours}.{kind}"]
    peer.load_state_dict(state)
    own = model.encoder.vocabulary
    with torch.no_grad():
        logits = model(model.join(*sides(own)))
        for a, b, logit in zip(*TEXTS, logits, strict=True):
            ids = torch.tensor([own.tokenizer.encode(a, b).ids])
            torch.testing.assert_close(
                peer(input_ids=ids).logits[0, 0], logit, rtol=1e-4, atol=1e-6
            )


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_scores_of_texts_are_the_mean_of_both_orders(pooling):
    model = scorer(pooling=pooling).train()
    scores = model.score(*TEXTS, batch_tokens=12)
    assert model.training
    model.eval()
    a, b = sides(model.encoder.vocabulary)
    with torch.no_grad():
        expected = (model(model.join(a, b)).sigmoid() + model(model.join(b, a)).sigmoid()) / 2
    np.testing.assert_allclose(scores, expected.numpy(), rtol=1e-5)
    np.testing.assert_allclose(model.score(TEXTS[1], TEXTS[0]), scores, rtol=1e-6)


def test_long_texts_are_cut_to_fit_together():
    model = scorer()
    assert model.score(["w1 " * 30], ["w2 " * 30]).shape == (1,)


def test_pairs_that_are_too_long():
    model = scorer()
    long = TokenBatch.from_lists([[1, *[5] * 10, 2]], [""])
    with pytest.raises(ConfigError, match=r"24 tokens, .*19"):
        model.join(long, long)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_saved_and_read_again(tmp_path, pooling):
    model = scorer(pooling=pooling)
    model.save(tmp_path / "model")
    again = PairScorer.load(tmp_path / "model")
    assert again.pooling == pooling
    np.testing.assert_array_equal(again.score(*TEXTS), model.score(*TEXTS))
    assert Encoder.load(tmp_path / "model").dim == 16


def test_an_encoder_alone_is_no_cross_encoder(tmp_path):
    scorer().encoder.save(tmp_path / "model")
    with pytest.raises(CheckpointError, match=r"method cross_encoder"):
        PairScorer.load(tmp_path / "model")


def test_the_head_drops_out_before_either_layer_in_training_only():
    head = PairHead(1, dropout=0.5)
    with torch.no_grad():
        for layer in (head.dense, head.output):
            layer.weight.fill_(1.0)
            layer.bias.zero_()
    torch.manual_seed(0)
    found = set(head(torch.ones(400, 1)).detach().tolist())
    assert sorted(found) == pytest.approx([0.0, 2 * math.tanh(2.0)])
    assert head.eval()(torch.ones(1, 1)).item() == pytest.approx(math.tanh(1.0))
