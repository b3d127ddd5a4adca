"""Encode with LASER (Artetxe and Schwenk 2019), the BiLSTM of 93 languages: a row of Kakao's Tables 1 to 3, EMS's IV to XIII.

    pip install laserembeddings[zh]
    python -m laserembeddings download-models
    interlingua evaluate experiments.peers.laser:embed --backend function --suite sts17,tatoeba --name LASER

The package is a port: sacremoses and subword-nmt for Moses and fastBPE. It has no segmentation of Japanese, which LASER's
own scripts need MeCab for. The language decides about the tokenizer.
"""

from __future__ import annotations

import functools
from typing import Any

from interlingua.languages import resolve


@functools.cache
def model() -> Any:
    """Load the model once."""
    from laserembeddings import Laser

    return Laser()


def embed(texts: list[str], language: str | None = None) -> Any:
    """Return a vector of width 1,024 for each text; English if no language is given."""
    spoken = resolve(language or "eng_Latn")
    return model().embed_sentences(texts, lang=spoken.iso1 or spoken.iso3)
