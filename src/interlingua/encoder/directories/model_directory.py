"""Model directories on disk: sentence-transformers' layout around a stock Hugging Face backbone.

    config.json                          shape of the backbone, as transformers writes it
    model.safetensors                    its weights, by the names of its family
    tokenizer.json, tokenizer_config...  the vocabulary
    modules.json                         Transformer, Pooling, Dense layers, Normalize
    1_Pooling/config.json, 2_Dense/...   a folder for each module
    sentence_bert_config.json            the limit of tokens
    config_sentence_transformers.json    prompts, and our own settings under "interlingua"
    int8_ranges.json                     steps of int8 vectors, if they were measured

Both sentence-transformers and transformers can read the files that are written here. This module
can read the files that they write, if ``encoder/modeling/families.py`` has the family and the
modules are supported.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from torch import Tensor

from interlingua import __version__
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.families import FAMILIES, family_of
from interlingua.encoder.modeling.weights import (
    from_huggingface_names,
    read_weights,
    to_huggingface_names,
)
from interlingua.encoder.pooling import POOLING_MODES, PoolingMode
from interlingua.encoder.vector_format import Int8Ranges, ranges_by_width
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.json_text import parse_json
from interlingua.storage.limits import MAX_CONFIG_BYTES, read_limited
from interlingua.storage.tensor_files import write_safetensors
from interlingua.vocabulary.model_files import (
    AFTER_POOLING,
    BEFORE_POOLING,
    AnyObject,
    BackboneFile,
    LimitsFile,
    Modules,
    PoolingFile,
    PromptsFile,
    RangesByWidth,
    check_modules,
    read_file,
)

MODEL_TYPES = tuple([name for name, family in FAMILIES.items() if "model_type" not in family.fixed])
"""Possible types in ``config.json``; JinaBERT's families have BERT's type, see ``family_of``."""
# Older versions of sentence-transformers write the pooling as one boolean for each kind.
OLD_POOLING_KEYS: dict[str, PoolingMode] = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
}
RANGES_FILE = "int8_ranges.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class EncodingSettings:
    """Settings that turn text into one vector, besides the weights and the vocabulary."""

    pooling: PoolingMode = "mean"
    """Pooling of token states to a sentence vector."""
    include_special: bool = True
    """True if pooling sees the tokens that the tokenizer puts around a text."""
    normalize: bool = True
    """True if sentence-transformers shall scale vectors to length 1 (the stored Normalize
    module)."""
    max_tokens: int = 512
    """Largest number of tokens of a text; longer texts are cut."""
    prompts: dict[str, str] = field(default_factory=dict)
    """Named texts to put in front of an input, e.g. ``{"query": "query: "}``."""
    default_prompt: str | None = None
    """Name of the default prompt."""
    matryoshka_dims: tuple[int, ...] = ()
    """Widths to which the embeddings were trained to be cut; empty = only the full width."""
    truncate_dim: int | None = None
    """Number of elements to which vectors are cut, before they are scaled to length 1; None = they
    are not cut."""
    int8_ranges: dict[int, Int8Ranges] = field(default_factory=dict)
    """Ranges of vectors of length 1, by their width; they determine the steps of int8 vectors, see
    ``encoder/vector_format.py``."""

    def prompt_text(self, prompt: str | None) -> str:
        """Return the text to put before an input.

        Args:
            prompt: the name of a prompt, or a text that does not end with a letter
                (``"query: "``); "" = nothing, None = the default.

        Raises:
            ConfigError: it is neither.
        """
        if prompt is None:
            return self.prompts.get(self.default_prompt or "", "")
        if prompt in self.prompts:
            return self.prompts[prompt]
        # A word that names no prompt is a typing error, rather than a text to put in front.
        if prompt[-1:].isalnum():
            known = "it has no prompts"
            if self.prompts:
                known = f"its prompts are {', '.join(self.prompts)}"
            raise ConfigError(
                f"unknown prompt {prompt!r}; {known}; to use a text of your own as prompt, end"
                f" it with a colon or a space: {prompt + ': '!r}"
            )
        return prompt


def write_directory(
    folder: Path,
    config: BackboneConfig,
    weights: dict[str, Tensor],
    settings: EncodingSettings,
    special_tokens: dict[str, str],
    *,
    spells_special_tokens: bool = False,
    after_pooling: Sequence[str] = (),
) -> None:
    """Write everything but the vocabulary's own files and the weights of modules after pooling.

    Args:
        folder: an existing folder.
        config: the backbone's shape.
        weights: its state dict; empty = all but the weights is written.
        settings: pooling, prompts and limits.
        special_tokens: ``{"pad_token": "<pad>", ...}``.
        spells_special_tokens: see ``Vocabulary``; if True, transformers splits special tokens too.
        after_pooling: classes of the modules between pooling and the last scaling, see
            ``encoder/post_pooling.py``.
    """
    family = FAMILIES[config.model_type]
    tensors: dict[str, Tensor] = {}
    dtype = "float32"
    if weights:
        tensors = to_huggingface_names(weights, config)
        dtype = str(next(iter(tensors.values())).dtype).removeprefix("torch.")
    described = {"architectures": [family.class_name], **family.described(config), "dtype": dtype}
    write_model_json(folder / "config.json", described)
    if tensors:
        write_safetensors(folder / "model.safetensors", tensors, {"format": "pt"})
    write_tokenizer_config(
        folder, settings.max_tokens, special_tokens, spells_special_tokens=spells_special_tokens
    )
    modules = [("", "Transformer"), ("1_Pooling", "Pooling")]
    write_modules(folder, modules, settings, after_pooling=after_pooling)
    # Both forms of the pooling, so that older versions read the model too.
    booleans = {key: mode == settings.pooling for key, mode in OLD_POOLING_KEYS.items()}
    # The key of the width has its old name: versions from 5.4 on accept it silently, and earlier
    # versions refuse the new name.
    width = {"word_embedding_dimension": config.hidden_size}
    write_model_json(
        folder / "1_Pooling" / "config.json",
        {**width, "pooling_mode": settings.pooling, **booleans, "include_prompt": True},
    )
    limits: dict[str, Any] = {"max_seq_length": settings.max_tokens, "do_lower_case": False}
    # Otherwise transformers adds a pooling layer with random weights, and warns of it.
    if family.has_pooler:
        limits["model_args"] = {"add_pooling_layer": False}
    write_model_json(folder / "sentence_bert_config.json", limits)


def write_tokenizer_config(
    folder: Path, max_tokens: int, special_tokens: dict[str, str], *, spells_special_tokens: bool
) -> None:
    """Write the file that transformers needs besides ``tokenizer.json``.

    The arguments are those of ``write_directory``.
    """
    tokenizer = {
        **special_tokens,
        "model_max_length": max_tokens,
        "clean_up_tokenization_spaces": False,
    }
    if spells_special_tokens:
        tokenizer["split_special_tokens"] = True
    names = ["input_ids", "attention_mask"]
    write_model_json(
        folder / "tokenizer_config.json",
        {**tokenizer, "model_input_names": names, "tokenizer_class": "PreTrainedTokenizerFast"},
    )
    write_model_json(folder / "special_tokens_map.json", special_tokens)


def write_modules(
    folder: Path,
    modules: Sequence[tuple[str, str]],
    settings: EncodingSettings,
    *,
    after_pooling: Sequence[str] = (),
) -> None:
    """Write sentence-transformers' list of modules, a folder for each, and the prompts.

    The file of the prompts also records that this library wrote the model, see ``is_ours``.

    Args:
        folder: an existing folder.
        modules: path and class of each module up to the pooling.
        settings: the prompts, whether a Normalize module comes last, and how vectors are cut and
            quantized.
        after_pooling: classes of the modules between pooling and the last scaling.
    """
    kinds = list(after_pooling)
    if settings.normalize:
        kinds.append("Normalize")
    # The name of a folder starts with the module's number in the list: 2_Dense, 3_Normalize.
    all_modules = list(modules)
    for kind in kinds:
        all_modules.append((f"{len(all_modules)}_{kind}", kind))
    if settings.int8_ranges:
        ranges = {width: of_width._asdict() for width, of_width in settings.int8_ranges.items()}
        write_model_json(folder / RANGES_FILE, ranges)
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for i, (path, kind) in enumerate(all_modules)
    ]
    write_model_json(folder / "modules.json", listed)
    for path, _ in all_modules:
        (folder / path).mkdir(exist_ok=True)
    described: dict[str, Any] = {
        "__version__": {"interlingua": __version__},
        "prompts": settings.prompts,
        "default_prompt_name": settings.default_prompt,
        "similarity_fn_name": "cosine",
    }
    if settings.truncate_dim is not None:
        described["truncate_dim"] = settings.truncate_dim
    # Settings that sentence-transformers has no key for; it ignores our key.
    own: dict[str, Any] = {"include_special": settings.include_special}
    if settings.matryoshka_dims:
        own["matryoshka_dims"] = settings.matryoshka_dims
    described["interlingua"] = own
    write_model_json(folder / "config_sentence_transformers.json", described)


MODEL_ENTRIES = (
    r"((question_encoder/)?(\d+_\w+/)?|onnx/|openvino/)"
    r"(README\.md|sentencepiece\.model|\.interlingua\.lock"
    r"|[\w-]+\.(safetensors|safetensors\.index\.json|bin|gguf|onnx|onnx\.data|onnx_data|xml)"
    r"|(average|calibration|config|config_sentence_transformers|debias|int8_ranges|mapped_encoder"
    r"|modules|sentence_bert_config|special_tokens_map|tokenizer|tokenizer_config|vocabulary)\.json"
    r"|\..*\.(tmp|old)(/.*)?)"
)
"""Paths of files in a model directory that are ours."""


def is_ours(folder: Path) -> bool:
    """Return whether this library wrote the model in a folder: then it may be replaced."""
    try:
        versions = read_json(folder / "config_sentence_transformers.json").get("__version__")
    except (CheckpointError, AttributeError):
        return False
    return isinstance(versions, dict) and "interlingua" in versions


def read_directory(folder: Path) -> tuple[BackboneConfig, dict[str, Tensor], EncodingSettings]:
    """Read the backbone and the settings of a model directory, of any family of ``FAMILIES``.

    Raises:
        CheckpointError: a file is missing or broken, or the model is of another kind.
    """
    raw = read_json(folder / "config.json", schema=BackboneFile)
    if raw.get("model_type") not in MODEL_TYPES:
        raise CheckpointError(
            f"{folder}: model_type {raw.get('model_type')!r} is not supported; use one of:"
            f" {', '.join(MODEL_TYPES)}"
        )
    # Families with rotary positions or with ALiBi may name them in position_embedding_type too.
    learned = FAMILIES[family_of(raw) or "bert"].fixed.get("positions") is None
    kind = raw.get("position_embedding_type") or "absolute"
    if (learned and kind != "absolute") or raw.get("is_decoder"):
        raise CheckpointError(
            f"{folder}: only encoders with absolute positions, or BERT with alibi, are"
            " supported; use another model"
        )
    if raw.get("vocab_size") is None:
        raise CheckpointError(
            f"{folder}: config.json has no vocab_size; check that the folder contains the"
            " encoder's config.json"
        )
    config = read_backbone_config(folder, raw)
    # The weights determine what the config does not specify, such as a table of token types.
    weights, config = from_huggingface_names(read_weights(folder), config, folder)
    return config, weights, read_model_settings(folder, config.max_tokens)


def read_backbone_config(folder: Path, raw: dict[str, Any]) -> BackboneConfig:
    """Read the shape of a backbone from a ``config.json``.

    Args:
        folder: of the model.
        raw: content of the file.

    Raises:
        CheckpointError: a size is invalid, or sizes do not fit each other.
    """
    read_file(BackboneFile, raw, folder / "config.json")
    family = FAMILIES.get(family_of(raw) or "", FAMILIES["bert"])
    read_file(family.schema, raw, folder / "config.json")
    try:
        return family.shape(raw)
    except (ConfigError, TypeError) as error:
        # A TypeError means that a required size is missing.
        raise CheckpointError(f"{folder / 'config.json'}: {error}") from error


def read_model_settings(folder: Path, max_tokens: int) -> EncodingSettings:
    """Read pooling, prompts and limits of a model directory.

    By default pooling is the mean of all tokens.

    Args:
        folder: the model directory.
        max_tokens: the largest number of tokens that the model's weights allow.

    Raises:
        CheckpointError: it has modules or a pooling that are not supported.
    """
    if not (folder / "modules.json").exists():
        return EncodingSettings(normalize=False, max_tokens=max_tokens)
    listed = listed_modules(folder, BEFORE_POOLING)
    modules = {kind: path for path, kind in listed}
    if modules["Transformer"] not in ("", "."):
        raise CheckpointError(
            f"{folder}: the Transformer module is in a subfolder, which is not supported; move"
            " its files up"
        )
    pooling: dict[str, Any] = {}
    if "Pooling" in modules:
        pooling = read_json(folder / modules["Pooling"] / "config.json", schema=PoolingFile)
    limits = read_json(folder / "sentence_bert_config.json", missing={}, schema=LimitsFile)
    limit = limits.get("max_seq_length")
    return EncodingSettings(
        pooling=_pooling_mode(pooling, folder),
        normalize=listed[-1][1] == "Normalize",
        max_tokens=min(limit or max_tokens, max_tokens),
        **read_described_settings(folder, include_special=True),
    )


def listed_modules(folder: Path, before: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return the path and class of each module that ``modules.json`` lists, in order.

    The list is empty if there is no such file.

    Args:
        folder: of the model.
        before: classes that may precede the pooling; if empty, the order is not checked.

    Raises:
        CheckpointError: the file is damaged, or lists modules that are not supported.
    """
    if not (folder / "modules.json").exists():
        return []
    found = cast("list[dict[str, str]]", read_json(folder / "modules.json", schema=Modules))
    listed = [(module["path"], module["type"]) for module in found]
    if before:
        check_modules(listed, before, folder)
    # The modules have moved between packages from version to version: only the class counts.
    return [(path, kind.rpartition(".")[2]) for path, kind in listed]


def modules_after_pooling(folder: Path) -> list[tuple[str, str]]:
    """Return the path and class of each Dense and Normalize module, in order."""
    return [module for module in listed_modules(folder) if module[1] in AFTER_POOLING]


def read_described_settings(folder: Path, *, include_special: bool) -> dict[str, Any]:
    """Read the arguments of ``EncodingSettings`` for prompts, pooled tokens, cuts and int8 ranges.

    Args:
        folder: the model directory.
        include_special: value if no file specifies it.

    Raises:
        CheckpointError: a file is broken.
    """
    path = folder / "config_sentence_transformers.json"
    described = read_json(path, missing={}, schema=PromptsFile)
    own = described.get("interlingua") or {}
    try:
        ranges = ranges_by_width(read_json(folder / RANGES_FILE, missing={}, schema=RangesByWidth))
    except ValueError as error:
        raise CheckpointError(
            f"{folder / RANGES_FILE}: is damaged or incomplete ({error}); export the model again"
        ) from error
    prompts = described.get("prompts") or {}
    return {
        "include_special": own.get("include_special", include_special),
        "prompts": {name: text for name, text in prompts.items() if text},
        "default_prompt": described.get("default_prompt_name"),
        "matryoshka_dims": tuple(own.get("matryoshka_dims") or ()),
        "truncate_dim": described.get("truncate_dim"),
        "int8_ranges": ranges,
    }


def _pooling_mode(values: dict[str, Any], folder: Path) -> PoolingMode:
    """Return the pooling of a Pooling module; refuse a module that joins several poolings."""
    chosen = values.get("pooling_mode")
    modes = [chosen] if isinstance(chosen, str) else list(chosen or ())
    # The new key takes precedence. For an old boolean of an unknown kind, the key itself becomes
    # the mode, which is refused below.
    if not modes:
        old = [key for key in values if key.startswith("pooling_mode_") and values[key] is True]
        modes = [OLD_POOLING_KEYS.get(key, key) for key in old]
    mode = (modes or ["mean"])[0]
    if len(modes) > 1 or mode not in POOLING_MODES or values.get("include_prompt") is False:
        raise CheckpointError(
            f"{folder}: pooling {modes} is not supported; use one of: {', '.join(POOLING_MODES)}"
        )
    return mode


def read_json(
    path: Path, missing: dict[str, Any] | None = None, *, schema: Any = AnyObject
) -> dict[str, Any]:
    """Parse a JSON file of a model directory; return ``missing`` if there is none.

    Args:
        path: the file.
        missing: result if the file does not exist; None = the file must exist.
        schema: the type of its content, see ``vocabulary/model_files.py``.

    Raises:
        CheckpointError: the file is absent (and ``missing`` is None) or broken, or does not match
            the schema.
    """
    try:
        with path.open("rb") as file:
            content = parse_json(read_limited(file, path, MAX_CONFIG_BYTES).decode("utf-8"))
    except FileNotFoundError as error:
        if missing is not None:
            return missing
        raise CheckpointError(
            f"{path}: file not found; check that the path is a model folder"
        ) from error
    except (OSError, ValueError) as error:
        raise CheckpointError(
            f"{path}: cannot be read ({error}); download the model again"
        ) from error
    read_file(schema, content, path)
    return cast(dict[str, Any], content)


def write_model_json(path: Path, value: Any) -> None:
    """Write a JSON file of a model directory."""
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
