"""The base class of analyses, their input, and shared helpers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from interlingua.analysis.record import Analysis, Measure
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import ModelInfo
from interlingua.errors import ConfigError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.parallel import ParallelTexts
from interlingua.evaluation.task import options
from interlingua.runtime.progress import SILENT, Progress


class Subject(NamedTuple):
    """The model under analysis.

    Attributes:
        embeds: encodes texts with a fixed prompt; no text is embedded twice.
        info: facts about the model.
        prompt: the text before every input.
        encoder: the model itself, if its hidden states can be read; in evaluation mode.
        batch_tokens: maximum number of tokens in a batch.
    """

    embeds: CachedEncoder
    info: ModelInfo
    prompt: str = ""
    encoder: Encoder | None = None
    batch_tokens: int = 16_384

    def states_of(self, analysis: str) -> Encoder:
        """Return the model itself, to read its hidden states.

        Args:
            analysis: name of the analysis that needs it.

        Raises:
            ConfigError: its hidden states can't be read.
        """
        if self.encoder is None:
            raise ConfigError(
                f"{analysis} reads hidden states, which {self.info.library} does not provide; use"
                " the backend interlingua, or leave this analysis out with --only"
            )
        return self.encoder


class Analyser(Protocol):
    """An analysis with its options; each analysis has its own file in ``analysis``."""

    @property
    def name(self) -> str:
        """The name in the registry."""
        ...

    @property
    def version(self) -> str:
        """The version, raised whenever a number could change."""
        ...

    def unfit(self, subject: Subject) -> str | None:
        """Return why this model is unfit for the analysis, in a few words; None if it is fit."""
        ...

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze a model.

        Args:
            subject: the model.
            data: the folder of line-aligned texts, or a folder with it under its usual name.
            progress: shows the progress.

        Raises:
            ConfigError: the model does not provide the input of the analysis.
            DataError: files are missing, broken or misaligned, or a language is not among them.
        """
        ...


def of_texts(
    analyser: Analyser,
    texts: ParallelTexts,
    *,
    measures: Iterable[Measure],
    tables: Mapping[str, Mapping[str, float]] | None = None,
    examples: Iterable[Mapping[str, Any]] = (),
    notes: Iterable[str] = (),
) -> Analysis:
    """Build the analysis of line-aligned texts, with facts about the texts and its own options.

    Args:
        analyser: computed the numbers.
        texts: the texts that the analyser read.
        measures: the numbers.
        tables: see ``Analysis``.
        examples: shown on a page.
        notes: facts that a reader of the numbers must know.
    """
    return Analysis(
        task=texts.named(analyser.name),
        version=analyser.version,
        dataset=texts.folder.name,
        data_sha256=texts.sha256,
        data_revision=texts.revision,
        languages=texts.languages,
        sentences=texts.sentences,
        measures=tuple(measures),
        tables=tables or {},
        examples=tuple(examples),
        notes=tuple(notes),
        **options(analyser),
    )


def needs_states(subject: Subject) -> str | None:
    """Return the result of ``Analyser.unfit`` for analyses that read hidden states."""
    if subject.encoder is None:
        return "its hidden states cannot be read"
    return None
