"""The families of encoders that can be loaded, from BERT to JinaBERT.

``FAMILIES`` describes how BERT, RoBERTa, XLM-R, ELECTRA, DistilBERT, ModernBERT, NomicBERT, GTE and
JinaBERT are stored, see ``encoder/modeling/architectures.py``. ``family_of`` finds the family of a
``config.json``, mostly by its ``model_type``. To add a family, describe it here; ``LayerSpec`` must
have choices for everything that its layers compute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from interlingua.encoder.modeling.architectures import Architecture, Stacked
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import ConfigError
from interlingua.vocabulary.model_files import (
    DistilBertFile,
    ElectraFile,
    JinaBertFile,
    JinaBertQKNormFile,
    ModernBertFile,
    RotaryFile,
)

GLOBAL = "full_attention"
_LOCAL = "sliding_attention"
EVERY_GLOBAL = 3
"""ModernBERT's layers 0, 3, 6 ... see the whole sentence by default."""
GLOBAL_BASE = 160_000.0
LOCAL_BASE = 10_000.0
LOCAL_ATTENTION = 128
"""ModernBERT's own values, which its configs may leave out."""
NOMIC_BASE = 1_000.0
ELECTRA_EMBEDDING_SIZE = 128
"""Default if the config has none."""
JINA_CODE = "jinaai/jina-bert-implementation"
JINA_QK_NORM_CODE = "jinaai/jina-bert-v2-qk-post-norm"
"""Hub repositories with the code of the JinaBERT models, which is not run here."""
GATED_ACTIVATIONS = {"gelu": "geglu", "relu": "reglu"}
"""Activation -> JinaBERT's ``feed_forward_type``."""
INVISIBLE_KEYS = (
    "model_type",
    "hidden_act",
    "hidden_activation",
    "activation",
    "num_attention_heads",
    "n_heads",
    "layer_norm_eps",
    "norm_eps",
    "pad_token_id",
    "layer_types",
    "local_attention",
    "rope_parameters",
    "position_embedding_type",
    "feed_forward_type",
)
"""Keys of config.json that change the computation but not the shape of any tensor."""


def _one_to_one(names: Mapping[str, str]) -> tuple[Stacked, ...]:
    return tuple([Stacked((ours,), (theirs,)) for ours, theirs in names.items()])


def _modernbert_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Read windows, bases and biases, in the form of transformers 5 or of earlier versions."""
    layers = raw.get("num_hidden_layers") or 0
    every = raw.get("global_attn_every_n_layers") or EVERY_GLOBAL
    # Version 5 lists the kind of each layer; before, every n-th one from 0 on was global.
    kinds = raw.get("layer_types") or _kinds_of_layers(layers, every)
    rotary = raw.get("rope_parameters") or {}
    bases = {kind: (rotary.get(kind) or {}).get("rope_theta") for kind in (GLOBAL, _LOCAL)}
    has_bias = bool(raw.get("mlp_bias"))
    return {
        "local_layers": tuple([number for number, kind in enumerate(kinds) if kind == _LOCAL]),
        # Theirs is the whole width of the window, ours is that of one side.
        "local_window": (raw.get("local_attention") or LOCAL_ATTENTION) // 2,
        "rotary_base": bases[GLOBAL] or raw.get("global_rope_theta") or GLOBAL_BASE,
        "local_rotary_base": bases[_LOCAL] or raw.get("local_rope_theta") or LOCAL_BASE,
        "norm_bias": bool(raw.get("norm_bias")),
        "attention_bias": bool(raw.get("attention_bias")),
        "intermediate_bias": has_bias,
        "output_bias": has_bias,
    }


def _kinds_of_layers(layers: int, every: int) -> list[str]:
    """Return the kinds: layers 0, ``every``, 2 ``every`` ... are global, others have a window."""
    return [_LOCAL if number % every else GLOBAL for number in range(layers)]


def _modernbert_keys(config: BackboneConfig) -> dict[str, Any]:
    """Write both forms, so that older versions of transformers read the model too."""
    layers = config.num_hidden_layers
    kinds = [_LOCAL if number in config.local_layers else GLOBAL for number in range(layers)]
    bases = {GLOBAL: config.rotary_base, _LOCAL: config.local_rotary_base}
    keys: dict[str, Any] = {
        "layer_types": kinds,
        "local_attention": 2 * config.local_window,
        "rope_parameters": {
            kind: {"rope_theta": base, "rope_type": "default"} for kind, base in bases.items()
        },
        "global_rope_theta": config.rotary_base,
        "local_rope_theta": config.local_rotary_base,
        "norm_bias": config.norm_bias,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.intermediate_bias,
        "embedding_dropout": config.hidden_dropout_prob,
    }
    # The old form has only a step between global layers; it is written if a step gives ``kinds``.
    for every in range(1, layers + 1):
        if kinds == _kinds_of_layers(layers, every):
            keys["global_attn_every_n_layers"] = every
    # Nulls, since transformers' defaults are the ids of ModernBERT's own vocabulary.
    return keys | dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"))


def _electra_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Refuse models with a matrix between embeddings and layers; otherwise return no fields.

    The small ELECTRA models have such a matrix.

    Raises:
        ConfigError: the model has such a matrix.
    """
    size = raw.get("embedding_size", ELECTRA_EMBEDDING_SIZE)
    if size != raw.get("hidden_size"):
        raise ConfigError(
            f"embedding_size is {size}, expected hidden_size ({raw.get('hidden_size')}); ELECTRA"
            " models with narrower embeddings are not supported: use a larger one"
        )
    return {}


def _electra_keys(config: BackboneConfig) -> dict[str, Any]:
    return {"embedding_size": config.hidden_size}


def _one_base(default: float) -> Callable[[Mapping[str, Any]], dict[str, Any]]:
    """Return a reader of the base of the angles, for families with the same one in all layers."""

    def read(raw: Mapping[str, Any]) -> dict[str, Any]:
        return {"rotary_base": (raw.get("rope_parameters") or {}).get("rope_theta") or default}

    return read


def _one_base_key(config: BackboneConfig) -> dict[str, Any]:
    return {"rope_parameters": {"rope_theta": config.rotary_base, "rope_type": "default"}}


def _jina_bert_fields(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Read the activation, which the kind of the gate determines, not ``hidden_act``."""
    kind = raw.get("feed_forward_type") or "geglu"
    ours = {theirs: activation for activation, theirs in GATED_ACTIVATIONS.items()}
    return {"hidden_act": ours[kind]}


def _jina_bert_keys(code: str) -> Callable[[BackboneConfig], dict[str, Any]]:
    """Write the keys of the hub's models, so that other libraries find the code which they need."""

    def write(config: BackboneConfig) -> dict[str, Any]:
        kind = "original"
        if config.gated:
            kind = GATED_ACTIVATIONS[config.hidden_act]
        return {
            "model_type": "bert",
            "position_embedding_type": "alibi",
            "feed_forward_type": kind,
            "_name_or_path": code,
            "auto_map": {
                "AutoConfig": f"{code}--configuration_bert.JinaBertConfig",
                "AutoModel": f"{code}--modeling_bert.JinaBertModel",
            },
        }

    return write


_BERT_ATTENTION = {
    "query": "attention.self.query",
    "key": "attention.self.key",
    "value": "attention.self.value",
    "attention_output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
}
_BERT_LAYER = _one_to_one(
    {
        **_BERT_ATTENTION,
        "intermediate": "intermediate.dense",
        "output": "output.dense",
        "output_norm": "output.LayerNorm",
    }
)
# Names of modules outside of the layers, which most families have from BERT.
_WORDS = {"word_embeddings": "embeddings.word_embeddings"}
_TYPES = {"token_type_embeddings": "embeddings.token_type_embeddings"}
_POSITIONS = {"position_embeddings": "embeddings.position_embeddings"}
_NORM = {"embedding_norm": "embeddings.LayerNorm"}


_BERT = Architecture(
    class_name="BertModel",
    embeddings={**_WORDS, **_POSITIONS, **_TYPES, **_NORM},
    layer_prefix="encoder.layer.",
    layer=_BERT_LAYER,
    has_pooler=True,
)
_JINA_BERT = Architecture(
    class_name="JinaBertModel",
    embeddings={**_WORDS, **_TYPES, **_NORM},
    layer_prefix="encoder.layer.",
    layer=_one_to_one(
        {
            **_BERT_ATTENTION,
            # One matrix of both halves, of which the first one is activated.
            "intermediate": "mlp.gated_layers",
            "output": "mlp.wo",
            "output_norm": "mlp.layernorm",
        }
    ),
    fixed={
        "model_type": "jina_bert",
        "positions": "alibi",
        "gated": True,
        "intermediate_bias": False,
    },
    has_pooler=True,
    schema=JinaBertFile,
    read_more=_jina_bert_fields,
    write_more=_jina_bert_keys(JINA_CODE),
)
FAMILIES: dict[str, Architecture] = {
    "bert": _BERT,
    "roberta": replace(_BERT, class_name="RobertaModel"),
    "xlm-roberta": replace(_BERT, class_name="XLMRobertaModel"),
    "electra": replace(
        _BERT,
        class_name="ElectraModel",
        has_pooler=False,
        schema=ElectraFile,
        read_more=_electra_fields,
        write_more=_electra_keys,
    ),
    "distilbert": Architecture(
        class_name="DistilBertModel",
        embeddings={**_WORDS, **_POSITIONS, **_NORM},
        layer_prefix="transformer.layer.",
        layer=_one_to_one(
            {
                "query": "attention.q_lin",
                "key": "attention.k_lin",
                "value": "attention.v_lin",
                "attention_output": "attention.out_lin",
                "attention_norm": "sa_layer_norm",
                "intermediate": "ffn.lin1",
                "output": "ffn.lin2",
                "output_norm": "output_layer_norm",
            }
        ),
        keys={
            "hidden_size": "dim",
            "num_hidden_layers": "n_layers",
            "num_attention_heads": "n_heads",
            "intermediate_size": "hidden_dim",
            "hidden_act": "activation",
            "hidden_dropout_prob": "dropout",
            "attention_probs_dropout_prob": "attention_dropout",
            "type_vocab_size": "",
            "layer_norm_eps": "",
        },
        schema=DistilBertFile,
    ),
    "modernbert": Architecture(
        class_name="ModernBertModel",
        embeddings={
            "word_embeddings": "embeddings.tok_embeddings",
            "embedding_norm": "embeddings.norm",
            "final_norm": "final_norm",
        },
        layer_prefix="layers.",
        layer=(
            Stacked(("query", "key", "value"), ("attn.Wqkv",)),
            Stacked(("attention_output",), ("attn.Wo",)),
            Stacked(("attention_norm",), ("attn_norm",)),
            Stacked(("intermediate",), ("mlp.Wi",)),
            Stacked(("output",), ("mlp.Wo",)),
            Stacked(("output_norm",), ("mlp_norm",)),
        ),
        keys={
            "hidden_act": "hidden_activation",
            "hidden_dropout_prob": "mlp_dropout",
            "attention_probs_dropout_prob": "attention_dropout",
            "layer_norm_eps": "norm_eps",
            "type_vocab_size": "",
        },
        fixed={"positions": "rotary", "norm_first": True, "gated": True},
        defaults={
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "layer_norm_eps": 1e-5,
            "max_position_embeddings": 8192,
        },
        schema=ModernBertFile,
        read_more=_modernbert_fields,
        write_more=_modernbert_keys,
    ),
    "nomic_bert": Architecture(
        class_name="NomicBertModel",
        embeddings={**_WORDS, **_TYPES, "embedding_norm": "emb_ln"},
        layer_prefix="encoder.layers.",
        layer=(
            Stacked(("query", "key", "value"), ("attn.Wqkv",)),
            Stacked(("attention_output",), ("attn.out_proj",)),
            Stacked(("attention_norm",), ("norm1",)),
            # In ours the activated half comes first, which is their second matrix.
            Stacked(("intermediate",), ("mlp.fc12", "mlp.fc11")),
            Stacked(("output",), ("mlp.fc2",)),
            Stacked(("output_norm",), ("norm2",)),
        ),
        fixed={
            "positions": "rotary",
            "gated": True,
            "attention_bias": False,
            "intermediate_bias": False,
            "output_bias": False,
        },
        defaults={
            "hidden_act": "silu",
            "hidden_dropout_prob": 0.0,
            "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": 2048,
            "type_vocab_size": 2,
        },
        schema=RotaryFile,
        read_more=_one_base(NOMIC_BASE),
        write_more=_one_base_key,
    ),
    "gte": Architecture(
        class_name="GteModel",
        embeddings={**_WORDS, **_TYPES, **_NORM},
        layer_prefix="encoder.layer.",
        layer=(
            Stacked(("query", "key", "value"), ("attention.qkv_proj",)),
            Stacked(("attention_output",), ("attention.o_proj",)),
            Stacked(("attention_norm",), ("attn_ln",)),
            # One matrix of both halves, of which the second one is activated.
            Stacked(("intermediate",), ("mlp.up_gate_proj",), swaps_halves=True),
            Stacked(("output",), ("mlp.down_proj",)),
            Stacked(("output_norm",), ("mlp_ln",)),
        ),
        fixed={"positions": "rotary", "gated": True, "intermediate_bias": False},
        defaults={
            "attention_probs_dropout_prob": 0.0,
            "max_position_embeddings": 8192,
            "type_vocab_size": 1,
        },
        schema=RotaryFile,
        read_more=_one_base(GLOBAL_BASE),
        write_more=_one_base_key,
    ),
    "jina_bert": _JINA_BERT,
    "jina_bert_qk_norm": replace(
        _JINA_BERT,
        layer=(
            *_one_to_one(
                {
                    **_BERT_ATTENTION,
                    "query_norm": "attention.self.layer_norm_q",
                    "key_norm": "attention.self.layer_norm_k",
                    "second_attention_norm": "layer_norm_1",
                    "output": "mlp.down_layer",
                    "output_norm": "layer_norm_2",
                }
            ),
            # Here the second half is activated.
            Stacked(("intermediate",), ("mlp.up_gated_layer",), swaps_halves=True),
        ),
        fixed={
            **_JINA_BERT.fixed,
            "model_type": "jina_bert_qk_norm",
            "query_key_norm": True,
            "adds_input_twice": True,
        },
        schema=JinaBertQKNormFile,
        write_more=_jina_bert_keys(JINA_QK_NORM_CODE),
    ),
    # JinaBERT without a gate.
    "alibi_bert": replace(
        _JINA_BERT,
        layer=_BERT_LAYER,
        fixed={"model_type": "alibi_bert", "positions": "alibi"},
        read_more=None,
    ),
}
"""Families by ``model_type``. JinaBERT's models have BERT's type, so their keys are the names that
``family_of`` returns."""


def family_of(raw: Mapping[str, Any]) -> str | None:
    """Return the model type in a ``config.json``, or for JinaBERT the key of its form.

    JinaBERT's models have BERT's type. The hub code that the file names determines which of the two
    forms of JinaBERT the model has.

    Args:
        raw: content of the file.
    """
    model_type: str | None = raw.get("model_type")
    if model_type != "bert" or raw.get("position_embedding_type") != "alibi":
        return model_type
    # As text, since a stranger's file may hold anything there.
    if JINA_QK_NORM_CODE in f"{raw.get('_name_or_path')} {raw.get('auto_map')}":
        return "jina_bert_qk_norm"
    # A missing key means "original", which is also the default of the hub's code.
    if raw.get("feed_forward_type") in (None, "original"):
        return "alibi_bert"
    return "jina_bert"
