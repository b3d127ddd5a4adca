"""Any weighted sum of other methods over one encoder.

Each term is a whole method with its own heads, teachers and options; all terms train the same
encoder. A step's batch holds every feed that any term needs, and each term receives its own feeds.
Terms that read the same sentences share the encoder's passes over them.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

from interlingua.batches.feeds import FEEDS, FeedName
from interlingua.config import CheckedSettings, to_mapping, with_absolute_paths
from interlingua.config.method_options import read_options
from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.shared_passes import SharedPasses
from interlingua.errors import ConfigError
from interlingua.methods.objective import LabelKind, LossOutput, Objective
from interlingua.storage.files import PathLike


class CombinedMethod(NamedTuple):
    """A method of a combination."""

    method: type[Objective]
    options: Any
    """An instance of the method's ``Config``."""
    weight: float


def read_term(label: str, table: Any) -> CombinedMethod:
    """Read ``[method.terms.LABEL]``.

    Args:
        label: the name of the term, by which its loss is reported.
        table: ``method``, ``weight`` (default 1) and the options of that method.

    Raises:
        ConfigError: the label is not an identifier, the method is unknown, or its weight or options
            are wrong.
    """
    where = f"terms.{label}"
    # Checked by hand, because the schema of the options depends on the method.
    if not isinstance(table, Mapping) or not isinstance(table.get("method"), str):
        raise ConfigError(
            f"{where}: expected a table with a method; use one of: {', '.join(sorted(METHODS))}"
        )
    if not label.isidentifier():
        raise ConfigError(
            f"{where}: expected a label of letters, digits and underscores, found {label!r}"
        )
    try:
        method: type[Objective] = resolve_name(METHODS, table["method"])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    weight = table.get("weight", 1.0)
    # bool is an int in Python; "not weight > 0" refuses NaN too, which "weight <= 0" would not
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight > 0:
        raise ConfigError(f"{where}: weight: expected a number above 0, found {weight!r}")
    options = {name: value for name, value in table.items() if name not in ("method", "weight")}
    return CombinedMethod(method, read_options(method.Config, options, where=where), float(weight))


def with_absolute_values(table: Mapping[str, Any], term: CombinedMethod) -> dict[str, Any]:
    """Return the table with absolute paths, so that it is valid in the run's folder too.

    Args:
        table: as the user wrote it.
        term: the result of ``read_term``.
    """
    absolute = to_mapping(with_absolute_paths(term.options))
    return {key: absolute.get(key, value) for key, value in table.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class CombinationConfig(CheckedSettings):
    """The methods to add up."""

    terms: dict[str, Any] = field(default_factory=dict)
    """Terms by label: ``method``, ``weight`` (default 1) and that method's options, each in a table
    ``[method.terms.LABEL]``."""
    share_passes: bool = True
    """Encode a sentence only once if several terms read it, so that these terms see the same
    dropout; false: each term encodes the sentence with its own dropout."""

    def __post_init__(self) -> None:
        if not self.terms:
            raise ConfigError(
                "terms is empty; add at least one table [method.terms.LABEL] with a method"
            )
        terms = self.resolved()
        # Paths are kept absolute, so that they stay valid in config.toml in the run's folder.
        absolute = {
            label: with_absolute_values(table, terms[label]) for label, table in self.terms.items()
        }
        object.__setattr__(self, "terms", absolute)
        learners = {
            term.method.label_kind: label
            for label, term in terms.items()
            if term.method.label_kind is not None
        }
        if len(learners) > 1:
            nli = learners["nli"]
            sts = learners["sts"]
            raise ConfigError(
                f"terms.{nli} requires nli labels and terms.{sts} scores, but a run reads only"
                " one kind; remove one"
            )
        # A method with a ``save`` of its own saves more than the encoder, such as a second tower.
        savers = [label for label, term in terms.items() if term.method.save is not Objective.save]
        if len(savers) > 1:
            raise ConfigError(
                f"terms.{savers[0]} and terms.{savers[1]} cannot be combined, because each saves"
                " its own model; remove one"
            )

    def resolved(self) -> dict[str, CombinedMethod]:
        """Read the methods and options of all terms.

        Raises:
            ConfigError: a term names no method that can be part of a sum, or its weight or its
                options are wrong.
        """
        for label, table in self.terms.items():
            if isinstance(table, Mapping) and table.get("method") == "combination":
                raise ConfigError(
                    f"terms.{label}: a combination cannot contain another combination; list the"
                    " inner terms directly"
                )
        return {label: read_term(label, table) for label, table in self.terms.items()}


class Combination(Objective):
    """Methods over a shared encoder, each with its own heads and teachers.

    The loss of a method is reported under its label. If the method has several terms, each of them
    is reported under ``label_term``.

    Args:
        config: the options.
        encoder: shared by all; a method that can't use it raises ConfigError.
    """

    Config = CombinationConfig
    no_prefixes = "none of its terms supports prefixes of embeddings"
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
        """Return all feeds that some method takes; pairs come first."""
        needed: set[FeedName] = set()
        for term in config.resolved().values():
            needed.update(term.method.feeds_for(term.options))
        return tuple(feed for feed in FEEDS if feed in needed)

    @classmethod
    def label_kind_for(cls, config: CombinationConfig) -> LabelKind | None:
        """Return the kind of labels that the methods with labels learn from."""
        for term in config.resolved().values():
            if term.method.label_kind is not None:
                return term.method.label_kind
        return None

    @classmethod
    def with_languages(
        cls, config: CombinationConfig, languages: tuple[str, ...]
    ) -> CombinationConfig:
        """Return the config with the corpus's languages in all terms that take languages."""
        # The tables are changed, not the objects read from them: config.toml shows the tables.
        terms = dict(config.terms)
        for label, term in config.resolved().items():
            extended = term.method.with_languages(term.options, languages)
            if extended != term.options:
                terms[label] = {**terms[label], "languages": list(languages)}
        return dataclasses.replace(config, terms=terms)

    def prepare(self, batch: Any) -> dict[str, Any]:
        """Return the batch as each method reads it, by label."""
        methods: dict[str, Objective] = dict(self.methods.items())  # type: ignore[arg-type]
        return {
            label: method.prepared(self.batch_for(method, batch))
            for label, method in methods.items()
        }

    def forward(self, batch: Any) -> LossOutput:
        """Compute sum_l weight_l L_l, where L_l is the whole loss of the method labeled l."""
        _, batches = self.prepared(batch)
        terms = {}
        losses = []
        for_term: Callable[[Encoder], AbstractContextManager[Any]] = contextlib.nullcontext
        if self.config.share_passes:
            for_term = SharedPasses().for_term
        for label, method in self.parts_by_label().items():
            with for_term(self.encoder):
                output = method(batches[label])
            weight = self.weights[label]
            losses.append(weight * output.loss)
            # The name of a term is its label, unless its method has several terms.
            for name, term in output.terms.items():
                key = f"{label}_{name}"
                if len(output.terms) == 1:
                    key = label
                terms[key] = weight * term
        return LossOutput(torch.stack(losses).sum(), terms)

    def weight_of(self, term: str) -> tuple[str, float] | None:
        """Return the option that weighs a term.

        It is the weight of the label, or, if the method has several terms, the method's own option
        for the term.
        """
        methods = self.parts_by_label()
        # The longest label first: one may be a prefix of another.
        for label in sorted(methods, key=len, reverse=True):
            if term == label:
                return f"method.terms.{label}.weight", self.weights[label]
            if term.startswith(f"{label}_"):
                weight = methods[label].weight_of(term.removeprefix(f"{label}_"))
                if weight is None:
                    return None
                option, value = weight
                return f"method.terms.{label}.{option.removeprefix('method.')}", value
        return None

    def parts_by_label(self) -> dict[str, Objective]:
        """Return the methods by label, with the current ``all_gather`` and ``total_steps``."""
        methods: dict[str, Objective] = dict(self.methods.items())  # type: ignore[arg-type]
        # The training loop sets these attributes of the combination only after the methods are
        # made, and evaluations use another ``all_gather``.
        for method in methods.values():
            method.all_gather = self.all_gather
            method.total_steps = self.total_steps
        return methods

    def batch_for(self, method: Objective, batch: Any) -> Any:
        """Return the part of a step's batch that a method takes."""
        feeds = method.feeds_for(method.config)
        if not isinstance(batch, Mapping):
            return batch  # all methods take the same feed
        if len(feeds) == 1:
            return batch[feeds[0]]
        return {feed: batch[feed] for feed in feeds}

    def after_step(self, step: int) -> None:
        """Move the methods' teachers."""
        for method in self.parts_by_label().values():
            method.after_step(step)

    def notes(self) -> list[str]:
        """Return the notes of all methods, each after its label."""
        return [
            f"{label}: {note}"
            for label, method in self.parts_by_label().items()
            for note in method.notes()
        ]

    @property
    def saver(self) -> Objective | None:
        """The method, if there is one, that saves more than the encoder."""
        for method in self.parts_by_label().values():
            if type(method).save is not Objective.save:
                return method
        return None

    @property
    def evaluated(self) -> Any:
        """The encoder, or the saver's ``evaluated``."""
        saver = self.saver
        if saver is None:
            return self.encoder
        return saver.evaluated

    def save(self, folder: PathLike) -> None:
        """Write the encoder, or the saver's files."""
        saver = self.saver
        if saver is None:
            super().save(folder)
        else:
            saver.save(folder)
