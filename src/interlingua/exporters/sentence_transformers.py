"""A directory that ``SentenceTransformer(...)`` loads, with stock modules only and a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from interlingua.encoder.directories.model_directory import MODEL_ENTRIES, is_ours
from interlingua.encoder.encode import WEIGHT_DTYPES
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import CheckpointError, ConfigError
from interlingua.exporters.card import Provenance, model_card, read_provenance, stock_usage
from interlingua.exporters.shrink import WHOLE_MODEL, ShrinkOptions, shrink
from interlingua.exporters.verify import SAMPLES, Verification, check_exportable, verify
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.locate import RUN_CONFIG, model_of_run


@dataclass(frozen=True, kw_only=True, slots=True)
class ExportSettings:
    """Options of writing and checking a model, for all formats."""

    dtype: str = "float32"
    """Dtype of the stored weights."""
    name: str | None = None
    """Name in the card and in a GGUF file; default: the name of the directory."""
    license: str | None = None
    """SPDX identifier for the card."""
    results: Iterable[PathLike] = ()
    """Result files or folders; the card shows those results that belong to the model."""
    check: bool = True
    """True if encoders that the format can't express are refused, and the written model is run and
    its vectors are compared."""
    overwrite: bool = False
    """Replace the directory if one of our models is in it."""
    smaller: ShrinkOptions = WHOLE_MODEL
    """Reductions of the model before the export."""
    samples: Mapping[str, Sequence[str]] = field(default_factory=lambda: SAMPLES)
    """Texts whose vectors are compared, by language."""
    on_verified: Callable[[Verification], None] = lambda _: None
    """Function that is called with the comparison, even if vectors differ."""
    text_forms: Sequence[str] | None = None
    """Forms of texts that the exported model undoes; None keeps the model's own."""


DEFAULTS = ExportSettings()


def export_model(
    source: PathLike, out: PathLike, settings: ExportSettings = DEFAULTS
) -> Verification | None:
    """Write a model for use elsewhere. Nothing appears at ``out`` unless the round trip succeeds.

    Args:
        source: a model directory, ``hf:owner/name``, or a run's folder. From a run's folder the
            best model is exported, or the last one if there is no best.
        out: the new directory.
        settings: the dtype int8 is only for token vectors.

    Returns:
        how close the vectors are, or None if not checked.

    Raises:
        CheckpointError: there is no model at ``source``, sentence-transformers has no module for a
            part of it, or its vectors contain NaN or differ after export.
    """
    dtype = settings.dtype
    if dtype != "int8" and dtype not in WEIGHT_DTYPES:
        raise ConfigError(
            f"unknown dtype {dtype!r}; use one of: {', '.join(WEIGHT_DTYPES)}, or int8 for token"
            " vectors"
        )
    model, run = find_model(source)
    encoder = changed(Encoder.load(model), settings)
    # transformers has no int8 layers; a model that is a table of token vectors needs no layers.
    if dtype == "int8" and not isinstance(encoder.backbone, StaticBackbone):
        raise ConfigError(
            f"{model}: int8 weights are supported only for token vectors; for a transformer pass"
            " --int8, which writes a graph"
        )
    if settings.check:
        refuse_inexpressible(encoder, model)

    def fill(folder: Path, provenance: Provenance) -> None:
        encoder.save(folder, dtype=WEIGHT_DTYPES.get(dtype, torch.int8))
        encoder.vocabulary.for_other_libraries().save(folder)
        usage = stock_usage(encoder, provenance.name, in_bytes=dtype == "int8")
        card = model_card(encoder, provenance, usage=usage)
        (folder / "README.md").write_text(card, encoding="utf-8")

    return write_checked(encoder, run, out, settings, fill)


def changed(encoder: Encoder, settings: ExportSettings) -> Encoder:
    """Return the encoder to write: reduced, and with the requested forms of texts.

    Raises:
        ConfigError: a form does not exist, or the encoder has fewer parts than are to be kept.
    """
    encoder = shrink(encoder, settings.smaller)
    if settings.text_forms is not None:
        encoder.vocabulary = encoder.vocabulary.with_text_forms(settings.text_forms)
    return encoder


def write_checked(
    encoder: Encoder,
    run: Path | None,
    out: PathLike,
    settings: ExportSettings,
    fill: Callable[[Path, Provenance], None],
) -> Verification | None:
    """Write a directory, which appears only if every runtime gives the encoder's vectors.

    Args:
        encoder: the model.
        run: the folder of its training run, if it is known.
        out: the new directory.
        settings: see ``ExportSettings``.
        fill: function that writes the files; it gets a temporary folder, and the facts on the model
            for the card.

    Returns:
        how close the vectors are, or None if not checked.

    Raises:
        CheckpointError: the model's vectors contain NaN, or differ after export.
    """
    check_exportable(encoder, WEIGHT_DTYPES.get(settings.dtype))
    provenance = read_provenance(
        run,
        name=settings.name or Path(out).name,
        digest=encoder.digest(),
        license=settings.license,
        results=[Path(path) for path in settings.results],
    )
    # An error in verify leaves no directory behind.
    with atomic_directory(
        out, overwrite=settings.overwrite, ours=is_ours, entries=MODEL_ENTRIES
    ) as folder:
        fill(folder, provenance)
        if not settings.check:
            return None
        return verify(
            encoder, folder, settings.samples, called=out, on_verified=settings.on_verified
        )


def find_model(source: PathLike) -> tuple[PathLike, Path | None]:
    """Find the model directory of ``source``, and its run if it is part of one.

    Raises:
        CheckpointError: a run's folder holds no model yet.
    """
    folder = Path(source)
    # The source is hf:owner/name, or a mistake, which is reported when the model is loaded.
    if not folder.is_dir():
        return source, None
    if (folder / RUN_CONFIG).exists():
        return model_of_run(folder), folder
    # A model inside of a run's folder, such as RUN/best.
    if (folder.parent / RUN_CONFIG).exists():
        return folder, folder.parent
    return folder, None


def refuse_inexpressible(encoder: Encoder, model: PathLike) -> None:
    """Raise CheckpointError for settings that stock modules would silently ignore."""
    vocabulary = encoder.vocabulary
    # The module for token vectors itself leaves out special tokens.
    is_static = isinstance(encoder.backbone, StaticBackbone)
    has_special = any(vocabulary.tokenizer.encode("a").special_tokens_mask)
    if has_special and not is_static and not encoder.settings.include_special:
        raise CheckpointError(
            f"{model}: pooling without special tokens is not supported by sentence-transformers;"
            " use the model with interlingua, or export with --no-verify and accept different"
            " vectors"
        )
    if encoder.backbone.config.positions == "alibi":
        raise CheckpointError(
            f"{model}: transformers supports ALiBi only with code from the hub, which is not run"
            " here; pass --onnx, or export with --no-verify and load with trust_remote_code=True"
        )
    refuse_segmentation(encoder, model)


def refuse_segmentation(encoder: Encoder, model: PathLike) -> None:
    """Raise CheckpointError for a model that needs to know the language of a text.

    Other libraries do not receive the language.
    """
    vocabulary = encoder.vocabulary
    if encoder.language_shift is not None:
        raise CheckpointError(
            f"{model}: the model subtracts a vector per language, which other libraries cannot"
            " do; use it with interlingua, or run `interlingua debias` with another --method"
        )
    if vocabulary.pre_tokenizer != "none":
        raise CheckpointError(
            f"{model}: the vocabulary segments words by language ({vocabulary.pre_tokenizer}),"
            " which other tokenizers cannot do; export with --no-verify and segment texts before"
            " encoding"
        )
