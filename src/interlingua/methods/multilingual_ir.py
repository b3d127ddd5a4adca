"""Language-agnostic multilingual retrieval with contrastive learning (Hu et al. 2022).

A dual encoder learns to search from English questions and passages only, Eq. (1). Two further
losses, on other text, extend the search to other languages. The semantic contrast brings
translations together and keeps all other sentences apart, Eq. (2). The language contrast requires a
sentence and its translation to be equally near to any third sentence, Eq. (3), so that similarities
do not reveal which language a text is in. Both losses train only the passage encoder; when they
also trained the question encoder, training was unstable for the authors.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from interlingua.batches.feeds import FeedName, QuestionBatch
from interlingua.batches.sentences import Meanings, join, sentence_keys
from interlingua.batches.tokens import TokenBatch
from interlingua.config import CheckedSettings, refuse_unread
from interlingua.config.method_options import Temperature, Weight
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.functional.contrastive import infonce, language_contrastive, semantic_contrastive
from interlingua.methods.objective import LossOutput, Objective, Term
from interlingua.runtime.devices import on_device
from interlingua.storage.files import PathLike


@dataclass(frozen=True, kw_only=True, slots=True)
class MultilingualIRConfig(CheckedSettings):
    """The dual encoder and its two contrastive losses.

    The defaults are the paper's "+ semaCL + langCL".
    """

    semantic_weight: Weight = 0.01
    """w_s, weight of the semantic contrastive loss on translations; 0 = off, "- semaCL"."""
    language_weight: Weight = 0.001
    """w_l, weight of the language contrastive loss; 0 = off, "- langCL"."""
    monolingual: bool = False
    """Sentences without translations take part in the language contrastive loss (Q of Eq. 3)."""
    towers: Literal["separate", "shared"] = "separate"
    """separate: one encoder for questions and one for passages, as in DPR; shared: one for both."""
    similarity: Literal["cosine", "dot"] = "cosine"
    """Similarity of questions and passages in Eq. (1); dot is the inner product, as in DPR."""
    temperature: Temperature = 1.0
    """Divisor of the similarities of Eq. (1)."""
    semantic_temperature: Temperature = 0.1
    """tau of Eq. (2), in cosine units."""
    language_reduction: Literal["sum", "mean", "literal"] = "sum"
    """Reduction of Eq. (3). sum: over pairs and sentences; it grows with the batch. mean: over the
    logarithms in this sum, so that one weight fits every batch; with P pairs and N sentences, the
    weight w of the sum corresponds to the weight w * 2P (N - 2) of the mean. literal: with the
    factor printed in Eq. (3), which makes the loss smaller as Q grows. With the weight that the
    paper prints, mean and literal train nothing."""
    exclude_repeats: bool = False
    """Don't count a passage as a negative of a question if it is equal to the question's answer (it
    may be the answer or a hard negative of another question); don't count pairs that share a
    sentence as negatives of each other."""

    def __post_init__(self) -> None:
        no_semantic = not self.semantic_weight
        no_language = not self.language_weight
        of_language = ("monolingual", "language_reduction")
        refuse_unread(self, "semantic_temperature", reason="semantic_weight = 0", when=no_semantic)
        refuse_unread(self, *of_language, reason="language_weight = 0", when=no_language)


class MultilingualIRInputs(NamedTuple):
    """The texts of a batch that the contrasts read, and which of them are repeated."""

    keys: Int64[Tensor, " n"] | None
    """Keys of the passages, if repeats of an answer are left out."""
    questions: QuestionBatch | None
    """Questions as the towers read them."""
    pairs: TokenBatch | None
    """P: both sides of the translations, if there are some."""
    num_pairs: int
    """Number of translation pairs."""
    texts: TokenBatch | None
    """P, and behind it Q: sentences without a translation."""
    meanings: Meanings | None
    """Meanings of the translations, if pairs of equal meaning are left out."""


class MultilingualIR(Objective):
    """Objective that learns search from English questions, and other languages from text only.

    Args:
        config: the options.
        encoder: the passage tower, the only tower that the contrastive losses train; a separate
            question tower starts as its copy.
    """

    Config = MultilingualIRConfig
    config: MultilingualIRConfig
    feeds = ("questions", "parallel", "monolingual")
    nested_terms = ("retrieval", "semantic", "language")
    takes_forms = True
    # The last part uses both towers, so the processes average their gradients in this part.
    parts: tuple[str, ...] = ("semantic", "language", "retrieval")

    def __init__(self, config: MultilingualIRConfig, encoder: Encoder) -> None:
        # The exported model has to rank as it was trained to: by the cosine, or by the inner
        # product of vectors of any length. This is set before the clone, which copies the settings.
        encoder.settings = dataclasses.replace(
            encoder.settings, normalize=config.similarity == "cosine"
        )
        super().__init__(config, encoder)
        self.question_encoder: Encoder | None = None
        if config.towers == "separate":
            self.question_encoder = encoder.clone()
        weights = {
            "semantic": config.semantic_weight,
            "language": config.language_weight,
            "retrieval": 1.0,
        }
        self.parts = tuple(name for name in type(self).parts if weights[name])

    @classmethod
    def feeds_for(cls, config: MultilingualIRConfig) -> tuple[FeedName, ...]:
        """Return the feed of questions, and those of the losses that are on."""
        needed = {
            "questions": True,
            "parallel": bool(config.semantic_weight or config.language_weight),
            "monolingual": config.monolingual,
        }
        return tuple(feed for feed in cls.feeds if needed[feed])

    def forward(
        self, batch: QuestionBatch | Mapping[str, Any], part: str | None = None
    ) -> LossOutput:
        """Compute L = L_IR + w_s L_semaCL + w_l L_langCL, Eq. (4), or one of its terms."""
        batch, inputs = self.prepared(batch)
        parts = self.parts
        if part is not None:
            parts = (part,)
        terms = {}
        for name in parts:
            if name == "retrieval":
                assert inputs.questions is not None
                terms[name] = self.retrieve(inputs.questions, inputs.keys)
            elif name == "semantic":
                terms[name] = self.align(inputs.pairs, inputs.num_pairs, inputs.meanings)
            else:
                terms[name] = self.equalize(inputs.texts, inputs.num_pairs)
        return self.weighted(**terms)

    def prepare(self, batch: QuestionBatch | Mapping[str, Any]) -> MultilingualIRInputs:
        """Return the texts of each contrast in one batch.

        The encoder is faster on one larger batch.
        """
        feeds = by_feed(batch)
        keys: Tensor | None = None
        if self.config.exclude_repeats:
            keys = sentence_keys(feeds["questions"].passages)
        read: QuestionBatch | None = feeds.get("questions")
        if read is not None:
            read = read._replace(
                questions=self.as_written(read.questions, read),
                passages=self.as_written(read.passages, read),
            )
        if "parallel" not in feeds:
            return MultilingualIRInputs(keys, read, None, 0, None, None)
        parallel = feeds["parallel"]
        a, b = parallel.a, parallel.b
        pairs = join(self.as_written(a, parallel), self.as_written(b, parallel))
        texts = pairs
        if "monolingual" in feeds:
            others = feeds["monolingual"]
            texts = join(pairs, self.as_written(others.sentences, others))
        return MultilingualIRInputs(keys, read, pairs, a.batch_size, texts, self.meanings(a, b))

    def retrieve(self, batch: QuestionBatch, keys: Int64[Tensor, " n"] | None) -> Term:
        """Compute L_IR: each question has to find its passage among those of all processes."""
        config = self.config
        size = batch.questions.batch_size
        q = (self.question_encoder or self.encoder)(batch.questions)
        # Passages come in blocks with one passage per question: the answers, then each round of
        # hard negatives. Each block is gathered by itself, so that answer i stays that of question
        # i.
        answers = self.encoder(batch.passages)
        q, p, *hard = (self.all_gather(part) for part in (q, *torch.split(answers, size)))
        self.need_others(len(p) + sum(map(len, hard)), "question with its passage")
        excluded = None
        if keys is not None:
            parts = torch.split(on_device(keys, q.device), size)
            blocks = [self.all_gather(part) for part in parts]
            excluded = blocks[0][:, None] == torch.cat(blocks)

        def rank(q: Tensor, p: Tensor, *hard: Tensor) -> Tensor:
            return infonce(  # Eq. (1)
                q,
                p,
                hard_negatives=torch.cat(hard) if hard else None,
                temperature=config.temperature,
                cosine=config.similarity == "cosine",
                excluded=excluded,
            )

        return self.nested(rank, q, p, *hard)

    def align(self, pairs: TokenBatch, num_pairs: int, meanings: Meanings | None) -> Term:
        """Compute L_semaCL: translations are close, and far from all others of the batch."""
        z_i, z_j = self.passages(pairs, num_pairs)
        self.need_others(len(z_i), "pair of translations", "data.batch_size")
        excluded = self.repeats(meanings, self.all_gather)
        contrast = partial(
            semantic_contrastive, temperature=self.config.semantic_temperature, excluded=excluded
        )
        return self.nested(contrast, z_i, z_j)  # Eq. (2)

    def equalize(self, texts: TokenBatch, num_pairs: int) -> Term:
        """Compute L_langCL: other sentences are as near to a sentence as to its translation."""
        z_i, z_j, *z_k = self.passages(texts, num_pairs)
        self.need_others(len(z_i) + sum(map(len, z_k)), "pair of translations", "data.batch_size")
        equalize = partial(language_contrastive, reduction=self.config.language_reduction)
        return self.nested(equalize, z_i, z_j, *z_k)  # Eq. (3)

    def passages(self, texts: TokenBatch, num_pairs: int) -> tuple[Float[Tensor, "_ d"], ...]:
        """Embed texts by the passage tower, and gather those of all processes.

        The result has one tensor for each side of the pairs, and one for the sentences after them,
        if any.
        """
        sizes = [num_pairs, num_pairs]
        if texts.batch_size > sum(sizes):
            sizes.append(texts.batch_size - sum(sizes))
        return tuple(self.all_gather(part) for part in torch.split(self.encoder(texts), sizes))

    @property
    def exported(self) -> tuple[Encoder, ...]:
        """Both towers, or the only one."""
        if self.question_encoder is None:
            return (self.encoder,)
        return (self.encoder, self.question_encoder)

    def save(self, folder: PathLike) -> None:
        """Write the passage tower and, if it is separate, the question tower in a subfolder."""
        DualEncoder(self.encoder, self.question_encoder).save(folder)


def by_feed(batch: QuestionBatch | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the batches by feed; if both contrasts are off, questions are the only feed."""
    if isinstance(batch, Mapping):
        return batch
    return {"questions": batch}
