"""A Python function as an encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.model_info import ModelInfo
from interlingua.errors import ConfigError
from interlingua.registry import load


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionOptions:
    """Options of the backend ``function``."""

    version: str = ""
    """Your name for the weights behind the function; given, vectors are kept under it (--cache,
    stopped runs)."""


class FunctionEncoder(ForeignEncoder):
    """A Python function ``texts -> array (n, d)`` as an encoder.

    Args:
        function: called with a list of texts; a prompt has been put before each already.
        name: as results call it.
        identity: see ``ModelInfo``.
    """

    Options = FunctionOptions
    has_files = False

    def __init__(
        self,
        function: Callable[[list[str]], Any],
        *,
        name: str | None = None,
        identity: str | None = None,
    ) -> None:
        self._function = function
        # Known after the first call.
        self.dim = 0
        name = name or str(getattr(function, "__name__", ""))
        self.info = ModelInfo(name=name, digest=None, library="function", kept_as=identity)

    @classmethod
    def load(cls, model: str, choices: Choices) -> FunctionEncoder:
        """See ``ForeignEncoder.load``; ``model`` is ``module:function``."""
        options, _ = cls.own_options(choices, "function")
        # Without a version a change of the weights behind the function would go unnoticed.
        identity: str | None = None
        if options.version:
            identity = f"{model} {options.version}"
        return cls(import_function(model), name=choices.name, identity=identity)

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        return self._function([prompt + text for text in texts])


def import_function(spec: str) -> Callable[[list[str]], Any]:
    """Imports ``module:function``, from the working directory too.

    Raises:
        ConfigError: there is no such module or function.
    """
    if ":" not in spec:
        raise ConfigError(f"{spec!r}: expected module:function, e.g. mycode:embed")
    function = load(spec)
    if not callable(function):
        raise ConfigError(f"{spec!r} is not a function but of type {type(function).__name__}")
    return function  # type: ignore[no-any-return]
