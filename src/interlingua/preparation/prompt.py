"""The prompt before every text of a corpus, from the configuration or from the model to train."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from interlingua.errors import CheckpointError
from interlingua.preparation.config import PrepareConfig
from interlingua.storage.locate import locate

if TYPE_CHECKING:
    from interlingua.encoder.directories.model_directory import EncodingSettings

log = logging.getLogger("interlingua")


def with_prompt(config: PrepareConfig) -> PrepareConfig:
    """Return the configuration with ``prompt`` (a name, a text or None) replaced by its text.

    A warning is shown if the model has prompts and none is used.

    Raises:
        ConfigError: the prompt is neither a text nor a name that the model has.
    """
    settings = _settings(config.vocabulary.path)
    if config.prompt is not None or settings is None:
        prompt = config.prompt or ""
        if prompt and settings is not None:  # the name of a prompt of the model, or a text
            prompt = settings.prompt_text(prompt)
        return dataclasses.replace(config, prompt=prompt)
    text = settings.prompt_text(None)  # the model's default prompt
    if not text and settings.prompts:
        known = ", ".join(f"{name} ({prompt!r})" for name, prompt in settings.prompts.items())
        log.warning(
            "%s has prompts (%s), but no prompt is added to these pairs; to train and use the"
            " model with a prompt, set prompt = %r",
            config.vocabulary.path,
            known,
            next(iter(settings.prompts)),
        )
    return dataclasses.replace(config, prompt=text)


def _settings(path: str) -> EncodingSettings | None:
    """Return the settings of the model that gives the vocabulary, or None if it has no settings."""
    if not path or Path(path).is_file():
        return None
    from interlingua.encoder.directories.model_directory import read_model_settings

    try:
        return read_model_settings(locate(path), max_tokens=2)
    except CheckpointError:
        # Only a vocabulary. Errors of a model are reported where it is loaded.
        return None
