"""experiments/calibrated/figure4.py: a point for each model that has both tasks, next to the
paper's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from interlingua.evaluation.results import write_result
from tests.evaluation.results_made import make
from tests.scripts import load_script

SCRIPT = Path(__file__).parents[2] / "experiments" / "calibrated" / "figure4.py"


figure4 = load_script(SCRIPT)


def write_both(folder, name, across, up):
    write_result(
        make(name, task="sts17", groups={"sts17_monolingual_3of3": {"spearman": across}}), folder
    )
    write_result(
        make(name, groups={"muse_14of14": {"accuracy_forward": up, "accuracy": 0.1}}), folder
    )


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["figure4.py", *map(str, arguments)])
    figure4.main()


def test_models_with_both_tasks_are_points(tmp_path, monkeypatch):
    write_both(tmp_path / "results", "ours & theirs", 0.8, 0.9)
    write_result(
        make("half", task="sts17", groups={"sts17_monolingual_3of3": {"spearman": 0.7}}),
        tmp_path / "results",
    )
    run(monkeypatch, tmp_path / "results", "-o", tmp_path / "figure.svg")
    drawn = (tmp_path / "figure.svg").read_text(encoding="utf-8")
    assert drawn.count("<circle") == len(figure4.PRINTED) + 1
    assert "ours &amp; theirs: 80.0, 90.0" in drawn
    assert "half" not in drawn


def test_better_models_are_further_right_and_up():
    shown = [figure4.Point("low", 50.0, 60.0, True), figure4.Point("high", 80.0, 90.0, False)]
    circles = [
        line.split('"') for line in figure4.draw(shown).splitlines() if line.startswith("<circle")
    ]
    low, high = [(float(cells[1]), float(cells[3])) for cells in circles]
    assert high[0] > low[0]
    assert high[1] < low[1]  # SVG counts from the top


def test_without_a_model_with_both_tasks_nothing_is_drawn(tmp_path, monkeypatch, capsys):
    write_result(make("half", task="sts17"), tmp_path)
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, tmp_path, "-o", tmp_path / "figure.svg")
    assert "--suite sts17,tatoeba" in capsys.readouterr().err
    assert not (tmp_path / "figure.svg").exists()
