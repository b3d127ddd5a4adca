"""Names of a family of encoders: the keys of its ``config.json`` and its parameters.

All families become one ``BackboneConfig`` and one set of parameter names. An ``Architecture`` says
which keys a family's config has in place of ours, which settings all its models share, and how its
parameters correspond to ours. Some families keep several of our matrices stacked in one, or the
reverse: then the rows of our matrices, one after another, are the rows of theirs. The families
themselves are in ``encoder/modeling/families.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.vocabulary.model_files import BackboneFile

ParameterNames = tuple[str, ...]
SHARED = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "pad_token_id",
    "model_type",
)
"""Fields of ours that families have too, mostly by the same names."""


class Stacked(NamedTuple):
    """Parameters with the same rows: ours, concatenated, are equal to theirs, concatenated."""

    ours: ParameterNames
    theirs: ParameterNames
    swaps_halves: bool = False
    """Their second half comes first in ours."""

    def to_ours(self, tensors: list[Tensor]) -> list[Tensor]:
        """Convert their parameters to ours."""
        return self._split(self._joined(tensors), len(self.ours))

    def to_theirs(self, tensors: list[Tensor]) -> list[Tensor]:
        """Convert our parameters to theirs."""
        return self._split(self._joined(tensors), len(self.theirs))

    def _joined(self, tensors: list[Tensor]) -> Tensor:
        # A single tensor is passed on as it is, without a copy.
        joined = tensors[0]
        if len(tensors) > 1:
            joined = torch.cat(tensors)
        # Swapping two halves is its own inverse, so that one method serves both directions.
        if self.swaps_halves:
            joined = joined.roll(len(joined) // 2, 0)
        return joined

    def _split(self, joined: Tensor, count: int) -> list[Tensor]:
        if count == 1:
            return [joined]
        # Copies: safetensors refuses tensors that share memory.
        return [part.contiguous() for part in joined.chunk(count)]


@dataclass(frozen=True, kw_only=True, slots=True)
class Architecture:
    """A family of encoders, with the names that transformers uses."""

    class_name: str
    """Name of the class in ``architectures`` of config.json."""
    embeddings: Mapping[str, str]
    """Modules outside of the layers: our name -> theirs."""
    layer_prefix: str
    """Prefix before the number of a layer."""
    layer: tuple[Stacked, ...]
    """Modules of a layer."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Our field -> their key in config.json, if it is another; "" if they have none."""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    """Fields of ours that have one value in all models of the family."""
    defaults: Mapping[str, Any] = field(default_factory=dict)
    """Default values of our fields that are missing in config.json."""
    has_pooler: bool = False
    """True if transformers adds a pooling layer of its own to the encoder by default."""
    schema: type = BackboneFile
    """Schema of the keys that only this family has."""
    read_more: Callable[[Mapping[str, Any]], dict[str, Any]] | None = None
    """Function that reads those fields of ours that the family writes in another form."""
    write_more: Callable[[BackboneConfig], dict[str, Any]] | None = None

    @property
    def has_types(self) -> bool:
        """True if its models have a table of token types."""
        return "token_type_embeddings" in self.embeddings

    @property
    def anchor(self) -> str:
        """The parameter by which the encoder is found among all parameters of a file."""
        return f"{self.embeddings['word_embeddings']}.weight"

    @property
    def roots(self) -> ParameterNames:
        """Prefixes of the names of all parameters of the encoder itself."""
        tops = {f"{name.split('.')[0]}." for name in (*self.embeddings.values(), self.layer_prefix)}
        return tuple(sorted(tops))

    def shape(self, raw: Mapping[str, Any]) -> BackboneConfig:
        """Return the shape that a ``config.json`` describes.

        Raises:
            ConfigError: sizes do not fit each other.
            TypeError: a required size is missing.
        """
        # Later ones win: the file overrides defaults, and the family's fixed values override the
        # file.
        values = dict(self.defaults)
        values.update({name: raw[key] for name, key in self._keys() if raw.get(key) is not None})
        if self.read_more is not None:
            values.update(self.read_more(raw))
        values.update(self.fixed)
        return BackboneConfig(**values)

    def described(self, config: BackboneConfig) -> dict[str, Any]:
        """Return the keys of ``config.json`` for a shape."""
        written = {key: getattr(config, name) for name, key in self._keys()}
        # transformers makes a table of types in any case; one row of zeros is as good as none.
        if self.has_types:
            written["type_vocab_size"] = max(1, config.type_vocab_size)
        if self.write_more is not None:
            written.update(self.write_more(config))
        return written

    def stacks(self, names: Iterable[str]) -> Iterator[Stacked]:
        """Yield the correspondence of parameters, by their full names.

        Args:
            names: of our parameters, for example ``layers.3.query.weight``.
        """
        by_part = {part: stack for stack in self.layer for part in stack.ours}
        for name in names:
            module, kind = name.rsplit(".", 1)
            if not module.startswith("layers."):
                yield Stacked((name,), (f"{self.embeddings[module]}.{kind}",))
                continue
            _, number, part = module.split(".")
            stack = by_part[part]
            # A stack is yielded for its first module; its other modules are skipped.
            if part == stack.ours[0]:
                prefix = f"{self.layer_prefix}{number}"
                ours = tuple([f"layers.{number}.{one}.{kind}" for one in stack.ours])
                theirs = tuple([f"{prefix}.{one}.{kind}" for one in stack.theirs])
                yield Stacked(ours, theirs, stack.swaps_halves)

    def _keys(self) -> Iterator[tuple[str, str]]:
        """Yield our name and theirs of each field that the family has."""
        for name in SHARED:
            key = self.keys.get(name, name)
            if key:
                yield name, key
