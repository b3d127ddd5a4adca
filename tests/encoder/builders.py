"""Small encoders from their parts, and edits of the files that they are saved in."""

from __future__ import annotations

import json

import torch

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.post_pooling import PostPooling
from interlingua.encoder.static import STATIC_MAX_TOKENS, StaticBackbone, static_model_config


def with_layers(encoder, *layers, shift=None):
    """Return the encoder with layers after pooling."""
    settings = encoder.settings
    chain = PostPooling(layers)
    return Encoder(encoder.backbone, encoder.vocabulary, settings, chain, shift).eval()


def static_of(vocabulary, dim):
    """Return random token vectors."""
    torch.manual_seed(0)
    backbone = StaticBackbone(
        static_model_config(vocabulary.size, dim, pad_token_id=vocabulary.pad_id)
    )
    settings = EncodingSettings(include_special=False, max_tokens=STATIC_MAX_TOKENS)
    return Encoder(backbone, vocabulary, settings).eval()


def edit_json(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def add_module(folder, kind):
    """List another module of sentence-transformers, the last one."""
    modules = json.loads((folder / "modules.json").read_text())
    modules.append({"path": f"9_{kind}", "type": f"sentence_transformers.models.{kind}"})
    (folder / "modules.json").write_text(json.dumps(modules))


def closeness(found, expected):
    """Return the smallest cosine of two lists of unit vectors."""
    return float((found * expected).sum(axis=1).min())
