"""A cross-encoder: one transformer reads both sentences of a pair at once and gives one number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Float32
from safetensors import safe_open
from safetensors.torch import load_file
from torch import Tensor, nn

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.directories.model_directory import MODEL_ENTRIES, is_ours
from interlingua.encoder.encode import token_budget_batches
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.executors.inference import FrozenBackbone
from interlingua.encoder.pooling import HiddenStates
from interlingua.errors import CheckpointError, ConfigError
from interlingua.storage.files import PathLike, atomic_directory
from interlingua.storage.tensor_files import write_safetensors
from interlingua.vocabulary.vocabulary import Vocabulary

HEAD_FILE = "pair_head.safetensors"
PairPooling = Literal["cls", "mean"]


class PairTemplate(NamedTuple):
    """Template that joins two tokenized sentences ``a`` and ``b`` to one sequence.

    The sequence is ``a``, then ``separator``, then ``b`` without its opening.
    """

    opening_tokens: int
    """Number of special tokens before a single sentence (1 for ``<s>`` or ``[CLS]``)."""
    separator: tuple[int, ...]
    """Ids between ``a`` (with its closing token) and ``b``: another ``</s>`` for XLM-R, nothing for
    BERT."""

    @classmethod
    def of(cls, vocabulary: Vocabulary) -> PairTemplate:
        """Infer the template of a vocabulary from its tokenizer's treatment of a pair.

        The mask token is the separator if the tokenizer adds no special tokens to a pair.

        Raises:
            ConfigError: the tokenizer joins pairs in a way that this template cannot reproduce.
        """
        # One text is encoded as a sentence and as a pair with itself: the tokens of the pair that
        # are not part of the two texts are its template.
        one = vocabulary.tokenizer.encode("a")
        two = vocabulary.tokenizer.encode("a", "a")
        text = [index for index, special in enumerate(one.special_tokens_mask) if not special]
        if not text or not any(two.special_tokens_mask):
            return cls(0, (vocabulary.mask_id,))
        opening = text[0]
        # len(two) = len(one) + separator + len(one) - opening.
        between = max(len(two.ids) - 2 * len(one.ids) + opening, 0)
        template = cls(opening, tuple(two.ids[len(one.ids) : len(one.ids) + between]))
        # The pair rebuilt from its parts must be equal to the tokenizer's.
        if [*one.ids, *template.separator, *one.ids[opening:]] != two.ids:
            raise ConfigError(
                "the vocabulary joins pairs in an unsupported way; use a vocabulary like that of"
                " BERT, RoBERTa or XLM-R"
            )
        return template

    def join(self, a: TokenBatch, b: TokenBatch) -> TokenBatch:
        """Join ``a`` and ``b`` row by row into one sequence, still packed.

        The host does not wait for the device.
        """
        between = len(self.separator)
        opening = self.opening_tokens
        rows = a.batch_size
        # Number of tokens of a pair minus those of its sentences; negative without a separator.
        more = between - opening
        pairs_before = torch.arange(rows + 1, device=a.cu_seqlens.device).int()
        cu_seqlens = a.cu_seqlens + b.cu_seqlens + more * pairs_before
        starts = cu_seqlens[:-1].long()
        ends_of_a = starts + a.lengths
        ids = a.input_ids.new_empty(len(a.input_ids) + len(b.input_ids) + more * rows)
        # The opening tokens of b are put where the separator or the end of a belongs; both are
        # written later and replace them.
        ids[ends_of_a[b.sequence_ids()] + more + b.positions()] = b.input_ids
        ids[starts[a.sequence_ids()] + a.positions()] = a.input_ids
        for offset, token in enumerate(self.separator):
            ids[ends_of_a + offset] = token
        return TokenBatch(ids, cu_seqlens, a.max_seqlen + b.max_seqlen + more, a.languages)


class PairHead(nn.Module):
    """Dropout, linear, tanh, dropout, linear: RoBERTa's classification head with one output.

    Args:
        dim: width of the pooled states.
        dropout: probability of zeroing an element.
    """

    def __init__(self, dim: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.dense = nn.Linear(dim, dim)
        self.output = nn.Linear(dim, 1)
        self.dropout = nn.Dropout(dropout)

    def forward(self, pooled: Float[Tensor, "b d"]) -> Float[Tensor, " b"]:
        """Compute one logit per row."""
        logits: Tensor = self.output(self.dropout(torch.tanh(self.dense(self.dropout(pooled)))))
        return logits[:, 0]


class PairScorer(nn.Module):
    """An encoder that reads pairs, and the head that scores them.

    Args:
        encoder: reads the joined sequences; its own pooling is not used.
        pooling: the head's input: the first token's state, or the mean of all.
        dropout: of the head.
    """

    def __init__(
        self, encoder: Encoder, *, pooling: PairPooling = "cls", dropout: float = 0.1
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.pooling = pooling
        self.template = PairTemplate.of(encoder.vocabulary)
        self.head = PairHead(encoder.dim, dropout=dropout)

    def forward(self, pairs: TokenBatch) -> Float[Tensor, " b"]:
        """Compute the logit of each joined pair; its sigmoid is the score in [0, 1]."""
        logits: Tensor = self.head(self.encoder.tokens(pairs).pool(self.pooling))
        return logits

    def join(self, a: TokenBatch, b: TokenBatch) -> TokenBatch:
        """Join ``a`` and ``b`` row by row into one sequence, for ``forward``.

        Raises:
            ConfigError: two sentences together are longer than the encoder can take.
        """
        pairs = self.template.join(a, b)
        if pairs.max_seqlen > self.encoder.max_tokens:
            raise ConfigError(
                f"a pair may have {pairs.max_seqlen} tokens, but the encoder reads at most"
                f" {self.encoder.max_tokens}; lower the maximum number of tokens per sentence"
            )
        return pairs

    @torch.inference_mode()
    def score(
        self,
        first: Sequence[str],
        second: Sequence[str],
        *,
        languages: tuple[str | None, str | None] = (None, None),
        batch_tokens: int = 4096,
    ) -> Float32[np.ndarray, " n"]:
        """Compute scores of pairs of texts, in [0, 1].

        Each is the mean over both orders, so that the order does not matter.

        Args:
            first: one text of each pair.
            second: the other.
            languages: of both sides, for vocabularies that pre-tokenize by language.
            batch_tokens: upper limit of a batch, in tokens.
        """
        backbone = FrozenBackbone(self.encoder.backbone, torch.float32)
        training = self.head.training
        self.head.eval()
        vocabulary = self.encoder.vocabulary
        # Each sentence may have half of what the encoder takes, so that any two fit together.
        limit = self.encoder.max_tokens // 2 - len(self.template.separator)
        first_ids = vocabulary.encode(first, language=languages[0], max_tokens=limit)
        second_ids = vocabulary.encode(second, language=languages[1], max_tokens=limit)
        lengths = [len(a) + len(b) for a, b in zip(first_ids, second_ids, strict=True)]
        scores = np.empty(len(lengths), dtype=np.float32)
        for rows in token_budget_batches(lengths, batch_tokens):
            no_languages = [""] * len(rows)
            a = TokenBatch.from_lists([first_ids[row] for row in rows], no_languages)
            b = TokenBatch.from_lists([second_ids[row] for row in rows], no_languages)
            orders = []
            for pairs in (self.join(a, b), self.join(b, a)):
                states = HiddenStates(backbone(pairs.input_ids, pairs.cu_seqlens), pairs.cu_seqlens)
                orders.append(self.head(states.pool(self.pooling)).sigmoid())
            scores[rows] = torch.stack(orders).mean(dim=0).cpu().numpy()
        self.head.train(training)
        return scores

    def save(self, folder: PathLike) -> None:
        """Write a model directory with the head next to the encoder.

        An existing model of this library is replaced.
        """
        with atomic_directory(
            folder, overwrite=True, ours=is_ours, entries=MODEL_ENTRIES
        ) as temporary:
            self.encoder.save(temporary)
            head = {name: tensor.contiguous() for name, tensor in self.head.state_dict().items()}
            write_safetensors(temporary / HEAD_FILE, head, {"pooling": self.pooling})

    @classmethod
    def load(cls, folder: PathLike) -> PairScorer:
        """Read the files that ``save`` wrote.

        Raises:
            CheckpointError: there is no such model, or it has no head for pairs.
        """
        path = Path(folder).expanduser() / HEAD_FILE
        encoder = Encoder.load(folder)
        if not path.is_file():
            raise CheckpointError(
                f"{folder}: {HEAD_FILE} not found, so the model is not a cross-encoder; train"
                " one with method cross_encoder"
            )
        pooling: PairPooling = "cls"
        with safe_open(path, "pt") as file:
            if (file.metadata() or {}).get("pooling") == "mean":
                pooling = "mean"
        scorer = cls(encoder, pooling=pooling)
        scorer.head.load_state_dict(load_file(path))
        return scorer.eval()
