"""A directory that ``SentenceTransformer(...)`` loads, with stock modules only and a card."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from interlingua.encoder.directory import is_ours
from interlingua.encoder.encode import DTYPES, Dtype
from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError
from interlingua.export.card import model_card, read_provenance
from interlingua.export.shrink import shrink
from interlingua.export.verify import Verification, verify
from interlingua.files import PathLike, atomic_directory


def export(
    source: PathLike,
    out: PathLike,
    *,
    dtype: Dtype = "float32",
    name: str | None = None,
    licence: str | None = None,
    results: Iterable[PathLike] = (),
    check: bool = True,
    overwrite: bool = False,
    texts: Iterable[PathLike] = (),
    layers: int | None = None,
) -> Verification | None:
    """Writes a model for use elsewhere. Nothing appears at ``out`` unless the round trip succeeds.

    Args:
        source: a model directory or hub id, or a run's folder, of which the best model is taken, else the last.
        out: the new directory.
        dtype: of the stored weights.
        name: in the card; default: the name of ``out``.
        licence: SPDX identifier for the card.
        results: result files or folders, of which the card shows the model's own.
        check: refuse what stock modules can't express, and compare vectors with sentence-transformers'.
        overwrite: replace ``out`` if one of our models is in it.
        texts: keep only the vocabulary of these files, see :func:`interlingua.export.shrink.shrink`.
        layers: keep only so many layers, from the first.

    Returns:
        how close the vectors are, or None if not checked.

    Raises:
        CheckpointError: there is no model at ``source``, sentence-transformers can't express it, or vectors differ.
    """
    if dtype not in DTYPES:
        raise ConfigError(f"dtype {dtype!r} is unknown; there are: {', '.join(DTYPES)}")
    model, run = find_model(source)
    encoder = shrink(Encoder.load(model), texts=texts, layers=layers)
    if check:
        refuse_inexpressible(encoder, model)
    files = [Path(path) for path in results]
    provenance = read_provenance(
        run, name=name or Path(out).name, digest=encoder.digest(), licence=licence, results=files
    )
    with atomic_directory(out, overwrite=overwrite, ours=is_ours) as folder:
        encoder.save(folder, dtype=DTYPES[dtype])
        (folder / "README.md").write_text(model_card(encoder, provenance), encoding="utf-8")
        return verify(encoder, folder, dtype=dtype, prompts=(None, *encoder.settings.prompts)) if check else None


def find_model(source: PathLike) -> tuple[PathLike, Path | None]:
    """The model directory meant by ``source``, and the run it comes from if it is part of one.

    Raises:
        CheckpointError: a run's folder holds no model yet.
    """
    folder = Path(source)
    if not folder.is_dir():
        return source, None  # a hub id, or a mistake that loading names
    if (folder / "config.toml").exists():
        for part in ("best", "model"):
            if (folder / part / "config.json").exists():
                return folder / part, folder
        raise CheckpointError(f"{folder}: this run has no model yet; train it to its end or first evaluation")
    return folder, folder.parent if (folder.parent / "config.toml").exists() else None


def refuse_inexpressible(encoder: Encoder, model: PathLike) -> None:
    """Raises CheckpointError for settings that stock modules would silently ignore."""
    vocabulary = encoder.vocabulary
    if not encoder.settings.include_special and any(vocabulary.tokenizer.encode("a").special_tokens_mask):
        raise CheckpointError(
            f"{model}: it pools without special tokens, which sentence-transformers' modules can't; use it with"
            " interlingua, or export without verification and expect other vectors"
        )
    if vocabulary.pre_tokenizer != "none":
        raise CheckpointError(
            f"{model}: its vocabulary first segments words by language ({vocabulary.pre_tokenizer}), which"
            " sentence-transformers can't; export without verification and give the export segmented text"
        )
