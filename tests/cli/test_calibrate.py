from __future__ import annotations

import random

import pytest

from interlingua.cli import main
from interlingua.mining.calibration import load_calibration
from tests.mining.invented import corpora, sentence, text, write_lines

MODEL = ("tests.mining.invented:embed", "--backend", "function", "--quiet")


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


def run(capsys, verb, *arguments):
    with pytest.raises(SystemExit) as stop:
        main.main([verb, *map(str, arguments)])
    return stop.value.code or 0, capsys.readouterr()


def test_a_calibration_is_learned_and_used(capsys, tmp_path, texts):
    both = [*MODEL[:1], *texts, *MODEL[1:]]
    code, said = run(
        capsys,
        "calibrate",
        *both,
        "-o",
        tmp_path / "c.json",
        "--parallel",
        tmp_path / "held.tsv",
        "--gold",
        tmp_path / "gold.tsv",
    )
    assert code == 0, said.err
    assert "calibration error (ECE)" in said.out
    assert "precision 0.95 " in said.out
    found = load_calibration(tmp_path / "c.json", "de", "en")
    assert (found.basis, found.scoring) == ("probes", "mine ratio k=4 max")
    code, said = run(
        capsys,
        "mine",
        *both,
        "-o",
        tmp_path / "p.tsv",
        "--calibration",
        tmp_path / "c.json",
        "--precision",
        0.9,
        "--columns",
        "probability,source,target",
    )
    assert code == 0, said.err
    rows = [line.split("\t") for line in (tmp_path / "p.tsv").read_text().splitlines()]
    assert 30 <= len(rows) <= 50
    probabilities = [float(row[0]) for row in rows]
    assert probabilities == sorted(probabilities, reverse=True)
    assert sum(probabilities) / len(rows) == pytest.approx(0.9, abs=0.02)


def test_mistakes_are_one_line(capsys, tmp_path, texts):
    code, said = run(capsys, "calibrate", *MODEL[:1], *texts, *MODEL[1:], "-o", tmp_path / "c.json")
    assert code == 2
    assert "wrong pairs are known; give --parallel" in said.err
    code, said = run(
        capsys,
        "calibrate",
        *MODEL[:1],
        *texts,
        *MODEL[1:],
        "-o",
        tmp_path / "c.json",
        "--parallel",
        tmp_path / "held.tsv",
        "--documents",
        "urls",
    )
    assert code == 2
    assert "part of no document" in said.err
