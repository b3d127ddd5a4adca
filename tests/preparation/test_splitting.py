import numpy as np
import pytest

from interlingua.preparation import splitting
from interlingua.preparation.config import SplitConfig
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.shards import Fate
from interlingua.preparation.splitting import split_rows
from tests.preparation.conftest import config_for, shard_of

NONE = SplitConfig()


def numbered(folder, number, sources, targets, **options):
    """Write a shard of which each text is its own key."""
    keys = (list(sources), list(targets))
    return shard_of(folder, number, list(zip(*keys, strict=True)), keys=keys, **options)


def keys_of(shards, fate):
    keys = [side[s.fates == fate] for s in shards for side in (s.source_keys, s.target_keys)]
    return set(np.concatenate(keys).tolist())


def split_into(shards, folder, heldout, validation=NONE, **options):
    split_rows(
        shards,
        config_for(folder, folder, heldout=heldout, validation=validation, **options),
        StageProgress(),
    )


def test_a_shared_sentence_on_the_other_side_of_another_language_pair_is_found(tmp_path):
    german = numbered(tmp_path, 0, range(1, 101), range(201, 301))
    # German is the target side here.
    czech = numbered(tmp_path, 1, range(401, 501), range(1, 101), pair=("ces_Latn", "deu_Latn"))
    shards = [czech, german]
    split_into(shards, tmp_path, SplitConfig(pairs=5), SplitConfig(pairs=3))
    assert [german.count(fate) for fate in (Fate.heldout, Fate.valid, Fate.train)] == [5, 3, 92]
    assert [czech.count(fate) for fate in (Fate.in_heldout_or_valid, Fate.train)] == [8, 92]
    taken = keys_of(shards, Fate.heldout) | keys_of(shards, Fate.valid)
    assert not taken & keys_of(shards, Fate.train)
    assert not keys_of(shards, Fate.heldout) & keys_of(shards, Fate.valid)


def test_rows_that_share_a_sentence_with_the_test_set_are_not_drawn_for_validation(tmp_path):
    # Ten English sentences with ten translations each: whichever one is held out takes all its rows
    # along.
    shard = numbered(tmp_path, 0, range(100, 200), [1 + i // 10 for i in range(100)])
    settings = SplitConfig(pairs=4, max_share=0.9)
    split_into([shard], tmp_path, settings, settings)
    fates = (Fate.heldout, Fate.valid, Fate.in_heldout_or_valid, Fate.train)
    assert [shard.count(fate) for fate in fates] == [4, 4, 72, 20]


@pytest.mark.parametrize(("max_share", "expected"), [(0.0, 0), (0.03, 3), (0.2, 20), (0.9, 30)])
def test_max_share(tmp_path, max_share, expected):
    shard = numbered(tmp_path, 0, range(1, 101), range(201, 301))
    settings = SplitConfig(pairs=30, max_share=max_share)
    split_into([shard], tmp_path, settings)
    assert shard.count(Fate.heldout) == expected


@pytest.mark.parametrize("max_share", [0.2, 0.04])
def test_a_large_language_pair_is_sampled_and_gives_the_same_choice(
    tmp_path, monkeypatch, max_share
):
    chosen = []
    for number, candidates in enumerate((100_000, 50)):
        monkeypatch.setattr(splitting, "CANDIDATES", candidates)
        shards = [
            numbered(
                tmp_path,
                2 * number + part,
                range(first, first + 500),
                range(first + 2000, first + 2500),
            )
            for part, first in enumerate((1, 501))
        ]
        settings = SplitConfig(pairs=20, max_share=max_share)
        split_into(shards, tmp_path, settings, seed=3)
        chosen.append(keys_of(shards, Fate.heldout))
        assert len(chosen[-1]) == 40
    if max_share == 0.04:
        assert chosen[0] == chosen[1]


def test_words_and_sources_decide_who_may_be_drawn(tmp_path):
    shard = numbered(tmp_path, 0, range(1, 101), range(201, 301), words=[2] * 50 + [5] * 50)
    settings = SplitConfig(pairs=5, short_pairs=3, min_words=3)
    split_into([shard], tmp_path, settings)
    held_out = shard.fates == Fate.heldout
    assert (np.count_nonzero(held_out[:50]), np.count_nonzero(held_out[50:])) == (3, 5)
    config = config_for(tmp_path, tmp_path, heldout=SplitConfig(pairs=5), validation=NONE)
    object.__setattr__(config.sources[0], "heldout", False)
    shard.fates[:] = 0
    split_rows([shard], config, StageProgress())
    assert shard.count(Fate.heldout) == 0


def test_without_a_candidate_nothing_happens(tmp_path):
    shard = numbered(tmp_path, 0, [1, 2], [3, 4], pair=("deu_Latn", "fra_Latn"))
    split_rows([shard], config_for(tmp_path, tmp_path), StageProgress())
    assert shard.count(Fate.train) == 2
    split_rows([], config_for(tmp_path, tmp_path), StageProgress())
