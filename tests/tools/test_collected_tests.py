"""tools/collected_tests.py: what is missing needs a reason, and moving a test is no loss."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from tools import collected_tests
from tools.collected_tests import Removal, count_tests, missing_by_reason

BEFORE = [
    "a.py::test_x[1]",
    "a.py::test_x[2]",
    "a.py::test_y",
    "b.py::TestZ::test_y",
    "b.py::t[a::b]",
]


@pytest.fixture
def compare(tmp_path, monkeypatch):
    """Run the program on ids before and after, with the entries of ``removed.toml``."""
    ids, frozen, removed = (tmp_path / name for name in ("ids.txt", "f.json", "r.toml"))

    def run(collected, *options):
        ids.write_text("".join(f"{name}\n" for name in collected))
        files = ["--frozen", str(frozen), "--removed", str(removed)]
        monkeypatch.setattr(sys, "argv", ["collected_tests.py", str(ids), *files, *options])
        collected_tests.main()

    removed.write_text("")
    run(BEFORE, "--freeze")
    return run


def test_the_frozen_list_is_read_as_it_was_written(tmp_path):
    tests = count_tests(BEFORE)
    assert tests == Counter({"test_x[1]": 1, "test_x[2]": 1, "test_y": 2, "t[a::b]": 1})
    collected_tests.write_frozen(tests, tmp_path / "f.json")
    assert collected_tests.read_frozen(tmp_path / "f.json") == tests
    assert (tmp_path / "f.json").read_text().count("\n") == 2 + 3


def test_a_moved_test_is_not_missing(compare, capsys):
    compare([name.replace("a.py", "c/d.py") for name in BEFORE])
    assert "0 more, 0 removed with a reason, 0 missing" in capsys.readouterr().out


@pytest.mark.parametrize("lost", BEFORE)
def test_each_lost_test_is_an_error_that_names_it(lost, compare, capsys):
    with pytest.raises(SystemExit, match=r"r\.toml"):
        compare([name for name in BEFORE if name != lost])
    assert next(iter(count_tests([lost]))) in capsys.readouterr().out


def test_a_lost_test_with_a_reason_is_reported(compare, tmp_path, capsys):
    (tmp_path / "r.toml").write_text('[[removed]]\ntest = "test_x"\ncases = "[12]"\nreason = "r"')
    compare(["b.py::test_y", "a.py::test_y", "b.py::t[a::b]", "b.py::test_new"])
    found = capsys.readouterr().out
    assert "2 removed: test_x [[12]]: r" in found
    assert "1 more, 2 removed with a reason, 0 missing" in found


def test_tests_without_a_reason_are_not_frozen_away(compare, tmp_path):
    frozen = (tmp_path / "f.json").read_text()
    with pytest.raises(SystemExit, match=r"r\.toml"):
        compare(BEFORE[:-1], "--freeze")
    assert (tmp_path / "f.json").read_text() == frozen


def test_a_reason_is_past_once_the_list_is_frozen(compare, tmp_path):
    (tmp_path / "r.toml").write_text('[[removed]]\ntest = "test_y"\nreason = "r"\n')
    compare([*BEFORE[:3], BEFORE[4]], "--freeze")
    compare([*BEFORE[:3], BEFORE[4]])
    with pytest.raises(SystemExit, match=r"r\.toml"):
        compare([*BEFORE[:2], BEFORE[4]])


def test_a_reason_is_for_whole_names_and_the_cases_that_it_names():
    removals = [Removal("test_x", "r", cases="1")]
    lost = count_tests(["a::test_x[1]", "a::test_x[12]", "a::test_xx[1]"])
    found = missing_by_reason(lost, Counter(), removals)
    assert found == {removals[0]: ["test_x[1]"], None: ["test_x[12]", "test_xx[1]"]}
