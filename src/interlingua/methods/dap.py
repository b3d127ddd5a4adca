"""DAP: dual-alignment pre-training, by sentences and by tokens (Li et al. 2023).

Translation ranking (TR) aligns sentences: the vector of x has to find that of its translation y,
Eq. (5). Representation translation learning (RTL) aligns tokens: a small head receives the token
states of x and one mask for each token of y, Eq. (4), and has to predict the tokens of y, Eq. (6).
So the states of a sentence must hold what its translation says. Only the encoder is exported.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from interlingua.batches.masking import IGNORED, mlm_mask
from interlingua.batches.sentences import by_pivot, join
from interlingua.batches.tokens import BatchPosition, ParallelBatch, TokenBatch
from interlingua.config import CheckedSettings, refuse_unread
from interlingua.config.languages import resolve_language
from interlingua.config.method_options import Layers, Share, Temperature, Weight
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.pooling import HiddenStates
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import bidirectional_contrastive, infonce
from interlingua.functional.masked_lm import linear_cross_entropy
from interlingua.methods.heads.sentence_heads import LanguageTags
from interlingua.methods.heads.token_heads import TranslationArrangement, TranslationHead
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective, need_a_loss


@dataclass(frozen=True, kw_only=True, slots=True)
class DAPConfig(CheckedSettings):
    """DAP and its ablations (Table 5, sections 5.1-5.3 of the paper).

    The defaults are the paper's DAP.
    """

    rtl_weight: Weight = 1.0
    """Weight of representation translation learning, 1 in Eq. (7), 0.1 by default in the released
    code; 0 = none."""
    tr_weight: Weight = 1.0
    """Weight of the translation ranking."""
    temperature: Temperature = 0.05
    """Divisor of the cosines of the ranking, as in the released code; the paper has inner products
    instead."""
    ranking: Literal["forward", "both"] = "forward"
    """forward: the other language's sentences rank the pivot's sentences, Eq. (5); both: the mean
    of this ranking and the reverse one."""
    projection: bool = True
    """Rank by the outputs of a tanh layer over the embeddings, as the released code does; the layer
    is not exported."""
    negatives: Literal["processes", "micro_batch"] = "processes"
    """Source of the ranking's negatives: all processes' micro-batches, or a process's own."""
    pivot: str = "eng_Latn"
    """The language of the sentences to reconstruct; each pair has a side in it."""
    direction: Literal["to_pivot", "from_pivot", "both"] = "to_pivot"
    """Direction of translation (Table 5); both: half of the pairs in each direction."""
    head_layers: Layers = 2
    """K, layers of the head; not more than the encoder has."""
    reconstruct: Share = 1.0
    """Share of tokens to reconstruct, (0, 1]; the states of the others are shown (section 5.2)."""
    languages: tuple[str, ...] = ()
    """Codes of the languages that the head can predict; default: the vocabulary's, else the
    corpus's."""

    def __post_init__(self) -> None:
        need_a_loss(self, "rtl_weight", "tr_weight")
        token = ("direction", "head_layers", "reconstruct", "languages")
        sentence = ("temperature", "ranking", "projection", "negatives")
        refuse_unread(self, *token, reason="rtl_weight = 0", when=not self.rtl_weight)
        refuse_unread(self, *sentence, reason="tr_weight = 0", when=not self.tr_weight)
        refuse_unread(
            self, "languages", reason="direction = 'to_pivot'", when=self.direction == "to_pivot"
        )


class PredictedSide(NamedTuple):
    """Sentences to be predicted from their translations."""

    read: range
    """Rows of the translations in [x; y]."""
    predicted: range
    """Rows of the sentences in [x; y]."""
    arrangement: TranslationArrangement
    """Arrangement of both in the head, and the tokens to be predicted."""
    tag_rows: Int64[Tensor, " n"] | None
    """Rows of the tags of the sentences' languages; None = all sentences are in the pivot."""


class DAPInputs(NamedTuple):
    """The sentences of a batch that are read, and those that are predicted."""

    read: TokenBatch
    """[x; y], x in other languages and y in the pivot."""
    directions: list[PredictedSide]


class DAP(Objective):
    """Objective that ranks translations, and predicts their tokens from a sentence's states.

    Args:
        config: the options.
        encoder: pools by the first token in the paper.

    Raises:
        ConfigError: the encoder has fewer layers than the head, its vocabulary has no mask, or no
            language is named.
    """

    Config = DAPConfig
    nested_terms = ("tr",)
    config: DAPConfig

    def __init__(self, config: DAPConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        encoder.require_equal_widths()
        layers = encoder.backbone.config.num_hidden_layers
        if config.rtl_weight and config.head_layers > layers:
            raise ConfigError(
                f"head_layers: expected at most {layers}, the number of layers of the encoder,"
                f" found {config.head_layers}; lower it"
            )
        self.pivot = resolve_language(config.pivot).code
        self.project: nn.Module = nn.Identity()
        if config.tr_weight and config.projection:
            self.project = nn.Sequential(nn.Linear(encoder.dim, encoder.dim), nn.Tanh())
        self.head: TranslationHead | None = None
        if config.rtl_weight:
            self.head = TranslationHead(
                encoder.backbone,
                config.head_layers,
                mask_id=encoder.vocabulary.mask_id,  # raises where the vocabulary has none
                skip=encoder.vocabulary.opening_tokens,
            )
        # The paper predicts only English; the head needs the name of any other target.
        self.tags: LanguageTags | None = None
        if config.rtl_weight and config.direction != "to_pivot":
            named = config.languages or sorted(encoder.vocabulary.language_tags)
            if not named:
                raise ConfigError("the vocabulary has no language tags; set method.languages")
            codes = tuple(dict.fromkeys(resolve_language(name).code for name in named))
            self.tags = LanguageTags(codes, encoder.dim, dropout=0.0, normalize=False)

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute L_DAP = L_TR + L_RTL, Eq. (7); x is in other languages, y in the pivot."""
        _, (read, directions) = self.prepared(batch)
        hidden = self.encoder.tokens(read)  # f(x), f(y): Eq. (3)
        terms = {}
        if self.config.tr_weight:
            vectors = self.encoder.pool(hidden)
            terms["tr"] = self.nested(self.rank, vectors)  # Eq. (5)
        if self.head is not None:
            terms["rtl"] = self.reconstruct(self.head, hidden, read, directions)  # Eq. (6)
        return self.weighted(**terms)

    def prepare(self, batch: ParallelBatch) -> DAPInputs:
        """Return the pairs ordered by language, and the tokens to predict in each direction."""
        x, y = by_pivot(batch, self.pivot)
        read = join(x, y)
        if self.head is None:
            return DAPInputs(read, [])
        place = batch.place("b")
        directions = []
        for sources, rows in self.ways(x.batch_size):
            if not len(rows):  # the empty half of a batch with a single pair
                continue
            boundaries = sentences_of(read, sources).cu_seqlens
            targets = sentences_of(read, rows)
            # The place decides the random draws. It is the same for both sides of a pair, so it
            # does not depend on which side is predicted.
            first_row = place.first_row + rows.start % x.batch_size
            labels = self.labels(targets, place._replace(first_row=first_row))
            arrangement = self.head.arranged(boundaries, targets.cu_seqlens, labels)
            tag_rows = None
            if self.tags is not None and rows.stop <= x.batch_size:
                tag_rows = self.tags.rows(targets.languages)
            directions.append(PredictedSide(sources, rows, arrangement, tag_rows))
        return DAPInputs(read, directions)

    def rank(self, vectors: Float[Tensor, "2*b d"]) -> Float[Tensor, ""]:
        """Compute -log e^phi(x_i, y_i) / sum_j e^phi(x_i, y_j), a mean over i."""
        config = self.config
        gather = self.choose_gather(config.negatives)
        if config.projection:
            vectors = self.project(full_width(vectors, self.encoder.dim))
        x, y = (gather(side) for side in vectors.chunk(2))
        self.need_others(len(x), "pair of translations")
        if config.ranking == "both":
            return bidirectional_contrastive(x, y, temperature=config.temperature) / 2
        return infonce(x, y, temperature=config.temperature)  # Eq. (5)

    def reconstruct(
        self,
        head: TranslationHead,
        hidden: HiddenStates,
        both: TokenBatch,
        directions: Sequence[PredictedSide],
    ) -> Float[Tensor, ""]:
        """Compute L_RTL: CE(g(f_*(x), y)_i, y_i), a mean over the predicted tokens, Eq. (6).

        The first token is left out if it is ``[CLS]``.
        """
        losses = []
        for read, predicted, arrangement, tag_rows in directions:
            language = None
            if tag_rows is not None:
                assert self.tags is not None
                language = self.tags(tag_rows)
            rows = head(
                sentence_states(both, hidden, read),
                sentence_states(both, hidden, predicted),
                arrangement,
                language=language,
            )
            losses.append(self.mean_of_tokens(linear_cross_entropy(*rows)))
        return torch.stack(losses).mean()

    def ways(self, size: int) -> list[tuple[range, range]]:
        """Return for each direction the rows of [x; y] to read and the rows to predict (Table 5).

        The rows to predict are the translations of the rows to read.

        Args:
            size: number B of pairs; the first B rows are in other languages, the next B rows in
                the pivot.
        """
        if self.config.direction == "to_pivot":
            return [(range(size), range(size, 2 * size))]
        if self.config.direction == "from_pivot":
            return [(range(size, 2 * size), range(size))]
        # Both: translate the second half of the pairs into the pivot, the first half from it.
        half = size // 2
        return [
            (range(half, size), range(size + half, 2 * size)),
            (range(size, size + half), range(half)),
        ]

    def labels(self, targets: TokenBatch, place: BatchPosition) -> Tensor:
        """Return the tokens to predict, including the token that closes a sentence.

        The label of a visible token is ``IGNORED``.
        """
        if self.config.reconstruct == 1:
            return targets.input_ids
        # Only the choice of tokens is used here, not their replacements.
        chosen = mlm_mask(
            targets, place, ratio=self.config.reconstruct, mask_id=0, vocab_size=1, special_ids=()
        )
        return torch.where(chosen.labels != IGNORED, targets.input_ids, IGNORED)


def sentences_of(batch: TokenBatch, rows: range) -> TokenBatch:
    """Return consecutive sentences of a batch."""
    start, end = int(batch.cu_seqlens[rows.start]), int(batch.cu_seqlens[rows.stop])
    return TokenBatch(
        batch.input_ids[start:end],
        batch.cu_seqlens[rows.start : rows.stop + 1] - start,
        batch.max_seqlen,
        batch.languages[rows.start : rows.stop],
    )


def sentence_states(batch: TokenBatch, hidden: HiddenStates, rows: range) -> Float[Tensor, "t d"]:
    """Return the states of consecutive sentences."""
    start, end = int(batch.cu_seqlens[rows.start]), int(batch.cu_seqlens[rows.stop])
    return hidden.states[start:end]
