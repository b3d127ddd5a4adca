"""The protocol of encoders: the one interface between models and all code that uses them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

import numpy as np
from jaxtyping import Float32

Encode = Callable[..., Float32[np.ndarray, "n d"]]
"""Function from a list of texts to one vector per text, in order.

Its model, prompt and settings are bound; ``language=`` is the code of the texts' language. If the
function also accepts ``show_progress_bar``, that progress counts the texts that are embedded.
"""


class TextEncoder(Protocol):
    """The interface that evaluation, mining, search and serving need of a model.

    An encoder with separate methods for questions and passages also has ``encode_queries`` and
    ``encode_passages``, see ``encoder/query_and_passage.py``.
    """

    @property
    def dim(self) -> int:
        """Width of the vectors."""
        ...

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
    ) -> Float32[np.ndarray, "n d"]:
        """Return one vector per text, in the order of the texts.

        Args:
            texts: any iterable.
            prompt: name of one of the model's prompts, or a text to put in front; default: the
                model's own default.
            language: of the texts, a code such as ``eng_Latn``; for models that tokenize texts or
                shift vectors by language.
            batch_tokens: upper limit of a batch, in tokens, for models with such a limit.
        """
        ...
