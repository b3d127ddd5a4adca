"""The base class of dataclasses of options, whose constructor raises errors of this library.

``PairSearch(kk=4)`` raises a ``ConfigError`` that names the nearest option. A number outside the
bounds of its type raises one too, before the dataclass checks whether its values fit together.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
from typing import Any

from interlingua.config.loader import check_arguments
from interlingua.errors import ConfigError, count_of


class _CheckedCall(abc.ABCMeta):
    """Metaclass that checks the arguments before the generated constructor receives them."""

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
        # For ``cls.__init__``, mypy would use the ``__init__`` of an instance.
        constructor: Any = getattr(cls, "__init__")  # noqa: B009
        made = inspect.signature(constructor)
        return made.replace(parameters=list(made.parameters.values())[1:])


class CheckedSettings(metaclass=_CheckedCall):
    """Base of frozen dataclasses of options."""

    __slots__ = ()
