"""InfoXLM: language modeling and cross-lingual contrast (Chi et al. 2021).

It adds a contrast (XLCo), built as in MoCo, to the two language models of ``tlm``: the query of a
sentence has to find the key of its translation among the keys of earlier steps. Keys come from a
copy of the encoder that follows it slowly, so that the keys of many steps in the queue remain
comparable. The queue gives many negatives without a large batch. The contrast reads a middle layer,
which the authors found to be the most universal one.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from interlingua.batches.masking import coin_flips
from interlingua.batches.sentences import join, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import AtLeast, refuse_unread
from interlingua.config.method_options import PositiveWeight, Share, Size, Temperature
from interlingua.encoder.encoder import Encoder
from interlingua.functional.momentum_contrast import momentum_contrast
from interlingua.methods.objective import LossOutput
from interlingua.methods.teachers.ema import EmaTeacher
from interlingua.methods.tlm import TLM, MaskedText, TLMConfig

INITIAL_STD = 0.02
"""Standard deviation of the projection's initial weights, as in the released code."""


@dataclass(frozen=True, kw_only=True, slots=True)
class InfoXLMConfig(TLMConfig):
    """InfoXLM (MLM + TLM + XLCo).

    The defaults are the paper's or, if it states none, the released code's.
    """

    reset_positions: bool = False
    """Restart the positions at the second sentence of a sequence, as in XLM; False: they continue,
    as in InfoXLM."""
    transform: bool = True
    """RoBERTa's layer before the output embeddings; False: none, as in XLM."""
    xlco_weight: PositiveWeight = 1.0
    """Weight of the cross-lingual contrast."""
    temperature: Temperature = 0.25
    """Divisor of inner products; the paper names none, this is the released code's default."""
    queue_size: Size = 131_072
    """Keys of earlier steps that are negatives; the queue fills during the first steps."""
    decay: Annotated[float, AtLeast(0, below=1)] = 0.9999
    """Momentum of the encoder of keys, per step; 0.999 for the paper's large model."""
    contrast_depth: Share = 0.667
    """Share of the layers that compute the contrasted output: 0.667 = 8 of 12 (base), 0.5 = 12 of
    24 (large), 1 = all."""
    projection: bool = True
    """A linear map before the contrast."""
    mixup: bool = True
    """Contrast two pairs at a time, their sentences concatenated in a random order on each side."""
    contrast_masked: bool = True
    """Contrast sentences with hidden tokens, as the released code does."""

    def __post_init__(self) -> None:
        TLMConfig.__post_init__(self)

    def refuse_unread(self) -> None:
        """Refuse options that have no effect.

        Both language models may be off, which leaves the contrast.
        """
        refuse_unread(self, "mlm_text", reason="mlm_weight = 0", when=not self.mlm_weight)
        neither = not self.tlm_weight and not self.mlm_weight
        refuse_unread(self, "transform", reason="tlm_weight = 0 and mlm_weight = 0", when=neither)


EncoderInput = tuple[TokenBatch, Tensor | None]
"""Token batch for an encoder, and its positions if they are not consecutive in each sequence."""


class InfoXLMInputs(NamedTuple):
    """The inputs of a step."""

    text: MaskedText
    """Inputs of the language models."""
    views: tuple[EncoderInput, EncoderInput]
    """Inputs of the contrast: the queries' sentences, and the keys'."""


class InfoXLM(TLM):
    """Objective of XLM's language models and a contrast of translations with earlier steps' keys.

    Args:
        config: the options.
        encoder: pools by the first token in the paper.
    """

    Config = InfoXLMConfig
    no_prefixes = (
        "the method contrasts states of a middle layer, which are not the exported embeddings"
    )
    config: InfoXLMConfig
    queue: Tensor
    filled: Tensor
    """Number of keys ever put into the queue; the next key's place is this number modulo the
    queue's size."""

    def __init__(self, config: InfoXLMConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        layers = encoder.backbone.config.num_hidden_layers
        self.num_layers = max(1, round(config.contrast_depth * layers))
        if not config.tlm_weight and not config.mlm_weight:
            # Nothing predicts tokens, so the layers above the contrasted one have no gradient.
            del self.head
            self.reads_all_weights = self.num_layers == layers
        self.project: nn.Module = nn.Identity()
        if config.projection:
            self.project = nn.Linear(encoder.hidden_size, encoder.hidden_size, bias=False)
            nn.init.normal_(self.project.weight, std=INITIAL_STD)
        self.project_keys = copy.deepcopy(self.project).requires_grad_(False)
        self.keys = EmaTeacher(encoder)  # theta_K
        # Buffers, so that a checkpoint keeps them: a resumed run contrasts with the same keys.
        self.register_buffer("queue", torch.zeros(config.queue_size, encoder.hidden_size))
        self.register_buffer("filled", torch.zeros((), dtype=torch.long))
        # Keys of this step's micro-batches. They enter the queue only after the step; otherwise
        # they would be negatives of themselves.
        self.waiting: list[Tensor] = []
        self._count = (-1, 0)
        """Version of ``filled`` that was read from the device last, and its value."""

    def forward(self, batch: ParallelBatch | Mapping[str, Any]) -> LossOutput:
        """Compute L_MLM + L_TLM + L_XLCo."""
        _, (text, views) = self.prepared(batch)
        return self.weighted(**self.language_modeling(text), xlco=self.contrast(*views))

    def prepare(self, batch: ParallelBatch | Mapping[str, Any]) -> InfoXLMInputs:
        """Return the text of the language models, and the text of the contrast."""
        pairs, sentences = self.feeds_of(batch)
        return InfoXLMInputs(self.masked(pairs, sentences), self.views(pairs))

    def contrast(self, queries_of: EncoderInput, keys_of: EncoderInput) -> Float[Tensor, ""]:
        """Compute L_XLCo: -log e^(q k+ / tau) / (e^(q k+ / tau) + sum over the queue).

        The encoder computes q, its slow copy computes k.
        """
        a, positions_a = queries_of
        b, positions_b = keys_of
        states = self.encoder.backbone(
            *a[:2], positions=positions_a, num_layers=self.num_layers
        )  # g_Q(c1)
        queries = self.vectors(a, states)
        with torch.no_grad():
            slow = self.keys.encoder.backbone
            states = slow(*b[:2], positions=positions_b, num_layers=self.num_layers)  # g_K(c2)
            keys = self.vectors(b, states)
        queries = self.project(queries)  # q = W g_Q(c1)
        keys = self.project_keys(keys).detach()  # k+ = W' g_K(c2)
        if self.training:
            self.waiting.append(self.all_gather(keys).detach())
        size = min(self._keys_held(), len(self.queue))  # it is filled from the front
        return momentum_contrast(
            queries, keys, self.queue[:size], temperature=self.config.temperature
        )

    def views(self, pairs: ParallelBatch) -> tuple[EncoderInput, EncoderInput]:
        """Return the inputs of the two encoders: translations, in a random direction per pair.

        Mixup joins two pairs at a time.
        """
        a = pairs.a
        b = pairs.b
        if self.config.contrast_masked:
            # These places differ from the language models' places, so other tokens are hidden.
            a = self.mask(a, pairs.place("a")._replace(side="xlco a")).batch
            b = self.mask(b, pairs.place("b")._replace(side="xlco b")).batch
        size = a.batch_size
        # For each pair, one coin decides which side is the query. Two more coins decide the order
        # of the sentences, one among the queries and one among the keys.
        place = pairs.place("a")
        swap = coin_flips(pairs.a, place._replace(side="swap")).tolist()
        order_of_queries = coin_flips(pairs.a, place._replace(side="a")).tolist()
        order_of_keys = coin_flips(pairs.a, place._replace(side="b")).tolist()
        both = join(a, b)
        # Row i of the second language is at i + size; if the coin shows heads, it is the query.
        queries = take(both, [row + size * heads for row, heads in enumerate(swap)])
        keys = take(both, [row + size * (not heads) for row, heads in enumerate(swap)])
        if not self.config.mixup or size < 2:
            return (queries, None), (keys, None)
        return self.mixed(queries, order_of_queries), self.mixed(keys, order_of_keys)

    def mixed(self, side: TokenBatch, heads: list[bool]) -> EncoderInput:
        """Join sentences 2i and 2i + 1 into one sequence, ordered by the coin of 2i.

        If the number of sentences is odd, the last one is left out.
        """
        evens = range(0, side.batch_size - 1, 2)
        first = take(side, [row + heads[row] for row in evens])
        second = take(side, [row + (not heads[row]) for row in evens])
        tokens, cu_seqlens, positions = self.side_by_side(first, second)
        ids = torch.cat([first.input_ids, second.input_ids])[tokens]
        return TokenBatch(ids, cu_seqlens, int(cu_seqlens.diff().max()), first.languages), positions

    def after_step(self, step: int) -> None:
        """Move the encoder of keys, and put the step's keys in the place of the oldest."""
        self.keys.update(self.encoder, self.config.decay)  # theta_K <- m theta_K + (1 - m) theta_Q
        with torch.no_grad():
            # W' <- m W' + (1 - m) W
            slow_weights = self.project_keys.parameters()
            for slow, new in zip(slow_weights, self.project.parameters(), strict=True):
                slow.lerp_(new, 1 - self.config.decay)
            for keys in self.waiting:
                # If there are more keys than the queue can hold, only the last ones stay, so that
                # each key has a place of its own.
                keys = keys[-len(self.queue) :].to(self.queue.dtype)
                next_keys = torch.arange(len(keys), device=keys.device)
                places = (self.filled + next_keys) % len(self.queue)
                self.queue[places] = keys
                count = self._keys_held() + len(keys)
                self.filled += len(keys)
                self._count = (self.filled._version, count)
        self.waiting.clear()

    def _keys_held(self) -> int:
        """Return ``filled`` as a number on the host.

        A GPU has to wait when the number is read from the device. So it is read only after it was
        changed elsewhere, for example by a checkpoint.
        """
        version = self.filled._version  # torch counts the changes of a tensor in place
        if self._count[0] != version:
            self._count = (version, int(self.filled))
        return self._count[1]
