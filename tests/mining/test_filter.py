from __future__ import annotations

import io

import numpy as np
import pytest

from interlingua.corpus.formats.bitext import TextPair, read_pairs
from interlingua.errors import ConfigError
from interlingua.mining.checks import CheckPlan
from interlingua.mining.filter import (
    Filter,
    ScoredPairs,
    output_format,
    write_filtered,
)
from tests.mining.curves import calibration
from tests.mining.cuts import AnyCut

LANGUAGES = ("deu_Latn", "eng_Latn")
CURVE = calibration(basis="labels", scores=(0.9, 1.1), log_odds=(-4.0, 4.0))
QUANTILES = "score quantiles: 5% 0.0495, 25% 0.2475, 50% 0.4950, 75% 0.7425, 95% 0.9405"
"""Quantiles of 0, 0.01, ..., 0.99."""


def blocks(*scores, size=3):
    pairs = [TextPair(f"Satz {i}", f"sentence {i}", *LANGUAGES) for i in range(len(scores))]
    for start in range(0, len(scores), size):
        part = np.array(scores[start : start + size], float)
        hubs = np.zeros(len(part), np.int64)
        yield ScoredPairs(pairs[start : start + size], part, part / 2, hubs)


def filtered(found, tmp_path, *, calibration=None, check="", drop="none", **options):
    checks = CheckPlan.parse(check, drop)
    kept = Filter(AnyCut(**options), checks, LANGUAGES, calibration, tmp_path)
    return list(kept.rows(found)), kept


def test_without_any_limit_all_are_kept(tmp_path):
    rows, kept = filtered(blocks(1.2, 0.0, 0.7, -1.0), tmp_path)
    assert [row.pair.score for row in rows] == [1.2, 0.0, 0.7, -1.0]
    assert (kept.read, kept.kept) == (4, 4)
    assert kept.report()[0] == "4 pairs read, 4 kept"


def test_a_threshold_keeps_what_reaches_it(tmp_path):
    rows, kept = filtered(blocks(1.2, 0.9, 1.0, 0.99), tmp_path, threshold=1.0)
    assert [row.reasons for row in rows] == [[], ["below the threshold"]] * 2
    told = "4 pairs read, 2 kept; rejected (a pair may have several reasons): below the threshold 2"
    assert kept.report()[0] == told


@pytest.mark.parametrize(("threshold", "share"), [(0.3, None), (0.31, "31%"), (2.0, "100%")])
def test_a_threshold_that_cuts_much_is_warned_of(tmp_path, threshold, share):
    """Use scores of 0, 0.01, ..., 0.99: the quantiles by hand, and a warning from 30 % on."""
    found = blocks(*(n / 100 for n in range(100)), size=40)
    _, kept = filtered(found, tmp_path, threshold=threshold)
    lines = kept.report()
    assert lines[1] == QUANTILES
    warnings = [line for line in lines if line.startswith("warning: ")]
    assert len(warnings) == (share is not None)
    assert all(f"rejects {share} of the pairs" in line and "--learn" in line for line in warnings)


def test_blank_pairs_count_in_no_quantile_and_no_share(tmp_path):
    full = list(blocks(*(n / 100 for n in range(100))))
    [blank] = blocks(*[0.0] * 200, size=200)
    blank = blank._replace(pairs=[pair._replace(source=" \u3000") for pair in blank.pairs])
    for threshold, warned in ((0.3, 0), (0.31, 1)):
        _, kept = filtered([blank, *full], tmp_path, threshold=threshold)
        lines = kept.report()
        assert lines[0].startswith("300 pairs read, ")
        assert lines[0].endswith("; 200 with a blank side and score 0")
        assert lines[1] == QUANTILES
        assert sum(line.startswith("warning: ") for line in lines) == warned
    _, kept = filtered([blank], tmp_path)
    assert len(kept.report()) == 1


def test_a_learned_threshold_is_not_warned_of(tmp_path):
    found = blocks(*[1.2] * 10, *[0.8] * 90)
    _, kept = filtered(found, tmp_path, calibration=CURVE, precision=0.95)
    assert kept.kept == 10
    assert not any(line.startswith("warning") for line in kept.report())


def test_probabilities_by_the_prior(tmp_path):
    options = {"calibration": CURVE, "prior": 0.5, "probability": 0.9}
    rows, _ = filtered(blocks(1.0, 1.1, 0.9), tmp_path, **options)
    probabilities = [row.columns["probability"] for row in rows]
    assert probabilities == pytest.approx([0.5, 0.982014, 0.017986], abs=1e-6)
    assert [row.reasons for row in rows] == [["improbable"], [], ["improbable"]]
    # odds of 9 to 1 beforehand
    rows, _ = filtered(blocks(1.0), tmp_path, calibration=CURVE, prior=0.9)
    assert rows[0].columns["probability"] == pytest.approx(0.9)


def test_the_first_block_tells_the_prior_and_the_threshold(tmp_path):
    found = [1.2] * 80 + [0.8] * 20 + [1.0] * 100
    rows, kept = filtered(blocks(*found, size=100), tmp_path, calibration=CURVE, precision=0.95)
    assert kept.prior == pytest.approx(0.8, abs=0.01)
    assert kept.threshold == 1.2
    assert [bool(row.reasons) for row in rows] == [False] * 80 + [True] * 120
    assert rows[150].columns["probability"] == pytest.approx(kept.prior, abs=1e-6)
    share, cut = kept.report()[2:4]
    assert share.startswith("translations among the first pairs of the stream: between ")
    assert share.endswith(f"; estimate {kept.prior:.1%}")
    assert cut.startswith("precision 0.95: threshold 1.2000, ")
    assert cut.endswith(" estimated from the first pairs of the stream")
    low, high = kept.interval
    assert 0 < low <= high <= 1


def test_a_precision_that_nothing_reaches(tmp_path):
    _, kept = filtered(blocks(0.9, 0.9), tmp_path, calibration=CURVE, prior=0.1, precision=0.99)
    assert kept.kept == 0
    assert kept.report()[-1].endswith(" estimated from the first pairs of the stream")


def test_checks_are_columns_and_reasons(tmp_path):
    texts = [
        ("Es sind 12 Bäume.", "There are 12 trees."),
        ("This was copied over", "This was copied over"),
        ("Ja", "Ja, ja"),
    ]
    long = "A sentence that goes on and on, far beyond what the other one says " * 3
    texts += [texts[0], ("Ein kurzer Satz", long)]
    pairs = [TextPair(*pair, *LANGUAGES) for pair in texts]
    block = ScoredPairs(pairs, np.ones(5), np.ones(5), np.array([0, 0, 50, 0, 0]))
    rows, kept = filtered([block], tmp_path, check="numbers", drop="copied,duplicate,length,hub=40")
    assert rows[0].reasons == []
    reasons = ["copied text", "hub", "duplicate", "lengths differ"]
    assert [row.reasons for row in rows[1:]] == [[reason] for reason in reasons]
    assert rows[0].columns["numbers"] == 1
    of_checks = {"length", "copied", "numbers", "duplicate", "hub"}
    assert set(rows[0].columns) == {"score", "source", "target", "cosine", "reasons"} | of_checks
    assert kept.reasons.total() == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threshold": 1.0, "precision": 0.9}, "--threshold and --precision"),
        ({"threshold": float("nan")}, "threshold"),
        ({"precision": 95}, "precision: expected"),
        ({"prior": 0.0}, "prior: expected"),
    ],
)
def test_limits_that_can_not_be(options, message):
    with pytest.raises(ConfigError, match=message):
        AnyCut(**options).check_cut()


def test_probabilities_need_a_calibration(tmp_path):
    with pytest.raises(ConfigError, match="precision requires --calibration"):
        filtered(blocks(1.0), tmp_path, precision=0.9)


def test_formats_of_outputs(tmp_path):
    assert output_format(None, None) == "tsv"
    assert output_format("a.tmx", None) == "tmx"
    assert output_format("a.txt", "jsonl") == "jsonl"
    with pytest.raises(ConfigError, match=r"tsv, jsonl or csv, found 'tmx'; .*--output"):
        output_format(None, "tmx")


@pytest.mark.parametrize("name", ["out.tsv", "out.jsonl.gz", "out.tmx", "out"])
def test_files_can_be_read_again(name, tmp_path):
    rows, _ = filtered(blocks(1.5, 0.5, 1.25), tmp_path / "seen", threshold=1)
    path, rest, stdout = tmp_path / name, tmp_path / "rest.tsv", io.StringIO()
    how = {"format": output_format(path, None), "columns": ["score", "source", "target"]}
    write_filtered(rows, path, stdout=stdout, rejected=rest, **how)
    found = list(read_pairs(path, source_language="de", target_language="en"))
    assert [pair.source for pair in found] == ["Satz 0", "Satz 2"]
    assert [pair.score for pair in found] == ([None, None] if name == "out" else [1.5, 1.25])
    assert rest.read_text(encoding="utf-8") == "below the threshold\t0.5\tSatz 1\tsentence 1\n"
    assert stdout.getvalue() == ""


def test_standard_output(tmp_path):
    rows, _ = filtered(blocks(1.5, 0.5), tmp_path)
    out = io.StringIO()
    write_filtered(rows, None, format="tsv", columns=["source", "score"], stdout=out)
    assert out.getvalue() == "Satz 0\t1.5\nSatz 1\t0.5\n"
