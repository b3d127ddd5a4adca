"""A smaller model from a large one: fewer words, fewer layers, shorter vectors."""

from __future__ import annotations

import copy
import dataclasses
import glob
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.monolingual import read_sentences
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import Backbone
from interlingua.encoder.modeling.meta_device import meta_device
from interlingua.errors import ConfigError, DataError
from interlingua.exporters.principal_components import in_components
from interlingua.storage.files import PathLike, stem_and_suffix
from interlingua.vocabulary.trimming import ids_in_use


@dataclass(frozen=True, kw_only=True, slots=True)
class ShrinkOptions:
    """Parts to remove from an encoder; nothing by default.

    Files may be globs. They are ``.txt`` files with one sentence a line, or files of pairs in any
    known format, of which both sides are read.
    """

    texts: Iterable[PathLike] = ()
    """Files of texts whose tokens are kept; without files the vocabulary stays complete."""
    layers: int | None = None
    """Number of layers to keep, from the first."""
    components_of: Iterable[PathLike] = ()
    """Files of texts; vectors are rotated onto the principal components of the texts' vectors."""
    truncate_dim: int | None = None
    """Elements of each vector to keep, from the first."""
    ranges_of: Iterable[PathLike] = ()
    """Files on which the ranges of int8 vectors are measured."""


WHOLE_MODEL = ShrinkOptions()


def shrink(encoder: Encoder, options: ShrinkOptions) -> Encoder:
    """Remove parts of an encoder that are not needed: word embeddings, layers, elements of vectors.

    If all layers stay, reducing the vocabulary does not change the vectors of the texts that it is
    reduced for. Other texts may contain removed pieces, which are replaced by smaller pieces.

    Args:
        encoder: the encoder, which remains unchanged.
        options: the parts to remove.

    Raises:
        ConfigError: the encoder has fewer layers or elements, or none are to be kept.
        DataError: a file is missing or broken.
    """
    # Reduce vocabulary and layers first, because they decide the vectors for the later steps.
    kept_texts = _all_matching(options.texts)
    if kept_texts:
        encoder = encoder.trim(ids_in_use(encoder.vocabulary, _sentences(kept_texts)))
    if options.layers is not None:
        encoder = first_layers(encoder, options.layers)
    # Rotate next: this sorts the elements before the last ones are cut.
    component_texts = _all_matching(options.components_of)
    if component_texts:
        encoder = in_components(encoder, _sentences(component_texts))
    range_texts = _all_matching(options.ranges_of)
    settings = encoder.settings
    truncate_dim = options.truncate_dim
    if truncate_dim is not None:
        if not 1 <= truncate_dim <= encoder.dim:
            raise ConfigError(
                f"truncate_dim: expected a number from 1 to {encoder.dim}, found {truncate_dim}"
            )
        settings = dataclasses.replace(settings, truncate_dim=truncate_dim)
    # Make another object with the same weights: ranges are put into its settings, and the caller's
    # encoder remains unchanged.
    if truncate_dim is not None or range_texts:
        layers_after = (encoder.post_pooling, encoder.language_shift)
        encoder = Encoder(encoder.backbone, encoder.vocabulary, settings, *layers_after).train(
            encoder.training
        )
    if range_texts:
        encoder.calibrate_ranges(_sentences(range_texts))
    return encoder


def first_layers(encoder: Encoder, layers: int) -> Encoder:
    """Return the encoder without its later layers.

    Raises:
        ConfigError: the encoder has fewer layers, or no layer is to be kept.
    """
    had = encoder.backbone.config.num_hidden_layers
    if not 1 <= layers <= had:
        raise ConfigError(
            f"layers: expected a number from 1 to {had}, found {layers} (the model has {had}"
            " layers)"
        )
    config = dataclasses.replace(encoder.backbone.config, num_hidden_layers=layers)
    # Built without memory for weights; its parameter names determine which weights are kept.
    with meta_device():
        backbone = Backbone(config)
    kept_names = backbone.state_dict().keys()
    # Copy the weights, so that training one of the two encoders does not change the other.
    weights = {
        name: copy.deepcopy(tensor)
        for name, tensor in encoder.backbone.state_dict().items()
        if name in kept_names
    }
    backbone.load_state_dict(weights, assign=True)
    return encoder.with_backbone(backbone.requires_grad_(True)).train(encoder.training)


def _all_matching(patterns: Iterable[PathLike]) -> list[str]:
    return [file for pattern in patterns for file in _matching(os.fspath(pattern))]


def _matching(pattern: str) -> list[str]:
    """Return the files that match a glob; a plain name is returned unchecked."""
    if not any(sign in pattern for sign in "*?["):
        return [pattern]
    files = sorted(glob.glob(os.path.expanduser(os.path.expandvars(pattern))))
    if not files:
        raise DataError("no file matches the pattern; check the path", path=pattern)
    return files


def _sentences(files: Iterable[PathLike]) -> Iterator[str]:
    for file in files:
        if stem_and_suffix(file)[1] == ".txt":
            yield from read_sentences(file)
        else:
            for pair in read_pairs(file):
                yield pair.source
                yield pair.target
