"""Bounds of options, which are part of their types: ``lr: Annotated[float, Above(0)]``.

The loader checks them for all sources, and the constructor of a ``CheckedSettings`` for keyword
arguments. The bounds are not advice: a value between them may still be a bad choice. A value beyond
them can't work or would crash the process.
"""

from __future__ import annotations

import functools
import sys
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

TINY = 1e-30
"""The smallest value of a positive divisor: division by a smaller number would overflow."""
NEARLY_ONE = 1 - 1e-9
"""The largest allowed value of a number that must be below 1."""
MANY = 10**12
"""An upper bound for numbers of steps, sentences or seconds, which no run reaches."""


class Rule(Protocol):
    """A requirement on a value besides its type."""

    def holds(self, value: Any) -> bool:
        """Return whether a value follows the rule."""
        ...

    def describe(self, kind: str) -> str:
        """Describe the expected value, for a kind such as ``a number``."""
        ...


@dataclass(frozen=True, slots=True)
class Between:
    """Numbers from ``low`` to ``high``, both included."""

    low: float
    high: float

    def holds(self, value: Any) -> bool:
        """Return whether a number is in the range; NaN is not."""
        return bool(self.low <= value <= self.high)

    def describe(self, kind: str) -> str:
        """Describe the range."""
        if self.low == TINY:
            return f"{kind} above 0 and at most {_written(self.high)}"
        if self.high == NEARLY_ONE:
            return f"{kind} from {_written(self.low)} to below 1"
        return f"{kind} from {_written(self.low)} to {_written(self.high)}"


@dataclass(frozen=True, slots=True)
class AtLeast:
    """Numbers of at least ``low`` and less than ``below``, if it is set."""

    low: float
    below: float | None = None

    def holds(self, value: Any) -> bool:
        """Return whether a number is in the range; NaN is not."""
        return bool(value >= self.low and (self.below is None or value < self.below))

    def describe(self, kind: str) -> str:
        """Describe the range."""
        if self.below is None:
            return f"{kind} of at least {_written(self.low)}"
        return f"{kind} from {_written(self.low)} to below {_written(self.below)}"


@dataclass(frozen=True, slots=True)
class Above:
    """Numbers above ``low``; ``high`` is in the range, ``below`` is not."""

    low: float
    high: float | None = None
    below: float | None = None

    def holds(self, value: Any) -> bool:
        """Return whether a number is in the range; NaN is not."""
        is_within = self.high is None or value <= self.high
        return bool(value > self.low and is_within and (self.below is None or value < self.below))

    def describe(self, kind: str) -> str:
        """Describe the range."""
        text = f"{kind} above {_written(self.low)}"
        if self.high is not None:
            text += f" and at most {_written(self.high)}"
        if self.below is not None:
            text += f" and below {_written(self.below)}"
        return text


@dataclass(frozen=True, slots=True)
class Longest:
    """Lists of at most ``items`` values."""

    items: int

    def holds(self, value: Any) -> bool:
        """Return whether a list is within the length."""
        return len(value) <= self.items

    def describe(self, kind: str) -> str:
        """Describe the limit."""
        return f"a list of at most {self.items}"


@dataclass(frozen=True, slots=True)
class InsideFolder:
    """Paths of files below a folder; the empty text is the folder itself."""

    def holds(self, value: str) -> bool:
        """Return whether a path stays inside its folder on every operating system."""
        # Windows separates folders by backslashes, and a zero byte ends a path.
        is_plain = "\\" not in value and "\0" not in value
        return is_plain and not value.startswith("/") and ".." not in value.split("/")

    def describe(self, kind: str) -> str:
        """Describe the required path."""
        return "a path inside the model folder"


NUMBER_RULES = (Between, AtLeast, Above)
NumberRule = Between | AtLeast | Above


@functools.cache
def hints_of(cls: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields, with the rules that ``Annotated`` adds."""
    return typing.get_type_hints(cls, include_extras=True)


class Bounded(NamedTuple):
    """The numeric part of a field's type, with its bound."""

    kind: type
    """int or float."""
    rule: NumberRule


@functools.cache
def bounds_of(cls: Any) -> Mapping[str, Bounded]:
    """Return the bounds of all fields that are numbers or lists of numbers.

    Names that only type checkers import are skipped: no bound is in those types.
    """
    found: dict[str, Bounded] = {}
    for owner in reversed(cls.__mro__):
        scope = vars(sys.modules[owner.__module__])
        for name, annotation in vars(owner).get("__annotations__", {}).items():
            bounded = _bounded_in(_evaluated(annotation, scope))
            # A field of a subclass replaces the field of its base.
            found.pop(name, None)
            if bounded is not None:
                found[name] = bounded
    return found


def _evaluated(annotation: Any, scope: dict[str, Any]) -> Any:
    """Evaluate an annotation; return None if a part of it exists for type checkers only."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, scope)  # as typing.get_type_hints does
    except NameError:
        if "Annotated" in annotation:
            raise
        return None


def _bounded_in(hint: Any) -> Bounded | None:
    """Return the first bounded number in a type, in its alternatives or in its list's items."""
    for part in getattr(hint, "__metadata__", ()):
        if isinstance(part, NUMBER_RULES):
            return Bounded(typing.get_args(hint)[0], part)
    for argument in typing.get_args(hint):
        if (found := _bounded_in(argument)) is not None:
            return found
    return None


def _written(number: float) -> str:
    """Format a bound for a message."""
    if isinstance(number, int):
        return str(number)
    return f"{number:.15g}"
