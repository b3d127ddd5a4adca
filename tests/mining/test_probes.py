from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.mining.calibration.calibrate import Probes, answers, make_probes
from interlingua.mining.candidates import FOUND
from interlingua.mining.texts import Line, build_side


def pairs(count):
    return [(f"de{n}", f"en{n}") for n in range(count)]


def test_half_go_in_whole_and_the_others_by_one_side():
    probes = make_probes(iter(pairs(100)), 1000)
    assert len(probes.source) == len(probes.target) == 75
    whole = set(probes.source_pairs.tolist()) & set(probes.target_pairs.tolist())
    assert len(whole) == 50
    assert set(probes.source_pairs.tolist()) | set(probes.target_pairs.tolist()) == set(range(100))
    by_pair = dict(zip(probes.target_pairs.tolist(), probes.target, strict=True))
    for number, line in zip(probes.source_pairs.tolist(), probes.source, strict=True):
        if number in whole:
            assert by_pair[number].text == line.text.replace("de", "en")


def test_the_draw_is_the_seeds():
    assert make_probes(pairs(500), 100)[0] == make_probes(pairs(500), 100)[0]
    assert make_probes(pairs(500), 100)[0] != make_probes(pairs(500), 100, seed=1)[0]
    assert len(make_probes(pairs(500), 100).source) == 75
    with pytest.raises(DataError, match="79 held-out pairs"):
        make_probes(pairs(79), 1000)


def test_answers_by_hand(tmp_path):
    """Use texts 0 and 1 of the corpora, and probes: whole, a source, a target, a repeated text.

    Probe 0 is whole, 1 only a source, 2 only a target, 3 is a text of the source, too, and so no
    probe.
    """
    probes = Probes(
        [Line("de-p0", ""), Line("de-p1", ""), Line("de-b", "")],
        [Line("en-p0", ""), Line("en-p2", ""), Line("en-p3", "")],
        np.array([0, 1, 3]),
        np.array([0, 2, 3]),
    )
    lines = [[Line("de-a", ""), Line("de-b", "")], [Line("en-a", ""), Line("en-b", "")]]
    x = build_side(tmp_path / "x", lambda: lines[0] + probes.source)
    y = build_side(tmp_path / "y", lambda: lines[1] + probes.target)
    found = np.zeros(6, FOUND)
    # the corpora's own; the probe found; only a source with a text; a text with only a target;
    # probe 3; mixed probes
    found["x"], found["y"] = [0, 2, 3, 0, 1, 2], [0, 2, 1, 3, 4, 3]
    told = answers(found, x, y, probes)
    assert told.own.tolist() == [True, False, False, False, False, False]
    assert told.known.tolist() == [False, True, True, True, False, False]
    assert told.right[told.known].tolist() == [True, False, False]
    assert told.excluded == 1
