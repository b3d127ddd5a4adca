"""Backbones of every family at tiny size, in our terms and in those of transformers."""

from __future__ import annotations

import pytest
import torch

from interlingua.encoder.directories.model_directory import read_directory
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.attention import Layout
from interlingua.encoder.modeling.backbone import Backbone, BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES

MODERNBERT = {
    "model_type": "modernbert",
    "positions": "rotary",
    "norm_first": True,
    "gated": True,
    "norm_bias": False,
    "attention_bias": False,
    "intermediate_bias": False,
    "output_bias": False,
    "rotary_base": 160_000.0,
    "local_layers": (1, 2),
    "local_window": 4,
    "layer_norm_eps": 1e-5,
}
"""Fields of a ``BackboneConfig``; the second layer and the third are local."""
JINA_BERT = FAMILIES["jina_bert"].fixed
JINA_BERT_QK_NORM = FAMILIES["jina_bert_qk_norm"].fixed
SIZES = {
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
THEIRS = {
    "ModernBert": {
        **SIZES,
        "local_attention": 8,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "cls_token_id": 1,
        "sep_token_id": 2,
    },
    "NomicBert": SIZES,
    "Gte": SIZES,
    "DistilBert": {"dim": 32, "n_layers": 3, "n_heads": 4, "hidden_dim": 48},
    "Electra": {**SIZES, "embedding_size": 32},
    "Bert": {**SIZES, "max_position_embeddings": 40},
    "Roberta": {**SIZES, "max_position_embeddings": 42, "pad_token_id": 1},
    "XLMRoberta": {**SIZES, "max_position_embeddings": 42, "pad_token_id": 1},
}
"""Options of transformers' config classes."""


def transformers_model(name, *, attention="eager", vocab_size=100, **options):
    """Build a model of transformers with random weights, biases and norms away from 0 and 1."""
    import transformers

    if not hasattr(transformers, f"{name}Config"):
        pytest.skip(f"this version of transformers has no {name}")
    given = {"pad_token_id": 0, **THEIRS[name], **options}
    config = getattr(transformers, f"{name}Config")(
        vocab_size=vocab_size,
        initializer_range=0.15,  # 0.02 would leave every state near its embedding
        attn_implementation=attention,
        **given,
    )
    torch.manual_seed(3)
    model = getattr(transformers, f"{name}Model")(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model


def padded_states(model, batch):
    """Return states of a model of transformers, without those of padding."""
    ids, mask = batch.padded(model.config.pad_token_id)
    return model(input_ids=ids, attention_mask=mask.long()).last_hidden_state[mask]


def loaded(folder):
    """Load the backbone of a model directory."""
    config, weights, _ = read_directory(folder)
    backbone = Backbone(config)
    backbone.load_state_dict(weights)
    return backbone.eval()


def saved_and_loaded(model, folder):
    """Load the backbone of a model that transformers writes."""
    model.save_pretrained(folder)
    return loaded(folder)


def tiny_backbone(scheme="torch", *, noise=0.1, vocab_size=100, **shape):
    """Build a backbone with random weights, its biases and norms away from 0 and 1."""
    torch.manual_seed(0)
    backbone = Backbone(BackboneConfig(vocab_size=vocab_size, **{**SIZES, **shape}))
    backbone.initialize(scheme)
    for parameter in backbone.parameters():
        if parameter.dim() == 1:
            parameter.data.add_(noise * torch.randn_like(parameter))
    return backbone.eval()


def tiny_encoder(vocabulary, pooling="mean", *, seed=0, **shape):
    """Build an encoder of random weights, in evaluation mode."""
    torch.manual_seed(seed)
    config = BackboneConfig(vocab_size=vocabulary.size, **{**SIZES, **shape})
    return Encoder.from_scratch(config, vocabulary, pooling).eval()


def states_of(form, batch):
    """Return the states of a batch from a backbone or its form for inference."""
    return form(batch.input_ids, batch.cu_seqlens)


def layout_of(lengths, **options):
    """Return the layout of sentences with these numbers of tokens."""
    return Layout.of(torch.tensor([0, *lengths]).cumsum(0).int(), **options)
