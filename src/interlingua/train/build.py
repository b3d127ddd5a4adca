"""From config to parts: corpus, objective, batches; each is a pure function of the config."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import torch

from interlingua.batches.mixture import ParallelPlan
from interlingua.batches.records import TokenStore
from interlingua.batches.seeds import seed_for
from interlingua.batches.tokens import ParallelBatch
from interlingua.encoder.backbone import BackboneConfig
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.vocabulary import Vocabulary
from interlingua.errors import ConfigError, DataError
from interlingua.methods.objective import Objective
from interlingua.registry import METHODS, resolve
from interlingua.train.config import TrainConfig
from interlingua.train.engine import Engine


class Corpus(NamedTuple):
    """A prepared corpus, opened."""

    vocabulary: Vocabulary
    train: TokenStore
    valid: TokenStore | None

    @property
    def digest(self) -> str:
        """Identifies the training pairs and the vocabulary that made their tokens."""
        return self.train.digest


def open_corpus(path: Path) -> Corpus:
    """Opens what ``interlingua prepare`` wrote; a validation set may be missing or empty.

    Raises:
        DataError: it is not a prepared corpus, or it has no training pairs.
    """
    if not path.is_dir():
        raise DataError("no such folder; run: interlingua prepare CONFIG", path=path)
    train = TokenStore.open(path / "train")
    if len(train) == 0:
        raise DataError("there are no pairs to train on; see the counts in manifest.json", path=path)
    vocabulary = Vocabulary.load(path / "vocabulary")
    if train.vocabulary_digest != vocabulary.digest():
        raise DataError("its tokens come from another vocabulary; prepare the corpus again", path=path / "train")
    valid = TokenStore.open(path / "valid") if (path / "valid").is_dir() else None
    return Corpus(vocabulary, train, valid if valid is not None and len(valid) else None)


def build_objective(config: TrainConfig, vocabulary: Vocabulary) -> Objective:
    """Encoder and method, with the weights that the seed decides.

    Raises:
        ConfigError: the pretrained backbone has another vocabulary than the corpus.
    """
    torch.manual_seed(seed_for(config.run.seed, "weights"))
    objective: Objective = resolve(METHODS, config.method.name)(
        config.method.options, build_encoder(config, vocabulary)
    )
    return objective


def build_encoder(config: TrainConfig, vocabulary: Vocabulary) -> Encoder:
    """The encoder from a preset or from a pretrained backbone.

    Raises:
        ConfigError: see ``build_objective``.
    """
    choice = config.encoder
    if choice.preset is not None:
        preset = BackboneConfig.preset(choice.preset, vocab_size=vocabulary.size, pad_token_id=vocabulary.pad_id)
        backbone = dataclasses.replace(preset, **choice.sizes())
        initialisation = choice.initialisation or "torch"
        return Encoder.from_scratch(backbone, vocabulary, choice.pooling or "mean", initialisation=initialisation)
    encoder = Encoder.load(str(choice.path))
    if encoder.vocabulary.digest() != vocabulary.digest():
        raise ConfigError(
            f"encoder: {choice.path} has another vocabulary than the corpus {config.data.corpus}; prepare the corpus"
            f" with the vocabulary of {choice.path}"
        )
    if choice.pooling is not None:
        encoder.settings = dataclasses.replace(encoder.settings, pooling=choice.pooling)
    return encoder


class MicroBatches:
    """The training batches of this process: called with a step, the list of its micro-batches, on its device.

    Args:
        config: decides the batches, with the step.
        store: the training pairs.
        max_tokens: what the encoder can take.
        engine: the processes that share a batch, and this one's device.
    """

    def __init__(self, config: TrainConfig, store: TokenStore, max_tokens: int, engine: Engine) -> None:
        self.plan = ParallelPlan(
            store,
            global_batch_size=config.run.global_batch_size,
            seed=config.run.seed,
            temperature=config.data.temperature,
            caps=config.data.caps,
            max_tokens=min(max_tokens, config.data.max_tokens or max_tokens),
        )
        self.accumulation = config.run.accumulation(engine.world_size)
        self.micro_batch_size = config.run.global_batch_size // (self.accumulation * engine.world_size)
        self._engine = engine

    def __call__(self, step: int) -> list[ParallelBatch]:
        """This process's consecutive part of the step's batch."""
        slices, first = self._engine.world_size * self.accumulation, self._engine.rank * self.accumulation
        parts = [self.plan.batch_at(step, rank=first + i, world_size=slices) for i in range(self.accumulation)]
        if self._engine.device.type == "cuda":
            return [part.pin_memory().to(self._engine.device) for part in parts]
        return parts
