"""experiments/multilingual_ir/figures.py: a point and an interval for the seeds of each size."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from interlingua.evaluation.results import write_result
from tests.evaluation.results_made import make
from tests.scripts import load_script

SCRIPT = Path(__file__).parents[2] / "experiments" / "multilingual_ir" / "figures.py"
SVG = "{http://www.w3.org/2000/svg}"


figures = load_script(SCRIPT)


def write_runs(folder, size, values):
    for seed, value in enumerate(values, 1):
        groups = {"all_11": {"mrr_at_100": value}, "without_parallel_4of4": {"mrr_at_100": 0.1}}
        write_result(make(f"{size}-seed{seed}", task="mr_tydi", groups=groups), folder)


def run(monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", ["figures.py", *map(str, arguments)])
    figures.main()


def test_a_point_is_the_mean_of_the_seeds_in_students_interval():
    (one, two) = figures.points({0: [0.3], 500: [0.36, 0.38, 0.4]})
    assert one == ("0", 0.3, 0.3, 0.3)
    assert two.value == pytest.approx(0.38)
    # 4.303 * 0.02 / sqrt(3)
    assert two.high - two.value == pytest.approx(0.049687, abs=1e-5)
    assert two.value - two.low == pytest.approx(0.049687, abs=1e-5)


def test_quantiles_are_scipys():
    stats = pytest.importorskip("scipy.stats")
    expected = [stats.t.ppf(0.975, freedom) for freedom in range(1, len(figures.STUDENT) + 1)]
    assert list(figures.STUDENT) == pytest.approx(expected, abs=6e-4)


def test_sizes_go_up_from_left_to_right(tmp_path, monkeypatch):
    write_runs(tmp_path / "results", 10_000, [0.4, 0.42])
    write_runs(tmp_path / "results", 0, [0.3])
    write_runs(tmp_path / "results", 500, [0.38])
    write_result(make("other-seed1", task="mr_tydi"), tmp_path / "results")
    run(monkeypatch, tmp_path / "results", "-o", tmp_path / "figure.svg")
    tree = ET.parse(tmp_path / "figure.svg")
    circles = tree.findall(f"{SVG}circle")
    assert [one[0].text.partition(":")[0] for one in circles] == ["0", "500", "10,000"]
    across = [float(one.get("cx")) for one in circles]
    up = [float(one.get("cy")) for one in circles]
    assert across == sorted(across)
    assert up == sorted(up, reverse=True)  # SVG counts from the top


def test_one_size_is_no_figure(tmp_path, monkeypatch, capsys):
    write_runs(tmp_path, 500, [0.38])
    with pytest.raises(SystemExit, match="2"):
        run(monkeypatch, tmp_path, "-o", tmp_path / "figure.svg")
    assert "SIZE-seedN" in capsys.readouterr().err
    assert not (tmp_path / "figure.svg").exists()
