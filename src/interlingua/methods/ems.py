"""EMS: efficient and effective massively multilingual sentence embedding learning (Mao et al.
2023).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from interlingua.batches.masking import coin_flips, one_token_mask
from interlingua.batches.sentences import join, same_meaning
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.heads import LanguageTags, ProjectionHead, TokenPredictionHead
from interlingua.errors import ConfigError
from interlingua.functional.contrastive import additive_margin_softmax, bidirectional_contrastive
from interlingua.functional.token import TargetKind, linear_token_divergence, token_targets
from interlingua.languages import resolve
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective, itself


@dataclass(frozen=True, kw_only=True, slots=True)
class EMSConfig:
    """EMS and its ablations (Table XIV of the paper); the defaults are the paper's EMS."""

    generative: Literal["xtr", "ugt", "none"] = "xtr"
    """xtr: tell the translation's tokens; ugt: also a masked one of the own tokens; none: "-
    L_XTR"."""
    contrastive: Literal["softmax", "ams", "none"] = "softmax"
    """softmax: Eq. (8); ams: LaBSE's additive margin, "LaBSE-EMS"; none: "- L_cntrs"."""
    xtr_weight: float = 1.0
    """Weight of the generative term in the loss, either kind."""
    contrastive_weight: float = 1.0
    """Weight of the contrastive term in the loss."""
    temperature: float = 0.1
    """T of the contrastive term, in cosine units."""
    margin: float = 0.3
    """Margin of ams, in cosine units, taken from the positives."""
    margin_after_temperature: bool = False
    """Take the margin from the logits, after the division by the temperature."""
    mlp: bool = True
    """Contrast projections, Eq. (10)-(11); False: contrast the embeddings, "- L_cntrs_mlp"."""
    projection_dim: int = 128
    """Width of the projections."""
    language_tag: bool = True
    """Tell the generative head the target language, Eq. (2)-(3); False: "- langs tok"."""
    language_dim: int = 128
    """Width of a language tag."""
    tag_dropout: float = 0.1
    """Probability of zeroing an element of a language tag."""
    languages: tuple[str, ...] = ()
    """Codes of the languages that get a tag; default: those with a tag in the vocabulary, else the
    corpus's."""
    shared_embedding: bool = False
    """Predict with the encoder's word embeddings in place of a matrix of the head's own, "share
    L_emb"."""
    code_targets: bool = False
    """Targets of the released code: 1/|S| once for each distinct token, where Eq. (7) counts
    repetitions."""
    code_masking: bool = False
    """As the released code, replace one token of one side by <MASK>, for the encoder and in the
    targets."""
    negatives: Literal["micro_batch", "processes"] = "micro_batch"
    """Where negatives come from: a process's own micro-batch as in the paper, or those of all
    processes."""
    exclude_repeats: bool = False
    """Don't count as negatives what translates the positive too (as in n-way parallel corpora)."""

    def __post_init__(self) -> None:
        if self.generative == self.contrastive == "none":
            raise ConfigError(
                "generative and contrastive are both 'none', which leaves no loss; choose one"
            )
        for name in (
            "xtr_weight",
            "contrastive_weight",
            "temperature",
            "projection_dim",
            "language_dim",
        ):
            if getattr(self, name) <= 0:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be positive")
        if not 0 <= self.tag_dropout < 1:
            raise ConfigError(
                f"tag_dropout is {self.tag_dropout}; it must be at least 0 and below 1"
            )
        if self.generative == "ugt" and self.code_masking:
            raise ConfigError(
                "code_masking masks one side and ugt both; choose generative = 'xtr' or no"
                " code_masking"
            )
        generative = (
            "language_tag",
            "shared_embedding",
            "code_targets",
            "code_masking",
            "xtr_weight",
        )
        tag = ("language_dim", "tag_dropout", "languages")
        margin = ("margin", "margin_after_temperature")
        contrastive = ("mlp", "temperature", "contrastive_weight", "negatives", "exclude_repeats")
        self._unused((*generative, *tag), "generative = 'none'", when=self.generative == "none")
        self._unused(
            (*contrastive, *margin, "projection_dim"),
            "contrastive = 'none'",
            when=self.contrastive == "none",
        )
        self._unused(margin, "contrastive other than 'ams'", when=self.contrastive != "ams")
        self._unused(("projection_dim",), "mlp = false", when=not self.mlp)
        self._unused(tag, "language_tag = false", when=not self.language_tag)

    def _unused(self, names: tuple[str, ...], reason: str, *, when: bool) -> None:
        changed = [
            n for n in names if getattr(self, n) != type(self).__dataclass_fields__[n].default
        ]
        if when and changed:
            raise ConfigError(
                f"{changed[0]} is set, but with {reason} nothing reads it; remove one of the two"
            )


class EMS(Objective):
    """Cross-lingual token-level reconstruction and sentence-level contrastive learning, trained
    jointly.

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
        languages = tuple(dict.fromkeys(resolve(name).code for name in named))
        if config.generative != "none" and config.language_tag and not languages:
            raise ConfigError(
                "the vocabulary has no language tags; set method.languages, or language_tag = false"
            )
        self.mask_id = (
            encoder.vocabulary.mask_id if config.generative == "ugt" or config.code_masking else -1
        )
        self.predict: TokenPredictionHead | None = None
        if config.generative != "none":
            tags = LanguageTags(languages, config.language_dim, dropout=config.tag_dropout)
            size = encoder.backbone.config.vocab_size
            shared = config.shared_embedding
            self.predict = TokenPredictionHead(
                encoder.dim, size, tags=tags if config.language_tag else None, shared=shared
            )
        projects = config.contrastive != "none" and config.mlp
        self.project = (
            ProjectionHead(encoder.dim, config.projection_dim) if projects else torch.nn.Identity()
        )

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """The loss of Eq. (12)."""
        a, b, hidden = self.masked(batch)
        uv = self.encoder(join(a, b))  # Eq. (1)
        terms = {}
        if self.predict is not None:
            translations = join(b, a) if self.config.code_masking else join(batch.b, batch.a)
            reconstruct = functools.partial(
                self.reconstruct, self.predict, translations=translations, hidden=hidden
            )
            terms["xtr"] = self.nested(reconstruct, uv)  # Eq. (6)
        if self.config.contrastive != "none":
            terms["contrastive"] = self.nested(
                functools.partial(self.contrast, batch=batch), uv
            )  # Eq. (8)-(9)
        return self.weighted(**terms)  # Eq. (12)

    def reconstruct(
        self,
        predict: TokenPredictionHead,
        uv: Float[Tensor, "2*b d"],
        translations: TokenBatch,
        hidden: Tensor | None,
    ) -> Float[Tensor, ""]:
        """Divergence from the translations' token distributions: a mean over pairs, summed over
        both directions.
        """
        features = predict(
            full_width(uv, self.encoder.dim), translations.languages
        )  # Eq. (2)-(5) up to the softmax
        kind: TargetKind = "code" if self.config.code_targets else "paper"
        targets = token_targets(
            *translations[:2], extra_ids=hidden, kind=kind, device=uv.device
        )  # Eq. (7)
        output_embeddings = predict.output_embeddings(self.encoder.backbone.word_embeddings.weight)
        return 2 * linear_token_divergence(features, output_embeddings, targets).mean()

    def contrast(self, uv: Float[Tensor, "2*b d"], batch: ParallelBatch) -> Float[Tensor, ""]:
        """Each sentence has to find its translation among those of the batch, both ways."""
        config = self.config
        if config.mlp:
            uv = self.project(full_width(uv, self.encoder.dim))  # Eq. (10)-(11)
        h_a, h_b = uv.chunk(2)
        gather = self.all_gather if config.negatives == "processes" else itself
        excluded = same_meaning(batch.a, batch.b, gather) if config.exclude_repeats else None
        h_a, h_b = gather(h_a), gather(h_b)
        self.need_others(len(h_a), "pair of translations")
        if config.contrastive == "softmax":
            return bidirectional_contrastive(
                h_a, h_b, temperature=config.temperature, excluded=excluded
            )
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
        """What the encoder reads of both sides, and the tokens that were hidden if they are to be
        predicted.
        """
        a, b = batch.a, batch.b
        if self.config.generative != "ugt" and not self.config.code_masking:
            return a, b, None
        vocabulary = self.encoder.vocabulary
        at_a = batch.place("a")
        at_b = batch.place("b")
        hide = functools.partial(
            one_token_mask, mask_id=self.mask_id, special_ids=vocabulary.special_ids
        )
        if self.config.generative == "ugt":
            (a, hidden_a), (b, hidden_b) = hide(a, at_a), hide(b, at_b)
            return a, b, torch.cat([hidden_a, hidden_b])
        on_a = coin_flips(a, at_a)
        return hide(a, at_a, where=on_a)[0], hide(b, at_b, where=~on_a)[0], None
