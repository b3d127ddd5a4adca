"""``interlingua.debias`` and ``interlingua debias``: language removed from vectors.

The vectors are those of a model, or stored vectors.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from interlingua.analysis.debiasing import debias_defaults
from interlingua.config import AtLeast, refuse_unread, train_key_hint_of
from interlingua.config.options import (
    INPUT,
    MODEL,
    OUTPUT,
    Names,
    argument,
    filled,
    function_of,
    listed,
    option,
)
from interlingua.errors import ConfigError
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_inputs
from interlingua.verbs.parts.shared_options import (
    BackendOptions,
    CacheOptions,
    DtypeOptions,
    as_path,
    output_option,
)

if TYPE_CHECKING:
    from interlingua.analysis.debiasing.debias import DebiasOptions, DebiasReport
    from interlingua.analysis.debiasing.debias_index import DebiasedVectors

Array = Any
"""An array of numpy, or an object with ``__array__``."""
OF_MODELS = ("prompt", "backend", "settings", "dtype", "device", "column")
"""Options that are read only if texts are embedded."""
OF_ESTIMATES = ("method", "rank", "sentences", "held_out", "languages", "seed")
"""Options that are read only if a map is estimated."""


@dataclass(frozen=True)
class DebiasSettings(BackendOptions, DtypeOptions, CacheOptions):
    """Options of ``debias``.

    Either a model and texts, or stored vectors with their languages or a map.
    """

    model: PathLike | None = argument(
        "Model folder, hf:owner/name, or a name that --backend loads.", None, reads="model"
    )
    texts: PathLike | Sequence[PathLike] | None = argument(
        "Folders of de.txt or de-en.tsv files, prepared corpora, files or tables.",
        None,
        kind=list[str],
        reads="texts or folders",
    )
    output: PathLike = output_option(
        "Folder for the new model, or for the map and the vectors.",
        default=Path("debiased"),
        is_positional=True,
    )
    # How the map is estimated.
    method: str = option(
        debias_defaults.METHOD, "How the language is removed: project, erase, shift or center."
    )
    rank: Annotated[int, AtLeast(0)] | None = option(
        None,
        "Number of directions to remove; by default chosen by retrieval on held-out sentences.",
    )
    sentences: Annotated[int, AtLeast(8)] = option(
        debias_defaults.SENTENCES,
        "Number of sentences per language to draw from each source.",
        group=INPUT,
    )
    held_out: float = option(
        debias_defaults.HELD_OUT_SHARE,
        "Share of the sentences that is held out to measure the map, 0 to 1.",
        group=INPUT,
    )
    languages: Names | None = option(
        None, "Languages to read, in any code, separated by commas; all by default.", group=INPUT
    )
    column: str | None = option(
        None,
        "Column of the sentences in .csv or .xlsx; by default the column named after the language,"
        " or the column text.",
        group=INPUT,
    )
    # Stored vectors, in place of a model and texts.
    vectors: PathLike | Array | None = option(
        None,
        "File of vectors to map, .npy, in place of a model and texts; in Python also an array.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    labels: PathLike | Names | None = option(
        None,
        "With --vectors: text file with the languages of the vectors, one language per line; in"
        " Python also a list.",
        group=INPUT,
        kind=Path,
        reads="file",
    )
    map: PathLike | None = option(
        None,
        "With --vectors: map to apply, written by an earlier debias.",
        group=INPUT,
        kind=Path,
        reads="map",
    )
    # How the model embeds.
    prompt: str | Sequence[str] | None = option(
        None,
        "Prompt to embed with: the name of a prompt of the model, or a text; repeatable.",
        group=MODEL,
        kind=list[str],
    )
    overwrite: bool = option(
        False, "Replace the folder if it holds an earlier result.", group=OUTPUT
    )
    seed: int = option(0, "Seed of the choice of sentences and of held-out sentences.")

    def __post_init__(self) -> None:
        for field in fields(self):
            # Typer passes an empty list for a repeatable option that is not set.
            value = getattr(self, field.name)
            if isinstance(value, list) and not value:
                object.__setattr__(self, field.name, None)
        if self.vectors is None:
            if self.labels is not None or self.map is not None:
                raise ConfigError(
                    "--labels and --map require --vectors; add --vectors, or remove them"
                )
            if self.model is None or not self.texts:
                raise ConfigError(
                    "expected a model and texts, or vectors; in Python: interlingua.debias(model,"
                    " texts, output); on the command line: interlingua debias MODEL TEXTS... -o"
                    " DIR"
                )
            return
        if self.model is not None:
            raise ConfigError(
                f"--vectors and a model or texts cannot be combined; remove {self.model}"
            )
        if not isinstance(self.vectors, str | os.PathLike):
            # The mapped arrays are returned, and no file is written.
            refuse_unread(self, "output", "overwrite", reason="vectors in memory", when=True)
        # Options that would have no effect are refused, because a user expects an effect.
        refuse_unread(self, *OF_MODELS, reason="vectors", when=True)
        refuse_unread(self, *OF_ESTIMATES, reason="map", when=self.map is not None)

    @property
    def prompts(self) -> tuple[str | None, ...]:
        """The prompts to embed with, one after another."""
        if self.prompt is None or isinstance(self.prompt, str):
            return (self.prompt,)
        return tuple(self.prompt) or (None,)

    @property
    def of_estimate(self) -> DebiasOptions:
        """The options for estimating the map."""
        from interlingua.analysis.debiasing.debias import DebiasOptions

        return filled(
            DebiasOptions,
            self,
            held_out_share=self.held_out,
            languages=tuple(listed(self.languages) or ()) or None,
            prompts=self.prompts,
        )


def run_debias(
    options: DebiasSettings, progress: Progress = SILENT
) -> DebiasReport | DebiasedVectors | None:
    """Estimate a map that removes the language component from vectors.

    It writes the model with the map, or the mapped vectors. For vectors in memory, it returns the
    mapped vectors and writes nothing.

    Args:
        options: of the verb.
        progress: receives the progress of the work.

    Returns:
        The estimates and measurements; None if a known map was applied to stored vectors. For
        vectors in memory, the mapped vectors (in ``vectors``) with their map.

    Raises:
        ConfigError: an option is out of range, or does not go with the model or with another
            option.
        DataError: texts or vectors are missing, broken or too few.
        CheckpointError: the model or the map is missing or damaged.
    """
    check_inputs(options)
    from interlingua.analysis.debiasing.debias import debias_model
    from interlingua.analysis.debiasing.debias_index import debias_arrays, debias_index
    from interlingua.encoder.backends.load import backend_settings

    if options.vectors is not None and not isinstance(options.vectors, str | os.PathLike):
        labels: Any = options.labels
        return debias_arrays(
            options.vectors,
            labels=labels,
            language_map=options.map,
            options=options.of_estimate,
            progress=progress,
        )
    how: dict[str, Any] = {
        "options": options.of_estimate,
        "overwrite": options.overwrite,
        "progress": progress,
    }
    if options.vectors is not None:
        return debias_index(
            options.vectors,
            options.output,
            labels=as_path(cast(Any, options.labels)),
            language_map=options.map,
            **how,
        )
    # Here --set is only for the backend, so every key must be an option of the backend.
    own, others = backend_settings(options.settings or (), options.backend)
    if others:
        raise ConfigError(
            f"--set {others[0]}: expected BACKEND.OPTION=VALUE, for example"
            f" function.version=1{train_key_hint_of(others[0])}"
        )
    texts = options.texts or ()
    if isinstance(texts, str | os.PathLike):
        texts = [texts]
    return debias_model(
        os.fspath(options.model or ""),  # not None here: without vectors a model is required
        texts,
        options.output,
        backend=options.backend,
        backend_options=own,
        dtype=options.dtype,
        device=options.device,
        cache=options.cache,
        **how,
    )


debias = function_of(DebiasSettings, run_debias, "debias")
