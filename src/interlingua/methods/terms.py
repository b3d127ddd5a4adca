"""The terms of a combination: a method, its options and its weight, read from a TOML table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from interlingua.config import from_mapping, to_mapping, with_absolute_paths
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.registry import METHODS, resolve


class Term(NamedTuple):
    """One of the methods of a combination."""

    method: type[Objective]
    options: Any
    """An instance of the method's ``Config``."""
    weight: float


def read_term(label: str, table: Any) -> Term:
    """Reads ``[method.terms.LABEL]``.

    Args:
        label: the name of the term, by which its loss is reported.
        table: ``method``, ``weight`` (default 1) and the options of that method.

    Raises:
        ConfigError: the label is not an identifier, the method is unknown, or its weight or options
            are wrong.
    """
    where = f"terms.{label}"
    # Checked by hand, as the schema of the options is known only once the method is.
    if not isinstance(table, Mapping) or not isinstance(table.get("method"), str):
        raise ConfigError(
            f"{where}: a term is a table with a method; known: {', '.join(sorted(METHODS))}"
        )
    if not label.isidentifier():
        raise ConfigError(
            f"{where}: a label is made of letters, digits and underscores; got {label!r}"
        )
    try:
        method: type[Objective] = resolve(METHODS, table["method"])
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error
    weight = table.get("weight", 1.0)
    # bool is an int in Python; "not weight > 0" refuses NaN too, which "weight <= 0" would not
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not weight > 0:
        raise ConfigError(f"{where}: weight is {weight!r}; it must be a number above 0")
    options = {name: value for name, value in table.items() if name not in ("method", "weight")}
    return Term(method, from_mapping(method.Config, options, where=where), float(weight))


def with_absolute_values(table: Mapping[str, Any], term: Term) -> dict[str, Any]:
    """The table with absolute paths, so that it means the same in the run's folder.

    Args:
        table: as the user wrote it.
        term: what ``read_term`` made of it.
    """
    absolute = to_mapping(with_absolute_paths(term.options))
    return {key: absolute.get(key, value) for key, value in table.items()}
