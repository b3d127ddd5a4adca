from __future__ import annotations

import numpy as np
import pytest

from interlingua.corpus.formats import write_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibrate import (
    LearnJob,
    first_half,
    judged,
    learn_job,
    mixed,
    wrong_targets,
)
from interlingua.mining.calibration import load_calibration
from interlingua.mining.score import BitextScorer, ScoreConfig, open_stream
from tests.mining.invented import write_lines
from tests.mining.test_score import bitext, is_right, pair
from tests.mining.words import encode


@pytest.fixture
def noisy(tmp_path):
    pairs = bitext(600, wrong=0.4, repeated=0)
    write_pairs(pairs, tmp_path / "noisy.de-en.tsv")
    return pairs


def test_from_judged_pairs(noisy, tmp_path):
    judgments = [f"{int(is_right(one))}\t{one.source}\t{one.target}" for one in noisy[:200]]
    labels = write_lines(tmp_path / "labels.tsv", judgments)
    job = LearnJob(output=tmp_path / "c.json", labels=labels, config=ScoreConfig(window=100))
    told = []
    lines = job.run(
        open_stream(str(tmp_path / "noisy.de-en.tsv")),
        encode,
        model="m",
        progress=lambda done, total: told.append((round(done), total)),
    )
    assert lines[0].startswith("200 pairs with a known answer")
    assert told[-1] == (600, 600)
    scoring = "score ratio k=4 window=100"
    found = load_calibration(tmp_path / "c.json", "de", "en", model="m", scoring=scoring)
    assert found.basis == "labels"
    assert found.prior == pytest.approx(np.mean([is_right(pair) for pair in noisy]), abs=0.05)
    blocks = list(BitextScorer(encode, job.config).score(noisy))
    probabilities = found.probability(np.concatenate([block.scores for block in blocks]))
    right = np.array([is_right(pair) for pair in noisy])
    assert np.mean((probabilities > 0.5) == right) > 0.95


def test_from_held_out_translations(noisy, tmp_path):
    held_out = bitext(150, seed=9, wrong=0, repeated=0)
    write_pairs(held_out, tmp_path / "held.de-en.tsv")
    job = LearnJob(output=tmp_path / "c.json", parallel=str(tmp_path / "held.de-en.tsv"))
    lines = job.run(open_stream(str(tmp_path / "noisy.de-en.tsv")), encode, model="m")
    assert lines[0].startswith("300 pairs with a known answer, 50.0 % right")
    assert lines[-1] == f"written: {tmp_path / 'c.json'}"
    found = load_calibration(tmp_path / "c.json", "de", "en", scoring=ScoreConfig().scoring)
    assert found.basis == "probes"
    assert found.prior == pytest.approx(np.mean([is_right(pair) for pair in noisy]), abs=0.07)


def test_held_out_pairs_and_wrong_ones_are_spread_over_the_stream():
    pairs, held_out = bitext(20), bitext(3, seed=5, wrong=0, repeated=0)
    seen = []

    class Recorder:
        def score(self, stream):
            seen.extend(stream)
            return iter(())

    mixed(Recorder(), pairs, held_out, ["a", "b", "c"])
    assert seen[:4] == pairs[:4]
    assert seen[4] == held_out[0]
    assert seen[5] == held_out[0]._replace(target="a")
    assert seen[6:10] == pairs[4:8]
    assert seen[16:18] == [held_out[2], held_out[2]._replace(target="c")]
    assert len(seen) == 20 + 6


def test_answers_stay_with_their_pairs():
    pairs, held_out = bitext(40), bitext(5, seed=5, wrong=0, repeated=0)
    wrong = ["en1", "en2", held_out[2].target, "en4", "en5"]
    found = mixed(BitextScorer(encode, ScoreConfig(window=8)), pairs, held_out, wrong)
    known = [None] * 4 + [True, False]
    assert [answer for _, answer in found] == [*known * 2, *[None] * 4, *known * 2, *[None] * 20]
    known = judged(BitextScorer(encode), pairs, {(pairs[3].source, pairs[3].target): False})
    assert known[3][1] is False
    assert len(known) == 40


def test_wrong_targets_of_three_kinds():
    texts = ["en1 en2 en3 en4", "en5 en6", "en7 en8 en9", "en5 en6", "en6 en5 en10", "en1"]
    pairs = [pair("x", text) for text in texts]
    expected = ["en5 en6", "en6 en5 en10", "en7", "en6 en5 en10", "en5 en6", "e"]
    assert wrong_targets(pairs, encode) == expected
    # nothing else there; equal ones are left out
    assert wrong_targets(pairs[3:4] * 2, encode) == ["en5 en6", "en5"]


def test_half_a_sentence():
    halves = [first_half(text) for text in ("a b c", "漢字仮名", "word", "a")]
    assert halves == ["a", "漢字", "wo", ""]


def test_too_little_to_learn_from(noisy, tmp_path):
    labels = write_lines(tmp_path / "labels.tsv", [f"1\t{noisy[0].source}\t{noisy[0].target}"])
    held_out = write_lines(tmp_path / "held.de-en.tsv", ["a\tb"])
    stream = open_stream(str(tmp_path / "noisy.de-en.tsv"))
    for options, message in (
        ({"labels": labels}, "calibration takes"),
        ({"parallel": str(held_out)}, "fewer than two"),
    ):
        with pytest.raises(DataError, match=message):
            LearnJob(output=tmp_path / "c", **options).run(stream, encode, model="m")
    assert not (tmp_path / "c").exists()


def test_one_thing_to_learn_from(tmp_path):
    for options in ({}, {"labels": tmp_path, "parallel": "x"}):
        with pytest.raises(ConfigError, match="--labels"):
            LearnJob(output=tmp_path / "c", **options)
    assert learn_job(None, None, None, ScoreConfig()) is None
    assert learn_job(tmp_path, None, "x.tsv", ScoreConfig(k=2)) == LearnJob(
        output=tmp_path, parallel="x.tsv", config=ScoreConfig(k=2)
    )
    (tmp_path / "c").write_text("{}")
    with pytest.raises(DataError, match="c: not a calibration file"):
        LearnJob(output=tmp_path / "c", parallel="x")
    with pytest.raises(ConfigError, match=r"name .*--learn"):
        learn_job(None, None, "x.tsv", ScoreConfig())
