"""Tables of token vectors on disk, as ``StaticEmbedding`` and Model2Vec keep them.

sentence-transformers' module ``StaticEmbedding`` has one tensor, a row for each token. Model2Vec
may have three: vectors, the row of each token (tokens may share vectors), and the weight of each
token. Both read the files that are written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor

from interlingua.encoder.directories.model_directory import (
    EncodingSettings,
    listed_modules,
    read_described_settings,
    read_json,
    read_model_settings,
    write_model_json,
    write_modules,
    write_tokenizer_config,
)
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.weights import read_weights
from interlingua.encoder.static import STATIC_MAX_TOKENS, static_model_config
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.tensor_files import write_safetensors
from interlingua.vocabulary.model_files import AnyModelFile, BackboneFile, Modules

MODULE = "StaticEmbedding"
TABLES = ("embedding.weight", "embeddings")
"""Names of a table in sentence-transformers and in Model2Vec; sentence-transformers reads both
names."""
MODEL_TYPE = "model2vec"
LARGEST = 127
"""Largest value of a signed byte, on both sides of zero."""


def static_folder(folder: Path) -> Path | None:
    """Return the folder of the table of a model directory; None if the model has no table.

    Raises:
        CheckpointError: ``modules.json`` or ``config.json`` is broken.
    """
    if (folder / "modules.json").is_file():
        modules = cast("list[dict[str, str]]", read_json(folder / "modules.json", schema=Modules))
        # A table is the first module of its model, in place of the transformer.
        if modules and modules[0]["type"].endswith(f".{MODULE}"):
            return folder / modules[0]["path"]
        return None
    config = read_json(folder / "config.json", missing={}, schema=AnyModelFile)
    if config.get("model_type") == MODEL_TYPE:
        return folder
    return None


def read_static(
    folder: Path, table_folder: Path
) -> tuple[BackboneConfig, dict[str, Tensor], EncodingSettings]:
    """Read a table of this library or another one as the weights of a ``StaticBackbone``.

    Args:
        folder: of the model.
        table_folder: see ``static_folder``.

    Raises:
        CheckpointError: a file is missing or broken, or the model has modules that are not
            supported.
    """
    stored = read_weights(table_folder)
    name = next((name for name in TABLES if name in stored), None)
    if name is None:
        raise CheckpointError(
            f"{table_folder}: expected a tensor {' or '.join(TABLES)}, found none in"
            f" {len(stored)} tensors; check that the model has token vectors"
        )
    table = stored[name]
    rows = stored.get("mapping")
    weights = stored.get("weights")
    _check_shapes(table_folder, table, rows, weights)
    # Model2Vec's tokens may share vectors.
    if rows is not None:
        table = table[rows.long()]
    table = table.float()
    # The vectors are multiplied by the weights here, so that the weights are not needed later.
    if weights is not None:
        table = table * weights.float()[:, None]
    try:
        config = static_model_config(*table.shape)
    except ConfigError as error:
        raise CheckpointError(f"{table_folder}: {error}") from error
    return config, {"word_embeddings.weight": table}, static_settings(folder)


def _check_shapes(folder: Path, table: Tensor, rows: Tensor | None, weights: Tensor | None) -> None:
    """Refuse tensors that do not fit each other.

    Raises:
        CheckpointError: two of them do not fit each other, or one is invalid.
    """
    tokens = len(table)
    if rows is not None:
        tokens = rows.numel()
    if table.ndim != 2 or table.is_complex() or not table.numel():
        raise CheckpointError(
            f"{folder}: the token vectors have shape {tuple(table.shape)}, expected one row per"
            " token; download the model again"
        )
    if rows is not None and (
        rows.ndim != 1 or rows.is_floating_point() or rows.is_complex() or not tokens
    ):
        raise CheckpointError(
            f"{folder}: mapping is {rows.dtype} of shape {tuple(rows.shape)}, expected one row"
            " number per token; download the model again"
        )
    if rows is not None and (int(rows.min()) < 0 or int(rows.max()) >= len(table)):
        raise CheckpointError(
            f"{folder}: mapping refers to rows {rows.min()} to {rows.max()}, but the table has"
            f" {len(table)} rows; download the model again"
        )
    if weights is not None and (tuple(weights.shape) != (tokens,) or weights.is_complex()):
        raise CheckpointError(
            f"{folder}: the weights have shape {tuple(weights.shape)}, expected one number for"
            f" each of {tokens} tokens; download the model again"
        )


def static_settings(folder: Path) -> EncodingSettings:
    """Read the prompts of a static model's directory, and whether its vectors have length 1.

    Raises:
        CheckpointError: a file is broken, or the model has modules that are not supported.
    """
    kinds = [kind for _, kind in listed_modules(folder, (MODULE,))]
    # The last module shows whether vectors are scaled; Model2Vec has no list of modules, and a key
    # of its config shows it.
    if kinds:
        normalize = kinds[-1] == "Normalize"
    else:
        normalize = read_json(folder / "config.json", schema=BackboneFile).get("normalize", False)
    return EncodingSettings(
        normalize=bool(normalize),
        max_tokens=STATIC_MAX_TOKENS,
        **read_described_settings(folder, include_special=False),
    )


def read_any_settings(folder: Path, max_tokens: int) -> EncodingSettings:
    """Read pooling, prompts and limits of any model directory, with layers or without.

    Args:
        folder: the model directory.
        max_tokens: the largest number of tokens that the weights of its layers allow.

    Raises:
        CheckpointError: a file is broken, or the model has modules that are not supported.
    """
    if static_folder(folder):
        return static_settings(folder)
    return read_model_settings(folder, max_tokens)


def write_static(
    folder: Path,
    table: Tensor | None,
    config: BackboneConfig,
    settings: EncodingSettings,
    special_tokens: dict[str, str],
    *,
    spells_special_tokens: bool = False,
    dtype: torch.dtype | None = None,
    after_pooling: Sequence[str] = (),
) -> None:
    """Write everything but the tokenizer's definition and the vocabulary.

    Args:
        folder: an existing folder.
        table: one row per token; None = all but the table is written.
        config: its shape.
        settings: prompts, and whether vectors have length 1.
        special_tokens: ``{"pad_token": "<pad>", ...}``.
        spells_special_tokens: see ``Vocabulary``.
        dtype: of the stored table; int8 has one scale per row. None = as it is.
        after_pooling: classes of the modules between pooling and the last scaling.
    """
    tensors: dict[str, Tensor] = {}
    stored_dtype = torch.float32
    if table is not None:
        tensors = _stored(table.detach().cpu().contiguous(), dtype)
        stored_dtype = tensors["embeddings"].dtype
    described = {
        "architectures": ["StaticModel"],
        "model_type": MODEL_TYPE,
        "vocab_size": config.vocab_size,
        "hidden_dim": config.hidden_size,
        "normalize": settings.normalize,
        "embedding_dtype": str(stored_dtype).removeprefix("torch."),
    }
    write_model_json(folder / "config.json", described)
    if tensors:
        write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
    write_tokenizer_config(
        folder, settings.max_tokens, special_tokens, spells_special_tokens=spells_special_tokens
    )
    write_modules(folder, [("", MODULE)], settings, after_pooling=after_pooling)


def _stored(table: Tensor, dtype: torch.dtype | None) -> dict[str, Tensor]:
    if dtype != torch.int8:
        return {"embeddings": table.to(dtype or table.dtype)}
    rounded, scales = int8_rows(table.float())
    return {"embeddings": rounded, "weights": scales}


def int8_rows(table: Tensor) -> tuple[Tensor, Tensor]:
    """Quantize to int8 values and a scale per row, whose product is nearest to the table.

    The scale of a row of zeros is 1.
    """
    largest = table.abs().amax(dim=1)
    scales = torch.where(largest > 0, largest / LARGEST, torch.ones_like(largest))
    return (table / scales[:, None]).round().to(torch.int8), scales
