from __future__ import annotations

import pytest

from tools import density as tool

DENSE = """# why it is so
a, b = f(x), 3
c, d = f(x), f(y)  # noqa: E501
e = 1 if a else 2
g = [[i for i in row] for row in c]
"""


def test_counts_by_hand():
    found = tool.measure(DENSE)
    assert found == tool.Counts(lines=5, tuples=1, conditional=1, nested=1, comments=1)
    assert found.density == tool.Density(200, 200, 200, 20)


@pytest.mark.parametrize(
    ("text", "is_dense"),
    [
        ("a, b = c.x, d.y", False),
        ("a, b = {}, []", True),
        ("a, b = pair", False),
        ("self.a, self.b = a, len(b)", True),
        ("a = b, len(b)", False),
    ],
)
def test_what_counts_as_unlike_things(text, is_dense):
    assert tool.measure(text).tuples == is_dense


def test_a_comprehension_next_to_another_is_not_nested():
    assert tool.measure("a = [x for x in y]\nb = f(x for x in y)").nested == 0
    assert tool.measure("a = {k: max(x for x in v) for k, v in y}").nested == 1


def test_what_is_too_dense_is_named(monkeypatch):
    monkeypatch.setattr(tool, "LIMIT", tool.Density(1, 10, 1, 3))
    assert tool.excesses("p", tool.Density(1, 10, 1, 3)) == []
    assert tool.excesses("p", tool.Density(1, 10.5, 1, 2)) == [
        "p: conditional 10.50, at most 10",
        "p: comments 2.00, at least 3",
    ]


def test_a_package_beyond_the_limit_ends_in_an_error(tmp_path, capsys, monkeypatch):
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "m.py").write_text(DENSE, encoding="utf-8")
    monkeypatch.setattr(tool, "SOURCE", tmp_path)
    monkeypatch.setattr("sys.argv", ["density.py"])
    with pytest.raises(SystemExit, match=r"search: tuples 200\.00, .* 0\.15"):
        tool.main()
    assert "search" in capsys.readouterr().out


def test_other_folders_are_printed_next_to_the_medians(tmp_path, capsys, monkeypatch):
    (tmp_path / "m.py").write_text(DENSE, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["density.py", str(tmp_path)])
    tool.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1:] == ["5", "200.0", "200.0", "200.0", "20.0"]
    assert lines[-1].split()[0] == "medians"
