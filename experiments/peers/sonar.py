"""Encode with SONAR (Duquenne et al. 2023): the rows "SONAR" of MEXMA's tables, but Table 9's.

    pip install sonar-space
    interlingua evaluate experiments.peers.sonar:embed --backend function --suite xsim,xsim_pp

The package needs a fairseq2 that was built for the installed torch. The weights are downloaded with
the first text. A text starts with a token of its language, which is English by default. Only
sentence vectors are read so, not the hidden states of Table 9.
"""

from __future__ import annotations

import functools
from typing import Any

BATCH_TEXTS = 32
CARD = "text_sonar_basic_encoder"


@functools.cache
def model() -> Any:
    """Load the model once."""
    from sonar.inference_pipelines.text import TextToEmbeddingModelPipeline

    return TextToEmbeddingModelPipeline(encoder=CARD, tokenizer=CARD)


def embed(texts: list[str], language: str | None = None) -> Any:
    """Return a vector of width 1,024 for each text."""
    return model().predict(texts, source_lang=language or "eng_Latn", batch_size=BATCH_TEXTS)
