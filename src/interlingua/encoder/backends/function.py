"""A Python function as an encoder."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import CheckedSettings
from interlingua.config.registry import import_place
from interlingua.encoder.backends.foreign import Choices, ForeignEncoder
from interlingua.encoder.encode import EncodeReport
from interlingua.encoder.model_info import ModelInfo
from interlingua.errors import ConfigError


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionOptions(CheckedSettings):
    """Options of the backend ``function``."""

    version: str = ""
    """Name that you choose for the version of the weights behind the function; if set, vectors are
    stored under it (for --cache and interrupted runs)."""


class FunctionEncoder(ForeignEncoder):
    """A Python function ``texts -> array (n, d)`` as an encoder.

    Args:
        function: called with a list of texts, each of which already includes the prompt. If it has
            an argument ``language``, it also gets the code of their language, such as
            ``eng_Latn``, or None.
        name: the encoder's name in results.
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
        self._function: Callable[..., Any] = function
        self._takes_language = takes_language(function)
        self._language: str | None = None
        # Known after the first call.
        self.dim = 0
        name = name or str(getattr(function, "__name__", ""))
        self.info = ModelInfo(name=name, digest=None, library="function", kept_as=identity)

    @classmethod
    def load(cls, model: str, choices: Choices) -> FunctionEncoder:
        """Import the function ``module:function`` that ``model`` names."""
        options, _ = cls.own_options(choices, "function")
        # Without a version a change of the weights behind the function would go unnoticed.
        identity: str | None = None
        if options.version:
            identity = f"{model} {options.version}"
        return cls(import_function(model), name=choices.name, identity=identity)

    def encode(
        self, texts: Iterable[str], *, language: str | None = None, **options: Any
    ) -> Float32[ndarray, "n d"]:
        """Return one vector per text, see ``ForeignEncoder.encode``.

        ``language`` is passed to a function with an argument of that name.
        """
        self._language = language
        return super().encode(texts, language=language, **options)

    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        prompted = [prompt + text for text in texts]
        if self._takes_language:
            return self._function(prompted, language=self._language)
        return self._function(prompted)


def takes_language(function: Callable[..., Any]) -> bool:
    """Return whether a function has an argument ``language``."""
    try:
        return "language" in inspect.signature(function).parameters
    # Some functions of extension modules have no signature.
    except (TypeError, ValueError):
        return False


def import_function(spec: str) -> Callable[[list[str]], Any]:
    """Import ``module:function``, from the working directory too.

    Raises:
        ConfigError: there is no such module or function.
    """
    if ":" not in spec:
        raise ConfigError(f"{spec!r}: expected module:function, for example mycode:embed")
    function = import_place(spec)
    if not callable(function):
        raise ConfigError(
            f"{spec!r}: expected a function, found {type(function).__name__}; name a function of"
            " texts"
        )
    return function  # type: ignore[no-any-return]
