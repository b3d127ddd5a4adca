"""An encoder of any backend with a language map behind it, as ``interlingua debias`` writes it for foreign encoders."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from jaxtyping import Float32
from numpy import ndarray

from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.language_map_files import MAP_FILE, read_map
from interlingua.encoder.language_maps import LanguageMap
from interlingua.errors import CheckpointError, ConfigError
from interlingua.evaluation.backends.foreign import Choices, ForeignEncoder
from interlingua.evaluation.metrics.retrieval import normalized
from interlingua.json_text import parse_json

MAPPED_FILE = "mapped_encoder.json"


class MappedEncoder(ForeignEncoder):
    """Vectors of another encoder, scaled to length 1, mapped, and scaled again.

    Args:
        base: the encoder.
        language_map: estimated on its vectors of length 1.
        name: as results call it.
    """

    takes = ("dtype", "device")

    def __init__(self, base: Any, language_map: LanguageMap, *, name: str) -> None:
        self._base = base
        self._map = language_map
        self.dim = len(language_map.bias)
        if hasattr(base, "settings"):
            self.settings = base.settings
        self.portion_texts = getattr(base, "portion_texts", type(self).portion_texts)  # type: ignore[misc]
        self.counts_tokens = getattr(base, "counts_tokens", False)
        digest = hashlib.sha256(language_map.weight.tobytes() + language_map.bias.tobytes()).hexdigest()
        identity = None if base.info.identity is None else f"{base.info.identity} map {digest}"
        self.info = replace(base.info, name=name, digest=None, kept_as=identity, normalized=True)

    @classmethod
    def load(cls, model: str, choices: Choices) -> MappedEncoder:
        """See ``ForeignEncoder.load``; ``model`` is a folder that ``interlingua debias`` wrote.

        Raises:
            CheckpointError: it is no such folder, or damaged.
            ConfigError: the map needs the language of every text.
        """
        from interlingua.evaluation.encoders import load_encoder  # which finds this module by its name

        cls.own_options(choices, "mapped")
        folder = Path(model)
        try:
            base = parse_json((folder / MAPPED_FILE).read_text(encoding="utf-8"))
            described = {key: base[key] for key in ("model", "backend", "options")}
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"{folder / MAPPED_FILE}: can't be read ({error}); give a folder written by interlingua debias"
            ) from error
        encoder, _ = load_encoder(
            described["model"],
            backend=described["backend"],
            dtype=choices.dtype or base.get("dtype"),
            device=choices.device if described["backend"] in ("interlingua", "sentence-transformers") else None,
            options=described["options"],
        )
        language_map = read_map(folder / MAP_FILE)
        if language_map.shifts is not None:
            raise ConfigError(f"{folder}: a shift needs the language of every text, which backends are not given")
        return cls(encoder, language_map, name=choices.name)

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Float32[ndarray, "n d"]:
        options: dict[str, Any] = {"report": report} if self.counts_tokens else {}
        vectors = self._base.encode(texts, prompt=prompt, batch_tokens=batch_tokens, **options)
        return self._map.apply(normalized(vectors))


def described_base(model: str, backend: str, options: Mapping[str, Any], *, dtype: str | None = None) -> dict[str, Any]:
    """The content of ``mapped_encoder.json``: what ``load`` needs to find the encoder again."""
    path = Path(model)
    where = str(path.resolve()) if path.exists() else model
    return {"model": where, "backend": backend, "options": dict(options), "dtype": dtype}
