"""A model as one GGUF file, with its tokenizer inside, for llama.cpp and programs based on it.

llama.cpp has fixed code for each architecture and tokenizer, and reads only numbers and names from
the file. So a model is written with the architecture ``bert``, after a check that refuses every
part that llama.cpp's code would compute in another way. llama.cpp has no architecture for XLM-R, so
the position table is written without the rows that precede the first token's row; everything else
is the same.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import ConfigError, import_extra
from interlingua.vocabulary.vocabulary import Vocabulary

_KINDS: dict[str, str] = {"float32": "F32", "float16": "F16", "int8": "Q8_0"}
"""Storage formats of matrices, by the name of ``--dtype``; Q8_0 has one scale for 32 numbers of a
row."""
Q8_BLOCK = 32
NORMAL, UNKNOWN, CONTROL = 1, 2, 3
"""llama.cpp's types of tokens."""
SENTENCEPIECE_NORMALIZERS = {"Precompiled", "Replace", "Strip"}
"""Names of normalizers of SentencePiece models; llama.cpp itself joins repeated spaces, and removes
spaces at both ends of a text."""
LAYER_NAMES = {
    "query": "attn_q",
    "key": "attn_k",
    "value": "attn_v",
    "attention_output": "attn_output",
    "attention_norm": "attn_output_norm",
    "intermediate": "ffn_up",
    "output": "ffn_down",
    "output_norm": "layer_output_norm",
}
OTHER_NAMES = {
    "word_embeddings": "token_embd",
    "position_embeddings": "position_embd",
    "token_type_embeddings": "token_types",
    "embedding_norm": "token_embd_norm",
}


def gguf_file(dtype: str) -> str:
    """Return the name of the file in a directory."""
    return f"model-{_KINDS[dtype]}.gguf"


def write_gguf(encoder: Encoder, path: Path, *, name: str, dtype: str = "float16") -> None:
    """Write a BERT- or XLM-R-shaped encoder.

    Args:
        encoder: the model.
        path: of the file.
        name: of the model, in the file.
        dtype: of the matrices, a key of ``_KINDS``; biases and norms stay in float32.

    Raises:
        ConfigError: llama.cpp does not support a part of the model.
        MissingExtraError: the package ``gguf`` is not installed.
    """
    refuse_other_shapes(encoder)
    if dtype == "int8" and encoder.backbone.config.hidden_size % Q8_BLOCK:
        raise ConfigError(
            f"--gguf --dtype int8: the width of the layers must be a multiple of {Q8_BLOCK}; use"
            " --dtype float16"
        )
    gguf = import_extra("gguf", extra="gguf")
    backbone = encoder.backbone
    assert isinstance(backbone, Backbone)
    config = backbone.config
    writer = gguf.GGUFWriter(path, "bert")
    writer.add_name(name)
    file_type = f"MOSTLY_{_KINDS[dtype]}"
    if dtype == "float32":
        file_type = "ALL_F32"
    writer.add_file_type(getattr(gguf.LlamaFileType, file_type))
    writer.add_context_length(config.max_tokens)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_head_count(config.num_attention_heads)
    writer.add_layer_norm_eps(config.layer_norm_eps)
    writer.add_causal_attention(False)
    writer.add_pooling_type(getattr(gguf.PoolingType, encoder.settings.pooling.upper()))
    writer.add_vocab_size(encoder.vocabulary.size)
    _add_tokenizer(writer, encoder.vocabulary)
    for parameter, values in _tensors(backbone, encoder.vocabulary.size).items():
        kind = "F32"
        # The single row of token types is added like a bias.
        if values.ndim == 2 and "token_types" not in parameter:
            kind = _KINDS[dtype]
        quantization = getattr(gguf.GGMLQuantizationType, kind)
        stored = gguf.quants.quantize(values, quantization)
        writer.add_tensor(parameter, stored, raw_dtype=quantization)
    # The format requires this order: header, metadata, tensors.
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def refuse_other_shapes(encoder: Encoder) -> None:
    """Refuse a model that a GGUF file of architecture ``bert`` can't hold.

    Raises:
        ConfigError: the format can't hold the model; the message names the part.
    """
    settings = encoder.settings
    if isinstance(encoder.backbone, StaticBackbone):
        raise ConfigError(
            "--gguf supports only transformers, but the model consists of token vectors; export"
            " without --gguf"
        )
    if settings.pooling == "max" or not settings.include_special:
        raise ConfigError(
            "--gguf: llama.cpp supports only mean and cls pooling over all tokens; use --onnx"
            " instead"
        )
    if len(encoder.post_pooling):
        raise ConfigError(
            "--gguf: llama.cpp does not support layers after pooling, such as the map of"
            " `interlingua debias`; use --onnx instead"
        )
    if encoder.dim < encoder.full_dim:
        raise ConfigError(
            "--gguf: llama.cpp cannot truncate vectors; export without --truncate-dim"
        )
    config = encoder.backbone.config
    if config.positions != "learned" or not all(spec.is_plain for spec in config.layer_specs):
        raise ConfigError(
            f"--gguf supports only the architecture of BERT, found {config.model_type}; use"
            " --onnx instead"
        )
    if not encoder.backbone.config.hidden_act.startswith("gelu"):
        raise ConfigError(
            "--gguf: llama.cpp supports BERT only with gelu, found"
            f" {encoder.backbone.config.hidden_act}; use --onnx instead"
        )
    _refuse_other_tokenizers(encoder.vocabulary)


def _refuse_other_tokenizers(vocabulary: Vocabulary) -> None:
    """Refuse a tokenizer that llama.cpp's own code would not reproduce token by token."""
    kind = vocabulary.model_type
    if kind not in ("Unigram", "WordPiece"):
        raise ConfigError(
            "--gguf supports only Unigram (SentencePiece) and WordPiece tokenizers, found"
            f" {kind}; use --onnx instead"
        )
    if kind == "WordPiece" and not _lowercases(vocabulary):
        raise ConfigError(
            "--gguf: llama.cpp lowercases WordPiece text, but the tokenizer of the model keeps"
            " case; use --onnx instead"
        )
    foreign = {part["type"] for part in _normalizers(vocabulary)} - SENTENCEPIECE_NORMALIZERS
    if kind == "Unigram" and foreign:
        raise ConfigError(
            "--gguf: llama.cpp supports only the normalization of SentencePiece, found"
            f" {min(foreign)}; use --onnx instead"
        )
    first, last = _frame(vocabulary)
    if first is None or last is None:
        raise ConfigError(
            "--gguf: llama.cpp adds one token before and one after each text, but the tokenizer"
            " of the model does not; use --onnx instead"
        )


def _lowercases(vocabulary: Vocabulary) -> bool:
    # Test with a letter, because normalizers may be nested and have various names.
    normalizer = vocabulary.tokenizer.normalizer
    return normalizer is not None and normalizer.normalize_str("A") == "a"


def _frame(vocabulary: Vocabulary) -> tuple[int | None, int | None]:
    """Return the ids that the tokenizer puts before and after every text.

    Both are None unless the tokenizer puts exactly one id on each side.
    """
    ids = vocabulary.tokenizer.encode("a").ids
    bare = vocabulary.tokenizer.encode("a", add_special_tokens=False).ids
    if ids[1:-1] != bare:
        return None, None
    return ids[0], ids[-1]


def _add_tokenizer(writer: Any, vocabulary: Vocabulary) -> None:
    """Write pieces in the order of ids, their scores and kinds, and the special tokens."""
    model = vocabulary.definition["model"]
    special = {token["id"] for token in vocabulary.definition["added_tokens"] if token["special"]}
    if vocabulary.model_type == "Unigram":
        # llama.cpp calls Unigram "t5"; "llama" is its name for SentencePiece's BPE.
        writer.add_tokenizer_model("t5")
        pieces = [piece for piece, _ in model["vocab"]]
        scores = [score for _, score in model["vocab"]]
        writer.add_add_space_prefix(True)
        writer.add_remove_extra_whitespaces(True)
        for step in _normalizers(vocabulary):
            if step["type"] == "Precompiled":
                writer.add_precompiled_charsmap(base64.b64decode(step["precompiled_charsmap"]))
                break
    else:
        writer.add_tokenizer_model("bert")
        writer.add_tokenizer_pre("default")
        by_id = sorted(model["vocab"].items(), key=lambda entry: entry[1])
        pieces = []
        for piece, number in by_id:
            if number not in special:
                piece = _phantom_space(piece)
            pieces.append(piece)
        # WordPiece takes the longest piece and ignores scores; this is the value that llama.cpp's
        # own converter writes.
        scores = [-1000.0] * len(pieces)
    # Tokens that were added after the model's own vocabulary.
    added = range(len(pieces), vocabulary.size)
    pieces += [vocabulary.tokenizer.id_to_token(number) for number in added]
    scores += [0.0] * len(added)
    unknown = vocabulary.unk_id
    kinds = [CONTROL if number in special else NORMAL for number in range(len(pieces))]
    # Set this last, because the unknown token is also a special token.
    kinds[unknown] = UNKNOWN
    writer.add_token_list([piece.encode("utf-8") for piece in pieces])
    writer.add_token_scores(scores)
    writer.add_token_types(kinds)
    writer.add_token_type_count(1)
    first, last = _frame(vocabulary)
    writer.add_bos_token_id(first)
    writer.add_eos_token_id(last)
    writer.add_sep_token_id(last)
    writer.add_unk_token_id(unknown)
    writer.add_pad_token_id(vocabulary.pad_id)
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def _phantom_space(piece: str) -> str:
    """Return a WordPiece entry in llama.cpp's spelling.

    llama.cpp marks starts of words, not continuations.
    """
    if piece.startswith("##"):
        return piece.removeprefix("##")
    return f"\u2581{piece}"


def _normalizers(vocabulary: Vocabulary) -> list[dict[str, Any]]:
    """Return the steps of normalization, in order."""
    normalizer = vocabulary.definition.get("normalizer")
    if normalizer is None:
        return []
    steps: list[dict[str, Any]] = normalizer.get("normalizers", [normalizer])
    return steps


def _tensors(backbone: Backbone, vocabulary_size: int) -> dict[str, Any]:
    """Return the weights by llama.cpp's names, without table rows that no token uses.

    In llama.cpp positions start at 0.
    """
    found = {}
    for name, tensor in backbone.state_dict().items():
        module, kind = name.rsplit(".", 1)
        values = _array(tensor)
        # The table may have more rows than the vocabulary, to reach a size that suits the hardware.
        if module == "word_embeddings":
            values = values[:vocabulary_size]
        if module == "position_embeddings":
            values = values[backbone.config.first_position :]
        if module == "token_type_embeddings":
            values = values[:1]
        if module.startswith("layers."):
            _, number, part = module.split(".")
            found[f"blk.{number}.{LAYER_NAMES[part]}.{kind}"] = values
        else:
            found[f"{OTHER_NAMES[module]}.{kind}"] = values
    # A model without token types gets a row of zeros, which does not change the embeddings.
    no_type = np.zeros((1, backbone.config.hidden_size), dtype=np.float32)
    found.setdefault("token_types.weight", no_type)
    return found


def _array(tensor: Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().float().cpu().numpy())
