"""Packages that are functions too.

``interlingua.train(...)`` is a verb, and ``interlingua.training.loop`` a module. Python sets a package
as an attribute of its parent when anything in it is imported. So a function of the same name would
be there or not, depending on what was imported before. A package that can be called is always both.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """A package that calls the function of its name in ``interlingua.verbs``."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Run the verb; see ``interlingua.verbs``."""
        return self.verb(*arguments, **options)

    @property
    def verb(self) -> Any:
        """The function."""
        # Imported at the call: the verbs import these packages, so the other way round is a circle.
        name = self.__name__.rpartition(".")[2]
        return getattr(importlib.import_module(f"interlingua.verbs.{name}"), name)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(self.verb)


def make_callable(package: str) -> None:
    """Let a package be called as its verb.

    Args:
        package: full name of a package that is being imported.
    """
    # Only the class of a module decides whether it can be called; a module's own __call__ is not
    # looked up.
    sys.modules[package].__class__ = CallablePackage
