"""EMS: efficient and effective massively multilingual sentence embeddings (Mao et al. 2023).

The encoder embeds both sentences of a pair, Eq. (1), and two objectives train it together, Eq.
(12). Cross-lingual token-level reconstruction (XTR): a head receives the vector of one sentence and
a tag of the other language. It predicts how often each token occurs in the translation, as one
distribution over the vocabulary that ignores the order of the tokens, Eq. (2)-(7).
Sentence-level contrast: the projected vectors of translations find each other in the batch, Eq.
(8)-(11). No decoder and no pretrained model is needed.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor, nn

from interlingua.batches.masking import coin_flips, one_token_mask
from interlingua.batches.sentences import Meanings, join
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import Between, CheckedSettings, refuse_unread
from interlingua.config.languages import resolve_language
from interlingua.config.method_options import Dim, Dropout, PositiveWeight, Temperature
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import additive_margin_softmax, bidirectional_contrastive
from interlingua.functional.token import (
    TargetKind,
    TokenTargets,
    linear_token_divergence,
    token_targets,
)
from interlingua.methods.heads.sentence_heads import (
    LanguageTags,
    ProjectionHead,
    TokenPredictionHead,
)
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class EMSConfig(CheckedSettings):
    """EMS and its ablations (Table XIV of the paper); the defaults are the paper's EMS."""

    generative: Literal["xtr", "ugt", "none"] = "xtr"
    """xtr: predict the translation's tokens; ugt: also predict a masked token of the sentence
    itself; none: "- L_XTR"."""
    contrastive: Literal["softmax", "ams", "none"] = "softmax"
    """softmax: Eq. (8); ams: LaBSE's additive margin, "LaBSE-EMS"; none: "- L_cntrs"."""
    xtr_weight: PositiveWeight = 1.0
    """Weight of the generative term in the loss, whether it is xtr or ugt."""
    contrastive_weight: PositiveWeight = 1.0
    """Weight of the contrastive term in the loss."""
    temperature: Temperature = 0.1
    """T of the contrastive term, in cosine units."""
    margin: Annotated[float, Between(-1e6, 1e6)] = 0.3
    """Margin of ams, in cosine units, subtracted from the positives."""
    margin_after_temperature: bool = False
    """Subtract the margin from the logits, after the division by the temperature."""
    mlp: bool = True
    """Contrast projections, Eq. (10)-(11); False: contrast the embeddings, "- L_cntrs_mlp"."""
    projection_dim: Dim = 128
    """Width of the projections."""
    language_tag: bool = True
    """Pass the target language to the generative head, Eq. (2)-(3); False: "- langs tok"."""
    language_dim: Dim = 128
    """Width of a language tag."""
    tag_dropout: Dropout = 0.1
    """Probability of zeroing an element of a language tag."""
    languages: tuple[str, ...] = ()
    """Codes of the languages that get a tag; default: those with a tag in the vocabulary, else the
    corpus's."""
    shared_embedding: bool = False
    """Predict with the encoder's word embeddings in place of the head's own matrix, "share
    L_emb"."""
    code_targets: bool = False
    """Use the targets of the released code: each distinct token counts 1/|S| once, whereas Eq. (7)
    counts repetitions."""
    code_masking: bool = False
    """Like the released code, replace one token of one side by <MASK>, for the encoder and in the
    targets."""
    negatives: Literal["micro_batch", "processes"] = "micro_batch"
    """Source of negatives: a process's own micro-batch as in the paper, or those of all
    processes."""
    exclude_repeats: bool = False
    """Don't count other translations of the positive as negatives (in n-way parallel corpora)."""

    def __post_init__(self) -> None:
        if self.generative == self.contrastive == "none":
            raise ConfigError(
                "generative and contrastive are both 'none', so the method has no loss; set one"
                " of them"
            )
        if self.generative == "ugt" and self.code_masking:
            raise ConfigError(
                "code_masking and generative = 'ugt' cannot be combined; set generative = 'xtr',"
                " or remove code_masking"
            )
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Refuse options that nothing would read."""
        tag = ("language_dim", "tag_dropout", "languages")
        targets = ("shared_embedding", "code_targets", "code_masking")
        generative = ("language_tag", *targets, "xtr_weight", *tag)
        margin = ("margin", "margin_after_temperature")
        repeats = ("negatives", "exclude_repeats")
        projection = ("mlp", "projection_dim")
        contrastive = (*projection, "temperature", "contrastive_weight", *repeats, *margin)
        no_generative = self.generative == "none"
        no_contrastive = self.contrastive == "none"
        no_margin = self.contrastive != "ams"
        refuse_unread(self, *generative, reason="generative = 'none'", when=no_generative)
        refuse_unread(self, *contrastive, reason="contrastive = 'none'", when=no_contrastive)
        refuse_unread(self, *margin, reason="contrastive other than 'ams'", when=no_margin)
        refuse_unread(self, "projection_dim", reason="mlp = false", when=not self.mlp)
        refuse_unread(self, *tag, reason="language_tag = false", when=not self.language_tag)


class EMSInputs(NamedTuple):
    """The sentences of a batch that are read, and the tokens that are predicted."""

    read: TokenBatch
    """[a; b], with one hidden token in each pair or in each sentence if the config asks for it."""
    targets: TokenTargets | None
    """Targets [b; a], the translations of the sentences read; None = not predicted."""
    tag_rows: Int64[Tensor, " 2*b"] | None
    """Rows of the translations' tags, if the head has tags."""
    meanings: Meanings | None
    """Meanings of the pairs, if pairs of equal meaning are not contrasted."""


class EMS(Objective):
    """Cross-lingual token-level reconstruction and sentence-level contrastive learning together.

    Args:
        config: the options.
        encoder: pools by the mean in the paper.

    Raises:
        ConfigError: a language tag is requested and neither config nor vocabulary names languages.
    """

    Config = EMSConfig
    nested_terms = ("xtr", "contrastive")
    config: EMSConfig

    def __init__(self, config: EMSConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        named = config.languages or sorted(encoder.vocabulary.language_tags)
        languages = tuple(dict.fromkeys(resolve_language(name).code for name in named))
        if config.generative != "none" and config.language_tag and not languages:
            raise ConfigError(
                "the vocabulary has no language tags; set method.languages, or language_tag = false"
            )
        self.mask_id = -1
        if self.hides_tokens:
            self.mask_id = encoder.vocabulary.mask_id  # raises where the vocabulary has none
        self.predict: TokenPredictionHead | None = None
        if config.generative != "none":
            # The tags are made even if they are not used, so that later random numbers do not
            # depend on this option.
            tags = LanguageTags(languages, config.language_dim, dropout=config.tag_dropout)
            self.predict = TokenPredictionHead(
                encoder.dim,
                encoder.backbone.config.vocab_size,
                tags=tags if config.language_tag else None,
                shared=config.shared_embedding,
            )
        self.project: nn.Module = nn.Identity()
        if config.contrastive != "none" and config.mlp:
            self.project = ProjectionHead(encoder.dim, config.projection_dim)

    @property
    def hides_tokens(self) -> bool:
        """True if tokens are hidden from the encoder."""
        return self.config.generative == "ugt" or self.config.code_masking

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute the loss of Eq. (12)."""
        _, (read, targets, tag_rows, meanings) = self.prepared(batch)
        uv = self.encoder(read)  # Eq. (1)
        terms = {}
        if self.predict is not None:
            assert targets is not None
            reconstruct = functools.partial(
                self.reconstruct, self.predict, targets.to(uv.device), tag_rows
            )
            terms["xtr"] = self.nested(reconstruct, uv)  # Eq. (6)
        if self.config.contrastive != "none":
            contrast = functools.partial(self.contrast, meanings)
            terms["contrastive"] = self.nested(contrast, uv)  # Eq. (8)-(9)
        return self.weighted(**terms)  # Eq. (12)

    def prepare(self, batch: ParallelBatch) -> EMSInputs:
        """Return the sentences to read, and the tokens and languages of their translations."""
        a, b, hidden = self.masked(batch)
        targets: TokenTargets | None = None
        tag_rows = None
        if self.predict is not None:
            # Row i is the translation of row i of the sentences that are read.
            translations = join(batch.b, batch.a)
            if self.config.code_masking:
                translations = join(b, a)  # the targets hold <MASK> too, as in the released code
            kind: TargetKind = "code" if self.config.code_targets else "paper"
            targets = token_targets(
                translations.input_ids, translations.cu_seqlens, extra_ids=hidden, kind=kind
            )  # Eq. (7)
            if self.predict.tags is not None:
                tag_rows = self.predict.tags.rows(translations.languages)
        return EMSInputs(join(a, b), targets, tag_rows, self.meanings(batch.a, batch.b))

    def reconstruct(
        self,
        predict: TokenPredictionHead,
        targets: TokenTargets,
        tag_rows: Int64[Tensor, " 2*b"] | None,
        uv: Float[Tensor, "2*b d"],
    ) -> Float[Tensor, ""]:
        """Compute L_XTR: divergence from the translations' token distributions, Eq. (6).

        It is a mean over pairs, summed over both directions.
        """
        # Eq. (2)-(5) except the product with the output embeddings and the softmax
        features = predict(full_width(uv, self.encoder.dim), tag_rows)
        output_embeddings = predict.output_embeddings(self.encoder.backbone.word_embeddings.weight)
        # The mean runs over 2B rows; Eq. (6) divides the sum of both directions by B.
        return 2 * linear_token_divergence(features, output_embeddings, targets).mean()

    def contrast(self, meanings: Meanings | None, uv: Float[Tensor, "2*b d"]) -> Float[Tensor, ""]:
        """Compute L_cntrs: each sentence has to find its translation in the batch, both ways."""
        config = self.config
        if config.mlp:
            uv = self.project(full_width(uv, self.encoder.dim))  # Eq. (10)-(11)
        h_a, h_b = uv.chunk(2)
        gather = self.choose_gather(config.negatives)
        excluded = self.repeats(meanings, gather)
        h_a, h_b = gather(h_a), gather(h_b)
        self.need_others(len(h_a), "pair of translations")
        if config.contrastive == "softmax":  # Eq. (8)-(9)
            return bidirectional_contrastive(
                h_a, h_b, temperature=config.temperature, excluded=excluded
            )
        # LaBSE's ranking loss instead of the softmax: the rows LaBSE-EMS of Table XIV
        return additive_margin_softmax(
            h_a,
            h_b,
            margin=config.margin,
            temperature=config.temperature,
            margin_after_temperature=config.margin_after_temperature,
            excluded=excluded,
        )

    def masked(
        self, batch: ParallelBatch
    ) -> tuple[TokenBatch, TokenBatch, Int64[Tensor, " 2*b"] | None]:
        """Return the encoder's input of both sides, and the hidden tokens to predict, if any.

        If there are hidden tokens to predict, each row of [a; b] has one.
        """
        a, b = batch.a, batch.b
        if not self.hides_tokens:
            return a, b, None
        at_a = batch.place("a")
        at_b = batch.place("b")
        hide = functools.partial(
            one_token_mask,
            mask_id=self.mask_id,
            special_ids=self.encoder.vocabulary.special_ids,
        )
        if self.config.generative == "ugt":
            # The unified generative task: a sentence's own hidden token is one of its targets.
            a, hidden_a = hide(a, at_a)
            b, hidden_b = hide(b, at_b)
            return a, b, torch.cat([hidden_a, hidden_b])
        # The released code hides a token on one side only, and never predicts it from its sentence.
        on_a = coin_flips(a, at_a)
        return hide(a, at_a, where=on_a)[0], hide(b, at_b, where=~on_a)[0], None
