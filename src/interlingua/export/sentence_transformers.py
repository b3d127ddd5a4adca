"""A directory that ``SentenceTransformer(...)`` loads, with stock modules only and a card."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import torch

from interlingua.encoder.directory import is_ours
from interlingua.encoder.encode import DTYPES
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.locate import RUN_CONFIG, model_of_run
from interlingua.encoder.static import StaticBackbone
from interlingua.errors import CheckpointError, ConfigError
from interlingua.export.card import model_card, read_provenance
from interlingua.export.shrink import WHOLE, ShrinkOptions
from interlingua.export.verify import SAMPLES, Verification, check_model, verify
from interlingua.files import PathLike, atomic_directory

Stored = Literal["float32", "bfloat16", "float16", "int8"]


def export(
    source: PathLike,
    out: PathLike,
    *,
    dtype: Stored = "float32",
    name: str | None = None,
    license: str | None = None,
    results: Iterable[PathLike] = (),
    check: bool = True,
    overwrite: bool = False,
    smaller: ShrinkOptions = WHOLE,
    samples: Mapping[str, Sequence[str]] = SAMPLES,
    on_verified: Callable[[Verification], None] = lambda _: None,
) -> Verification | None:
    """Writes a model for use elsewhere. Nothing appears at ``out`` unless the round trip succeeds.

    Args:
        source: a model directory, ``hf:owner/name``, or a run's folder, of which the best model is
            taken or the last.
        out: the new directory.
        dtype: of the stored weights; int8 for token vectors alone.
        name: in the card; default: the name of ``out``.
        license: SPDX identifier for the card.
        results: result files or folders, of which the card shows the model's own.
        check: refuse what stock modules can't express, and compare vectors with
            sentence-transformers'.
        overwrite: replace ``out`` if one of our models is in it.
        smaller: what is taken out of the model first.
        samples: texts to compare vectors of, by language.
        on_verified: called with what was compared, also where vectors differ.

    Returns:
        how close the vectors are, or None if not checked.

    Raises:
        CheckpointError: there is no model at ``source``, or sentence-transformers has no module for
            a part of it. Also where its vectors contain NaN, or differ after export.
    """
    if dtype != "int8" and dtype not in DTYPES:
        raise ConfigError(
            f"dtype {dtype!r} is unknown; there are: {', '.join(DTYPES)}, and int8 for token"
            " vectors"
        )
    model, run = find_model(source)
    encoder = smaller.applied_to(Encoder.load(model))
    # transformers has no layers of int8; a table of vectors needs none.
    if dtype == "int8" and not isinstance(encoder.backbone, StaticBackbone):
        raise ConfigError(
            f"{model}: int8 weights are for token vectors; of a transformer make a graph: --int8"
        )
    if check:
        refuse_inexpressible(encoder, model)
    check_model(encoder, DTYPES.get(dtype))
    files = [Path(path) for path in results]
    title = name or Path(out).name
    provenance = read_provenance(
        run, name=title, digest=encoder.digest(), license=license, results=files
    )
    stored = torch.int8 if dtype == "int8" else DTYPES[dtype]
    # An error in verify leaves no directory behind.
    with atomic_directory(out, overwrite=overwrite, ours=is_ours) as folder:
        encoder.save(folder, dtype=stored)
        (folder / "README.md").write_text(model_card(encoder, provenance), encoding="utf-8")
        if not check:
            return None
        prompts = (None, *encoder.settings.prompts)
        return verify(
            encoder, folder, samples, prompts=prompts, called=out, on_verified=on_verified
        )


def find_model(source: PathLike) -> tuple[PathLike, Path | None]:
    """The model directory meant by ``source``, and the run it comes from if it is part of one.

    Raises:
        CheckpointError: a run's folder holds no model yet.
    """
    folder = Path(source)
    # hf:owner/name, or a mistake, which the loading of the model reports.
    if not folder.is_dir():
        return source, None
    if (folder / RUN_CONFIG).exists():
        return model_of_run(folder), folder
    # A model inside of a run's folder, such as RUN/best.
    if (folder.parent / RUN_CONFIG).exists():
        return folder, folder.parent
    return folder, None


def refuse_inexpressible(encoder: Encoder, model: PathLike) -> None:
    """Raises CheckpointError for settings that stock modules would silently ignore."""
    vocabulary = encoder.vocabulary
    # The module of token vectors leaves special tokens out by itself.
    is_static = isinstance(encoder.backbone, StaticBackbone)
    has_special = any(vocabulary.tokenizer.encode("a").special_tokens_mask)
    if has_special and not is_static and not encoder.settings.include_special:
        raise CheckpointError(
            f"{model}: it pools without special tokens, which sentence-transformers' modules"
            " can't; use it with interlingua, or export without verification and expect other"
            " vectors"
        )
    if encoder.backbone.config.positions == "alibi":
        raise CheckpointError(
            f"{model}: transformers computes ALiBi only with code from the hub, which is not run"
            " here; use it with interlingua, export --onnx, or export without verification and load"
            " it with trust_remote_code=True"
        )
    refuse_segmentation(encoder, model)


def refuse_segmentation(encoder: Encoder, model: PathLike) -> None:
    """Raises CheckpointError for a model that needs to know the language of a text.

    Other libraries are not given it.
    """
    vocabulary = encoder.vocabulary
    if encoder.language_shift is not None:
        raise CheckpointError(
            f"{model}: it subtracts a vector by language, which other libraries are not given; use"
            " it with interlingua, or debias with another method"
        )
    if vocabulary.pre_tokenizer != "none":
        raise CheckpointError(
            f"{model}: its vocabulary first segments words by language"
            f" ({vocabulary.pre_tokenizer}), which other tokenizers don't; export without"
            " verification and give the export segmented text"
        )
