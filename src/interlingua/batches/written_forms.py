"""Some sentences of a batch in another form: capitals, typos, without punctuation.

A batch holds tokens, but forms can only be made from text. So the drawn sentences are decoded,
written in one of the forms of ``corpus.forms.variants``, and encoded again. The form of a sentence
is a pure function of (seed, step, its tokens), so all terms of a loss get the same form.
"""

from __future__ import annotations

import random
from typing import NamedTuple

import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.corpus.forms.variants import FORM_VARIANTS, check_variants
from interlingua.runtime.seeds import stream_key
from interlingua.vocabulary.vocabulary import Vocabulary


class FormsRequest(NamedTuple):
    """Share of the sentences to write in another form, and the forms."""

    share: float
    """Share of the sentences, above 0 and at most 1."""
    names: tuple[str, ...] = ()
    """Names of ``corpus.forms.variants.FORM_VARIANTS``; none: all of them."""


class WrittenForms:
    """Function object that writes a share of a batch's sentences in other forms.

    Args:
        vocabulary: of the tokens.
        request: the forms to write.
        max_tokens: longer forms are cut.

    Raises:
        ConfigError: a form is unknown.
    """

    def __init__(self, vocabulary: Vocabulary, request: FormsRequest, *, max_tokens: int) -> None:
        check_variants(request.names, "data.forms.names")
        self._vocabulary = vocabulary
        self._share = request.share
        self._names = request.names or tuple(FORM_VARIANTS)
        self._max_tokens = max_tokens

    def __call__(self, batch: TokenBatch, *, seed: int, step: int) -> TokenBatch:
        """Return the batch with some of its sentences in another form.

        A sentence stays unchanged if the form does not exist for it (such as capitals in Thai).

        Args:
            batch: the sentences.
            seed: of the run.
            step: of the run.
        """
        sentences = [ids.tolist() for ids in torch.split(batch.input_ids, batch.lengths.tolist())]
        changed = False
        for row, ids in enumerate(sentences):
            draw = random.Random(stream_key(seed, "forms", step, repr(ids)))
            if draw.random() >= self._share:
                continue
            language = batch.languages[row]
            text = self._vocabulary.decode(ids)
            written = FORM_VARIANTS[draw.choice(self._names)](text, draw, language)
            if written != text:
                (sentences[row],) = self._vocabulary.encode(
                    [written], language=language, max_tokens=self._max_tokens
                )
                changed = True
        if not changed:
            return batch
        return TokenBatch.from_lists(sentences, batch.languages)
