from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration import calibration as module
from interlingua.mining.calibration.calibration import (
    Cut,
    expected_cuts,
    load_calibration,
    load_calibrations,
    save_calibration,
)
from tests.mining.curves import calibration


def sigmoid(x):
    return 1 / (1 + np.exp(-np.asarray(x)))


def test_a_line_in_log_odds_goes_on_beyond_its_points():
    found = calibration().probability([0.9, 1.0, 1.1, 1.2, 1.3])
    assert found.tolist() == pytest.approx(sigmoid([-6, -3, 0, 3, 6]))


def test_steps_are_level_beyond_their_ends():
    curve = calibration(shape="isotonic", scores=(1.0, 1.1, 1.2), log_odds=(-2.0, 0.0, 0.0))
    assert curve.probability([0.0, 1.05, 5.0]).tolist() == pytest.approx(sigmoid([-2, -1, 0]))


def test_another_share_of_right_pairs_multiplies_the_odds():
    """Convert even odds at a share of 1/2 to odds of 1 to 9 at a share of 1/10 (Bayes)."""
    assert calibration().probability([1.1], prior=0.1).tolist() == pytest.approx([0.1])
    assert calibration(prior=0.1).probability([1.1]).tolist() == pytest.approx([0.1])


@pytest.mark.parametrize("prior", [0.02, 0.3, 0.9])
def test_the_share_of_right_pairs_is_found_again(prior):
    """Draw scores like the calibration: right ones exp(30 s) times likelier, a Gaussian's shift."""
    rng = np.random.default_rng(0)
    # two Gaussians, 0.3 apart: their log likelihood ratio is a line of slope 30 through 1.1
    width = 0.1
    right = rng.random(40_000) < prior
    scores = np.where(right, 1.25, 0.95) + width * rng.standard_normal(40_000)
    assert calibration().estimate_prior(scores) == pytest.approx(right.mean(), abs=0.01)


def test_the_share_is_that_of_the_em_iterations():
    scores = np.random.default_rng(1).normal(1.1, 0.1, 500)
    curve, prior = calibration(), 0.5
    for _ in range(5000):
        prior = curve.probability(scores, prior=prior).mean()
    assert curve.estimate_prior(scores) == pytest.approx(prior, abs=1e-6)


def test_no_right_pair_at_all():
    assert calibration().estimate_prior(np.full(100, 0.5)) < 1e-5


def test_cuts_by_hand():
    """Compute means of the best 1, 2, 4 (two of one score) and 5: 0.9, 0.8, 0.6, 0.5."""
    scores, probabilities = np.array([1.0, 3.0, 2.0, 1.0, 0.5]), np.array([0.4, 0.9, 0.7, 0.4, 0.1])
    cuts = expected_cuts(scores, probabilities, [0.95, 0.9, 0.75, 0.6, 0.5])
    assert [(cut.precision, cut.score, cut.pairs) for cut in cuts] == [
        (0.95, np.inf, 0),
        (0.9, 3.0, 1),
        (0.75, 2.0, 2),
        (0.6, 1.0, 4),
        (0.5, 0.5, 5),
    ]
    assert [cut.right for cut in cuts] == pytest.approx([0, 0.9, 1.6, 2.4, 2.5])
    assert expected_cuts(scores[:0], probabilities[:0], [0.9]) == (Cut(0.9, np.inf, 0, 0.0),)


def test_a_threshold_is_the_least_that_is_precise_enough():
    curve = calibration(cuts=(Cut(0.8, 1.1, 9, 8), Cut(0.9, 1.2, 5, 4.6), Cut(0.99, np.inf, 0, 0)))
    found = [curve.threshold(precision) for precision in (0.5, 0.8, 0.81, 0.9)]
    assert found == [1.1, 1.1, 1.2, 1.2]
    with pytest.raises(ConfigError, match=r"precision of 0.95; .* 0.9"):
        curve.threshold(0.95)
    with pytest.raises(ConfigError, match="no precision is reached"):
        calibration(cuts=()).threshold(0.5)


def test_a_file_keeps_all_language_pairs(tmp_path):
    path = tmp_path / "c.json"
    first = calibration()
    second = calibration(source_language="deu_Latn", measures={}, bins=(), cuts=())
    save_calibration(first, path)
    save_calibration(second, path)
    assert load_calibrations(path) == {"zho_Hans-eng_Latn": first, "deu_Latn-eng_Latn": second}
    assert load_calibration(path, "zh", "en", model="model", scoring="mine ratio k=4 max") == first
    assert load_calibration(path, "en", "de") == second  # turned round
    with pytest.raises(ConfigError, match=r"fra_Latn-eng_Latn; .* deu_Latn-eng_Latn, zho_Hans-"):
        load_calibration(path, "fr", "en")
    with pytest.raises(ConfigError, match="made with another"):
        load_calibration(path, "zh", "en", model="other")
    with pytest.raises(ConfigError, match="'mine ratio k=4 max', not by 'score'"):
        load_calibration(path, "zh", "en", scoring="score")


def test_two_writers_of_one_file_lose_no_language_pair(tmp_path, monkeypatch):
    path = tmp_path / "c.json"
    save_calibration(calibration(), path)
    read = load_calibrations

    def slow(path):
        found = read(path)
        time.sleep(0.2)  # long enough for the other one to read the same
        return found

    monkeypatch.setattr(module, "load_calibrations", slow)
    added = [calibration(source_language=code) for code in ("ces_Latn", "fra_Latn")]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(save_calibration, added, [path, path]))
    assert len(read(path)) == 3
    assert [file.name for file in tmp_path.iterdir()] == ["c.json"]


def test_a_device_is_written_to_and_not_read(monkeypatch):
    """Check that a device is not read first, which took all memory."""
    monkeypatch.setattr(module, "load_calibrations", lambda path: pytest.fail("it was read"))
    save_calibration(calibration(), "/dev/null")
    with pytest.raises(DataError, match="/dev/full"):
        save_calibration(calibration(), "/dev/full")


def test_cuts_that_no_pair_reaches_are_not_written(tmp_path):
    reached = Cut(0.9, 1.1, 3, 2.8)
    curve = calibration(cuts=(reached, Cut(0.99, np.inf, 0, 0.0)))
    save_calibration(curve, tmp_path / "c.json")
    assert load_calibration(tmp_path / "c.json", "zh", "en").cuts == (reached,)
    json.loads((tmp_path / "c.json").read_text(), parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '{"format": "other", "pairs": {}}',
        '{"format": 1}',
        '{"format": "interlingua-calibration-2", "pairs": {"a-b": {"scores": 3}}}',
    ],
)
def test_no_calibration_file(tmp_path, text):
    (tmp_path / "c.json").write_text(text)
    with pytest.raises(DataError, match=r"c.json: .*(calibrate|format)"):
        load_calibrations(tmp_path / "c.json")
    with pytest.raises(DataError):
        save_calibration(calibration(), tmp_path / "c.json")


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="file not found"):
        load_calibrations(tmp_path / "none.json")
