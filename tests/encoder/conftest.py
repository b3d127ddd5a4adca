"""Tiny tokenizers and models, made here: no hub, no network."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors, trainers

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.encoder.builders import static_of
from tests.encoder.shapes import tiny_encoder

SENTENCES = [
    "The cat sits on the mat.",
    "Die Katze sitzt auf der Matte.",
    "Le chat est assis sur le tapis.",
    "猫がマットの上に座っている。",
    "Кошка сидит на коврике.",
    "Yes.",
    "One two three four five six seven eight nine ten eleven twelve thirteen fourteen.",
    "القطة تجلس على السجادة",
]
ROLES = {"pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>"}
FRAME = {"cls_token": "<s>", "sep_token": "</s>", "bos_token": "<s>", "eos_token": "</s>"}


def tiny_vocabulary(*, frame: bool, texts=SENTENCES, size=160) -> Vocabulary:
    """Train a BPE vocabulary on some texts.

    With ``frame`` it puts <s> and </s> around each text, as XLM-R's.
    """
    special = ["<pad>", "<unk>", "<mask>"] + ["<s>", "</s>"] * frame
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    if frame:
        ids = [(token, tokenizer.token_to_id(token)) for token in ("<s>", "</s>")]
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>", special_tokens=ids
        )
    return Vocabulary(tokenizer.to_str(), special_tokens={**ROLES, **(FRAME if frame else {})})


@pytest.fixture(scope="session")
def plain_vocabulary():
    return tiny_vocabulary(frame=False)


@pytest.fixture(scope="session")
def framed_vocabulary():
    return tiny_vocabulary(frame=True)


@pytest.fixture
def encoder(plain_vocabulary):
    """An EMS encoder of two layers, in evaluation mode."""
    torch.manual_seed(0)
    config = BackboneConfig.preset("ems-tiny", vocab_size=plain_vocabulary.size)
    return Encoder.from_scratch(config, plain_vocabulary).eval()


@pytest.fixture
def framed_encoder(framed_vocabulary):
    """A BERT with special tokens around each text."""
    shape = {"num_hidden_layers": 2, "max_position_embeddings": 64, "type_vocab_size": 2}
    return tiny_encoder(framed_vocabulary, seed=1, **shape)


@pytest.fixture
def set_threads():
    """``torch.set_num_threads`` for one test."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


@pytest.fixture
def static(framed_vocabulary):
    """Random vectors for the tokens of a vocabulary that puts <s> and </s> around texts."""
    return static_of(framed_vocabulary, 12)


@pytest.fixture
def sentences():
    return list(SENTENCES)


@pytest.fixture(scope="session")
def random_batch():
    """A function from lengths to a batch of random ids."""

    def make(lengths, *, low=5, high=100, seed=0):
        generator = torch.Generator().manual_seed(seed)
        ids = [
            torch.randint(low, high, (length,), generator=generator).numpy() for length in lengths
        ]
        return TokenBatch.from_lists(ids, ["eng_Latn"] * len(ids))

    return make
