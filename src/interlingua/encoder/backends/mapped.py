"""An encoder of any backend, with a language map that is applied to its vectors.

``interlingua debias`` writes it for foreign encoders, which can hold no map in their own files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import CheckedSettings, shorten_value
from interlingua.config.registry import BACKENDS
from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.directories.model_directory import read_json
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.language_maps.affine_maps import LanguageMap
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, read_map
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.arrays import normalize_rows

MAPPED_FILE = "mapped_encoder.json"


ONLY_READ = ("interlingua", "sentence-transformers", "onnx", "vectors")
"""Backends that only read files, so that even a folder from a stranger may name any model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedFile:
    """Contents of ``mapped_encoder.json``."""

    model: str
    backend: str
    options: dict[str, Any]
    dtype: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class MappedOptions(CheckedSettings):
    """Options of ``--set mapped.KEY=VALUE``."""

    trust: bool = field(default=False, metadata={"changes_vectors": False})
    """Run the Python function, or send texts to the server, that the folder names."""


class MappedEncoder(ForeignEncoder):
    """Vectors of another encoder, scaled to length 1, mapped, and scaled again.

    Args:
        base: the encoder.
        language_map: estimated on its vectors of length 1.
        name: the encoder's name in results.
    """

    takes = ("dtype", "device")
    Options = MappedOptions

    def __init__(self, base: Any, language_map: LanguageMap, *, name: str) -> None:
        self._base = base
        self._map = language_map
        self.dim = len(language_map.bias)
        if hasattr(base, "settings"):
            self.settings = base.settings
        self.portion_texts = getattr(base, "portion_texts", type(self).portion_texts)  # type: ignore[misc]
        self.counts_tokens = getattr(base, "counts_tokens", False)
        numbers = language_map.weight.tobytes() + language_map.bias.tobytes()
        digest = hashlib.sha256(numbers).hexdigest()
        # Vectors of an encoder that can't be identified can't be kept, mapped or not.
        identity: str | None = None
        if base.info.identity is not None:
            identity = f"{base.info.identity} map {digest}"
        self.info = replace(base.info, name=name, digest=None, kept_as=identity, normalized=True)

    @classmethod
    def load(cls, model: str, choices: Choices) -> MappedEncoder:
        """Read a folder that ``interlingua debias`` wrote.

        Raises:
            CheckpointError: it is not such a folder, or is damaged.
            ConfigError: the map needs the language of every text, or the folder names code or a
                server, and the user has not marked it as trusted.
        """
        # Imported here, since that module finds this one by its name.
        from interlingua.encoder.backends.load import load_encoder

        own, _ = cls.own_options(choices, "mapped")
        folder = Path(model)
        base = read_json(folder / MAPPED_FILE, schema=MappedFile)
        _check_backend(base, folder, trusted=own.trust)
        backend = base["backend"]
        # Backends that do not take a device refuse one.
        device: str | None = None
        if backend in ("interlingua", "sentence-transformers"):
            device = choices.device
        encoder, _ = load_encoder(
            base["model"],
            backend=backend,
            dtype=choices.dtype or base.get("dtype"),
            device=device,
            options=base["options"],
        )
        language_map = read_map(folder / MAP_FILE)
        if language_map.shifts is not None:
            raise ConfigError(
                f"{folder}: a shift requires the language of each text, which backends do not"
                " receive; run `interlingua debias` with another --method"
            )
        return cls(encoder, language_map, name=choices.name)

    def _embed(
        self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport
    ) -> Float32[ndarray, "n d"]:
        options: dict[str, Any] = {}
        if self.counts_tokens:
            options["report"] = report
        vectors = self._base.encode(texts, prompt=prompt, batch_tokens=batch_tokens, **options)
        # The map was estimated on vectors of length 1.
        return self._map.apply(normalize_rows(vectors))


def _check_backend(base: Mapping[str, Any], folder: Path, *, trusted: bool) -> None:
    """Refuse folders that run code or send texts away, unless the user allows it.

    The folder may be a stranger's.

    Raises:
        CheckpointError: a map can't be applied to vectors of the backend.
        ConfigError: the folder is not trusted.
    """
    backend = base["backend"]
    is_known = backend in BACKENDS.names or BACKENDS.is_place(backend)
    if backend == "mapped" or not is_known:
        raise CheckpointError(
            f"{folder / MAPPED_FILE}: backend is {shorten_value(backend)}, expected a backend"
            " that debias supports; run `interlingua debias` again"
        )
    if backend not in ONLY_READ and not trusted:
        what = f"{shorten_value(base['model'])} of the backend {backend}"
        raise ConfigError(
            f"{folder} refers to {what}, which runs code or sends texts to a server; if you"
            " trust the author of the folder, pass --set mapped.trust=true"
        )


def described_base(
    model: str, backend: str, options: Mapping[str, Any], *, dtype: str | None = None
) -> dict[str, Any]:
    """Return the content of ``mapped_encoder.json``, by which ``load`` finds the encoder again."""
    # A path is stored in full, since the folder may be used from another working directory.
    path = Path(model)
    if path.exists():
        model = str(path.resolve())
    return {"model": model, "backend": backend, "options": dict(options), "dtype": dtype}
