"""``interlingua.calibrate`` and ``interlingua calibrate`` learn the same curve."""

from __future__ import annotations

import random

import pytest

import interlingua
from interlingua.mining.calibration.calibration import load_calibrations
from tests.mining.invented import corpora, embed, sentence, text, write_lines

FUNCTION = "tests.mining.invented:embed"


@pytest.fixture
def sides(tmp_path):
    sources, targets, _ = corpora(40, 60)
    draw = random.Random(5)
    known = [sentence(draw) for _ in range(200)]
    write_lines(tmp_path / "a.de", sources)
    write_lines(tmp_path / "a.en", targets)
    write_lines(
        tmp_path / "known.de-en.tsv", [f"{text(one, 'de')}\t{text(one, 'en')}" for one in known]
    )
    return sources, targets


def test_function_and_command_line_learn_equal_curves(done, tmp_path, sides):
    files = [tmp_path / name for name in ("a.de", "a.en")]
    parallel = tmp_path / "known.de-en.tsv"
    done(
        f"calibrate {FUNCTION}",
        *files,
        f"--backend function --parallel {parallel} -o {tmp_path}/c.json --quiet",
    )
    named = {"parallel": parallel, "output": tmp_path / "d.json"}
    found = interlingua.calibrate(FUNCTION, *files, backend="function", **named)
    assert (tmp_path / "d.json").read_bytes() == (tmp_path / "c.json").read_bytes()
    [written] = load_calibrations(tmp_path / "d.json").values()
    assert written.scores == pytest.approx(found.calibration.scores)
    assert written.prior == pytest.approx(found.calibration.prior)
    codes = {"source_language": "de", "target_language": "en"}
    from_lists = interlingua.calibrate(
        embed, *sides, **codes, **{**named, "output": tmp_path / "e.json"}
    )
    assert from_lists.calibration.scores == found.calibration.scores
    assert from_lists.calibration.prior == found.calibration.prior


def test_a_calibration_gives_mined_pairs_probabilities(tmp_path, sides):
    codes = {"source_language": "de", "target_language": "en"}
    made = tmp_path / "c.json"
    interlingua.calibrate(
        embed, *sides, parallel=tmp_path / "known.de-en.tsv", output=made, **codes
    )
    found = interlingua.mine(embed, *sides, calibration=made, precision=0.9, **codes)
    shares = [columns["probability"] for columns in found.columns]
    assert 35 <= len(found) <= 50
    assert sum(shares) / len(shares) >= 0.9
