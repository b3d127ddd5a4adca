"""A sentence-transformers model as an encoder, run by that library."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, cast

from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.directories.model_directory import EncodingSettings, read_json
from interlingua.encoder.encode import WEIGHT_DTYPES, EncodeReport
from interlingua.encoder.model_info import ModelInfo
from interlingua.encoder.modeling.weights import weights_digest
from interlingua.errors import CheckpointError, ConfigError, MissingExtraError, import_extra
from interlingua.storage.locate import locate
from interlingua.vocabulary.model_files import Modules

FILES = ("*.json", "*.model", "*.txt", "*.safetensors", "*.bin")
OLDEST = (5, 4)
"""The first version with the functions that are called here; the bound in pyproject.toml is the
same."""
ACTIVATION = re.compile(r"torch\.nn(\.modules\.\w+)?\.[A-Z]\w*")
"""Names that a Dense module may have for its activation."""


class SentenceTransformersEncoder(ForeignEncoder):
    """A sentence-transformers model, run by that library in its own batches of 32.

    Args:
        model: a directory, or ``hf:owner/name``.
        choices: name, dtype (float32, bfloat16 or float16), device.

    Raises:
        ConfigError: the dtype is int8.
        CheckpointError: there is no such model, it names modules that are not the library's own, or
            the library can't read it.
        MissingExtraError: sentence-transformers is not installed.
    """

    takes = ("dtype", "device")

    def __init__(self, model: str, choices: Choices) -> None:
        self.own_options(choices, "sentence-transformers")
        sentence_transformers = import_extra(
            "sentence_transformers", package="sentence-transformers", extra="sentence-transformers"
        )
        dtype = choices.dtype
        if dtype not in (None, *WEIGHT_DTYPES):
            raise ConfigError(
                f"sentence-transformers cannot compute in {dtype}; use one of:"
                f" {', '.join(WEIGHT_DTYPES)}"
            )
        options = {}
        if dtype:
            options["dtype"] = WEIGHT_DTYPES[dtype]
        check_version(sentence_transformers.__version__)
        folder = locate(model, patterns=FILES)
        refuse_foreign_code(folder)
        # A missing model, a broken one, unknown modules: each raises another kind of exception.
        try:
            self._model: Any = sentence_transformers.SentenceTransformer(
                str(folder), device=choices.device, model_kwargs=options, trust_remote_code=False
            )
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise CheckpointError(
                f"{model}: sentence-transformers cannot load the model ({type(error).__name__}:"
                f" {reason}); use a folder that it saved, hf:owner/name, or another --backend"
            ) from error
        self.dim = self._model.get_embedding_dimension() or 0
        prompts = {name: text or "" for name, text in self._model.prompts.items()}
        self.settings = EncodingSettings(
            prompts=prompts, default_prompt=self._model.default_prompt_name
        )
        pooling = next((module for module in self._model if hasattr(module, "pooling_mode")), None)
        pooling_mode: str | None = None
        pooling_from: str | None = None
        if pooling is not None:
            pooling_mode = str(pooling.pooling_mode)
            pooling_from = "model"
        # The first weight represents all of them.
        weights = next(self._model.parameters())
        self._limit: int | None = self._model.max_seq_length
        self.counts_tokens = self._limit is not None and hasattr(self._model.tokenizer, "pad")
        self.info = ModelInfo(
            name=choices.name,
            digest=weights_digest(self._model.state_dict()),
            library=f"sentence-transformers {sentence_transformers.__version__}",
            dim=self.dim,
            pooling=pooling_mode,
            pooling_from=pooling_from,
            normalized=any(type(module).__name__ == "Normalize" for module in self._model),
            dtype=str(weights.dtype).removeprefix("torch."),
            max_tokens=self._limit,
            device=str(weights.device),
        )

    @classmethod
    def load(cls, model: str, choices: Choices) -> SentenceTransformersEncoder:
        """Load a model by sentence-transformers, see ``ForeignEncoder.load``."""
        return cls(model, choices)

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        # The library does not report which texts it cuts, so they are tokenized a second time.
        if self._limit is not None and self.counts_tokens:
            prompted = [prompt + text for text in texts]
            ids = self._model.tokenizer(prompted, truncation=False, verbose=False)["input_ids"]
            lengths = [len(row) for row in ids]
            report.max_tokens = self._limit
            report.tokens += sum(min(length, self._limit) for length in lengths)
            for row, length in enumerate(lengths):
                if length > self._limit:
                    report.cut_rows.append(report.texts + row)
        return self._model.encode(texts, prompt=prompt, show_progress_bar=False)


def check_version(version: str) -> None:
    """Refuse a release that is too old.

    Raises:
        MissingExtraError: the release is too old.
    """
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if numbers < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise MissingExtraError(
            f"sentence-transformers {needed} or newer (not {version})", "sentence-transformers"
        )


def refuse_foreign_code(folder: Path) -> None:
    """Refuse a model that names code of its own, or of another package.

    The library would import and run it.

    Args:
        folder: of the model.

    Raises:
        CheckpointError: a module is not one of sentence-transformers' own.
    """
    if not (folder / "modules.json").is_file():
        return
    modules = cast("list[dict[str, str]]", read_json(folder / "modules.json", schema=Modules))
    for module in modules:
        _refuse_foreign_module(module["type"], folder)
        if not module["path"]:
            continue
        for file in sorted((folder / module["path"]).glob("*.json")):
            _refuse_named_code(file, folder)


def _refuse_named_code(file: Path, folder: Path) -> None:
    """Check the settings of one module: a router names modules, a dense layer its activation."""
    settings: Any = read_json(file, schema=Any)
    if not isinstance(settings, dict):
        return
    # A router's modules, by name or in order.
    types = settings.get("types")
    if isinstance(types, dict):
        types = list(types.values())
    if isinstance(types, list):
        for name in types:
            _refuse_foreign_module(name, folder)
    # A bare name is a class of transformers, a path with dots is imported.
    tokenizer = settings.get("tokenizer_class")
    if (
        isinstance(tokenizer, str)
        and "." in tokenizer
        and not tokenizer.startswith("sentence_transformers.")
    ):
        raise CheckpointError(
            f"{file}: tokenizer_class is {tokenizer[:60]!r}, expected a class of"
            " sentence-transformers; use another --backend"
        )
    activation = settings.get("activation_function")
    is_known = isinstance(activation, str) and ACTIVATION.fullmatch(activation)
    if activation is not None and not is_known:
        raise CheckpointError(
            f"{file}: activation_function is {str(activation)[:60]!r}, expected a class of"
            " torch.nn; use another --backend"
        )


def _refuse_foreign_module(name: Any, folder: Path) -> None:
    import torch
    from sentence_transformers.util import import_from_string

    # A path may lead through the package to something that the package imports
    # (`sentence_transformers.x.os.system`). So the object found must be a class that is defined in
    # the package and derived from torch's Module.
    found = None
    if isinstance(name, str) and re.fullmatch(r"sentence_transformers(\.[A-Za-z_]\w*)+", name):
        try:
            found = import_from_string(name)
        except (ImportError, AttributeError):
            found = None
    own = isinstance(found, type) and found.__module__.startswith("sentence_transformers.")
    if not own or not issubclass(cast(type, found), torch.nn.Module):
        raise CheckpointError(
            f"{folder}: the module {str(name)[:100]!r} is not part of sentence-transformers, and"
            " code of a model folder is never run; use a model without custom modules"
        )
