from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.errors import ConfigError
from interlingua.mining.checks import CheckPlan
from interlingua.mining.filter import MINE_COLUMNS, check_output, write_mined
from interlingua.mining.texts import Line
from tests.mining.curves import calibration
from tests.mining.cuts import AnyCut
from tests.mining.two_sides import mined_lines, rows_of

LANGUAGES = ("deu_Latn", "eng_Latn")
SOURCES = [
    "Der Hund bellt laut.",
    "Berlin im Jahr 1999",
    "der hund bellt laut",
    "x" * 200,
    "Tab\there",
]
TARGETS = ["The dog barks loudly.", "Berlin in 1998", "the dog barks loudly", "short", "Over there"]
SCORES = [1.3, 1.25, 1.2, 1.1, 0.9]


@pytest.fixture
def mined(tmp_path):
    sources = [Line(text, f"s{n}") for n, text in enumerate([*SOURCES, SOURCES[0]])]
    targets = [Line(text, f"t{n}") for n, text in enumerate(TARGETS)]
    found = mined_lines(tmp_path, sources, targets, SCORES)
    found.pairs["cosine"] = 0.8
    found.pairs["hub_x"], found.pairs["hub_y"] = [1, 1, 1, 2, 30], 1
    return found


def write(mined, path, *, drop="", check="", **options):
    names = ("threshold", "precision", "like_laser")
    cut = AnyCut(**{name: options.pop(name) for name in names if name in options})
    checks = CheckPlan.parse(check, drop)
    folder = path.parent / "seen"
    return write_mined(mined, path, cut, checks, languages=LANGUAGES, folder=folder, **options)


def test_lasers_columns(mined, tmp_path):
    written = write(mined, tmp_path / "p.tsv")
    assert rows_of(tmp_path / "p.tsv")[0] == ["1.3", SOURCES[0], TARGETS[0]]
    assert (written.pairs, dict(written.rejected)) == (5, {})
    back = list(read_pairs(tmp_path / "p.tsv", source_language="de", target_language="en"))
    assert [pair.score for pair in back] == SCORES
    assert back[4].source == "Tab here"


def test_a_threshold_and_checks_reject_and_are_counted(mined, tmp_path):
    drop = "length,duplicate,numbers=1,hub=20"
    written = write(mined, tmp_path / "p.tsv", threshold=1.1, drop=drop)
    assert [row[0] for row in rows_of(tmp_path / "p.tsv")] == ["1.3"]
    of_checks = dict.fromkeys(("numbers differ", "duplicate", "lengths differ", "hub"), 1)
    assert written.rejected == {**of_checks, "below the threshold": 1}
    assert [row.columns["score"] for row in written.borderline] == SCORES
    shown = {reason: len(rows) for reason, rows in written.rejects.items()}
    assert shown == {**of_checks, "below the threshold": 0}


def test_no_text_of_a_short_side_is_a_hub_for_being_few(mined, tmp_path):
    few, many = mined.y.texts, [*mined.x.texts, *("" for _ in range(95))]
    mined.pairs["hub_x"], mined.pairs["hub_y"] = 1, [20, 20, 20, 399, 400]
    uneven = mined._replace(x=replace(mined.x, texts=many), y=replace(mined.y, texts=few))
    written = write(uneven, tmp_path / "p.tsv", drop="hub=20")
    assert (written.pairs, dict(written.rejected)) == (4, {"hub": 1})


def test_any_columns(mined, tmp_path):
    columns = ("source_origins", "probability", "duplicate", "target")
    write(mined, tmp_path / "p.tsv", columns=columns, check="duplicate", calibration=calibration())
    first = rows_of(tmp_path / "p.tsv")[0]
    assert (first[0], first[2:]) == ("s0 s5", ["0", TARGETS[0]])
    assert 0.9 < float(first[1]) <= 1


def test_json_lines_have_all(mined, tmp_path):
    write(mined, tmp_path / "p.jsonl", check="length,hub", calibration=calibration())
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    assert set(rows[0]) == {*MINE_COLUMNS, "length", "hub", "source_language", "target_language"}
    assert [row["hub"] for row in rows] == [1, 1, 1, 2, 30]
    assert rows[0]["source_origins"] == ["s0", "s5"]
    assert next(read_pairs(tmp_path / "p.jsonl")).target == TARGETS[0]


def test_tmx(mined, tmp_path):
    written = write(mined, tmp_path / "p.tmx", threshold=1.2)
    units = ElementTree.parse(tmp_path / "p.tmx").findall(".//tu")
    assert len(units) == written.pairs == 3
    assert units[0].find("prop").text == "1.3"


def test_a_precision_cuts_where_it_is_expected(mined, tmp_path):
    """Estimate the share of right pairs from the scores themselves."""
    curve = calibration()
    prior = curve.estimate_share(SCORES)
    probabilities = curve.probability(SCORES, prior=prior)
    means = np.cumsum(probabilities) / np.arange(1, 6)
    written = write(mined, tmp_path / "p.tsv", precision=float(means[2]) - 1e-6, calibration=curve)
    assert (written.pairs, written.threshold, written.prior) == (3, 1.2, prior)
    with pytest.raises(ConfigError, match="precision requires --calibration"):
        write(mined, tmp_path / "p.tsv", precision=0.9)


def test_a_precision_that_no_pair_reaches(mined, tmp_path):
    written = write(mined, tmp_path / "p.tsv", precision=1.0, calibration=calibration())
    assert (written.pairs, written.threshold) == (0, np.inf)
    assert (tmp_path / "p.tsv").read_text() == ""


def test_like_laser_the_threshold_itself_is_too_low(mined, tmp_path):
    path = tmp_path / "p.tsv"
    for like_laser, kept in ((True, 3), (False, 4)):
        write(mined, path, threshold=1.1, like_laser=like_laser)
        assert len(rows_of(path)) == kept
    mined.pairs["score"][0] = np.float32(1.3)
    write(mined, path, like_laser=True)
    assert rows_of(path)[0][0] == "1.2999999523162842"


def test_no_pairs(mined, tmp_path):
    none = mined._replace(pairs=mined.pairs[:0])
    written = write(none, tmp_path / "p.tsv", drop="length", calibration=calibration())
    assert (written.pairs, written.prior, written.cuts) == (0, None, ())


@pytest.mark.parametrize(
    ("path", "columns", "message"),
    [
        ("p.zip", ("score",), "p.zip.* .tsv, .jsonl, .csv, .xlsx or .tmx"),
        ("p.tsv", ("scores",), "column 'scores'; .*'score'"),
    ],
)
def test_outputs_that_cant_be_written(path, columns, message):
    with pytest.raises(ConfigError, match=message):
        check_output(path, columns, CheckPlan((), {}))
