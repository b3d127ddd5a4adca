from __future__ import annotations

import random

import pytest

from interlingua.mining.calibration.calibration import load_calibration
from tests.mining.invented import corpora, sentence, text, write_lines

MODEL = "tests.mining.invented:embed --backend function --quiet"


@pytest.fixture
def texts(tmp_path):
    sources, targets, pairs = corpora(40, 60)
    write_lines(tmp_path / "gold.tsv", [f"{a + 1}\t{b + 1}" for a, b in pairs])
    draw = random.Random(5)
    held_out = [sentence(draw) for _ in range(200)]
    write_lines(
        tmp_path / "held.tsv", [f"{text(one, 'de')}\t{text(one, 'en')}" for one in held_out]
    )
    return write_lines(tmp_path / "a.de", sources), write_lines(tmp_path / "a.en", targets)


def test_a_calibration_is_learned_and_used(done, tmp_path, texts):
    said = done(
        f"calibrate {MODEL}",
        *texts,
        f"-o {tmp_path}/c.json --parallel {tmp_path}/held.tsv --gold {tmp_path}/gold.tsv",
        "--drop none",  # the numbers of invented words are no numbers
    )
    assert "calibration error (ECE)" in said.out
    assert "precision 0.95 " in said.out
    found = load_calibration(tmp_path / "c.json", "de", "en")
    assert (found.basis, found.scoring) == ("probes", "mine ratio k=4 max")
    said = done(
        f"mine {MODEL}",
        *texts,
        f"-o {tmp_path}/p.tsv --calibration {tmp_path}/c.json --precision 0.9",
        "--columns probability,source,target --drop none",
    )
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert 30 <= len(rows) <= 50
    probabilities = [float(row[0]) for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) / len(rows) == pytest.approx(0.9, abs=0.02)


def test_mistakes_are_one_line(refused, tmp_path, texts):
    said = refused(f"calibrate {MODEL}", *texts, f"-o {tmp_path}/c.json")
    assert "pass --parallel" in said.err
    said = refused(
        f"calibrate {MODEL}",
        *texts,
        f"-o {tmp_path}/c.json --parallel {tmp_path}/held.tsv --documents urls",
    )
    assert "--parallel and --documents" in said.err
