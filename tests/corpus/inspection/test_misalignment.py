from __future__ import annotations

import pytest

from interlingua.corpus.inspection.misalignment import SlipFinder, shift_of_numbers
from tests.corpus.inspection.made import german_english


def slips_of(pairs, portion=300):
    finder = SlipFinder()
    for start in range(0, len(pairs), portion):
        some = pairs[start : start + portion]
        finder.add([pair[0] for pair in some], [pair[1] for pair in some])
    return finder.end()


def slipped(pairs, at, shift):
    """Insert lines into one side of pairs: into the targets if the shift is positive."""
    sources = [pair[0] for pair in pairs]
    targets = [pair[1] for pair in pairs]
    side = targets if shift > 0 else sources
    side[at:at] = ["an additional line"] * abs(shift)
    return list(zip(sources, targets, strict=False))


@pytest.mark.parametrize("shift", [1, -1, 3, -4])
def test_a_slip_and_its_place(shift):
    (found,) = slips_of(slipped(german_english(1200), 700, shift))
    assert found.shift == shift
    assert found.first == pytest.approx(701, abs=10)
    assert found.last >= 1150


def test_aligned_pairs_have_none():
    assert slips_of(german_english(3000)) == []


def test_a_slip_that_another_one_mends():
    pairs = slipped(german_english(3000), 1000, 1)
    mended = [(source, target) for source, target in pairs]
    sources = [source for source, _ in mended]
    targets = [target for _, target in mended]
    del targets[2000]
    (found,) = slips_of(list(zip(sources, targets, strict=False)))
    assert found.first == pytest.approx(1001, abs=10)
    assert found.last == pytest.approx(2000, abs=256)


def test_numbers_tell_where_lengths_are_sorted():
    pairs = sorted(german_english(1000), key=lambda pair: len(pair[0]))
    (found,) = slips_of(slipped(pairs, 500, 2))
    assert found.shift == 2
    assert shift_of_numbers(pairs[:200]) == 0


def test_few_pairs_tell_nothing():
    assert slips_of(slipped(german_english(40), 5, 1)) == []
