from __future__ import annotations

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import write_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibrate import (
    check_learning,
    learn_scores,
    score_judged_pairs,
)
from interlingua.mining.calibration.calibration import load_calibration
from interlingua.mining.calibration.mixed_stream import (
    WRONG_KINDS,
    MixedStream,
    first_part,
    similar_targets,
)
from interlingua.mining.checks import NO_CHECKS, Checker, CheckPlan
from interlingua.mining.review import Judgments
from interlingua.mining.score import BitextScorer, ScoreConfig, open_stream
from tests.mining.invented import write_lines
from tests.mining.test_score import bitext, is_right, pair
from tests.mining.words import encode
from tests.progress_records import Recorded


@pytest.fixture
def noisy(tmp_path):
    pairs = bitext(600, wrong=0.4, repeated=0)
    write_pairs(pairs, tmp_path / "noisy.de-en.tsv")
    return pairs


def learned(folder, name="c.json", *, bitext="noisy", config=None, **options):
    """Return the report of learning from a bitext."""
    stream = open_stream(str(folder / f"{bitext}.de-en.tsv"))
    config = config or ScoreConfig()
    return learn_scores(stream, encode, config, output=folder / name, model="m", **options)


def test_from_judged_pairs(noisy, tmp_path):
    judgments = [f"{int(is_right(one))}\t{one.source}\t{one.target}" for one in noisy[:200]]
    labels = write_lines(tmp_path / "labels.tsv", judgments)
    told = Recorded()
    config = ScoreConfig(window=100)
    lines = learned(tmp_path, labels=labels, config=config, progress=told)
    assert lines[0].startswith("200 pairs with a known answer")
    assert told.counts[-1] == (pytest.approx(600), 600)
    scoring = "score ratio k=4 window=100"
    found = load_calibration(tmp_path / "c.json", "de", "en", model="m", scoring=scoring)
    assert found.basis == "labels"
    assert found.prior == pytest.approx(np.mean([is_right(pair) for pair in noisy]), abs=0.05)
    blocks = list(BitextScorer(encode, config).score(noisy))
    probabilities = found.probability(np.concatenate([block.scores for block in blocks]))
    right = np.array([is_right(pair) for pair in noisy])
    assert np.mean((probabilities > 0.5) == right) > 0.95


def test_from_held_out_translations(noisy, tmp_path):
    held_out = bitext(150, seed=9, wrong=0, repeated=0)
    write_pairs(held_out, tmp_path / "held.de-en.tsv")
    lines = learned(tmp_path, parallel=str(tmp_path / "held.de-en.tsv"))
    assert lines[-1] == f"written: {tmp_path / 'c.json'}"
    # Every fourth held-out pair has a wrong target.
    assert sum("right pairs score more than wrong ones" in line for line in lines) == 1
    found = load_calibration(tmp_path / "c.json", "de", "en", scoring=ScoreConfig().scoring)
    assert found.basis == "probes"
    assert found.prior == pytest.approx(np.mean([is_right(pair) for pair in noisy]), abs=0.07)


class Recorder:
    """Scorer that records its inputs, and scores nothing."""

    def __init__(self):
        self.seen = []

    def score(self, stream):
        self.seen.extend(stream)
        return iter(())


def no_checks(tmp_path):
    return Checker(NO_CHECKS, ("deu_Latn", "eng_Latn"), tmp_path)


def recorded(made, pairs, tmp_path):
    recorder = Recorder()
    with pytest.raises(DataError):  # nothing was scored
        made.scored(recorder, pairs, no_checks(tmp_path))
    return recorder.seen


def numbered(count, first=0):
    return [pair(f"de{n} de{n + 1}", f"en{n} en{n + 1}") for n in range(first, first + count)]


def test_held_out_pairs_follow_wrong_ones_of_the_bitexts_own(tmp_path):
    pairs, held_out = numbered(24), numbered(5, 100)
    seen = recorded(MixedStream(held_out, ["a", "b", "c", "d", "e"]), pairs, tmp_path)
    # The first one stays as it is: no earlier line has a target for it.
    assert seen[:5] == [*pairs[:4], held_out[0]]
    part = seen[8]
    assert (part.source, part.target) == (pairs[7].source, "en7")
    assert seen[9] == held_out[1]
    assert seen[13] == pairs[11]._replace(target=pairs[11].source)
    assert seen[14] == held_out[2]
    assert seen[18] == pairs[15]._replace(target=pairs[11].target)
    assert seen[19] == held_out[3]._replace(target="d")
    assert seen[24] == held_out[4]
    assert len(seen) == 24 + 5


def test_held_out_pairs_are_spread_over_all_of_a_bitext(tmp_path):
    made = MixedStream(numbered(4, 1000), ["a", "b", "c", "d"])
    made.every = 25
    seen = recorded(made, numbered(100), tmp_path)
    places = [place for place, one in enumerate(seen) if one.source.startswith("de100")]
    assert places == [25, 51, 77, 103]


def test_answers_stay_with_their_pairs(tmp_path):
    pairs, held_out = bitext(80, wrong=0, repeated=0), bitext(12, seed=5, wrong=0, repeated=0)
    made = MixedStream(held_out, similar_targets(held_out, encode))
    scorer = BitextScorer(encode, ScoreConfig(window=8))
    own, right, wrong = made.scored(scorer, pairs, no_checks(tmp_path))
    assert (len(own), len(right)) == (69, 9)
    assert [len(kind) for kind in wrong] == [3, 4, 4, 3]
    assert right.mean() > max(kind.mean() for kind in (wrong[0], wrong[1], wrong[3]))
    labels = Judgments({(pairs[3].source, pairs[3].target): False})
    scores, known = score_judged_pairs(BitextScorer(encode), pairs, labels, no_checks(tmp_path))
    assert known.right.tolist() == [False]
    assert known.scores.tolist() == [scores[3]]


def test_held_out_pairs_that_the_bitext_has_too_are_left_out(noisy, tmp_path):
    held_out = bitext(150, seed=9, wrong=0, repeated=0)
    write_pairs([*held_out, *noisy[:60]], tmp_path / "held.de-en.tsv")
    lines = learned(tmp_path, parallel=str(tmp_path / "held.de-en.tsv"))
    (note,) = [line for line in lines if "left out" in line]
    assert int(note.split()[0]) >= 60
    found = load_calibration(tmp_path / "c.json", "de", "en")
    assert found.prior == pytest.approx(np.mean([is_right(pair) for pair in noisy]), abs=0.1)
    write_pairs(noisy, tmp_path / "held.de-en.tsv")
    with pytest.raises(DataError, match="with the bitext"):
        learned(tmp_path, "d.json", parallel=str(tmp_path / "held.de-en.tsv"))


def test_pairs_that_checks_reject_are_not_learned_from(tmp_path):
    pairs = [
        one._replace(target=one.source) if number % 3 == 0 else one
        for number, one in enumerate(numbered(600))
    ]
    write_pairs(pairs, tmp_path / "copies.de-en.tsv")
    write_pairs(numbered(200, 2000), tmp_path / "held.de-en.tsv")
    shares = []
    for drop in ("copied", ""):
        checks = CheckPlan.parse("", drop)
        held_out = str(tmp_path / "held.de-en.tsv")
        learned(tmp_path, bitext="copies", parallel=held_out, checks=checks)
        shares.append(load_calibration(tmp_path / "c.json", "de", "en").prior)
    assert shares[0] > 0.95


def test_the_most_similar_other_target():
    texts = ["en1 en2 en3 en4", "en5 en6", "en7 en8 en9", "en6 en5 en10"]
    pairs = [pair("x", text) for text in texts]
    assert similar_targets(pairs, encode)[1] == "en6 en5 en10"
    # There is no other one.
    assert similar_targets(pairs[:1] * 2, encode) == [texts[0]] * 2


def test_the_first_part_of_a_sentence():
    halves = [first_part(text) for text in ("a b c", "漢字仮名", "word", "a")]
    assert halves == ["a", "漢字", "wo", ""]
    assert first_part("a b c d", 0.8) == "a b c"
    assert len(WRONG_KINDS) == 4


def test_too_little_to_learn_from(noisy, tmp_path):
    labels = write_lines(tmp_path / "labels.tsv", [f"1\t{noisy[0].source}\t{noisy[0].target}"])
    held_out = write_lines(tmp_path / "held.de-en.tsv", ["a\tb"])
    for options, message in (
        ({"labels": labels}, "calibration needs"),
        ({"parallel": str(held_out)}, "at least 2 pairs"),
    ):
        with pytest.raises(DataError, match=message):
            learned(tmp_path, "c", **options)
    assert not (tmp_path / "c").exists()


def test_one_thing_to_learn_from(tmp_path):
    for labels, parallel in ((None, None), (tmp_path, "x")):
        with pytest.raises(ConfigError, match="--labels"):
            check_learning(tmp_path / "c", labels, parallel)
    assert not check_learning(None, None, None)
    assert not check_learning(None, tmp_path, None)  # the answers decide
    assert check_learning(tmp_path / "c", None, "x.tsv")
    (tmp_path / "c").write_text("{}")
    with pytest.raises(DataError, match="c: expected a record of interlingua-calibration"):
        check_learning(tmp_path / "c", None, "x")
    with pytest.raises(ConfigError, match="--parallel requires --learn"):
        check_learning(None, None, "x.tsv")
