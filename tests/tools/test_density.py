from __future__ import annotations

import pytest

from tools import density as tool
from tools.rules.base import SourceFile

DENSE = """# why it is so
a, b = f(x), 3
c, d = f(x), f(y)  # noqa: E501
e = 1 if a else 2
g = [[i for i in row] for row in c]
"""


def measure(folder, text):
    (folder / "m.py").write_text(text, encoding="utf-8")
    return tool.measure(SourceFile(folder, "m.py"))


def test_counts_by_hand(tmp_path):
    found = measure(tmp_path, DENSE)
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
def test_what_counts_as_unlike_things(text, is_dense, tmp_path):
    assert measure(tmp_path, text).tuples == is_dense


def test_a_comprehension_next_to_another_is_not_nested(tmp_path):
    assert measure(tmp_path, "a = [x for x in y]\nb = f(x for x in y)").nested == 0
    assert measure(tmp_path, "a = {k: max(x for x in v) for k, v in y}").nested == 1


def test_what_is_too_dense_is_named(monkeypatch):
    monkeypatch.setattr(tool, "LIMIT", tool.Density(1, 10, 1, 3))
    assert tool.excesses(tool.Density(1, 10, 1, 3)) == []
    assert tool.excesses(tool.Density(1, 10.5, 1, 2)) == [
        "conditional 10.50 per 1,000 lines, at most 10 are allowed",
        "comments 2.00 per 100 lines, at least 3 are allowed",
    ]


def test_each_package_is_a_row_and_modules_outside_of_packages_one_more(
    tmp_path, capsys, monkeypatch
):
    for path in ("a.py", "b.py", "search/c.py", "search/deep/d.py"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(DENSE, encoding="utf-8")
    monkeypatch.setattr(tool, "SOURCE", tmp_path)
    monkeypatch.setattr("sys.argv", ["density.py"])
    tool.main()
    rows = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert rows[1:3] == [["modules", "10"], ["search", "10"]]
    assert [row[0] for row in rows[3:]] == ["limits", "medians"]


def test_other_folders_are_printed_next_to_the_medians(tmp_path, capsys, monkeypatch):
    (tmp_path / "m.py").write_text(DENSE, encoding="utf-8")
    monkeypatch.setattr("sys.argv", ["density.py", str(tmp_path)])
    tool.main()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1:] == ["5", "200.0", "200.0", "200.0", "20.0"]
    assert lines[-1].split()[0] == "medians"
