"""InfoXLM: language modeling and cross-lingual contrast (Chi et al. 2021)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.batches.masking import coin_flips
from interlingua.batches.sentences import join, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import refuse_unread
from interlingua.encoder.ema import EmaTeacher
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.momentum_contrast import momentum_contrast
from interlingua.methods.objective import LossOutput
from interlingua.methods.tlm import TLM, TLMConfig

INITIAL_STD = 0.02
"""Of the projection's weights, as in the released code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InfoXLMConfig(TLMConfig):
    """InfoXLM (MLM + TLM + XLCo).

    The defaults are the paper's and, where it is silent, the released code's.
    """

    reset_positions: bool = False
    """Positions of the second sentence of a sequence begin anew, as in XLM; False: they run on, as
    in InfoXLM."""
    transform: bool = True
    """RoBERTa's layer before the output embeddings; False: none, as in XLM."""
    xlco_weight: float = 1.0
    """Weight of the cross-lingual contrast."""
    temperature: float = 0.25
    """Divides inner products; the paper names none, this is the released code's default."""
    queue_size: int = 131_072
    """Keys of earlier steps that are negatives; the queue fills during the first steps."""
    decay: float = 0.9999
    """Momentum of the encoder of keys, per step; 0.999 for the paper's large model."""
    contrast_depth: float = 0.667
    """Share of the layers below the contrasted output: 8 of 12 (base); 0.5 for 12 of 24 (large); 1
    = the last."""
    projection: bool = True
    """A linear map before the contrast."""
    mixup: bool = True
    """Contrast two pairs at a time, their sentences concatenated in a random order on each side."""
    contrast_masked: bool = True
    """Contrast sentences with hidden tokens, as the released code does."""

    def __post_init__(self) -> None:
        TLMConfig.__post_init__(self)
        for name in ("xlco_weight", "temperature", "queue_size"):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be positive")
        if not 0 <= self.decay < 1:
            raise ConfigError(f"decay is {self.decay}; it must be at least 0 and below 1")
        if not 0 < self.contrast_depth <= 1:
            raise ConfigError(
                f"contrast_depth is {self.contrast_depth}; it must be above 0 and at most 1"
            )

    def refuse_unread(self) -> None:
        """Refuses options that nothing would read.

        Both language models may be off, which leaves the contrast.
        """
        refuse_unread(self, "mlm_text", reason="mlm_weight = 0", when=not self.mlm_weight)
        neither = not self.tlm_weight and not self.mlm_weight
        refuse_unread(self, "transform", reason="tlm_weight = 0 and mlm_weight = 0", when=neither)


class InfoXLM(TLM):
    """XLM's language models, and a sentence that has to find its translation among those of earlier
    steps.

    Args:
        config: the options.
        encoder: pools by the first token in the paper.
    """

    Config = InfoXLMConfig
    no_prefixes = "it contrasts states of a middle layer, which are not the exported embeddings"
    config: InfoXLMConfig
    queue: Tensor
    filled: Tensor
    """Keys that were ever put into the queue; the next one's place is this modulo its size."""

    def __init__(self, config: InfoXLMConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        layers = encoder.backbone.config.num_hidden_layers
        self.num_layers = max(1, round(config.contrast_depth * layers))
        if not config.tlm_weight and not config.mlm_weight:
            del self.head
            self.reads_all_weights = self.num_layers == layers
        self.project: nn.Module = nn.Identity()
        if config.projection:
            self.project = nn.Linear(encoder.hidden_size, encoder.hidden_size, bias=False)
            nn.init.normal_(self.project.weight, std=INITIAL_STD)
        self.project_keys = copy.deepcopy(self.project).requires_grad_(False)
        self.keys = EmaTeacher(encoder)  # theta_K
        self.register_buffer("queue", torch.zeros(config.queue_size, encoder.hidden_size))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))
        self.waiting: list[Tensor] = []
        self._count = (-1, 0)

    def forward(self, batch: ParallelBatch | Mapping[str, Any]) -> LossOutput:
        """L_MLM + L_TLM + L_XLCo."""
        pairs, sentences = self.feeds_of(batch)
        terms = self.language_modeling(pairs, sentences)
        return self.weighted(**terms, xlco=self.contrast(pairs))

    def contrast(self, pairs: ParallelBatch) -> Float[Tensor, ""]:
        """-log e^(q k+ / tau) / (e^(q k+ / tau) + sum over the queue), q of the encoder and k of
        its slow copy.
        """
        (a, positions_a), (b, positions_b) = self.views(pairs)
        queries = self.vectors(
            a, self.encoder.backbone(*a[:2], positions=positions_a, num_layers=self.num_layers)
        )
        with torch.no_grad():
            slow = self.keys.encoder.backbone
            keys = self.vectors(b, slow(*b[:2], positions=positions_b, num_layers=self.num_layers))
        queries = self.project(queries)
        keys = self.project_keys(keys).detach()
        if self.training:
            self.waiting.append(self.all_gather(keys).detach())
        size = min(self._keys_held(), len(self.queue))
        return momentum_contrast(
            queries, keys, self.queue[:size], temperature=self.config.temperature
        )

    def views(self, pairs: ParallelBatch) -> list[tuple[TokenBatch, Tensor | None]]:
        """What the two encoders read: translations, by a coin one way or the other.

        Two pairs at a time with mixup.
        """
        a = pairs.a
        b = pairs.b
        if self.config.contrast_masked:
            sides = {"a": a, "b": b}
            a, b = (
                self.mask(side, pairs.place(name)._replace(side=f"xlco {name}")).batch
                for name, side in sides.items()
            )
        size = a.batch_size
        swap, *orders = (
            coin_flips(pairs.a, pairs.place("a")._replace(side=name)).tolist()
            for name in ("swap", "a", "b")
        )
        both = join(a, b)
        # row i of the second language stands at i + size; a head takes it first
        one = take(both, [row + size * heads for row, heads in enumerate(swap)])
        other = take(both, [row + size * (not heads) for row, heads in enumerate(swap)])
        if not self.config.mixup or size < 2:
            return [(one, None), (other, None)]
        return [self.mixed(side, heads) for side, heads in zip((one, other), orders, strict=True)]

    def mixed(self, side: TokenBatch, heads: list[bool]) -> tuple[TokenBatch, Tensor | None]:
        """Sentences 2i and 2i + 1 in one sequence, ordered by the coin of 2i.

        A last odd one stays out.
        """
        evens = range(0, side.batch_size - 1, 2)
        first = take(side, [row + heads[row] for row in evens])
        second = take(side, [row + (not heads[row]) for row in evens])
        tokens, cu_seqlens, positions = self.side_by_side(first, second)
        ids = torch.cat([first.input_ids, second.input_ids])[tokens]
        return TokenBatch(ids, cu_seqlens, int(cu_seqlens.diff().max()), first.languages), positions

    def after_step(self, step: int) -> None:
        """Moves the encoder of keys, and puts the step's keys into the queue in the place of the
        oldest.
        """
        self.keys.update(self.encoder, self.config.decay)
        with torch.no_grad():
            for own, new in zip(
                self.project_keys.parameters(), self.project.parameters(), strict=True
            ):
                own.lerp_(new, 1 - self.config.decay)
            for keys in self.waiting:
                keys = keys[-len(self.queue) :].to(self.queue.dtype)
                places = (self.filled + torch.arange(len(keys), device=keys.device)) % len(
                    self.queue
                )
                self.queue[places] = keys
                count = self._keys_held() + len(keys)
                self.filled += len(keys)
                self._count = (self.filled._version, count)
        self.waiting.clear()

    def _keys_held(self) -> int:
        """``filled`` as a number; read from the device only where it was changed elsewhere, as by a
        checkpoint.
        """
        version = self.filled._version
        if self._count[0] != version:
            self._count = (version, int(self.filled))
        return self._count[1]
