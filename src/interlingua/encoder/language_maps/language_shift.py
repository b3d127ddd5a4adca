"""A vector for each language, subtracted from vectors of its texts: the map ``shift`` of debias.

The map needs the language of each text during embedding, so it works only through
``encode(language=...)``; other libraries' modules receive no language and cannot express it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.config.registry import did_you_mean
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.json_text import parse_json
from interlingua.storage.tensor_files import write_safetensors

SHIFT_FILE = "language_shift.safetensors"


class LanguageShift(nn.Module):
    """Mean vectors by language.

    Args:
        languages: their codes, ``deu_Latn``.
        means: the vector that is subtracted for each.
    """

    means: Tensor

    def __init__(self, languages: Sequence[str], means: Float[Tensor, "l d"]) -> None:
        super().__init__()
        self.languages = tuple(languages)
        self.register_buffer("means", means.float())

    def mean_of(self, language: str | None) -> Float[Tensor, " d"]:
        """Return the vector to subtract for texts of a language.

        Args:
            language: its code, as ``languages.resolve_language`` gives it.

        Raises:
            ConfigError: the language is missing, or the shift was not estimated on it.
        """
        if language is None:
            raise ConfigError(
                "the model shifts vectors by language; name the language of the texts"
            )
        if language not in self.languages:
            nearest = did_you_mean(language, list(self.languages))
            raise ConfigError(f"the model has no shift for the language {language}{nearest}")
        return self.means[self.languages.index(language)]


def write_shift(shift: LanguageShift, folder: Path) -> None:
    """Write ``language_shift.safetensors`` into a model directory."""
    tensors = {"means": shift.means.detach().cpu().contiguous()}
    write_safetensors(folder / SHIFT_FILE, tensors, {"languages": json.dumps(shift.languages)})


def read_shift(folder: Path, dim: int) -> LanguageShift | None:
    """Read the shift of a model directory; return None if it has none.

    Args:
        folder: of the model.
        dim: width of the model's vectors.

    Raises:
        CheckpointError: the file is damaged or of another width.
    """
    path = folder / SHIFT_FILE
    if not path.is_file():
        return None
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            languages = parse_json((file.metadata() or {})["languages"])
            means = file.get_tensor("means")
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise CheckpointError(
            f"{path}: is damaged or incomplete ({error}); run `interlingua debias` again"
        ) from error
    # One message for a wrong type, a wrong shape and NaN: each shows a file of another model.
    fits = isinstance(languages, list) and means.shape == (len(languages), dim)
    if not fits or not torch.isfinite(means).all():
        raise CheckpointError(
            f"{path}: the shifts have shape {tuple(means.shape)}, but the vectors of the model"
            f" have {dim} elements; run `interlingua debias` again"
        )
    return LanguageShift([str(language) for language in languages], means)
