from __future__ import annotations

import itertools
import random
import re

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibrate import report
from interlingua.mining.calibration.calibration import (
    expected_cuts,
    fit_calibration,
    load_calibration,
)
from interlingua.mining.review import read_labels
from tests.jobs import calibrated
from tests.mining import two_sides
from tests.mining.curves import calibration
from tests.mining.invented import sentence, text, write_lines
from tests.mining.two_sides import as_pairs, mine, write_gold


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrate")
    write_gold(folder / "gold.tsv", two_sides.sides(folder, 80, 300)[2])
    draw = random.Random(5)
    held_out = [sentence(draw) for _ in range(400)]
    write_lines(
        folder / "held.de-en.tsv", [f"{text(one, 'de')}\t{text(one, 'en')}" for one in held_out]
    )
    return folder


def sides(folder):
    return two_sides.sides(folder, 80, 300)[:2]


def run(folder, tmp_path, **options):
    options = {"drop": "none", "output": tmp_path / "c.json"} | options
    return calibrated(*sides(folder), "model", **options).lines


def curves(lines):
    """Return the rows of each reported reliability curve."""
    tables = "\n".join(lines).split("predicted  right   pairs  from score\n")[1:]
    row = re.compile(r" *([\d.]+)  ([\d.]+) +([\d,]+) +([\d.]+)\n")
    found = []
    for table in tables:
        found.append([])
        while match := row.match(table):
            found[-1].append(tuple(float(cell.replace(",", "")) for cell in match.groups()))
            table = table[match.end() :]
    return found


def test_held_out_pairs_teach_and_gold_measures(folder, tmp_path):
    held_out = str(folder / "held.de-en.tsv")
    lines = run(folder, tmp_path, parallel=held_out, gold=folder / "gold.tsv")
    found = load_calibration(
        tmp_path / "c.json", "de", "en", model="model", scoring="mine ratio k=4 max"
    )
    assert (found.basis, found.measures["ece"] < 0.05) == ("probes", True)
    mined = mine(*sides(folder), tmp_path / "work")
    assert found.prior == pytest.approx(80 / len(mined.pairs), abs=0.1)
    assert not (tmp_path / "c.json.work").exists()
    (told,) = [line for line in lines if line.startswith("precision 0.95 requested")]
    share, pairs = re.search(r"requested: ([\d.]+) found, of (\d+) pairs", told).groups()
    assert float(share) >= 0.9
    assert 60 <= int(pairs) <= 90
    assert [row[:3] for row in curves(lines)[0]] == [
        pytest.approx((one.probability, one.right, one.pairs), abs=6e-4) for one in found.bins
    ]
    (own,) = [int(line.split()[3]) for line in lines if line.startswith("translations among the")]
    # The scores are of pairs without a held-out text.
    assert any(f"the {own} pairs found with the held-out texts mixed in" in line for line in lines)
    right = int(re.search(r"are right \((\d+)\)", "".join(lines)).group(1))
    by_gold = curves(lines)[1]
    assert sum(row[2] for row in by_gold) == own
    assert sum(row[1] * row[2] for row in by_gold) == pytest.approx(right, abs=0.5)
    assert all(
        10 * after[0] // 1 > 10 * before[0] // 1 for before, after in itertools.pairwise(by_gold)
    )
    low, high = map(
        float,
        re.search(r"between ([\d.]+)% and ([\d.]+)% ", "\n".join(lines)).groups(),
    )
    assert low <= 100 * found.prior <= high
    assert found.measures["separation"] > 0.9
    assert lines[-1] == f"written: {tmp_path / 'c.json'}"
    assert "380 lines, 380 texts" not in lines[0]
    assert "including 300 held-out texts" in lines[0]
    both, recovered = re.search(
        r"of (\d+) pairs with both sides, (\d+) were found", lines[2]
    ).groups()
    assert int(both) == 200
    assert int(recovered) > 150


def test_a_file_that_is_no_calibration_stays_and_is_told_at_once(folder, tmp_path):
    write_lines(tmp_path / "c.json", ["{}"])
    with pytest.raises(DataError, match=r"c\.json: .*interlingua calibrate"):
        run(folder, tmp_path, gold=folder / "gold.tsv")


def test_gold_alone(folder, tmp_path):
    lines = run(folder, tmp_path, gold=folder / "gold.tsv", work=tmp_path / "w")
    found = load_calibration(tmp_path / "c.json", "de", "en")
    assert found.basis == "gold"
    assert found.fitted_prior == pytest.approx(
        found.prior, abs=0.01
    )  # the likeliest share is the share
    assert "80 of 80 gold pairs were found" in lines[2]
    assert (tmp_path / "w").is_dir()


def test_judged_pairs(folder, tmp_path):
    """Judge a third of the pairs, selected by score, which leaves the curve unchanged."""
    mined = mine(*sides(folder), tmp_path / "work")
    right = two_sides.sides(folder, 80, 300)[2]
    rows = [
        f"{int((x, y) in right)}\t{mined.x.texts[x]}\t{mined.y.texts[y]}"
        for place, (x, y) in enumerate(as_pairs(mined))
        if place < 100 or place % 4 == 0
    ]
    write_lines(tmp_path / "labels.tsv", [*rows, "1\tnobody\tknows"])
    lines = run(folder, tmp_path, labels=tmp_path / "labels.tsv")
    found = load_calibration(tmp_path / "c.json", "de", "en")
    assert f"{len(rows)} of {len(rows) + 1} judged pairs are among the mined pairs" in lines
    assert found.prior == pytest.approx(80 / len(mined.pairs), abs=0.05)
    expected = found.probability(np.array(mined.pairs["score"])).sum()
    assert expected == pytest.approx(found.prior * len(mined.pairs), rel=0.01)
    write_lines(tmp_path / "labels.tsv", ["1\tnobody\tknows"])
    with pytest.raises(DataError, match="pairs was mined"):
        run(folder, tmp_path, labels=tmp_path / "labels.tsv")


def test_files_of_judged_pairs(tmp_path):
    assert read_labels(write_lines(tmp_path / "l", ["1\ta\tb", "0\tc\td"])).answers == {
        ("a", "b"): True,
        ("c", "d"): False,
    }
    with pytest.raises(DataError, match=r"l:1: .*label 'yes'; expected 1 or 0"):
        read_labels(write_lines(tmp_path / "l", ["yes\ta\tb"]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "--parallel .*--labels or --gold"),
        ({"parallel": "a", "labels": "b"}, "--parallel and --labels"),
    ],
)
def test_what_cant_be_learned_from(folder, tmp_path, options, message):
    with pytest.raises(ConfigError, match=message):
        run(folder, tmp_path, **options)


def test_a_precision_that_no_pair_reaches_is_told_in_words():
    scores = np.linspace(1.0, 1.2, 400)
    fit = fit_calibration(scores, np.random.default_rng(0).random(400) < 0.3)
    cuts = expected_cuts(scores, np.full(400, 0.6), (0.5, 0.9))
    curve = calibration(measures={**fit.measures, "separation": 0.6}, bins=fit.bins, cuts=cuts)
    lines = report(fit, curve, scores)
    assert any(
        line.startswith("precision 0.50: 400 pairs, from score 1.0000 on (") for line in lines
    )
    assert "precision 0.90: no pair reaches it" in lines
