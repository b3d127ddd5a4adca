"""A stage without training: it makes silver pairs for the stage after it.

A sentence encoder finds each sentence's neighbors, a cross-encoder scores the pairs (Augmented
SBERT, Thakur et al. 2021).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from jaxtyping import Float32
from numpy import ndarray

from interlingua.config import Between, CheckedSettings, PathText
from interlingua.corpus.samples.augment import SilverReport, make_silver
from interlingua.encoder.encoder import Encoder, choose_device
from interlingua.encoder.pair_scorer import PairScorer
from interlingua.storage.files import sha256_tree


@dataclass(frozen=True, kw_only=True, slots=True)
class SilverConfig(CheckedSettings):
    """[stage.silver]: Augmented SBERT's labeling."""

    gold: tuple[Path, ...]
    """Files of scored training pairs; their sentences are paired anew."""
    exclude: tuple[Path, ...] = ()
    """Files of further scored pairs, none of which becomes a silver pair: the benchmark's dev and
    test split. Splits inside of the gold files are left out in any case."""
    sentence_encoder: PathText
    """Model that finds sentences' neighbors: folder, ``hf:owner/name`` or ``{STAGE.best}``."""
    cross_encoder: PathText
    """Model that scores the pairs: folder of a model trained with method cross_encoder, or
    ``{STAGE.best}``."""
    neighbors: Annotated[int, Between(1, 10_000)] = 10
    """Nearest sentences that each sentence is paired with."""
    languages: tuple[str, str] = ("eng_Latn", "eng_Latn")
    """Languages of first and second sentences, if the file does not say."""


def silver(config: SilverConfig, folder: Path) -> SilverReport:
    """Write ``folder/silver.tsv`` and a manifest that names the models.

    Raises:
        CheckpointError: a model can't be read.
        DataError: the gold pairs can't be read, or are not training pairs.
    """
    device = choose_device()
    encoder = Encoder.load(config.sentence_encoder).to(device)
    scorer = PairScorer.load(config.cross_encoder).to(device)

    def score(first: Sequence[str], second: Sequence[str], language: str) -> Float32[ndarray, " n"]:
        return scorer.score(first, second, languages=(language, language))

    def embed(texts: Sequence[str], language: str) -> Float32[ndarray, "n d"]:
        return encoder.encode(texts, language=language)

    # With digests, so that the manifest identifies the models even if the paths later hold others.
    models = {
        "sentence_encoder": {"path": config.sentence_encoder, "digest": encoder.digest()},
        "cross_encoder": {
            "path": config.cross_encoder,
            "digest": sha256_tree(config.cross_encoder),
        },
    }
    return make_silver(
        config.gold,
        folder,
        embed=embed,
        score=score,
        neighbors=config.neighbors,
        languages=config.languages,
        exclude=config.exclude,
        models=models,
    )
