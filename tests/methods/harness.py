"""Any method at tiny size: an objective by name, and the batches its feeds are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from interlingua.batches.feeds import FeedName, LabeledBatch, QuestionBatch, SentenceBatch, rows
from interlingua.batches.sentences import take
from interlingua.batches.tokens import TokenBatch
from interlingua.config import from_mapping
from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.methods.objective import Objective
from interlingua.training.build import feeds_of
from interlingua.training.config import FOR_ALL_METHODS, MethodConfig
from tests.methods.conftest import FIRST_WORD, tiny_encoder, tiny_pairs

BATCH = 6
PREFIXES = {"matryoshka": (16, 8, 4)}
"""Options of a run with embeddings that can be cut."""
TINY_OPTIONS: dict[str, dict[str, Any]] = {
    "ems": {"projection_dim": 8, "language_dim": 4, "tag_dropout": 0.0},
    "mexma": {
        "pooling": "any",
        "head": {"layers": 1, "heads": 2, "intermediate_size": 24, "dropout": 0.0},
    },
    "infoxlm": {"reset_positions": True, "queue_size": 8, "temperature": 1.0},
    "laser": {"language_dim": 3, "token_dim": 5, "hidden_dim": 12, "output_dim": 7, "dropout": 0.0},
    "combination": {
        "terms": {
            "tell": {
                "method": "ems",
                "weight": 0.5,
                "contrastive": "none",
                "language_dim": 4,
                "tag_dropout": 0.0,
            },
            "hide": {"method": "tlm", "mlm_weight": 0.0},
            "momentum": {
                "method": "infoxlm",
                "tlm_weight": 0.0,
                "mlm_weight": 0.0,
                "queue_size": 8,
                "mixup": False,
            },
            "mono": {"method": "retromae"},
        }
    },
}
"""By method: options without which it can't be built, or that make it smaller."""


def method_config(method: str, options: Mapping[str, Any] = {}) -> MethodConfig:
    """Return the [method] section with the tiny options and these, ``matryoshka`` among them."""
    schema = resolve_name(METHODS, method).Config
    own = {**TINY_OPTIONS.get(method, {}), **options}
    for_all = {key: tuple(own.pop(key)) for key in FOR_ALL_METHODS if key in own}
    return MethodConfig(name=method, options=from_mapping(schema, own), **for_all)


def tiny_objective(
    method: str,
    options: Mapping[str, Any] = {},
    *,
    seed: int = 1,
    dropout: float = 0.0,
    **shape: Any,
) -> Objective:
    """Build the objective over a tiny encoder, in training mode, with weights from the seed.

    Args:
        method: its name.
        options: of the method.
        seed: of the weights.
        dropout: of the encoder.
        shape: other fields of its ``BackboneConfig``.
    """
    encoder = tiny_encoder(
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout, **shape
    )
    torch.manual_seed(seed)
    config = method_config(method, options)
    objective: Objective = resolve_name(METHODS, method)(config.options, encoder)
    objective.total_steps = 20
    if config.prefixes is not None:
        objective.nest(config.prefixes)
    return objective.train()


def tiny_batch(
    method: str, options: Mapping[str, Any] = {}, *, step: int = 3, seed: int = 0
) -> Any:
    """Build a batch of the right kind: that of the only feed, or a dict by feed."""
    feeds = feeds_of(method_config(method, options))
    batches = {feed: feed_batch(feed, method, step=step, seed=seed) for feed in feeds}
    return batches if len(batches) > 1 else batches[feeds[0]]


def feed_batch(feed: FeedName, method: str, *, step: int, seed: int) -> Any:
    """Build six rows of one feed."""
    if feed == "parallel":
        return tiny_pairs(BATCH, step=step, seed=seed, languages=("deu_Latn", "fra_Latn"))
    if feed == "questions":
        return QuestionBatch(
            sentences(BATCH, seed=seed), sentences(2 * BATCH, seed=seed + 100), step
        )
    if feed == "monolingual":
        return SentenceBatch(sentences(BATCH, seed=seed + 200, language="fra_Latn"), step)
    generator = torch.Generator().manual_seed(seed)
    classes = torch.randint(0, 3, (BATCH,), generator=generator)
    labels = classes.float() if method == "nli" else torch.rand(BATCH, generator=generator)
    # both sentences of a pair must fit into the tiny encoder's 16 positions
    a, b = (sentences(BATCH, seed=seed + more, longest=7) for more in (0, 300))
    return LabeledBatch(a, b, labels, step)


def share_of(batch: Any, rank: int, *, world_size: int = 2) -> Any:
    """Return a process's consecutive part of a batch's rows.

    Of passages its questions' answers and hard negatives.
    """
    if isinstance(batch, Mapping):
        return {feed: share_of(part, rank, world_size=world_size) for feed, part in batch.items()}
    count = rows(batch)
    own = range(rank * count // world_size, (rank + 1) * count // world_size)
    parts: dict[str, Any] = {}
    for name, value in batch._asdict().items():
        if isinstance(value, TokenBatch):
            parts[name] = take(
                value, [start + row for start in range(0, value.batch_size, count) for row in own]
            )
        elif isinstance(value, torch.Tensor):
            parts[name] = value[own.start : own.stop]
    return batch._replace(**parts, first_row=own.start)


def sentences(
    count: int, *, seed: int, language: str = "eng_Latn", longest: int = 11
) -> TokenBatch:
    """Draw random sentences of different lengths."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(2, longest + 1, (count,), generator=generator).tolist()
    ids = [
        torch.randint(FIRST_WORD, 20, (length,), generator=generator).tolist() for length in lengths
    ]
    return TokenBatch.from_lists(ids, [language] * count)


def token_lists(batch: TokenBatch) -> list[list[int]]:
    """Return the tokens of each sentence."""
    return [ids.tolist() for ids in batch.input_ids.split(batch.lengths.tolist())]


def alone(encoder: Encoder, ids: list[int], language: str = "eng_Latn") -> torch.Tensor:
    """Compute the mean of the token states of one separately encoded sentence."""
    return encoder.tokens(TokenBatch.from_lists([ids], [language])).states.mean(0)


def cosine(u: torch.Tensor, v: torch.Tensor) -> float:
    """Compute the cosine of two vectors."""
    return float(torch.cosine_similarity(u, v, dim=0))


def training(
    objective: Objective, method: str, options: Mapping[str, Any] = {}, *, steps: range
) -> Iterator[float]:
    """Yield the losses of a few steps: Adam(amsgrad) with weight decay, four batches in turn."""
    yield from _training(objective, optimizer_of(objective), method, options, steps)


def optimizer_of(objective: Objective) -> torch.optim.Optimizer:
    """Build the optimizer of ``training``."""
    trained = [parameter for parameter in objective.parameters() if parameter.requires_grad]
    return torch.optim.Adam(trained, lr=3e-3, weight_decay=1e-5, amsgrad=True)


def _training(
    objective: Objective,
    optimizer: torch.optim.Optimizer,
    method: str,
    options: Mapping[str, Any],
    steps: range,
) -> Iterator[float]:
    for step in steps:
        torch.manual_seed(step)
        optimizer.zero_grad()
        loss = objective(tiny_batch(method, options, step=step, seed=step % 4)).loss
        loss.backward()
        optimizer.step()
        objective.after_step(step)
        yield loss.item()


@torch.no_grad()
def in_two_processes(objective: Objective, here: Any, there: Any) -> Any:
    """Return the objective's result in the process with one batch, while another has the other."""
    gathered: list[torch.Tensor] = []

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        gathered.append(tensor)
        return tensor

    alone, objective.all_gather = objective.all_gather, keep
    objective(there)
    others = iter(gathered)
    objective.all_gather = lambda tensor: torch.cat([tensor, next(others)])
    output = objective(here)
    objective.all_gather = alone
    return output
