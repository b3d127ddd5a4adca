"""``interlingua debias``: removal of the language from an encoder's vectors, or from stored ones.

The texts are embedded, a map is estimated on one part of them
(``encoder/language_maps/affine_maps.py``) and measured on the other (``debias_fit.py``). The output
depends on the input:

- an interlingua model: a model folder that ends in Normalize, Dense (the map), Normalize, or, for
  ``shift``, Normalize and a table of vectors by language;
- an encoder of another backend: a folder for the backend ``mapped``, which loads that encoder and
  applies the map;
- a file of vectors: the file of mapped vectors.

In each case, the map itself is written as ``language_map.safetensors``, so that vectors of the same
encoder can be mapped later; ``debias.json`` records the origin of the map and its measures.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float32
from numpy import ndarray

from interlingua import __version__
from interlingua.analysis.debiasing import debias_defaults
from interlingua.analysis.debiasing.debias_fit import (
    FittedMap,
    LabeledVectors,
    Panel,
    fit_and_measure,
)
from interlingua.analysis.debiasing.debias_texts import LanguageTexts, read_language_texts
from interlingua.config import Above, AtLeast, CheckedSettings
from interlingua.config.registry import check_choice
from interlingua.encoder.backends.load import load_encoder
from interlingua.encoder.backends.mapped import MAPPED_FILE, described_base
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.encoder.directories.model_directory import MODEL_ENTRIES, is_ours
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.language_maps.affine_maps import MAP_METHODS, LanguageMap, MapMethod
from interlingua.encoder.language_maps.language_map_files import MAP_FILE, write_map
from interlingua.encoder.language_maps.language_shift import LanguageShift
from interlingua.encoder.model_info import prompt_text
from interlingua.encoder.post_pooling import Dense, Normalize, PostPooling
from interlingua.errors import ConfigError, DataError, count_of
from interlingua.evaluation.cache import CachedEncoder, kept_folder, unfinished_file
from interlingua.runtime.progress import SILENT, Progress
from interlingua.storage.arrays import normalize_rows
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.formats import DEBIAS
from interlingua.storage.record import write_record

RECORD_FILE = "debias.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class DebiasOptions(CheckedSettings):
    """Options of the estimate of a map."""

    method: MapMethod = debias_defaults.METHOD
    """project, erase, shift or center; see ``encoder/language_maps/affine_maps.py``."""
    rank: Annotated[int, AtLeast(0)] | None = None
    """Number of directions to remove; default: chosen by retrieval of held-out translations from
    the pool of all languages."""
    sentences: Annotated[int, AtLeast(8)] = debias_defaults.SENTENCES
    """Maximum number of sentences of a language drawn from each source, including held-out ones."""
    held_out_share: Annotated[float, Above(0, below=1)] = debias_defaults.HELD_OUT_SHARE
    """Share of the sentences that the map is measured on."""
    languages: tuple[str, ...] | None = None
    """Languages to read, in any code; default: all."""
    column: str | None = None
    """Column of tables that hold sentences of one language; default: the column named after the
    language, or ``text``."""
    prompts: tuple[str | None, ...] = (None,)
    """Prompts to embed with, names or texts; the map is estimated on the vectors of all prompts and
    measured on those of the first one."""
    seed: int = 0
    """Seed of the draws."""

    def __post_init__(self) -> None:
        check_choice("method", self.method, MAP_METHODS)

    def fit(self, data: LabeledVectors, also: Sequence[LabeledVectors] = ()) -> FittedMap:
        """Estimate and measure a map; see ``fit_and_measure``."""
        return fit_and_measure(
            data,
            also=also,
            method=self.method,
            rank=self.rank,
            held_out_share=self.held_out_share,
            seed=self.seed,
        )

    def read(self, paths: Sequence[Path]) -> LanguageTexts:
        """Read the sentences that these options draw from files and folders."""
        return read_language_texts(
            paths,
            sentences=self.sentences,
            languages=self.languages,
            seed=self.seed,
            column=self.column,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class DebiasReport:
    """The estimated map and its measures.

    Attributes:
        output: the new folder.
        fitted: the map and its measures.
        languages: of the texts.
    """

    output: Path
    fitted: FittedMap
    languages: tuple[str, ...]

    def record(self) -> dict[str, Any]:
        """Return the content of ``debias.json``.

        NaN, the value of measures without translations, is null.
        """
        found = self.fitted
        language_map = self.fitted.language_map
        ranks = {
            str(rank): {"own_pool": pool.own_pool, "mixed_pool": pool.mixed_pool}
            for rank, pool in found.ranks.items()
        }
        return {
            "interlingua": __version__,
            "method": language_map.method,
            "rank": language_map.rank,
            "languages": list(self.languages),
            "sentences": {"estimated_on": found.fitted, "held_out": found.held_out},
            "before": panel_values(found.before),
            "after": panel_values(found.after),
            "ranks": ranks,
        }


def panel_values(panel: Panel) -> dict[str, float | None]:
    """Return the measures by name, shares from 0 to 1."""
    pool = panel.pool
    values = {
        "own_pool": pool.own_pool,
        "mixed_pool": pool.mixed_pool,
        "mixed_pool_drop": pool.drop,
        "same_language": pool.same_language,
        "language_variance_share": panel.variance_share,
        "language_recognized": panel.recognized,
    }
    return {name: None if math.isnan(value) else float(value) for name, value in values.items()}


def debias_model(
    model: str,
    texts: Sequence[PathLike],
    output: PathLike,
    *,
    options: DebiasOptions | None = None,
    backend: str = "interlingua",
    dtype: Any = None,
    device: str | None = None,
    backend_options: Mapping[str, Any] | None = None,
    cache: PathLike | None = None,
    overwrite: bool = False,
    progress: Progress = SILENT,
) -> DebiasReport:
    """Estimate a map from texts and write the encoder with it.

    Args:
        model: see ``encoder.backends.load.load_encoder``.
        texts: folders and files, see ``analysis/debiasing/debias_texts.py``.
        output: the new folder.
        options: of the estimate.
        backend: computes the embeddings.
        dtype: to compute in.
        device: to compute on.
        backend_options: the backend's own.
        cache: a folder that keeps all vectors for further runs of the same model.
        overwrite: replace ``output`` if one of our models is in it.
        progress: receives the work done.

    Raises:
        ConfigError: an option is out of range, or does not go with the model.
        DataError: texts are missing, broken or too few.
    """
    options = options or DebiasOptions()
    read = options.read([Path(path) for path in texts])
    # Check this before loading the model and embedding the texts, which may take hours.
    if Path(output).exists() and not overwrite:
        raise DataError(
            "already exists; use --overwrite to replace it, or choose another output", path=output
        )
    encoder, info = load_encoder(
        model, backend=backend, dtype=dtype, device=device, options=backend_options
    )
    own = encoder.encoder if isinstance(encoder, OwnEncoder) else None
    if own is not None and own.language_shift is not None:
        raise ConfigError(
            f"{model}: its vectors are already shifted by language; debias the original model"
            " instead"
        )
    # One block of vectors for each prompt, of the same sentences in the same order.
    vectors = []
    for prompt in options.prompts:
        before = prompt_text(encoder, prompt)
        # Without a cache the vectors are kept only until the run ends, so that a stopped run can
        # resume.
        kept: dict[str, Any]
        if cache is None:
            file = unfinished_file(info, encoder, before, Path(output).parent)
            kept = {"unfinished": file}
        else:
            kept = {"kept": kept_folder(info, encoder, before, Path(cache))}
        with CachedEncoder(encoder, prompt=prompt, **kept) as cached:
            vectors.append(_embed(cached, read, progress))
    # One map for the vectors of all prompts, measured on those of the first.
    first, *also = [
        LabeledVectors(vectors=block, languages=read.languages, groups=read.groups)
        for block in vectors
    ]
    fitted = options.fit(first, also)
    report = DebiasReport(output=Path(output), fitted=fitted, languages=read.codes)
    # For an encoder of another backend, only the information to load it is written.
    base = described_base(model, backend, backend_options or {}, dtype=dtype)
    with atomic_directory(
        output, overwrite=overwrite, ours=is_ours, entries=MODEL_ENTRIES
    ) as folder:
        _write(folder, own, base, report)
        record = {"model": model, "prompts": list(options.prompts), **report.record()}
        write_record(folder / RECORD_FILE, DEBIAS, record)
    return report


def debias_vectors(
    vectors: Float32[ndarray, "n d"],
    languages: Sequence[str],
    *,
    options: DebiasOptions | None = None,
) -> FittedMap:
    """Estimate a map from vectors of known languages; the result's ``language_map`` maps them.

    Args:
        vectors: of any length; they are scaled to length 1.
        languages: code of each.
        options: of the estimate; those on texts are ignored.

    Raises:
        DataError: there are not as many languages as vectors, or too few vectors of a language.
    """
    options = options or DebiasOptions()
    if len(vectors) != len(languages):
        raise DataError(
            f"found {count_of(len(vectors), 'vectors')} and {len(languages):,} languages; pass"
            " one language per vector"
        )
    # Nothing is known of translations here, so each vector is a group of its own.
    data = LabeledVectors(
        vectors=normalize_rows(np.asarray(vectors, dtype=np.float32)),
        languages=list(languages),
        groups=np.arange(len(vectors)),
    )
    return options.fit(data)


def with_map(encoder: Encoder, language_map: LanguageMap) -> Encoder:
    """Return the encoder with a map after its own layers; its vectors then have length 1.

    The ranges of int8 vectors are left out, because they were those of the vectors before the map.

    Args:
        encoder: shares its weights with the result.
        language_map: estimated on the encoder's vectors of length 1.
    """
    layers = [*encoder.post_pooling]
    # The map was estimated on cut vectors, so a layer before it keeps only the first dimensions.
    if encoder.dim < encoder.full_dim:
        layers.append(Dense.of(np.eye(encoder.dim, encoder.full_dim), np.zeros(encoder.dim)))
    layers.append(Normalize())
    # A shift depends on the language, which no layer knows; any other map is one affine layer.
    shift = None
    if language_map.shifts is None:
        layers.append(Dense.of(language_map.weight, language_map.bias))
    else:
        shift = LanguageShift(language_map.languages, torch.from_numpy(language_map.shifts))
    dims = tuple(dim for dim in encoder.settings.matryoshka_dims if dim <= encoder.dim)
    settings = dataclasses.replace(
        encoder.settings,
        normalize=True,
        truncate_dim=None,
        int8_ranges={},
        matryoshka_dims=dims,
    )
    return Encoder(
        encoder.backbone, encoder.vocabulary, settings, PostPooling(layers), shift
    ).eval()


def _write(folder: Path, own: Encoder | None, base: dict[str, Any], report: DebiasReport) -> None:
    """Write the map, and our own encoder with the map in it or a reference to a foreign one."""
    if own is None:
        (folder / MAPPED_FILE).write_text(json.dumps(base, indent=2) + "\n", encoding="utf-8")
    else:
        with_map(own, report.fitted.language_map).save(folder)
    write_map(report.fitted.language_map, folder / MAP_FILE)


def _embed(
    cached: CachedEncoder, texts: LanguageTexts, progress: Progress
) -> Float32[ndarray, "n d"]:
    """Compute vectors of length 1 of all texts, one language at a time."""
    # The width is unknown until the first vectors.
    made: Float32[ndarray, "n d"] | None = None
    progress.start(len(texts.texts), "texts", "embedding")
    # A language at a time, as some vocabularies segment words by language.
    for language in texts.codes:
        progress.note(language)
        rows = texts.rows_of(language)
        found = normalize_rows(cached.encode([texts.texts[row] for row in rows], language=language))
        if made is None:
            made = np.zeros((len(texts.texts), found.shape[1]), dtype=np.float32)
        made[rows] = found
        progress.advance(len(rows))
    assert made is not None
    return made
