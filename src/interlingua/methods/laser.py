"""LASER's objective: translation from nothing but a sentence's vector (Artetxe and Schwenk 2019).

A decoder without attention to the source has to translate a sentence. The decoder's only
information on the sentence is the encoder's vector, which is a part of each decoder input. The
vector must therefore hold everything that a translation says, but it does not have to keep the
language of its text. After training the decoder is discarded.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal, NamedTuple

import torch
from jaxtyping import Float, Int, Int64
from torch import Tensor, nn

from interlingua.batches.sentences import chained, join, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.config import Between, CheckedSettings, refuse_unread
from interlingua.config.languages import resolve_language
from interlingua.config.method_options import Dim, Dropout, Heads, Layers
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError, DataError
from interlingua.functional.masked_lm import linear_cross_entropy
from interlingua.methods.decoders.translation_decoders import (
    LstmArrangement,
    LstmDecoder,
    TransformerArrangement,
    TransformerDecoder,
)
from interlingua.methods.heads.sentence_heads import LanguageTags
from interlingua.methods.matryoshka import full_width
from interlingua.methods.objective import LossOutput, Objective


@dataclass(frozen=True, kw_only=True, slots=True)
class LASERConfig(CheckedSettings):
    """The options of LASER's decoder; section [encoder] specifies the encoder."""

    decoder: Literal["lstm", "transformer"] = "lstm"
    """lstm: LASER's; transformer: without cross-attention, like fairseq's laser_transformer."""
    autoregressive: bool = True
    """The decoder is shown the tokens before the one to be predicted; False: only positions
    (transformer only)."""
    targets: tuple[str, ...] = ()
    """Languages to translate into, in LASER English and Spanish; default: each side is translated
    into the other."""
    language_dim: Annotated[int, Between(0, 65_536)] = 32
    """Width of the target language's vector in the decoder; 0 = no such vector."""
    languages: tuple[str, ...] = ()
    """Codes of the languages that the decoder can translate into; default: ``targets``, else the
    vocabulary's languages, else the corpus's."""
    token_dim: Dim = 320
    """Width of the decoder's token embeddings."""
    hidden_dim: Dim = 2048
    """Width of the LSTM's state, or of the transformer's feed-forward blocks."""
    output_dim: Dim = 512
    """Width of the vectors that are compared with words (LSTM only); in the transformer it is the
    sum of the widths of its inputs."""
    decoder_layers: Layers = 1
    """Layers of the decoder."""
    decoder_heads: Heads = 8
    """Attention heads (transformer only); must divide the sum of the encoder's width,
    ``token_dim`` and ``language_dim``."""
    dropout: Dropout = 0.1
    """Probability of zeroing an element of the decoder's inputs and states."""

    def __post_init__(self) -> None:
        if not self.autoregressive and self.decoder == "lstm":
            raise ConfigError(
                "autoregressive = false requires a transformer, because an LSTM reads the preceding"
                " tokens; set decoder = 'transformer'"
            )
        # Options that one of the two decoders does not have.
        is_lstm = self.decoder == "lstm"
        refuse_unread(self, "output_dim", reason="decoder = 'transformer'", when=not is_lstm)
        refuse_unread(self, "decoder_heads", reason="decoder = 'lstm'", when=is_lstm)
        refuse_unread(self, "languages", reason="language_dim = 0", when=not self.language_dim)


class LASERInputs(NamedTuple):
    """The sentences of a batch that are read, and those that are predicted from them."""

    read: TokenBatch
    """x, the sentences to read."""
    tag_rows: Int64[Tensor, " b"] | None
    """Rows of the tags of y, the translations; None = the decoder knows no languages."""
    inputs: Int64[Tensor, " t"]
    """Inputs of the decoder: [end; y_1 ... y_n] of each translation."""
    labels: Int64[Tensor, " t"]
    """[y_1 ... y_n; end]."""
    arrangement: LstmArrangement | TransformerArrangement
    """Arrangement of the translations in the decoder."""


class LASER(Objective):
    """Objective of translation by a decoder that knows only the encoder's vector.

    Args:
        config: the options.
        encoder: pools by the maximum in LASER.

    Raises:
        ConfigError: the decoder needs languages and none are named, or its heads don't divide its
            width.
    """

    Config = LASERConfig
    nested_terms = ("translation",)
    config: LASERConfig

    def __init__(self, config: LASERConfig, encoder: Encoder) -> None:
        super().__init__(config, encoder)
        self.targets = {resolve_language(name).code for name in config.targets}
        named = config.languages or config.targets or sorted(encoder.vocabulary.language_tags)
        codes = tuple(dict.fromkeys(resolve_language(name).code for name in named))
        if config.language_dim and not codes:
            raise ConfigError(
                "the vocabulary has no language tags; set method.languages, or language_dim = 0"
            )
        self.tags: LanguageTags | None = None
        if config.language_dim:
            self.tags = LanguageTags(codes, config.language_dim, dropout=0.0, normalize=False)
            nn.init.uniform_(self.tags.embedding.weight, -0.1, 0.1)
        width = config.token_dim + config.language_dim + encoder.dim
        if config.decoder == "transformer" and width % config.decoder_heads:
            raise ConfigError(
                f"decoder_heads: {config.decoder_heads} does not divide {width} (token_dim,"
                " language_dim and the encoder's width together); use a divisor"
            )
        # One token besides those of the vocabulary: the end of a sentence, also used as its start.
        self.end = encoder.backbone.config.vocab_size
        self.decoder: LstmDecoder | TransformerDecoder
        if config.decoder == "lstm":
            self.decoder = LstmDecoder(
                encoder.dim,
                self.end + 1,
                token_dim=config.token_dim,
                language_dim=config.language_dim,
                hidden_dim=config.hidden_dim,
                output_dim=config.output_dim,
                layers=config.decoder_layers,
                dropout=config.dropout,
            )
        else:
            self.decoder = TransformerDecoder(
                encoder.dim,
                self.end + 1,
                max_tokens=encoder.backbone.config.max_tokens + 1,
                token_dim=config.token_dim,
                language_dim=config.language_dim,
                inner_dim=config.hidden_dim,
                layers=config.decoder_layers,
                heads=config.decoder_heads,
                dropout=config.dropout,
                autoregressive=config.autoregressive,
            )

    def forward(self, batch: ParallelBatch) -> LossOutput:
        """Compute -log p(y | f(x)) of every target token, a mean over them."""
        _, y = self.prepared(batch)
        x = self.encoder(y.read)
        return self.weighted(translation=self.nested(partial(self.translate, y), x))

    def prepare(self, batch: ParallelBatch) -> LASERInputs:
        """Return the sentences to read, and the decoder's tokens."""
        x, y = self.directions(batch)
        tag_rows = None
        if self.tags is not None:
            tag_rows = self.tags.rows(y.languages)
        inputs, labels, cu_seqlens = self.shifted(y)
        return LASERInputs(x, tag_rows, inputs, labels, self.decoder.arranged(cu_seqlens))

    def translate(self, y: LASERInputs, embeddings: Float[Tensor, "b d"]) -> Float[Tensor, ""]:
        """Compute the decoder's loss from the embeddings of the sentences to translate."""
        vectors = full_width(embeddings, self.encoder.dim)
        if self.tags is not None:
            assert y.tag_rows is not None
            vectors = torch.cat([vectors, self.tags(y.tag_rows)], dim=1)
        states = self.decoder(y.inputs, y.arrangement, vectors)
        output = self.decoder.output
        losses = linear_cross_entropy(states, output.weight, output.bias, y.labels)
        return self.mean_of_tokens(losses)

    def directions(self, batch: ParallelBatch) -> tuple[TokenBatch, TokenBatch]:
        """Return the sentences to read, and those to predict from them.

        Each side of the pairs is predicted from the other, if its language is a target.

        Raises:
            DataError: no sentence of the batch is in a target language.
        """
        both = join(batch.a, batch.b)
        size = batch.a.batch_size
        targets = [
            row
            for row, code in enumerate(both.languages)
            if not self.targets or code in self.targets
        ]
        if not targets:
            expected = ", ".join(sorted(self.targets))
            there = ", ".join(sorted(set(both.languages)))
            raise DataError(
                f"the batch has no sentence in the targets {expected}, only in {there}; change"
                " targets"
            )
        # Row i and row i + B are translations.
        sources = [(row + size) % (2 * size) for row in targets]
        return take(both, sources), take(both, targets)

    def shifted(self, y: TokenBatch) -> tuple[Tensor, Tensor, Int[Tensor, " b+1"]]:
        """Return the decoder's inputs [end; y_1 ... y_n], targets [y_1 ... y_n; end] and bounds.

        The special tokens that the tokenizer adds are left out; the decoder has an end of its own.
        """
        text = (~self.encoder.is_special(y.input_ids)).nonzero()[:, 0]
        rows = y.sequence_ids()[text]
        counts = torch.bincount(rows, minlength=y.batch_size)
        cu_seqlens = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        tokens = y.input_ids[text]
        # The ends, a batch of B sequences of one token each, are put before and behind the texts.
        one = torch.arange(y.batch_size + 1, device=rows.device)
        ends = y.input_ids.new_full((y.batch_size,), self.end)
        before, bounds = chained(one, cu_seqlens)
        after, _ = chained(cu_seqlens, one)
        return torch.cat([ends, tokens])[before], torch.cat([tokens, ends])[after], bounds
