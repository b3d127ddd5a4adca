from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.analysis.tokens import (
    batches,
    prompt_length,
    spell,
    text_mask,
    token_ids,
    token_windows,
)
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import TaskError
from tests.analysis.conftest import LINES

ENGLISH = LINES["eng_Latn"]


@pytest.mark.parametrize("prompt", ["", "Yes. "])
def test_windows_hold_every_token_of_text_once(framed_encoder, prompt):
    ids = token_ids(framed_encoder, ENGLISH, language="eng_Latn", prompt=prompt)
    skipped = 1 + prompt_length(framed_encoder, prompt)
    expected = [
        (line, place) for line, row in enumerate(ids) for place in range(skipped, len(row) - 1)
    ]
    for batch_tokens in (1, 20, 4096):
        windows = list(token_windows(framed_encoder, ids, prompt=prompt, batch_tokens=batch_tokens))
        places = [(int(a), int(b)) for w in windows for a, b in zip(w.line, w.place, strict=True)]
        assert places == expected
    assert len(windows) == 1


def test_states_are_the_encoders_of_length_one(framed_encoder):
    ids = token_ids(framed_encoder, ENGLISH, language="eng_Latn")
    (window,) = token_windows(framed_encoder, ids)
    with torch.no_grad():
        hidden = framed_encoder.tokens(TokenBatch.from_lists(ids, ("",) * 4)).without_special()
    expected = torch.nn.functional.normalize(hidden.states, dim=-1).numpy()
    np.testing.assert_allclose(window.states, expected, atol=1e-5)


def test_batches_keep_the_order_and_the_budget(framed_encoder):
    ids = [[5] * length for length in (3, 9, 2, 2, 1)]
    found = list(batches(framed_encoder, ids, batch_tokens=5))
    assert [(first, batch.lengths.tolist()) for first, batch in found] == [
        (0, [3]),
        (1, [9]),
        (2, [2, 2, 1]),
    ]


def test_specials_and_the_prompt_are_no_text(framed_encoder):
    prompt = "Yes. "
    ((_, batch),) = batches(
        framed_encoder,
        token_ids(framed_encoder, ["The cat."], language="eng_Latn", prompt=prompt),
        batch_tokens=1,
    )
    text = [
        t
        for t, kept in zip(
            batch.input_ids.tolist(), text_mask(framed_encoder, batch, prompt), strict=True
        )
        if kept
    ]
    pieces = "".join(framed_encoder.vocabulary.tokenizer.id_to_token(token) for token in text)
    assert pieces == "▁The▁cat."
    assert prompt_length(framed_encoder, "") == prompt_length(framed_encoder, "  ") == 0


@pytest.mark.parametrize("prompt", ["", "Yes. "])
def test_spans_spell_the_text(framed_encoder, prompt):
    line = "The cat sits."
    ids = token_ids(framed_encoder, [line], language="eng_Latn", prompt=prompt)[0]
    spelled = spell(framed_encoder, line, language="eng_Latn", prompt=prompt)
    assert spelled.text == line
    assert len(spelled.spans) == len(ids)
    of_text = spelled.spans[1 + prompt_length(framed_encoder, prompt) : -1]
    pieces = [
        framed_encoder.vocabulary.tokenizer.id_to_token(i)
        for i in ids[1 + prompt_length(framed_encoder, prompt) : -1]
    ]
    assert [line[a:b].strip() for a, b in of_text] == [piece.lstrip("▁") for piece in pieces]


def test_weights_that_are_broken_are_one_line(framed_encoder):
    ids = token_ids(framed_encoder, ENGLISH, language="eng_Latn")
    with torch.no_grad():
        next(framed_encoder.parameters()).fill_(torch.nan)
    with pytest.raises(TaskError, match=r"NaN .*tokens from line 1"):
        list(token_windows(framed_encoder, ids))
