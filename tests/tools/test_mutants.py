from __future__ import annotations

import pytest

pytest.importorskip("resource")  # not on Windows

from tools import mutants as tool

SOURCE = '''
def clip(x: Limits[3], most) -> Limits[3]:
    """At most 5."""
    if x < most and not hidden:
        x += 1
        warn("clipped")
    return x.sum(dim=-1) * min(x, most)


class Named:
    def __repr__(self):
        return "x" * 7


root = folder / "file"
message = f"{1 + 2}"
'''


def changed(source):
    """Return each mutated line of a source, without outer spaces."""
    found = []
    for mutant in tool.mutants(source.encode(), "m.py"):
        lines = mutant.apply(source.encode()).decode().splitlines()
        found.append(lines[mutant.line - 1].strip())
    return found


def test_the_changes_of_a_module_by_hand():
    assert changed(SOURCE) == [
        "if (not (x < most and (not hidden))):",
        "if (x < most or not hidden):",
        "if (x <= most) and not hidden:",
        "if x < most and (hidden):",
        "pass",
        "x += (2)",
        "return (x.sum(dim=-1) / min(x, most))",
        "return x.sum(dim=0) * min(x, most)",
        "return x.sum(dim=-1) * (max(x, most))",
    ]


@pytest.mark.parametrize(
    ("source", "after"),
    [
        ("a is None", "(a is not None)"),
        ("a not in b", "(a in b)"),
        ("a // b", "(a * b)"),
        ("a = np.any(b)", "a = (np.all(b))"),
        ("a = f(axis=0)", "a = f(axis=1)"),
        ("'ü', a - b", "'ü', (a + b)"),
    ],
)
def test_an_expression_and_its_counterpart(source, after):
    assert changed(source) == [after]


@pytest.mark.parametrize("source", ["True", "a < b < c", "a | b", "'a' + b", "raise E(1 + 2)"])
def test_what_has_no_counterpart_stays(source):
    assert changed(source) == []


@pytest.fixture
def tree(tmp_path):
    """A module that counts down from two, and its test."""
    for name in ("src", "tests"):
        (tmp_path / "tree" / name).mkdir(parents=True)
    (tmp_path / "tree" / "src" / "invented.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "tree" / "tests" / "test_invented.py").write_text(TESTS, encoding="utf-8")
    return tmp_path / "tree"


MODULE = """def down(count):
    while count:
        count -= 1
    return count
"""
TESTS = """from invented import down


def test_down():
    assert down(2) == 0
"""


def test_killed_and_surviving_mutants_and_a_journal(tree, tmp_path, monkeypatch, capsys):
    journal = tmp_path / "journal.jsonl"
    arguments = ["mutants.py", "src", "--tree", str(tree), "--journal", str(journal)]
    monkeypatch.setattr("sys.argv", [*arguments, "--tests", "tests/test_{name}.py", "--limit", "5"])
    monkeypatch.setattr(tool, "PRELOADED", ())
    tool.main()
    printed = capsys.readouterr().out
    assert sorted(printed.splitlines()) == [
        "2 of 3 killed, 67%",
        "SURVIVED src/invented.py:3:18: 1  ->  (2)",
        "killed   src/invented.py:2:11: count  ->  (not (count))",
        "killed   src/invented.py:3:9: count -= 1  ->  pass",  # without an end
    ]
    assert (tree / "src" / "invented.py").read_text(encoding="utf-8") == MODULE
    # a second run reads the journal and runs no test
    monkeypatch.setattr(tool.Trial, "kills", None)
    tool.main()
    assert capsys.readouterr().out == printed


def test_tests_that_fail_without_a_mutant_kill_none(tree, tmp_path):
    (tree / "tests" / "test_invented.py").write_text("assert False", encoding="utf-8")
    mutant = tool.mutants(MODULE.encode(), "src/invented.py")[0]
    trial = tool.Trial(tree, tmp_path / "copy", limit=20, options=[])
    with pytest.raises(SystemExit, match="without a mutant"):
        trial.kills(mutant, ("tests",))
