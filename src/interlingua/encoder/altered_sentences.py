"""Altered forms of a batch's sentences, in the encoder's tokens: hard negatives for training."""

from __future__ import annotations

import random
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

import torch
from jaxtyping import Int64
from torch import Tensor

from interlingua.batches.seeds import stream_key
from interlingua.batches.sentences import sentence_keys
from interlingua.batches.tokens import TokenBatch
from interlingua.corpus.hard_negatives import Alterer, check_request
from interlingua.encoder.vocabulary import Vocabulary


class AlteredBatch(NamedTuple):
    """Altered sentences, and the originals that they belong to."""

    sentences: TokenBatch
    owners: Int64[Tensor, " m"]
    """Row of the sentence that each was made from."""


class HardRequest(NamedTuple):
    """What altered sentences are wanted."""

    kinds: tuple[str, ...]
    """What to alter, see ``corpus.hard_negatives``."""
    most: int
    """Forms of a sentence, at most; where nothing can be altered there are none."""


class AlteredSentences:
    """Makes altered forms of sentences that are there as tokens.

    Each is a pure function of (seed, step, sentence).

    Args:
        vocabulary: of the tokens.
        language: of the sentences.
        request: what is wanted.
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
        """Takes the names that are put for one another from these sentences.

        Else they come from the first batch.
        """
        self._alterer = Alterer(list(texts), self._language, kinds=self._request.kinds)

    @property
    def needs_names(self) -> bool:
        """Whether names are put for one another."""
        return "entity" in self._request.kinds

    def __call__(
        self,
        batch: TokenBatch,
        *,
        seed: int,
        step: int,
        is_known: Callable[[Tensor], Collection[bool]] | None = None,
    ) -> AlteredBatch | None:
        """Altered forms of a batch's sentences; none where nothing can be altered.

        Args:
            batch: the sentences.
            seed: of the run.
            step: of the run.
            is_known: whether sentences, by their keys, are sentences of the corpus, which are no
                altered ones.
        """
        ids = torch.split(batch.input_ids, batch.lengths.tolist())
        texts = [self._vocabulary.decode(sentence.tolist()) for sentence in ids]
        if self._alterer is None:
            self.learn_names(texts)
        assert self._alterer is not None
        forms: list[str] = []
        owners: list[int] = []
        for row, text in enumerate(texts):
            draw = random.Random(stream_key(seed, "altered", step, text))
            for altered in self._alterer.forms(text, self._request.most, draw):
                forms.append(altered.text)
                owners.append(row)
        if not forms:
            return None
        sequences = self._vocabulary.encode(
            forms, language=self._language, max_tokens=self._max_tokens
        )
        found = TokenBatch.from_lists(sequences, [batch.languages[row] for row in owners])
        kept = self._new(found, batch, is_known)
        if not kept:
            return None
        sentences = TokenBatch.from_lists(
            [sequences[i] for i in kept], [found.languages[i] for i in kept]
        )
        return AlteredBatch(sentences, torch.tensor([owners[i] for i in kept]))

    @staticmethod
    def _new(
        found: TokenBatch, batch: TokenBatch, is_known: Callable[[Tensor], Collection[bool]] | None
    ) -> list[int]:
        """Those that have tokens of their own: neither of the batch's sentences nor of known
        ones.
        """
        keys = sentence_keys(found)
        taken = torch.isin(keys, sentence_keys(batch).cpu()).tolist()
        for place, known in enumerate(is_known(keys) if is_known is not None else ()):
            taken[place] = taken[place] or bool(known)
        return [place for place, is_taken in enumerate(taken) if not is_taken]
