"""Altered forms of a batch's sentences, in the encoder's tokens: hard negatives for training.

A batch holds tokens, but names, numbers and negations can only be altered in text. So sentences are
decoded, altered by ``corpus.negatives.hard_negatives``, and encoded again. An altered form that
equals a sentence of the batch or of the corpus is dropped, because it would be a correct
translation of another sentence.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from interlingua.batches.sentences import sentence_keys, take
from interlingua.batches.tokens import TokenBatch
from interlingua.corpus.negatives.hard_negatives import Alterer, check_request
from interlingua.runtime.seeds import stream_key
from interlingua.vocabulary.vocabulary import Vocabulary


class AlteredBatch(NamedTuple):
    """Altered sentences, and the originals that they belong to."""

    sentences: TokenBatch
    owners: Int64[Tensor, " m"]
    """Row of the original sentence of each altered one."""


class HardRequest(NamedTuple):
    """Request for altered sentences: the kinds to make and their number."""

    kinds: tuple[str, ...]
    """The kinds of changes, see ``corpus.negatives.hard_negatives``."""
    most: int
    """Maximum number of forms of a sentence; there are none if nothing can be altered."""


class AlteredSentences:
    """Source of altered forms of tokenized sentences.

    Each form is a pure function of (seed, step, sentence).

    Args:
        vocabulary: of the tokens.
        language: of the sentences.
        request: the altered forms to make.
        max_tokens: longer forms are cut.

    Raises:
        ConfigError: a kind is unknown.
    """

    def __init__(
        self, vocabulary: Vocabulary, language: str, request: HardRequest, *, max_tokens: int
    ) -> None:
        check_request(request.kinds, request.most)
        self._vocabulary = vocabulary
        self._language = language
        self._request = request
        self._max_tokens = max_tokens
        self._alterer: Alterer | None = None

    def learn_names(self, texts: Iterable[str]) -> None:
        """Collect from these sentences the names that replace one another.

        Without this call the names are taken from the first batch.
        """
        self._alterer = Alterer(list(texts), self._language, kinds=self._request.kinds)

    @property
    def needs_names(self) -> bool:
        """True if names are exchanged for one another."""
        return "entity" in self._request.kinds

    def __call__(
        self,
        batch: TokenBatch,
        *,
        seed: int,
        step: int,
        is_known: Callable[[Tensor], Collection[bool]] | None = None,
    ) -> AlteredBatch | None:
        """Return altered forms of a batch's sentences, or None if nothing can be altered.

        Args:
            batch: the sentences.
            seed: of the run.
            step: of the run.
            is_known: takes the keys of sentences and returns for each whether the sentence is in
                the corpus; forms for which this is true are dropped.
        """
        ids = torch.split(batch.input_ids, batch.lengths.tolist())
        texts = [self._vocabulary.decode(sentence.tolist()) for sentence in ids]
        if self._alterer is None:
            self.learn_names(texts)
        assert self._alterer is not None
        forms: list[str] = []
        owners: list[int] = []
        for row, text in enumerate(texts):
            # One random stream per sentence: the forms depend neither on the batch
            # nor on the number of processes that share it.
            draw = random.Random(stream_key(seed, "altered", step, text))
            for altered in self._alterer.forms(text, self._request.most, draw):
                forms.append(altered.text)
                owners.append(row)
        if not forms:
            return None
        sequences = self._vocabulary.encode(
            forms, language=self._language, max_tokens=self._max_tokens
        )
        made = TokenBatch.from_lists(sequences, [batch.languages[row] for row in owners])
        kept = self._new_rows(made, batch, is_known)
        if not kept:
            return None
        return AlteredBatch(take(made, kept), torch.tensor([owners[row] for row in kept]))

    @staticmethod
    def _new_rows(
        made: TokenBatch, batch: TokenBatch, is_known: Callable[[Tensor], Collection[bool]] | None
    ) -> list[int]:
        """Return the rows with new tokens: neither a sentence of the batch nor a known one."""
        # Compare tokens, not texts: sentences with equal tokens are the same sentence.
        keys = sentence_keys(made)
        is_taken = torch.isin(keys, sentence_keys(batch).cpu()).tolist()
        if is_known is not None:
            for row, known in enumerate(is_known(keys)):
                is_taken[row] = is_taken[row] or bool(known)
        return [row for row, taken in enumerate(is_taken) if not taken]
