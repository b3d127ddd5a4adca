"""The base class of encoders of other makers: portions, prompts, checks, and their own options.

Texts go to such an encoder in portions, so that memory is bounded and an interrupted run loses
little. The result is checked before it is used: it must be an array with one row per text, always
of the same width, and without NaN.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import CheckedSettings, from_mapping
from interlingua.encoder.encode import Dtype, EncodeReport, collect_vectors
from interlingua.encoder.finite_vectors import check_finite, warn_of_zeros
from interlingua.encoder.model_info import ModelInfo, prompt_text
from interlingua.encoder.pooling import PoolingMode
from interlingua.encoder.texts import checked_texts
from interlingua.errors import TaskError
from interlingua.runtime.portions import portions
from interlingua.runtime.progress import Progress, progress_of
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import PathLike

ENCODER_PORTION_TEXTS = 4096
"""Number of texts passed to an encoder at once."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NoOptions(CheckedSettings):
    """The options of a backend that has none of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Choices:
    """The settings requested of a backend.

    Pooling, dtype, device and dim are passed only to backends that support them.

    Attributes:
        name: the encoder's name in results.
        pooling: instead of the model's own.
        dtype: float32, bfloat16, float16 or int8 to compute in.
        device: a torch device.
        dim: elements to keep of each vector.
        options: the backend's own, by name.
    """

    name: str
    pooling: PoolingMode | None = None
    dtype: Dtype | None = None
    device: str = "cpu"
    dim: int | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


class ForeignEncoder(abc.ABC):
    """An encoder of another maker, which chooses its own batches.

    It ignores languages and, mostly, the token budget.

    Attributes:
        takes: which of pooling, dtype and device it supports.
        Options: the dataclass of its own options.
        has_files: whether a model is a folder of files; otherwise it is a name.
        portion_texts: texts passed to it at once; an interrupted run may lose these.
        counts_tokens: whether it knows which texts it cuts.
        has_warned_of_zeros: whether it has returned a vector of zeros.
        dim: width of the vectors; 0 if it is unknown before the first text.
        info: its description in results.
    """

    takes: ClassVar[Collection[str]] = ()
    Options: ClassVar[type] = NoOptions
    has_files: ClassVar[bool] = True
    portion_texts: ClassVar[int] = ENCODER_PORTION_TEXTS
    counts_tokens: bool = False
    has_warned_of_zeros: bool = False
    dim: int
    info: ModelInfo

    @classmethod
    @abc.abstractmethod
    def load(cls, model: str, choices: Choices) -> ForeignEncoder:
        """Return the encoder named ``model``.

        Raises:
            ConfigError: an option is unknown or invalid.
        """

    @classmethod
    def own_options(cls, choices: Choices, backend: str) -> tuple[Any, tuple[str, ...]]:
        """Return the backend's own options, and the settings that make its vectors differ.

        A field with ``{"changes_vectors": False}`` in its metadata is left out of the latter.
        """
        made: Any = from_mapping(cls.Options, choices.options, where=f"--set {backend}")
        deciding = [
            f for f in dataclasses.fields(cls.Options) if f.metadata.get("changes_vectors", True)
        ]
        changed = [f.name for f in deciding if getattr(made, f.name) != f.default]
        return made, tuple(f"{backend}.{name}={getattr(made, name)}" for name in changed)

    def encode(
        self,
        texts: Iterable[str],
        *,
        prompt: str | None = None,
        language: str | None = None,
        batch_tokens: int = 16_384,
        normalize_embeddings: bool = False,
        out: PathLike | None = None,
        report: EncodeReport | None = None,
        show_progress_bar: bool | Progress = False,
    ) -> Float32[ndarray, "n d"]:
        """Return one vector per text, in the order of the texts, as the model makes them.

        They have length 1 with ``normalize_embeddings``.

        Args:
            texts: any iterable; read a portion at a time.
            prompt: name of one of the model's prompts, or a text to put in front; default: the
                model's own default.
            language: ignored by these encoders.
            batch_tokens: token budget of a batch, for encoders that batch by it.
            normalize_embeddings: scale the vectors to length 1.
            out: a ``.npy`` file to write instead of collecting in memory.
            report: counts the texts; also tokens and cut texts, if the encoder counts these.
            show_progress_bar: True shows a bar on standard error, or a line a minute if that is not
                a terminal; a ``Progress`` counts the texts itself.

        Raises:
            TaskError: the encoder gave another number of vectors, another width, or NaN.
        """
        before = prompt_text(self, prompt)
        counts = report or EncodeReport()

        def windows(counting: Progress) -> Iterator[Float32[ndarray, "n d"]]:
            for portion in portions(checked_texts(texts), self.portion_texts):
                started = counts.texts
                vectors = as_vectors(self._embed(portion, before, batch_tokens, counts))
                # Set, not added to: some encoders count their texts by themselves.
                counts.texts = started + len(portion)
                check_vectors(vectors, portion, self.dim)
                self._warn_of_zeros(vectors, portion)
                self.dim = vectors.shape[1]
                counting.advance(len(portion))
                if normalize_embeddings:
                    vectors = normalize_rows(vectors)
                yield vectors

        with progress_of(show_progress_bar, None, "texts", "encoding") as counting:
            return collect_vectors(windows(counting), self.dim, out)

    def _warn_of_zeros(self, vectors: Float32[ndarray, "n d"], texts: Sequence[str]) -> None:
        """Warn of vectors of zeros, but only the first time."""
        if self.has_warned_of_zeros:
            return
        # A plug-in may have no ``info`` about its model.
        info = getattr(self, "info", None)
        self.has_warned_of_zeros = warn_of_zeros(
            vectors,
            lambda row: repr(texts[row][:60]),
            origin=(info.name if info else "") or "the encoder",
        )

    @abc.abstractmethod
    def _embed(self, texts: list[str], prompt: str, batch_tokens: int, report: EncodeReport) -> Any:
        """Return an array (n, d) for these texts, each preceded by the prompt."""


def as_vectors(found: Any) -> Float32[ndarray, " *shape"]:
    """Convert the output of an encoder to numbers.

    Raises:
        TaskError: it is not an array of numbers, or its rows have unequal lengths.
    """
    try:
        # A PyTorch tensor may be on a GPU, require gradients, or have a type that NumPy lacks.
        if hasattr(found, "detach"):
            found = found.detach().cpu().float().numpy()
        # NumPy would drop the imaginary part, with only a warning.
        if np.iscomplexobj(found):
            raise TypeError("the numbers are complex")
        return np.asarray(found, dtype=np.float32)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TaskError(
            f"the encoder did not return an array of numbers ({error}); expected (n, d), one row"
            " per text"
        ) from error


def check_vectors(vectors: Float32[ndarray, "n d"], texts: Sequence[str], dim: int) -> None:
    """Refuse vectors that can't be scored.

    Args:
        vectors: the output of an encoder.
        texts: the texts that were embedded.
        dim: the width that the vectors must have; 0 for any.

    Raises:
        TaskError: there is another number of them, another width, or NaN.
    """
    if vectors.ndim != 2 or len(vectors) != len(texts) or (dim and vectors.shape[1] != dim):
        expected = f"({len(texts)}, {dim or 'd'})"
        raise TaskError(
            f"the encoder returned an array of shape {vectors.shape}, expected {expected};"
            " return one row per text"
        )
    check_finite(vectors, lambda row: repr(texts[row][:60]), error=TaskError)
