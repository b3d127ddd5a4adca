"""Construction of the objective and the batches; each is a pure function of the config.

Two calls with the same config, in whatever process, make the same initial weights and the same
batches: therefore processes can build their copies independently, and a resumed run continues with
the batch of its next step.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from interlingua.batches.feeds import FeedName, Plan, pinned
from interlingua.batches.language_mixture import ParallelPlan
from interlingua.batches.written_forms import FormsRequest
from interlingua.config.registry import METHODS, resolve_name
from interlingua.corpus.manifest import TRIMMED_FOLDER, prompt_of
from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.dual_encoder import PASSAGE_PROMPT, QUERY_PROMPT
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.encoder.modeling.layer import Layer
from interlingua.errors import ConfigError
from interlingua.methods.objective import Objective
from interlingua.runtime.seeds import seed_for
from interlingua.training.config import MethodConfig, TrainConfig
from interlingua.training.feeds.open_feeds import RowSource, batch_sizes, make_plan
from interlingua.training.machine.engine import Engine
from interlingua.vocabulary.vocabulary import Vocabulary

CORPUS_PROMPT = "trained"
"""Name of the prompt of a corpus if the model has no prompt with the same text."""


def build_objective(
    config: TrainConfig, vocabulary: Vocabulary, languages: Sequence[str] = ()
) -> Objective:
    """Build encoder and method with weights that depend on the seed.

    Args:
        config: of the run.
        vocabulary: of the corpus.
        languages: of the corpus; if the vocabulary names no languages, a method that distinguishes
            languages uses these.

    Raises:
        ConfigError: the pretrained backbone has another vocabulary than the corpus, or the method
            does not support the options of [run].
    """
    torch.manual_seed(seed_for(config.run.seed, "weights"))
    method: type[Objective] = resolve_name(METHODS, config.method.name)
    options = config.method.options
    # Languages are taken from the config, else from the vocabulary, else from the corpus.
    if not vocabulary.language_tags:
        options = method.with_languages(options, tuple(languages))
    objective = method(options, build_encoder(config, vocabulary))
    objective.total_steps = config.run.max_steps or 1
    if config.method.prefixes is not None:
        objective.nest(config.method.prefixes)
    if config.data.forms is not None:
        forms = config.data.forms
        objective.write_forms(FormsRequest(forms.share, forms.names))
    # Set these options in all encoders and layers, also in those of terms, towers and teachers.
    for module in objective.modules():
        if isinstance(module, Encoder):
            module.gradcache_sentences = config.run.gradcache_sentences
        elif isinstance(module, Layer):
            module.recomputes = config.run.gradient_checkpointing
        elif (
            isinstance(module, Objective)
            and not module.in_parts
            and config.run.gradcache_sentences is not None
        ):
            raise ConfigError(
                f"run: gradcache_sentences is not supported by method {config.method.name};"
                " remove it, and lower micro_batch_size if memory is short"
            )
    return objective


def feeds_of(method: MethodConfig) -> tuple[FeedName, ...]:
    """Return the feeds that a method takes, its main one first."""
    feeds: tuple[FeedName, ...] = resolve_name(METHODS, method.name).feeds_for(method.options)
    return feeds


def build_encoder(config: TrainConfig, vocabulary: Vocabulary) -> Encoder:
    """Build the encoder from a preset or a backbone, with the prompts of its training data.

    Raises:
        ConfigError: see ``build_objective``.
    """
    encoder = _chosen_encoder(config, vocabulary)
    if config.encoder.dense:
        encoder = encoder.with_dense()
    if config.encoder.freeze_embeddings:
        encoder.backbone.word_embeddings.requires_grad_(False)
    # Training uses whole vectors, and values that were measured or learned for cut vectors are not
    # valid for the new weights.
    encoder.settings = dataclasses.replace(
        encoder.settings, matryoshka_dims=(), truncate_dim=None, int8_ranges={}
    )
    if config.data.corpus is not None and config.data.questions is None:
        encoder.settings = with_default_prompt(encoder.settings, prompt_of(config.data.corpus))
    if question_config := config.data.questions:
        named = {
            QUERY_PROMPT: question_config.question_prompt,
            PASSAGE_PROMPT: question_config.passage_prompt,
        }
        prompts = {**encoder.settings.prompts, **named}
        # An empty prompt in the config removes the pretrained model's prompt of that name.
        kept = {name: text for name, text in prompts.items() if text}
        encoder.settings = dataclasses.replace(encoder.settings, prompts=kept)
    return encoder


def remember_lengths(objective: Objective, config: TrainConfig) -> None:
    """Store the length limits of questions and passages in their encoders, which save them too.

    Training itself has its own limits for each feed. A model that learned from 256 tokens of a
    passage is then also measured and used on 256 tokens, and not on all that its backbone can take.
    A single encoder for both keeps the larger limit.

    Args:
        objective: call this function after its batches are built, because they may hold texts that
            are longer than the limit for passages.
        config: of the run.
    """
    if (question_config := config.data.questions) is None:
        return
    of_passages = question_config.max_passage_tokens
    of_questions = question_config.max_question_tokens
    passages, *questions = objective.exported
    if not questions:
        of_passages = max(of_passages, of_questions)
    _limit_tokens(passages, of_passages)
    for tower in questions:
        _limit_tokens(tower, of_questions)


def _limit_tokens(encoder: Encoder, limit: int) -> None:
    """Limit the tokens that an encoder reads, unless its own limit is lower."""
    encoder.settings = dataclasses.replace(
        encoder.settings, max_tokens=min(limit, encoder.max_tokens)
    )


def with_default_prompt(settings: EncodingSettings, text: str | None) -> EncodingSettings:
    """Return the settings with a prompt before all texts by default, as in training.

    Args:
        settings: with prompts of other names, which stay.
        text: the prompt of the training texts; None or empty = no default prompt.
    """
    if not text:
        return dataclasses.replace(settings, default_prompt=None)
    # Under the name that the model has for this text, such as "query", if it has one.
    known = next((name for name, prompt in settings.prompts.items() if prompt == text), None)
    name = known or CORPUS_PROMPT
    return dataclasses.replace(
        settings, prompts={**settings.prompts, name: text}, default_prompt=name
    )


def _chosen_encoder(config: TrainConfig, vocabulary: Vocabulary) -> Encoder:
    choice = config.encoder
    if choice.preset is not None:
        preset = BackboneConfig.preset(
            choice.preset, vocab_size=vocabulary.size, pad_token_id=vocabulary.pad_id
        )
        backbone = dataclasses.replace(preset, **choice.sizes())
        _check_memory(backbone)
        initialization = choice.initialization or "torch"
        return Encoder.from_scratch(
            backbone, vocabulary, choice.pooling or "mean", initialization=initialization
        )
    encoder = Encoder.load(str(choice.path))
    if encoder.vocabulary.digest() != vocabulary.digest():
        remedy = f"prepare the corpus with the vocabulary of {choice.path}"
        if config.data.corpus is not None and (config.data.corpus / TRIMMED_FOLDER).is_dir():
            remedy = (
                "the corpus was prepared with trim = true: set encoder.path to"
                f" {config.data.corpus / TRIMMED_FOLDER}, the model with its vocabulary"
            )
        raise ConfigError(
            f"encoder: {choice.path} and the corpus {config.data.corpus} have different"
            f" vocabularies; {remedy}"
        )
    if choice.attention_probs_dropout_prob is not None:
        encoder.backbone.set_attention_dropout(choice.attention_probs_dropout_prob)
    if choice.pooling is not None:
        encoder.settings = dataclasses.replace(encoder.settings, pooling=choice.pooling)
    return encoder


def _check_memory(backbone: BackboneConfig) -> None:
    """Refuse weights that are larger than this machine's memory, before they are allocated.

    Raises:
        ConfigError: the weights are larger.
    """
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if backbone.weight_bytes > memory:
        raise ConfigError(
            f"encoder: the weights take {backbone.weight_bytes >> 30:,} GiB, but this machine"
            f" has {memory >> 30:,} GiB of memory; use smaller sizes"
        )


class MicroBatches:
    """The training batches of this process, on the host.

    A call with a step returns its micro-batches. A micro-batch is a feed's batch, or a dict of them
    for a method of several feeds.

    Args:
        config: determines the batches, together with the step.
        sources: the training data by feed, in the method's order.
        max_tokens: the encoder's maximum.
        engine: the processes that share a batch.
    """

    def __init__(
        self,
        config: TrainConfig,
        sources: Mapping[FeedName, RowSource],
        max_tokens: int,
        engine: Engine,
    ) -> None:
        self.accumulation = config.run.accumulation(engine.world_size)
        sizes = batch_sizes(config, list(sources))
        # A step's batch is cut into slices of equal size, consecutive ones for each process.
        slices = self.accumulation * engine.world_size
        for feed, size in sizes.items():
            if size % slices:
                raise ConfigError(
                    f"data: a step has {size} rows of {feed} data, which {slices} micro-batches"
                    " cannot share evenly; set the batch_size of this data to a multiple of"
                    f" {slices}"
                )
        self.plans: dict[FeedName, Plan] = {
            feed: make_plan(
                feed,
                source,
                config.data,
                batch_size=sizes[feed],
                max_tokens=max_tokens,
                seed=config.run.seed,
            )
            for feed, source in sources.items()
        }
        self.max_tokens = max_tokens
        self._engine = engine

    @property
    def epoch_size(self) -> int:
        """Rows of one pass over the first feed, whose batch size is ``run.global_batch_size``."""
        return next(iter(self.plans.values())).epoch_size

    def seen(self, step: int) -> dict[str, int]:
        """Return the number of rows read before ``step``, by language pair or feed."""
        rows: dict[str, int] = {}
        for plan in self.plans.values():
            rows |= plan.seen(step)
        return rows

    def expected(self, step: int) -> dict[str, float]:
        """Return the expected value of ``seen``, which takes less time than ``seen`` itself."""
        rows: dict[str, float] = {}
        for plan in self.plans.values():
            # An estimate is needed only for language pairs, which ``seen`` counts slot by slot.
            if isinstance(plan, ParallelPlan):
                rows |= plan.expected(step)
            else:
                rows |= plan.seen(step)
        return rows

    @property
    def available(self) -> dict[str, int]:
        """Number of available rows, by language pair or feed."""
        rows: dict[str, int] = {}
        for plan in self.plans.values():
            if isinstance(plan, ParallelPlan):
                rows |= plan.available
            else:
                rows |= dict.fromkeys(plan.seen(0), plan.epoch_size)
        return rows

    def repeat_warnings(self) -> list[str]:
        """Return a warning for each feed that has fewer rows than a step reads."""
        warnings = []
        for feed, plan in self.plans.items():
            if plan.global_batch_size > plan.epoch_size:
                key = f"data.{feed}.batch_size or run.global_batch_size"
                if feed == "parallel":
                    key = "run.global_batch_size"
                warnings.append(
                    f"{feed}: a step reads {plan.global_batch_size:,} rows, but there are only"
                    f" {plan.epoch_size:,}, so rows repeat within a step and become their own"
                    f" negatives; lower {key}, or add data"
                )
        return warnings

    def __call__(self, step: int) -> list[Any]:
        """Return this process's consecutive part of the step's batch."""
        slices = self._engine.world_size * self.accumulation
        first = self._engine.rank * self.accumulation
        return [
            batch_of(self.plans, step, rank=first + i, world_size=slices)
            for i in range(self.accumulation)
        ]

    def prepared(self, objective: Objective, step: int) -> list[Any]:
        """Return the step's micro-batches, prepared by the objective on the host.

        For a GPU they are in page-locked memory. Meant for a ``Prefetcher``'s thread.
        """
        ready = [objective.prepared(batch) for batch in self(step)]
        if self._engine.device.type == "cuda":
            ready = [pinned(batch) for batch in ready]
        return ready


def fewer_negatives(config: TrainConfig, batches: MicroBatches, engine: Engine) -> str | None:
    """Return a warning if a loss compares fewer rows with one another than a step has.

    Call it after a step.

    Accumulated micro-batches give the gradient of a larger batch, but not its negatives. A loss
    that is meant to stay within a process's micro-batch, such as EMS's, causes no warning.
    """
    if not engine.compares_rows or batches.accumulation == 1:
        return None
    whole = config.run.global_batch_size
    return (
        f"the loss compares only {whole // batches.accumulation:,} of a step's {whole:,} rows"
        f" with one another, because each of {batches.accumulation} accumulated micro-batches"
        f" has its own negatives; set run.devices = {engine.world_size * batches.accumulation},"
        " or raise run.micro_batch_size (with run.gradcache_sentences or"
        " run.gradient_checkpointing if memory is short)"
    )


def batch_of(
    plans: Mapping[FeedName, Plan], step: int, *, rank: int = 0, world_size: int = 1
) -> Any:
    """Return the batch of a step: that of the only feed, or a dict of the feeds' batches."""
    batches = {
        feed: plan.batch_at(step, rank=rank, world_size=world_size) for feed, plan in plans.items()
    }
    if len(batches) == 1:
        return next(iter(batches.values()))
    return batches
