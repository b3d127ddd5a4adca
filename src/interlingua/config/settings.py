"""The base of dataclasses of options: its constructor raises errors of ours.

``PairSearch(kk=4)`` is a ``ConfigError`` that names the nearest option, and a number that is out of
the bounds of its type is one as well, before the dataclass looks at how its values go together.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from typing import Any

from interlingua.config.loader import check_arguments
from interlingua.errors import ConfigError, count_of


class _CheckedCall(abc.ABCMeta):
    """Checks the arguments of a class before the generated constructor takes them."""

    def __call__(cls, *arguments: Any, **given: Any) -> Any:
        """Make an instance."""
        names = [field.name for field in dataclasses.fields(cls) if not field.kw_only]  # type: ignore[arg-type]
        if len(arguments) > len(names):
            taken = count_of(len(names), "values")
            raise ConfigError(
                f"{cls.__name__}: expected {taken} without a name, found {len(arguments)}"
                " arguments; pass them by name"
            )
        values = dict(zip(names, arguments, strict=False))
        for name in values:
            if name in given:
                raise ConfigError(
                    f"{cls.__name__}: {name} is passed twice, with and without its name; remove one"
                )
        check_arguments(cls, values | given)
        return super().__call__(*arguments, **given)

    @property
    def __signature__(cls) -> inspect.Signature:
        """Return the signature of the generated constructor, without the instance."""
        constructor: Any = getattr(cls, "__init__")  # noqa: B009 -- mypy takes it for an instance's
        made = inspect.signature(constructor)
        return made.replace(parameters=list(made.parameters.values())[1:])


class CheckedSettings(metaclass=_CheckedCall):
    """Base of frozen dataclasses of options."""

    __slots__ = ()
