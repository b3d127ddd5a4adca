"""Any weighted sum of other methods over one encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from interlingua.batches.feeds import FEEDS, FeedName
from interlingua.config import from_mapping
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.methods.objective import LossOutput, Objective
from interlingua.registry import METHODS, resolve


class Term(NamedTuple):
    """One of the methods of a combination."""

    method: type[Objective]
    options: Any
    """An instance of the method's ``Config``."""
    weight: float


@dataclass(frozen=True, kw_only=True, slots=True)
class CombinationConfig:
    """What is added up."""

    terms: dict[str, Any] = field(default_factory=dict)
    """By a label of your own: ``method``, ``weight`` (default 1) and that method's options, in a table
    ``[method.terms.LABEL]``."""

    def __post_init__(self) -> None:
        if not self.terms:
            raise ConfigError("terms is empty; give at least one table [method.terms.LABEL] with a method")
        self.resolved()

    def resolved(self) -> dict[str, Term]:
        """The terms with their methods and options read.

        Raises:
            ConfigError: a term names no method or one that can't be part of a sum, its weight is no number above 0, or
                its options are wrong.
        """
        return {label: _term(label, table) for label, table in self.terms.items()}


class Combination(Objective):
    """Each method makes its own passes over the shared encoder and has its own heads and teachers.

    A term is reported under its label, or, where its method has several, under ``label_term``.

    Args:
        config: the options.
        encoder: shared by all.

    Raises:
        ConfigError: one of the methods can't use the encoder.
    """

    Config = CombinationConfig
    config: CombinationConfig

    def __init__(self, config: CombinationConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.weights = {label: term.weight for label, term in config.resolved().items()}
        self.methods = nn.ModuleDict()
        for label, term in config.resolved().items():
            try:
                self.methods[label] = term.method(term.options, encoder)
            except ConfigError as error:
                raise ConfigError(f"terms.{label}: {error}") from error

    @classmethod
    def feeds_for(cls, config: CombinationConfig) -> tuple[FeedName, ...]:
        """All that some method takes; pairs first, if there are any."""
        taken = {feed for term in config.resolved().values() for feed in term.method.feeds_for(term.options)}
        return tuple(feed for feed in FEEDS if feed in taken)

    def forward(self, batch: Any) -> LossOutput:
        """sum_l weight_l L_l, where L_l is the whole loss of the method labelled l."""
        terms = {}
        losses = []
        for label, method in self.parts_by_label().items():
            output = method(self.batch_for(method, batch))
            weight = self.weights[label]
            losses.append(weight * output.loss)
            for name, term in output.terms.items():
                terms[label if len(output.terms) == 1 else f"{label}_{name}"] = weight * term
        return LossOutput(torch.stack(losses).sum(), terms)

    def parts_by_label(self) -> dict[str, Objective]:
        """The methods, told what the training loop has told this one."""
        methods: dict[str, Objective] = dict(self.methods.items())  # type: ignore[arg-type]
        for method in methods.values():
            method.all_gather, method.total_steps = self.all_gather, self.total_steps
        return methods

    def batch_for(self, method: Objective, batch: Any) -> Any:
        """The part of a step's batch that a method takes."""
        feeds = method.feeds_for(method.config)
        if not isinstance(batch, Mapping):
            return batch
        return batch[feeds[0]] if len(feeds) == 1 else {feed: batch[feed] for feed in feeds}

    def after_step(self, step: int) -> None:
        """Moves the methods' teachers."""
        for method in self.parts_by_label().values():
            method.after_step(step)


def _term(label: str, table: Any) -> Term:
    where = f"terms.{label}"
    if not isinstance(table, Mapping) or not isinstance(table.get("method"), str):
        raise ConfigError(f"{where}: a term is a table with a method; known: {', '.join(sorted(METHODS))}")
    if not label.isidentifier():
        raise ConfigError(f"{where}: a label is made of letters, digits and underscores; got {label!r}")
    try:
        method: type[Objective] = resolve(METHODS, table["method"])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    if issubclass(method, Combination):
        raise ConfigError(f"{where}: a combination can't be part of one; give its terms here")
    weight = table.get("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight > 0:
        raise ConfigError(f"{where}: weight is {weight!r}; it must be a number above 0")
    options = {name: value for name, value in table.items() if name not in ("method", "weight")}
    return Term(method, from_mapping(method.Config, options, where=where), float(weight))
