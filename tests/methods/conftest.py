"""A tiny vocabulary with language tags, a tiny encoder and batches of random pairs."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers

from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.vocabulary.vocabulary import Vocabulary

TAGS = {"eng_Latn": "<2en>", "deu_Latn": "<2de>", "fra_Latn": "<2fr>"}
WORDS = 40
FIRST_WORD = 6


def tiny_vocabulary() -> Vocabulary:
    """Build forty whole words after the special tokens and three language tags."""
    words = ["<pad>", "<unk>", "<mask>", *TAGS.values(), *(f"w{index}" for index in range(WORDS))]
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token="<unk>")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens(words[:FIRST_WORD])
    roles = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
    return Vocabulary(tokenizer.to_str(), special_tokens=roles, language_tags=TAGS)


def tiny_encoder(**sizes) -> Encoder:
    torch.manual_seed(0)
    vocabulary = tiny_vocabulary()
    values = {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "max_position_embeddings": 16,
        "hidden_act": "silu",
        **sizes,
    }
    return Encoder.from_scratch(BackboneConfig(vocab_size=vocabulary.size, **values), vocabulary)


def tiny_pairs(
    count=5, *, step=3, seed=0, languages=("deu_Latn", "fra_Latn", "eng_Latn")
) -> ParallelBatch:
    """Build pairs of different lengths and languages, with repeated tokens."""
    generator = torch.Generator().manual_seed(seed)

    def side(codes):
        lengths = torch.randint(1, 12, (count,), generator=generator).tolist()
        ids = [torch.randint(FIRST_WORD, 20, (n,), generator=generator).tolist() for n in lengths]
        return TokenBatch.from_lists(ids, codes)

    codes = [languages[index % len(languages)] for index in range(count)]
    return ParallelBatch(side(codes), side(["eng_Latn"] * count), step)


@pytest.fixture
def encoder():
    return tiny_encoder()


@pytest.fixture
def pairs():
    return tiny_pairs()
