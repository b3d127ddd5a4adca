"""tools/house.py: each rule on a made-up project with a violation, and on one without."""

from __future__ import annotations

import subprocess

import pytest

from tools import house
from tools.oldest_versions import render_oldest
from tools.rules import repository
from tools.rules.base import SourceFile
from tools.rules.definitions import CHOICE, CLOCK_READERS
from tools.rules.imports import NEVER, ORDER
from tools.rules.testing import find_patterns, literal_text, words_of_prose

SRC = "src/interlingua"
LONG = "def f():\n" + "    x = 1\n" * 80
SIX_WORDS = "one two three four five six"
CONTRIBUTING = f"""The order of imports is

```
{" < ".join(", ".join(sorted(row)) for row in ORDER)}
```

`retrieval` and `mining` use an encoder and never training.
"""
VERSIONS = {
    f"{SRC}/__init__.py": '__version__ = "1.2.3"\n',
    "models/mini/src/interlingua_mini/__init__.py": '__version__ = "1.2.3"\n',
    "models/nano/src/interlingua_nano/__init__.py": '__version__ = "1.2.3"\n',
    "CHANGELOG.md": "## Unreleased\n\n## 1.2.3 (2026-12-01)\n\n## 1.2.2\n",
    "CITATION.cff": "cff-version: 1.2.0\nversion: 1.2.3\n",
    "SECURITY.md": "| 1.2.x | yes |\n| older | no |\n",
    "pyproject.toml": 'mini = ["interlingua-mini>=1.2"]\nnano = ["interlingua-nano>=1.2"]\n',
}
PYPROJECT = '[project]\ndependencies = ["numpy>=1.26"]\n'
OLDEST = {"pyproject.toml": PYPROJECT, "constraints-oldest.txt": render_oldest(PYPROJECT)}
VIOLATIONS = {
    "an import of a later package": (
        "import-order",
        {f"{SRC}/encoder/a.py": "import os\ndef f():\n    from interlingua.training import loop\n"},
        [f"{SRC}/encoder/a.py:3: import-order: encoder must not import training"],
    ),
    "an import of a package's name": (
        "import-order",
        {f"{SRC}/errors.py": "import os\nfrom interlingua import load, __version__\n"},
        [f"{SRC}/errors.py:2: import-order: errors must not import load"],
    ),
    "an import that the second table excludes": (
        "import-order",
        {f"{SRC}/mining/a.py": "import interlingua.methods.anchor\n"},
        [f"{SRC}/mining/a.py:1: import-order: mining must not import methods"],
    ),
    "a package that the table lacks": (
        "import-order",
        {f"{SRC}/brandnew/{name}.py": "" for name in "ab"},
        [
            f"{SRC}/brandnew/a.py:1: import-order: "
            "brandnew is missing in ORDER (tools/rules/imports.py)"
        ],
    ),
    "another order in CONTRIBUTING": (
        "import-order",
        {"CONTRIBUTING.md": CONTRIBUTING.replace(" < report", ", report")},
        [
            "CONTRIBUTING.md:4: import-order: "
            "the order of imports differs from ORDER (tools/rules/imports.py)"
        ],
    ),
    "a package in CONTRIBUTING that may import training": (
        "import-order",
        {"CONTRIBUTING.md": CONTRIBUTING.replace("`mining`", "`serving`")},
        [
            "CONTRIBUTING.md:7: import-order: "
            "NEVER (tools/rules/imports.py) allows serving to import training"
        ],
    ),
    "no order in CONTRIBUTING": (
        "import-order",
        {"CONTRIBUTING.md": "# Working on it\n"},
        [
            'CONTRIBUTING.md:1: import-order: "... use an encoder and never ..." is missing',
            'CONTRIBUTING.md:1: import-order: "The order of imports is", with a block of code, '
            "is missing",
        ],
    ),
    "a circle through a function": (
        "import-circle",
        {
            f"{SRC}/data/__init__.py": "from interlingua import arrays\n",
            f"{SRC}/arrays.py": "def f():\n    import interlingua.data\n",
        },
        [
            f"{SRC}/arrays.py:2: import-circle: "
            "interlingua.arrays imports interlingua.data imports interlingua.arrays"
        ],
    ),
    "a long function": (
        "function-length",
        {f"{SRC}/a.py": f"x = 1\nasync {LONG}"},
        [f"{SRC}/a.py:2: function-length: f has 81 lines, at most 80 are allowed"],
    ),
    "a very long function in the training loop": (
        "function-length",
        {f"{SRC}/training/loop.py": "def f():\n" + "    x = 1\n" * 150},
        [f"{SRC}/training/loop.py:1: function-length: f has 151 lines, at most 150 are allowed"],
    ),
    "a folder of many modules": (
        "folder-size",
        {f"{SRC}/a/m{number}.py": "" for number in range(21)},
        [f"{SRC}/a:1: folder-size: 21 modules, at most 20 are allowed"],
    ),
    "two classes with the same name": (
        "public-names",
        {f"{SRC}/a.py": "class A: ...\n", f"{SRC}/b/c.py": "\ndef f():\n    class A: ...\n"},
        [f"{SRC}/b/c.py:3: public-names: A is also in {SRC}/a.py:1"],
    ),
    "a function, a constant and a verb with names that other modules have": (
        "public-names",
        {
            f"{SRC}/a.py": "X = 1\ndef run(): ...\n",
            f"{SRC}/b.py": "x = 1\nX: int = 2\nasync def run(): ...\n",
            f"{SRC}/cli/verbs/mine.py": "def mine(): ...\nx = 2\n",
            f"{SRC}/mining/mine.py": "def mine(): ...\n",
            f"{SRC}/pool.py": "mine = 3\n",
        },
        [
            f"{SRC}/b.py:2: public-names: X is also in {SRC}/a.py:1",
            f"{SRC}/b.py:3: public-names: run is also in {SRC}/a.py:2",
            f"{SRC}/cli/verbs/mine.py:2: public-names: x is also in {SRC}/b.py:1",
            f"{SRC}/pool.py:1: public-names: mine is also in {SRC}/mining/mine.py:1",
        ],
    ),
    "progress bars elsewhere": (
        "progress-bars",
        {
            f"{SRC}/a.py": "import os\nfrom rich.progress import Progress\n",
            f"{SRC}/runtime/progress.py": "",
        },
        [
            f"{SRC}/a.py:2: progress-bars: rich.progress is for runtime/progress.py alone",
            f"{SRC}/runtime/progress.py:1: progress-bars: "
            "rich.progress is not used here: adapt this rule",
        ],
    ),
    "an executor chosen elsewhere": (
        "executor-choice",
        {
            f"{SRC}/a.py": "import time\nfrom time import monotonic_ns\nimport timeit\n"
            "x = time.perf_counter_ns()\n",
            f"{SRC}/b.py": "x = ['INTERLINGUA_EXECUTOR', 'executors.json']\n",
        },
        [
            *(
                f"{SRC}/a.py:{line}: executor-choice: a clock: choose executors in "
                "encoder/executors/choice.py; for other purposes name this module in "
                "CLOCK_READERS (tools/rules/definitions.py)"
                for line in (2, 3, 4)
            ),
            *(
                f"{SRC}/b.py:1: executor-choice: {text} is for {CHOICE} alone"
                for text in ("INTERLINGUA_EXECUTOR", "executors.json")
            ),
        ],
    ),
    "JSON read elsewhere": (
        "json-readers",
        {f"{SRC}/a.py": "import json\nx = json.loads(t)\ny = map(json.load, files)\n"},
        [
            f"{SRC}/a.py:2: json-readers: json.loads is for storage/ alone; use storage.json_text",
            f"{SRC}/a.py:3: json-readers: json.load is for storage/ alone; use storage.json_text",
        ],
    ),
    "a format elsewhere": (
        "format-tags",
        {f"{SRC}/a.py": "x = 1\nA = 'interlingua-thing-3'\n"},
        [f"{SRC}/a.py:2: format-tags: interlingua-thing-3 belongs in storage/formats.py"],
    ),
    "dense code": (
        "density",
        {f"{SRC}/search/a.py": "# Why.\na, b = f(x), 3\n", f"{SRC}/a.py": "x = 1\n"},
        [
            f"{SRC}:1: density: comments 0.00 per 100 lines, at least 2.4 are allowed",
            f"{SRC}/search:1: density: tuples 500.00 per 1,000 lines, at most 0.15 are allowed",
        ],
    ),
    "an old word in a document": (
        "words",
        {"docs/a.md": "Fine.\n\nThe neighbour.\n"},
        ['docs/a.md:3: words: "neighbour" in: The neighbour.'],
    ),
    "prose in what a test matches": (
        "match-prose",
        {
            "tests/test_a.py": (
                f"def test_a():\n    f(match='{SIX_WORDS}')\n\n\n"
                f"@pytest.mark.parametrize('text', ['{SIX_WORDS}'])\n"
                "def test_b(text):\n    f(match=text)\n"
            )
        },
        [
            f"tests/test_a.py:{line}: match-prose: "
            f"6 words of prose, at most 5 are allowed: {SIX_WORDS}"
            for line in (2, 5)
        ],
    ),
    "docstrings that start with other words": (
        "docstrings",
        {
            "tools/a.py": (
                'X = 1\n"""What it is."""\n'
                'class C:\n    """Takes steps."""\n'
                '    @property\n    def f(self):\n        """Whether it holds."""\n'
                'def g():\n    """The sum."""\nasync def h():\n    """Steps."""\n'
                'def test_i():\n    """Returns."""\n'
            )
        },
        [
            'tools/a.py:2: docstrings: no noun phrase: "What"',
            'tools/a.py:4: docstrings: no noun phrase: "Takes"',
            'tools/a.py:7: docstrings: no noun phrase: "Whether"',
            'tools/a.py:9: docstrings: no verb of the list is first: "The"',
            'tools/a.py:11: docstrings: no verb of the list is first: "Steps"',
            'tools/a.py:13: docstrings: no verb of the list is first: "Returns"',
        ],
    ),
    "a module without tests": (
        "untested-modules",
        {f"{SRC}/a/b.py": "", "tests/a/test_c.py": "import interlingua.a\n"},
        [f"{SRC}/a/b.py:1: untested-modules: no test imports it, no tests/a/test_b.py"],
    ),
    "a path next to the repository": (
        "outside-paths",
        {"a.toml": f"x = 1\ny = '{repository.OUTSIDE[0]}/a'\nz = '{repository.OUTSIDE[1]}a'\n"},
        [
            f"a.toml:{line}: outside-paths: {outside} is outside of the repository"
            for line, outside in zip((2, 3), repository.OUTSIDE, strict=True)
        ],
    ),
    "a large file": (
        "large-files",
        {"docs/a.png": "x" * 1_100_000},
        [
            "docs/a.png:1: large-files: 1.1 MB, at most 1 MB are allowed; if the repository needs "
            "it, add the reason to LARGE_FILES (tools/rules/repository.py)"
        ],
    ),
    "another version of a model, and none in the changelog": (
        "versions",
        VERSIONS
        | {
            "models/mini/src/interlingua_mini/__init__.py": 'x = 1\n__version__ = "1.2.0"\n',
            "CHANGELOG.md": "# Changelog\n\n## Unreleased\n",
            "SECURITY.md": "| 1.1.x | yes |\n",
        },
        [
            f"{path}:{line}: versions: version {stated}, {SRC}/__init__.py has 1.2.3"
            for path, line, stated in (
                ("CHANGELOG.md", 1, "not found"),
                ("SECURITY.md", 1, "1.1"),
                ("models/mini/src/interlingua_mini/__init__.py", 2, "1.2.0"),
            )
        ],
    ),
    "a raised lower bound": (
        "oldest-versions",
        OLDEST | {"pyproject.toml": OLDEST["pyproject.toml"].replace("1.26", "2.1")},
        [
            "constraints-oldest.txt:1: oldest-versions: differs from pyproject.toml; "
            "write it with: python tools/oldest_versions.py"
        ],
    ),
    "a file that is no Python": (
        "public-names",
        {f"{SRC}/a.py": "x = 1\ndef\n"},
        [f"{SRC}/a.py:2: syntax: invalid syntax"],
    ),
    "a file that is not UTF-8": (
        "words",
        {"docs/a.md": b"\xff"},
        ["docs/a.md:1: syntax: not UTF-8: invalid start byte"],
    ),
}
CLEAN = {
    "import-order": {
        f"{SRC}/__init__.py": "from interlingua.training import loop\n",
        f"{SRC}/encoder/a.py": "from interlingua import __version__, errors\n",
        f"{SRC}/training/a.py": (
            "import interlingua.encoder.a\nfrom interlingua.training import loop\n"
        ),
        "tests/test_a.py": "import interlingua.cli\n",
        "CONTRIBUTING.md": CONTRIBUTING,
    },
    "import-circle": {
        f"{SRC}/__init__.py": "from interlingua import arrays\n",
        f"{SRC}/arrays.py": "import interlingua\nfrom interlingua import data\n",
        f"{SRC}/data/__init__.py": "from interlingua import data\n",
    },
    "function-length": {
        f"{SRC}/a.py": LONG.removesuffix("    x = 1\n"),
        f"{SRC}/training/loop.py": LONG,
        "tests/test_a.py": LONG,
    },
    "folder-size": {
        **{f"{SRC}/a/m{number}.py": "" for number in range(20)},
        f"{SRC}/a/__init__.py": "",
        f"{SRC}/a/b/c.py": "",
    },
    "public-names": {
        f"{SRC}/a.py": "class A: ...\nclass _B: ...\nT = 1\nlog = 2\n_X = 3\ndef f(): ...\n",
        f"{SRC}/b.py": "class B: ...\nclass _B: ...\nT = 1\nlog = 2\n_X = 3\nfrom a import f\n",
        f"{SRC}/c.py": "def g():\n    f = 1\nif g:\n    class C:\n        def f(self): ...\n",
        f"{SRC}/d.py": "import f\ndef h(): ...\ndef h(): ...\n",
        f"{SRC}/verbs/mine.py": "def mine(): ...\n",
        f"{SRC}/cli/verbs/mine.py": "def mine(): ...\n",
        "tests/test_a.py": "class A: ...\n",
    },
    "progress-bars": {f"{SRC}/runtime/progress.py": "import rich.progress\n"},
    "executor-choice": {
        CHOICE: "import time\nx = time.thread_time, 'executors.json'\n",
        f"{SRC}/mining/plan.py": "import time\nx = time.perf_counter()\n",
        f"{SRC}/a.py": "import time\ntime.sleep(1)\nx = other.time\n",
        "tests/test_a.py": "import time\nx = time.time(), 'INTERLINGUA_EXECUTOR'\n",
    },
    "json-readers": {
        f"{SRC}/a.py": "import json\nx = json.dumps(orjson.loads(t))\n",
        f"{SRC}/storage/a.py": "import json\nx = json.loads(t)\n",
        "tests/test_a.py": "import json\nx = json.loads(t)\n",
    },
    "format-tags": {
        f"{SRC}/a.py": "x = 'a text with interlingua-thing-3 in it'\n",
        f"{SRC}/storage/formats.py": "x = 'interlingua-thing-3'\n",
    },
    "density": {
        f"{SRC}/a/b.py": "# Why.\nx = [1 if y else 2]\n" + "x = '#'  # Why.\n" * 200,
        "tests/test_a.py": "a, b = f(x), 3\n",
    },
    "words": {"docs/a.md": "The neighbor.\n", "tests/test_a.py": "x = 'nobody'\n"},
    "docstrings": {
        "tests/test_a.py": (
            '"""What a module tests."""\n'
            'X = 1\n"""Steps of a run."""\n"""That is no docstring."""\n'
            '@pytest.fixture()\ndef f():\n    """A folder."""\n'
            'class C:\n    """The case."""\n'
            '    @cached_property\n    def g(self):\n        """The sum."""\n'
            'def h():\n    """Return nothing."""\ndef i(): ...\n'
        ),
        "docs/a.md": "What a page is.\n",
    },
    "match-prose": {
        "tests/test_a.py": (
            "def test_a():\n"
            f"    f(match='one two three four five')\n    f(other='{SIX_WORDS}')\n"
            "    f(match=r'--one two/three 4 .* five-six seven_eight: .nine. ten')\n"
        ),
        f"{SRC}/a.py": f"def f():\n    g(match='{SIX_WORDS}')\n",
    },
    "untested-modules": {
        f"{SRC}/a/__init__.py": "",
        f"{SRC}/a/b.py": "",
        f"{SRC}/a/c.py": "",
        "tests/a/test_b.py": "",
        "tests/test_d.py": "from interlingua.a import c\n",
    },
    "outside-paths": {"a.toml": "x = '../other'\n"},
    "large-files": {"docs/a.png": "x" * 1_000_000, "models/mini/a": "x" * 1_000_001},
    "versions": VERSIONS,
    "oldest-versions": OLDEST,
}


def check(folder, files, rule):
    """Return the findings of a rule in a made-up project."""
    sources = []
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        content = content if isinstance(content, bytes) else content.encode()
        (folder / path).write_bytes(content)
        sources.append(SourceFile(folder, path))
    return house.check_files(sources, [house.RULES[rule]()])


@pytest.mark.parametrize(("rule", "files", "findings"), VIOLATIONS.values(), ids=VIOLATIONS)
def test_a_violation_is_found_with_its_line(rule, files, findings, tmp_path):
    assert check(tmp_path, files, rule) == findings


@pytest.mark.parametrize(("rule", "files"), CLEAN.items(), ids=CLEAN)
def test_clean_files_have_no_findings(rule, files, tmp_path):
    assert check(tmp_path, files, rule) == []


def test_each_rule_is_tested_both_ways():
    assert house.RULES.keys() == CLEAN.keys()
    assert house.RULES.keys() == {rule for rule, _, _ in VIOLATIONS.values()}


def test_a_package_twice_in_the_order_of_imports_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("tools.rules.imports.ORDER", [{"errors"}, {"report", "errors"}])
    assert check(tmp_path, {}, "import-order") == [
        "tools/rules/imports.py:1: import-order: errors is 2 times in ORDER"
    ]


def test_the_tables_of_imports_name_the_same_packages():
    assert set().union(*NEVER.values(), NEVER) <= set().union(*ORDER)


def test_modules_that_read_a_clock_exist():
    package = house.ROOT / "src" / "interlingua"
    assert [path for path in CLOCK_READERS if not (package / path).is_file()] == []


def test_a_reviewed_large_file_is_allowed(tmp_path, monkeypatch):
    monkeypatch.setitem(repository.LARGE_FILES, "docs/a.png", "a reason")
    assert check(tmp_path, {"docs/a.png": "x" * 1_100_000}, "large-files") == []


def test_words_of_prose():
    assert words_of_prose(r"^a\.txt:2: '\w+' of run.seed \(0, 5\) .*--resume never") == [
        "of",
        "never",
    ]
    assert words_of_prose("the two (files|folders) aren't read: {path}") == [
        *("the", "two", "files", "folders", "aren't", "read")
    ]


def test_patterns_are_found_through_arguments(tmp_path):
    (tmp_path / "a.py").write_text(
        "@pytest.mark.parametrize(('n', 'message'), [(1, 'a b'), pytest.param(2, f'{n} c')])\n"
        "def test_x(n, message):\n"
        "    with pytest.raises(ValueError, match=message): f(n)\n"
        "    with pytest.raises(ValueError, match='d e'): f(n)\n",
        encoding="utf-8",
    )
    patterns = find_patterns(SourceFile(tmp_path, "a.py").nodes)
    assert [literal_text(node) for node in patterns] == [None, "a b", "{} c", "d e"]


def test_comments_are_those_outside_of_strings(tmp_path):
    (tmp_path / "a.py").write_text(
        "x = '#'  # a\ny = '''\n# no\n\\''' # no\n'''  # b\n"
        "z = r'\\'  # no' # c\n#\n'it' \"'#\" # d",
        encoding="utf-8",
    )
    found = SourceFile(tmp_path, "a.py").comments
    assert found == {1: "# a", 5: "# b", 6: "# c", 7: "#", 8: "# d"}


@pytest.fixture
def repository_folder(tmp_path):
    """A git repository with a tracked, a deleted, a new and an ignored file."""
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    (tmp_path / ".gitignore").write_text("ignored.md\n", encoding="utf-8")
    for name in ("ignored.md", "deleted.md", "tracked.md"):
        (tmp_path / name).write_text("Nobody.\n", encoding="utf-8")
    subprocess.run(["git", "add", "."], cwd=tmp_path, check=True)
    (tmp_path / "deleted.md").unlink()
    (tmp_path / "new.md").write_text(f"Fine.\n{repository.OUTSIDE[0]}\n", encoding="utf-8")
    return tmp_path


def test_tracked_and_new_files_are_listed(repository_folder):
    assert house.list_paths(repository_folder) == {
        ".gitignore": True,
        "new.md": False,
        "tracked.md": True,
    }


def test_findings_and_a_summary_are_printed(repository_folder, capsys):
    assert house.main(["--rule", "words", "--rule", "outside-paths"], repository_folder) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'tracked.md:1: words: "Nobody" in: Nobody.'
    assert lines[1].startswith("3 files, 2 rules, 1 findings, ")


def test_the_share_of_plain_docstrings_of_each_package_is_printed(tmp_path):
    texts = {
        f"{SRC}/corpus/a.py": 'def f():\n    """Return 1."""\ndef g():\n    """Stand still."""\n',
        f"{SRC}/mining/a.py": 'def f():\n    """Return what it tells."""\n',
        "tests/a/test_b.py": 'class A:\n    """A case."""\n',
    }
    rule = house.RULES["docstrings"]()
    for path, text in texts.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_text(text, encoding="utf-8")
        list(rule.check(SourceFile(tmp_path, path)))
    assert [line.split(" docstrings ")[0].split() for line in rule.summary()] == [
        ["50.0", "%", "of", "2"],
        ["0.0", "%", "of", "1"],
        ["100.0", "%", "of", "1"],
    ]


def test_a_run_without_findings_succeeds(repository_folder, capsys):
    assert house.main(["--rule", "large-files"], repository_folder) == 0
    assert capsys.readouterr().out.startswith("3 files, 1 rules, 0 findings, ")


def test_new_files_are_skipped_on_request(repository_folder, capsys):
    house.main(["--tracked"], repository_folder)
    assert f"2 files, {len(house.RULES)} rules, 1 findings, " in capsys.readouterr().out


def test_an_unknown_rule_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        house.main(["--rule", "wordz"])
    assert "'wordz'" in capsys.readouterr().err
