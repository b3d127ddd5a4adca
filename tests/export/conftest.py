from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers

from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.static import MAX_TOKENS, StaticBackbone, static_config
from interlingua.encoder.vocabulary import Vocabulary
from interlingua.export.verify import SAMPLES


@pytest.fixture(scope="session")
def framed():
    """A vocabulary over the sample texts that puts <s> and </s> around each."""
    names = ["<pad>", "<unk>", "<mask>", "<s>", "</s>"]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=400, special_tokens=names, show_progress=False)
    tokenizer.train_from_iterator([text for texts in SAMPLES.values() for text in texts], trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 3), ("</s>", 4)]
    )
    roles = ("pad_token", "unk_token", "mask_token", "cls_token", "sep_token")
    return Vocabulary(tokenizer.to_str(), special_tokens=dict(zip(roles, names, strict=True)))


@pytest.fixture
def encoder(framed):
    torch.manual_seed(0)
    return Encoder.from_scratch(
        BackboneConfig.preset("ems-tiny", vocab_size=framed.size), framed
    ).eval()


@pytest.fixture
def model(encoder, tmp_path):
    encoder.save(tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def static_encoder(framed):
    """Token vectors at random."""
    torch.manual_seed(0)
    backbone = StaticBackbone(static_config(framed.size, 24, pad_token_id=framed.pad_id))
    return Encoder(
        backbone, framed, EncodingSettings(include_special=False, max_tokens=MAX_TOKENS)
    ).eval()
