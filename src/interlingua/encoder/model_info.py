"""Information on an encoder of any kind: name, digest, and how it makes its vectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch

from interlingua import __version__
from interlingua.encoder.directories.model_directory import EncodingSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """Description of the encoder under test.

    Attributes:
        name: as results and tables call it.
        digest: hex SHA-256 of weights and vocabulary; none if the weights are unknown (a function,
            an endpoint).
        library: the library that computes the embeddings.
        dim: width of the vectors, if known before the first text.
        pooling: cls, mean or max.
        pooling_from: ``model`` where the model states it, ``requested`` where the user chose it,
            else ``assumed``.
        normalized: whether the model scales its vectors to length 1 by itself, if known.
        dtype: of the weights.
        max_tokens: largest number of tokens of a text; longer texts are cut.
        device: where it runs.
        overrides: settings that the user changed from the model's own, such as ``pooling=cls``.
        training: record of the training run that made it, see ``training_record``.
        kept_as: name under which vectors may be stored if there is no digest: an endpoint's
            address, or a version that the user set.
    """

    name: str
    digest: str | None
    library: str
    dim: int | None = None
    pooling: str | None = None
    pooling_from: str | None = None
    normalized: bool | None = None
    dtype: str | None = None
    max_tokens: int | None = None
    device: str | None = None
    overrides: tuple[str, ...] = ()
    training: Mapping[str, object] | None = None
    kept_as: str | None = None

    @property
    def identity(self) -> str | None:
        """Identifier of the model in the cache of vectors.

        It is None if a change of the model would go unnoticed.
        """
        return self.digest or self.kept_as

    def with_overrides(self, added: tuple[str, ...]) -> ModelInfo:
        """Return the same description with more changed settings."""
        return replace(self, overrides=(*self.overrides, *added))

    @property
    def revision(self) -> str:
        """The first 12 digits of the digest, or the word that mteb uses if there is none."""
        if not self.digest:
            return "no_revision_available"
        return self.digest[:12]


def describe_encoder(encoder: Any, *, name: str | None = None) -> ModelInfo:
    """Describe an encoder from its own ``info`` (adapters) or its attributes (``Encoder``)."""
    info = getattr(encoder, "info", None)
    if isinstance(info, ModelInfo):
        return info
    library = type(encoder).__module__
    dtype: str | None = None
    device: str | None = None
    # The first weight represents all of them.
    weight: torch.nn.Parameter | None = None
    if isinstance(encoder, torch.nn.Module):
        weight = next(iter(encoder.parameters()), None)
    if weight is not None:
        library = f"interlingua {__version__}"
        dtype = str(weight.dtype).removeprefix("torch.")
        device = str(weight.device)
    digest: str | None = None
    if hasattr(encoder, "digest"):
        digest = encoder.digest()
    return ModelInfo(
        name=name or type(encoder).__name__,
        digest=digest,
        library=library,
        dim=getattr(encoder, "dim", None),
        pooling=getattr(encoder, "pooling", None),
        dtype=dtype,
        normalized=getattr(getattr(encoder, "settings", None), "normalize", None),
        max_tokens=getattr(encoder, "max_tokens", None),
        device=device,
    )


def encoding_text(encoder: Any, prompt: str | None) -> str:
    """Return the settings of an encoding as an identifier: the prompt's text and the cut width.

    Args:
        encoder: any encoder.
        prompt: see ``prompt_text``.
    """
    settings = getattr(encoder, "settings", None)
    cut = ""
    if isinstance(settings, EncodingSettings) and settings.truncate_dim is not None:
        cut = f"truncate_dim={settings.truncate_dim}"
    return f"{cut} {prompt_text(encoder, prompt)}".lstrip() if cut else prompt_text(encoder, prompt)


def prompt_text(encoder: Any, prompt: str | None) -> str:
    """Return the text to put before every text: see ``EncodingSettings.prompt_text``.

    A function has no named prompts, so ``prompt`` is itself the text to put before.
    """
    settings = getattr(encoder, "settings", None)
    if isinstance(settings, EncodingSettings):
        return settings.prompt_text(prompt)
    return prompt or ""
