"""Encode with SONAR (Duquenne et al. 2023): a row of Tables 1 to 4, 7, 8 and 18 to 30 of MEXMA (Janeiro et al. 2024).

    pip install sonar-space
    interlingua evaluate experiments.peers.sonar:embed --backend function --suite xsim,xsim_pp --languages mexma --name SONAR

The package asks for a fairseq2 that was built for the installed torch. The weights are downloaded with the first text. The
language is the token that a text begins with, so it must be known: English if none is given. Only sentence vectors are
read so; the hidden states of Table 9 are not.
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
