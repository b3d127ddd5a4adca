"""Encode with LASER (Artetxe and Schwenk 2019): the rows "LASER" of Kakao's and EMS's tables.

    pip install laserembeddings[zh]
    python -m laserembeddings download-models
    interlingua evaluate experiments.peers.laser:embed --backend function --suite tatoeba

The package is a port, with sacremoses and subword-nmt in place of Moses and fastBPE. It does not
segment Japanese, for which LASER's own scripts need MeCab. The language chooses the tokenizer.
"""

from __future__ import annotations

import functools
from typing import Any

from interlingua.config.languages import resolve_language


@functools.cache
def model() -> Any:
    """Load the model once."""
    from laserembeddings import Laser

    return Laser()


def embed(texts: list[str], language: str | None = None) -> Any:
    """Return a vector of width 1,024 for each text; English by default."""
    spoken = resolve_language(language or "eng_Latn")
    return model().embed_sentences(texts, lang=spoken.iso1 or spoken.iso3)
