"""Families of encoders at tiny size, in our terms and in those of transformers."""

from __future__ import annotations

import torch

from interlingua.encoder.families import FAMILIES

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
    "Bert": SIZES,
}
"""Options of transformers' config classes."""


def transformers_model(name, *, attention="eager", vocab_size=100, **options):
    """A model of transformers with random weights, biases and norms away from 0 and 1."""
    import transformers

    config = getattr(transformers, f"{name}Config")(
        vocab_size=vocab_size,
        pad_token_id=0,
        initializer_range=0.15,  # 0.02 would leave every state near its embedding
        attn_implementation=attention,
        **THEIRS[name],
        **options,
    )
    torch.manual_seed(3)
    model = getattr(transformers, f"{name}Model")(config).eval()
    for parameter in model.parameters():
        parameter.data += 0.05 * torch.randn_like(parameter)
    return model
