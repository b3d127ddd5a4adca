"""Runs of several analyses over one encoder, and the writing of their findings."""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from interlingua.analysis.record import Analysis, write_analysis
from interlingua.analysis.subject import Analyser, Subject
from interlingua.config import from_mapping, train_key_hint
from interlingua.config.registry import ANALYSES, did_you_mean, resolve_name
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.model_info import ModelInfo, describe_encoder, prompt_text
from interlingua.encoder.protocol import TextEncoder
from interlingua.errors import ConfigError
from interlingua.evaluation.build import settings_table
from interlingua.evaluation.cache import CachedEncoder, kept_folder, unfinished_file
from interlingua.evaluation.provenance import provenance
from interlingua.evaluation.sanity import cut_note
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.files import PathLike

log = logging.getLogger("interlingua")
DEFAULT = ("agnosticism", "token_matching", "attention_entropy", "word_order")


def build_analyses(
    names: Sequence[str] | None = None,
    *,
    languages: Sequence[str] | None = None,
    settings: Sequence[str] = (),
) -> list[Analyser]:
    """Build the analyses by name, with their options.

    Args:
        names: of the registry, or ``package.module:Class``; ``DEFAULT`` if none.
        languages: codes, names or groups, for analyses with this option.
        settings: ``analysis.option=value`` with the value in TOML.

    Raises:
        ConfigError: a name, an option or its value is unknown.
    """
    chosen = list(names or DEFAULT)
    options_of = settings_table(settings)
    labels = [ANALYSES.label(name) for name in chosen]
    # An option of an analysis that is not run would be silently ignored.
    for name, values in options_of.items():
        if name not in labels:
            hint = train_key_hint(name, values) or did_you_mean(name, labels)
            raise ConfigError(f"--set {name}.…: the analysis {name!r} is not selected{hint}")
    built = []
    for name, label in zip(chosen, labels, strict=True):
        kind = resolve_name(ANALYSES, name)
        options = dict(options_of.get(label, {}))
        fields = {field.name for field in dataclasses.fields(kind)}
        # Options of one analysis override options of all.
        if languages is not None and "languages" in fields:
            options.setdefault("languages", list(languages))
        built.append(from_mapping(kind, options, where=f"--set {label}"))
    return built


def run_analyses(
    encoder: TextEncoder,
    analyses: Sequence[Analyser],
    data: PathLike,
    *,
    prompt: str | None = None,
    batch_tokens: int = 16_384,
    output: PathLike | None = None,
    cache: PathLike | None = None,
    model: ModelInfo | None = None,
    skip_unfit: bool = False,
    progress: Progress = SILENT,
) -> list[Analysis]:
    """Analyze an encoder on local line-aligned texts.

    Args:
        encoder: to analyze; hidden states are read only from this package's models.
        analyses: from ``build_analyses``.
        data: the folder of texts, or a folder that contains it under its usual name.
        prompt: a text to put before every text, or the name of one of the model's own prompts;
            default: the model's default prompt.
        batch_tokens: token budget of a batch.
        output: write each analysis below this folder as soon as it ends. If the run is stopped, the
            vectors it has are kept there too, and the next call with the same model and settings
            resumes with them.
        cache: a folder that keeps all vectors for further calls with the same model and settings.
        model: how files name the encoder; read from the encoder by default.
        skip_unfit: leave out analyses that this model is not fit for, with a warning.
        progress: shows the progress.

    Returns:
        One per analysis that was run.

    Raises:
        ConfigError: the model is not fit for an analysis and ``skip_unfit`` is False, or vectors
            can't be kept.
        DataError: files are missing, broken or misaligned, or a language is not among them.
        TaskError: the encoder gave no usable vectors.
    """
    model = model or describe_encoder(encoder)
    # A prompt other than the model's own makes other numbers, so files have to name it.
    if prompt is not None:
        model = dataclasses.replace(model, overrides=(*model.overrides, f"prompt={prompt!r}"))
    before = prompt_text(encoder, prompt)
    # A cache keeps the vectors for good; next to the output they stay only if the run is stopped.
    kept: dict[str, Any] = {}
    if cache is not None:
        kept = {"kept": kept_folder(model, encoder, before, Path(cache))}
    elif output is not None:
        kept = {"unfinished": unfinished_file(model, encoder, before, Path(output))}
    own = unwrap_model(encoder)
    found = []
    with (
        CachedEncoder(encoder, prompt=prompt, batch_tokens=batch_tokens, **kept) as cached,
        _evaluation_mode(own),
    ):
        # One cache for all: analyses of the same texts embed them once.
        subject = Subject(cached, model, before, own, batch_tokens)
        for analysis in analyses:
            if skip_unfit and (reason := analysis.unfit(subject)):
                log.warning("%s: %s is left out: %s", model.name, analysis.name, reason)
                continue
            result = _run(analysis, subject, cached, Path(data), progress)
            # Write at once, so that this result is kept if a later analysis fails.
            if output is not None:
                write_analysis(result, output)
            found.append(result)
    return found


def _run(
    analysis: Analyser, subject: Subject, cached: CachedEncoder, data: Path, progress: Progress
) -> Analysis:
    """Run one analysis, and add its provenance."""
    cached.start_counting()
    start = time.perf_counter()
    result = analysis.run(subject, data, progress=progress)
    seconds = time.perf_counter() - start
    counts: dict[str, Any] = cached.counts()
    facts = provenance(subject.info, subject.prompt, {**counts, "wall_seconds": seconds})
    cut = cut_note(counts["texts"], counts["truncated_texts"], subject.info.max_tokens)
    return dataclasses.replace(
        result, notes=(*result.notes, *cut), seconds=seconds, provenance=facts
    )


def unwrap_model(encoder: Any) -> Encoder | None:
    """Return the model itself, which gives hidden states, without wrappers such as a cache."""
    if isinstance(encoder, OwnEncoder):
        return encoder.encoder
    if isinstance(encoder, Encoder):
        return encoder
    return None


@contextlib.contextmanager
def _evaluation_mode(encoder: Encoder | None) -> Iterator[None]:
    """Switch dropout off in the block, and restore the mode afterwards."""
    if encoder is None or not encoder.training:
        yield
        return
    encoder.eval()
    try:
        yield
    finally:
        encoder.train()
