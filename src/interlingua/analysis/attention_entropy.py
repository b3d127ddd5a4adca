"""Entropy of the first token's attention to the sentence: MEXMA (Janeiro et al. 2024), section 5.6.

A model that pools by its first token reads the sentence through that token's attention in the last
layer. High entropy means that all words are looked at, low entropy that few are (appendix G).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from interlingua.analysis.record import Analysis, mean_measure
from interlingua.analysis.subject import Subject, needs_states, of_texts
from interlingua.analysis.tokens import batches, check_finite_values, spell, token_ids
from interlingua.config import CheckedSettings
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.attention_weights import first_token_attention, sentence_attention
from interlingua.errors import ConfigError
from interlingua.evaluation.parallel import ParallelTexts, read_parallel
from interlingua.runtime.progress import SILENT, Progress

MEASURES = {
    "attention_entropy": "entropy of the first token's attention in the last layer, per head, mean"
    " over heads",
    "attention_entropy_without_special": "the same over tokens of text alone, renormalized",
    "uniform_entropy": "the entropy of equal attention to all tokens: log of their number",
    "attention_on_special": "share of the attention that goes to special tokens such as <s> and"
    " </s>",
}
_SHOWN_CHARACTERS = 90
_SHOWN_LANGUAGES = 3
FIRST_SHOWN = "eng_Latn"


@dataclass(frozen=True, kw_only=True, slots=True)
class AttentionEntropy(CheckedSettings):
    """Entropy in nats of the attention of the first token, ``<s>`` or ``[CLS]``.

    It is measured in the last layer: -sum p ln p per head, then the mean over heads and sentences.
    The paper states neither the unit nor how heads are joined. It prints 2.5 for MEXMA and 3.4 for
    LaBSE, without the special tokens about 3 and 3.5. A prompt's tokens count as text.
    """

    name: ClassVar[str] = "attention_entropy"
    version: ClassVar[str] = "1"

    languages: tuple[str, ...] | None = None
    """Codes, names or groups; default: those of muse and English that the texts have, else all."""
    examples: int = 2
    """Number of lines whose attention is kept for the page, each in up to three languages."""
    every_token: bool = False
    """Also keep each head's attention from every token to every token, for the page."""

    def unfit(self, subject: Subject) -> str | None:
        """Return why this model is unfit for the analysis, see ``Analyser.unfit``."""
        if subject.encoder is not None and not subject.encoder.vocabulary.opening_tokens:
            return "its vocabulary adds no token before a text"
        if subject.encoder is not None and not len(subject.encoder.backbone.layers):
            return "it has only token vectors and no layers"
        return needs_states(subject)

    def run(self, subject: Subject, data: Path, *, progress: Progress = SILENT) -> Analysis:
        """Analyze a model, see ``Analyser.run``."""
        encoder = subject.states_of(self.name)
        if reason := self.unfit(subject):
            raise ConfigError(
                f"{self.name} reads the attention of <s> or [CLS], but {reason}; leave this"
                " analysis out with --only"
            )
        texts = read_parallel(data, self.languages, at_least=1)
        found = np.zeros((len(MEASURES), len(texts.languages), texts.sentences))
        # The number of heads is unknown until the first batch.
        by_head: Any = 0.0
        progress.start(len(texts.languages) * texts.sentences, "sentences", self.name)
        for number, (language, lines) in enumerate(texts.lines.items()):
            progress.note(language)
            ids = token_ids(encoder, lines, language=language, prompt=subject.prompt)
            for first, batch in batches(encoder, ids, batch_tokens=subject.batch_tokens):
                weights = first_token_attention(encoder.backbone, batch)
                special = torch.isin(batch.input_ids, encoder.special_ids)
                values, of_heads = sentence_values(
                    weights, special, batch.sequence_ids(), batch.batch_size
                )
                found[:, number, first : first + batch.batch_size] = values.cpu().numpy()
                check_finite_values(values.cpu().numpy(), first)
                by_head = by_head + of_heads.sum(dim=0).cpu().double().numpy()
            progress.advance(texts.sentences)
        # Divide the sums by the number of sentences in all languages; heads are counted from 1.
        heads = by_head / found[0].size
        entropy_of_head = {str(head + 1): float(value) for head, value in enumerate(heads)}
        measures = []
        for (name, meaning), by_line in zip(MEASURES.items(), found, strict=True):
            unit = "share" if "_on_" in name else "nats"
            measures.append(
                mean_measure(name, by_line, texts.languages, unit=unit, definition=meaning)
            )
        return of_texts(
            self,
            texts,
            measures=measures,
            tables={"attention_entropy_by_head": entropy_of_head},
            examples=tuple(_examples(encoder, texts, subject.prompt, self)),
            notes=_notes(subject),
        )


def sentence_values(
    weights: Float[Tensor, "t h"],
    special: Bool[Tensor, " t"],
    sentence: Int64[Tensor, " t"],
    sentences: int,
) -> tuple[Float[Tensor, "4 b"], Float[Tensor, "b h"]]:
    """Compute the values of ``MEASURES`` for each sentence, and the entropy of each head.

    Args:
        weights: attention of each sentence's first token, which sums to 1 over a sentence.
        special: tokens that are not text.
        sentence: number of the sentence to which each token belongs.
        sentences: number of sentences.
    """

    def summed(values: Float[Tensor, "t h"]) -> Float[Tensor, "b h"]:
        """Sum over the tokens of each sentence."""
        return values.new_zeros(sentences, values.shape[1]).index_add(0, sentence, values)

    # entr(p) is -p ln p, and 0 at 0.
    heads = summed(torch.special.entr(weights))
    # Keep only the attention to text, scaled to sum to 1 again; a head may have none.
    of_text = weights * ~special[:, None]
    mass = summed(of_text).clamp_min(torch.finfo(weights.dtype).tiny)
    without = summed(torch.special.entr(of_text / mass[sentence]))
    # The entropy of n equal weights is ln n.
    lengths = torch.bincount(sentence, minlength=sentences)
    uniform = lengths.to(heads.dtype).log()
    on_special = summed(weights * special[:, None])
    values = torch.stack([heads.mean(1), without.mean(1), uniform, on_special.mean(1)])
    return values, heads


def _notes(subject: Subject) -> tuple[str, ...]:
    pooling = subject.info.pooling
    if pooling in (None, "cls"):
        return ()
    return (
        f"the sentence vector is the {pooling} of the tokens, not the first token, so the"
        " attention of the first token has little influence",
    )


def _examples(
    encoder: Encoder, texts: ParallelTexts, prompt: str, options: AttentionEntropy
) -> list[Mapping[str, Any]]:
    """Return the attention to every token of some short lines in some languages.

    An example has the mean over heads, the value of each head, and, if requested, the attention of
    all tokens.
    """
    # False sorts before True, so that English comes first and the others keep their order.
    languages = sorted(texts.languages, key=lambda code: code != FIRST_SHOWN)[:_SHOWN_LANGUAGES]
    lines = texts.lines[languages[0]]
    short = [number for number, line in enumerate(lines) if len(line) <= _SHOWN_CHARACTERS] or [0]
    found: list[Mapping[str, Any]] = []
    for number in short[: options.examples]:
        for code in languages:
            line = texts.lines[code][number]
            ids = token_ids(encoder, [line], language=code, prompt=prompt)
            ((_, batch),) = batches(encoder, ids, batch_tokens=1)
            weights = first_token_attention(encoder.backbone, batch).cpu().numpy()
            special = torch.isin(batch.input_ids, encoder.special_ids).tolist()
            spelled = spell(encoder, line, language=code, prompt=prompt)
            spans = _as_many(spelled.spans, len(ids[0]))
            tokens = []
            for index, own, span, of_heads in zip(ids[0], special, spans, weights, strict=True):
                # A special token represents no part of the text and is shown by its name.
                text: str | None = spelled.text[slice(*span)]
                if own:
                    text = encoder.vocabulary.tokenizer.id_to_token(index)
                tokens.append(
                    {
                        "text": text,
                        "special": own,
                        "weight": round(float(of_heads.mean()), 4),
                        "heads": [round(float(weight), 3) for weight in of_heads],
                    }
                )
            example: dict[str, Any] = {"language": code, "line": number + 1, "tokens": tokens}
            if options.every_token:
                maps = sentence_attention(encoder.backbone, batch).cpu().double()
                example["maps"] = maps.numpy().round(3).tolist()
            found.append(example)
    return found


def _as_many(spans: list[tuple[int, int]], count: int) -> list[tuple[int, int]]:
    """Return ``count`` spans; if the text was cut, its closing token gets an empty span."""
    if len(spans) == count:
        return spans
    return [*spans[: count - 1], (0, 0)]
