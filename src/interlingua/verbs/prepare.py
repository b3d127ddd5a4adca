"""``interlingua.prepare`` and ``interlingua prepare``: parallel text made ready to train on."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from interlingua.config import HUB_PREFIX
from interlingua.config.options import OUTPUT, Options, argument, function_of, option
from interlingua.storage.files import PathLike
from interlingua.verbs.parts.input_checks import check_model, check_package_of_bitext
from interlingua.verbs.parts.shared_options import output_option, overridden

if TYPE_CHECKING:
    from interlingua.corpus.manifest import Manifest
    from interlingua.preparation.config import PrepareConfig


class Prepared(NamedTuple):
    """A prepared corpus: its folder and its contents."""

    output: Path
    manifest: Manifest


@dataclass(frozen=True)
class PrepareOptions(Options):
    """Options of ``prepare``."""

    config: PathLike | Mapping[str, Any] | PrepareConfig = argument(
        "TOML file; see experiments/ems/prepare_trainmix.toml.", kind=Path
    )
    settings: Sequence[str] | None = option(
        None,
        "Override a key of the file: --set vocabulary.size=60000; repeatable.",
        flags=("--set",),
        metavar="KEY=VALUE",
    )
    output: PathLike | None = output_option("Folder for the corpus, in place of the file's output.")
    overwrite: bool = option(
        False, "Replace the folder if it holds a prepared corpus.", group=OUTPUT
    )


def run_prepare(options: PrepareOptions, progress: bool = False) -> Prepared:
    """Clean, deduplicate, split and tokenize parallel text into a training corpus.

    The config is a TOML file, or a mapping of the same keys.

    Args:
        options: of the verb.
        progress: show progress on standard error.

    Returns:
        The folder and its contents.

    Raises:
        ConfigError: a key is unknown, or a value is wrong.
        DataError: a file can't be read, or the folder is there already.
    """
    from interlingua.preparation.pipeline import prepare_corpus

    settings = _config(options)
    for source in settings.sources:
        for path in source.paths:
            check_package_of_bitext(path, source.format)
    # A vocabulary may also be a file, or a folder without a model.
    vocabulary = settings.vocabulary.path
    if vocabulary and not Path(vocabulary).exists() and not vocabulary.startswith(HUB_PREFIX):
        check_model(vocabulary)
    manifest = prepare_corpus(settings, overwrite=options.overwrite, progress=progress)
    return Prepared(settings.output, manifest)


def _config(options: PrepareOptions) -> PrepareConfig:
    from interlingua.config import from_mapping, load_config, to_mapping
    from interlingua.preparation.config import PrepareConfig

    overrides = list(options.settings or ())
    if options.output is not None:  # the last, so that --output wins over --set output=
        overrides.append(f"output={options.output}")
    config = options.config
    if isinstance(config, str | os.PathLike):
        return load_config(PrepareConfig, config, overrides=overrides)
    if not isinstance(config, Mapping):
        config = to_mapping(config)
    return from_mapping(PrepareConfig, overridden(config, overrides))


prepare = function_of(PrepareOptions, run_prepare, "prepare")
