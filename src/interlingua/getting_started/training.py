"""The recipe: a small EMS encoder that learns as much as it can in a few minutes on two cores."""

from __future__ import annotations

from pathlib import Path

from interlingua.methods.ems import EMSConfig
from interlingua.training.config import (
    EncoderConfig,
    MethodConfig,
    OptimizerConfig,
    RunConfig,
    ScheduleConfig,
    TrainConfig,
)
from interlingua.training.feeds.data_config import DataConfig

VOCABULARY_SIZE = 8_000
MESSAGE_MAX_TOKENS = 96
"""Maximum tokens of a message; one in a hundred is longer and is cut."""


def recipe(
    corpus: Path, output: Path, *, max_steps: int | None = None, budget_seconds: float | None = None
) -> TrainConfig:
    """Return the configuration of the training run.

    It differs from EMS's own settings, because training takes minutes instead of days. It has one
    narrow layer: two layers would learn more from each pair, but one layer learns more in each
    minute. Embeddings start small, from N(0, 0.02), with a matching learning rate; if they start
    from N(0, 1), the same run finds only a quarter as many translations. There is no dropout,
    because no pair is seen more than a few times. The
    catalogues are n-way parallel, so other translations of a batch's sentence are not counted as
    its negatives.

    Args:
        corpus: the prepared corpus.
        output: folder of the run.
        max_steps: number of training steps.
        budget_seconds: wall time of the whole run, instead of steps; the run ends at this time even
            if the machine becomes slower.
    """
    return TrainConfig(
        # Temperature 2: languages of few pairs are drawn more often than their share.
        data=DataConfig(corpus=corpus, temperature=2.0, valid_pairs=512),
        encoder=EncoderConfig(
            preset="ems-small",
            initialization="bert",
            hidden_size=128,
            num_hidden_layers=1,
            num_attention_heads=4,
            intermediate_size=256,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            max_position_embeddings=MESSAGE_MAX_TOKENS,
        ),
        method=MethodConfig(
            name="ems",
            options=EMSConfig(
                mlp=False, xtr_weight=0.5, temperature=0.05, exclude_repeats=True, language_dim=64
            ),
        ),
        optimizer=OptimizerConfig(learning_rate=5e-3, betas=(0.9, 0.98), weight_decay=0.0),
        schedule=ScheduleConfig(name="linear", warmup_steps=0.05),
        run=RunConfig(
            output=output,
            budget_seconds=budget_seconds,
            # The number of steps is estimated from the budget; if the machine becomes slower
            # training stops before the last of them.
            stop_at_budget=budget_seconds is not None,
            max_steps=max_steps,
            global_batch_size=256,
            max_grad_norm=1.0,
            logging_steps=0.02,
            eval_steps=0.25,
            save_steps=0.5,
        ),
    )
