from __future__ import annotations

import pytest
import torch

from interlingua.batches.masking import (
    IGNORED,
    coin_flips,
    mlm_mask,
    one_token_mask,
    random_context,
)
from interlingua.batches.masking import _mix as mix
from interlingua.batches.tokens import BatchPosition, TokenBatch
from interlingua.errors import ConfigError

MASK, VOCABULARY = 4, 1000
SPECIAL = (0, 1, 2, 3, 4)
PLACE = BatchPosition(seed=1, step=7, side="a")


def framed(rows: int, length: int, seed: int = 0) -> TokenBatch:
    """Return sequences <s> ... </s> of ordinary tokens 5..999."""
    drawn = torch.randint(
        5, VOCABULARY, (rows, length), generator=torch.Generator().manual_seed(seed)
    )
    drawn[:, 0], drawn[:, -1] = 2, 3
    return TokenBatch.from_lists(drawn.tolist(), ["eng_Latn"] * rows)


def rows_of(batch: TokenBatch, start: int, stop: int) -> TokenBatch:
    lists = [part.tolist() for part in batch.input_ids.split(batch.lengths.tolist())]
    return TokenBatch.from_lists(lists[start:stop], batch.languages[start:stop])


def mask(batch: TokenBatch, place: BatchPosition = PLACE, **changes):
    settings = {
        "ratio": 0.4,
        "mask_id": MASK,
        "vocab_size": VOCABULARY,
        "special_ids": SPECIAL,
    } | changes
    return mlm_mask(batch, place, **settings)


def test_labels_restore_the_clean_batch():
    batch = framed(50, 30)
    masked, labels = mask(batch)
    chosen = labels != IGNORED
    assert torch.equal(torch.where(chosen, labels, masked.input_ids), batch.input_ids)
    assert torch.equal(masked.cu_seqlens, batch.cu_seqlens)


def test_shares_are_those_of_the_paper():
    # 100,000 ordinary tokens: 40 % chosen; of them 80 % the mask, 10 % random, 10 % unchanged.
    batch = framed(2000, 52)
    masked, labels = mask(batch)
    ordinary = ~torch.isin(batch.input_ids, torch.tensor(SPECIAL))
    chosen = labels != IGNORED
    assert not (chosen & ~ordinary).any()
    assert chosen.sum() / ordinary.sum() == pytest.approx(0.4, abs=0.01)
    hidden = masked.input_ids[chosen]
    unchanged = hidden == labels[chosen]
    assert (hidden == MASK).float().mean() == pytest.approx(0.8, abs=0.01)
    assert unchanged.float().mean() == pytest.approx(0.1, abs=0.01)
    random = hidden[(hidden != MASK) & ~unchanged]
    assert random.float().mean() == pytest.approx((VOCABULARY - 1) / 2, rel=0.03)
    assert random.min() < 5
    assert random.max() > VOCABULARY - 10


def test_options_of_the_masking():
    batch = framed(2000, 20)
    always, labels = mask(batch, replace="always")
    assert (always.input_ids[labels != IGNORED] == MASK).all()
    ordinary, labels = mask(batch, random_specials=False)
    hidden = ordinary.input_ids[labels != IGNORED]
    assert set(hidden[hidden < 5].tolist()) == {MASK}


def test_draws_depend_on_seed_step_and_side_and_nothing_else():
    batch = framed(40, 20)
    torch.manual_seed(0)
    first = mask(batch).labels
    torch.manual_seed(1)
    assert torch.equal(mask(batch).labels, first)
    for other in (PLACE._replace(seed=2), PLACE._replace(step=8), PLACE._replace(side="b")):
        # Equal shapes on both sides get unrelated masks: 40 % of 40 %, not 40 %, are chosen in
        # both.
        both = (mask(batch, other).labels != IGNORED) & (first != IGNORED)
        assert both.sum() / (first != IGNORED).sum() == pytest.approx(0.4, abs=0.08)


def test_a_slice_is_masked_as_in_the_whole_batch():
    batch = framed(16, 12)
    whole_ids, whole_labels = mask(batch)
    half_ids, half_labels = mask(rows_of(batch, 8, 16), PLACE._replace(first_row=8))
    assert torch.equal(half_ids.input_ids, rows_of(whole_ids, 8, 16).input_ids)
    assert torch.equal(half_labels, whole_labels[8 * 12 :])
    hidden, _ = one_token_mask(batch, PLACE, mask_id=MASK)
    part, _ = one_token_mask(rows_of(batch, 8, 16), PLACE._replace(first_row=8), mask_id=MASK)
    assert torch.equal(part.input_ids, rows_of(hidden, 8, 16).input_ids)


def test_a_batch_is_drawn_again_until_a_token_is_chosen():
    single = TokenBatch.from_lists([[2, 50, 3]], ["eng_Latn"])
    for step in range(50):
        _, labels = mask(single, PLACE._replace(step=step))
        assert labels.tolist() == [IGNORED, 50, IGNORED]


def test_nothing_but_special_tokens_stays():
    specials = TokenBatch.from_lists([[2, 3], [2, 1, 3]], ["eng_Latn"] * 2)
    masked, labels = mask(specials)
    assert torch.equal(masked.input_ids, specials.input_ids)
    assert (labels == IGNORED).all()


@pytest.mark.parametrize("ratio", [0.0, -0.1, 1.5])
def test_impossible_ratios_are_refused(ratio):
    with pytest.raises(ConfigError, match="mask ratio"):
        mask(framed(1, 5), ratio=ratio)


def test_one_token_of_each_sentence_is_hidden():
    batch = framed(100, 8)
    masked, hidden = one_token_mask(batch, PLACE, mask_id=MASK, special_ids=SPECIAL)
    changed = masked.input_ids != batch.input_ids
    assert changed.view(100, 8).sum(1).tolist() == [1] * 100
    assert torch.equal(batch.input_ids[changed], hidden)
    assert (masked.input_ids[changed] == MASK).all()
    assert not changed.view(100, 8)[:, [0, -1]].any()


def test_hidden_places_are_uniform():
    batch = framed(8000, 8)
    masked, _ = one_token_mask(batch, PLACE, mask_id=MASK)
    counts = (masked.input_ids != batch.input_ids).view(8000, 8).sum(0)
    assert ((counts - 1000) ** 2 / 1000).sum() < 40  # chi-square, 7 degrees


def test_hiding_on_chosen_sentences_only():
    batch = framed(6, 5)
    where = torch.tensor([True, False, True, False, False, True])
    masked, hidden = one_token_mask(batch, PLACE, mask_id=MASK, where=where)
    changed = (masked.input_ids != batch.input_ids).view(6, 5).any(1)
    assert torch.equal(changed, where)
    assert len(hidden) == 6


def test_a_sentence_of_special_tokens_still_hides_one():
    batch = TokenBatch.from_lists([[1, 1], [2, 77, 3]], ["eng_Latn"] * 2)
    masked, hidden = one_token_mask(batch, PLACE, mask_id=MASK, special_ids=SPECIAL)
    assert hidden.tolist() == [1, 77]
    assert masked.input_ids.tolist().count(MASK) == 2


def test_coins_are_fair_and_belong_to_rows():
    batch = framed(4000, 3)
    flips = coin_flips(batch, PLACE)
    assert flips.float().mean() == pytest.approx(0.5, abs=0.03)
    assert torch.equal(
        coin_flips(rows_of(batch, 100, 200), PLACE._replace(first_row=100)), flips[100:200]
    )


@pytest.mark.parametrize("value", [0, 1, 2**63 - 1, -1, -(2**63)])
def test_the_hash_is_splitmix64(value):
    z = (value + 0x9E3779B97F4A7C15) % 2**64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % 2**64
    z ^= z >> 31
    assert int(mix(torch.tensor([value]))[0]) % 2**64 == z


def test_contexts_are_drawn_for_each_token_alone():
    shown = random_context(PLACE, torch.arange(40), 30, hidden=0.7)
    assert shown.shape == (40, 30, 30)
    assert float(shown.float().mean()) == pytest.approx(0.3, abs=0.01)
    for axis in range(3):  # neighbors in any direction agree as often as chance has it
        agree = (shown == shown.roll(1, axis)).float().mean()
        assert float(agree) == pytest.approx(0.3**2 + 0.7**2, abs=0.02)


def test_contexts_depend_on_the_place_and_the_row_in_the_global_batch():
    whole = random_context(PLACE, torch.arange(6), 9, hidden=0.5)
    part = random_context(PLACE._replace(first_row=4), torch.tensor([1, 0]), 9, hidden=0.5)
    assert torch.equal(part, whole[[5, 4]])
    for other in (PLACE._replace(step=8), PLACE._replace(seed=2), PLACE._replace(side="b")):
        assert not torch.equal(random_context(other, torch.arange(6), 9, hidden=0.5), whole)


def test_limits_of_contexts():
    assert not random_context(PLACE, torch.arange(3), 5, hidden=1.0).any()
    assert random_context(PLACE, torch.arange(3), 5, hidden=0.0).all()
