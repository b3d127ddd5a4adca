"""The house rules of CONTRIBUTING.md, measured: import order, density, words, tests, what a bare
import costs."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import defaultdict
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import pytest

from tools import density, words

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "interlingua"
SOURCES = sorted(PACKAGE.rglob("*.py"))
NAMES = [path.relative_to(PACKAGE).as_posix() for path in SOURCES]

# A room may use the rooms of the rows above it, and itself.
ORDER = [
    {
        "errors",
        "limits",
        "callable_package",
        "options",
        "portions",
        "compression",
        "temporary",
        "locks",
        "processes",
        "files",
        "tensor_files",
        "json_text",
        "arrays",
        "remote",
        "languages",
        "registry",
        "progress_bars",
        "runtime",
        "config",
        "data",
        "kernels",
        "devices",
        "one_pass",
        "workers",
    },
    {"report"},
    {"corpus"},
    {"batches"},
    {"encoder"},
    {"prepare"},
    {"functional"},
    {"methods"},
    {"train"},
    {"search"},
    {"mining"},
    {"integrations"},
    {"export"},
    {"evaluation"},
    {"analysis"},
    {"adapt"},
    {"quickstart"},
    {"serve"},
    {"verbs"},
    {"cli"},
    {"__main__"},
]
# What uses an encoder knows nothing of training; what trains knows nothing of what uses an encoder.
NEVER = {
    "mining": {"methods", "train", "prepare", "batches"},
    "search": {"methods", "train", "prepare", "batches", "mining"},
    "integrations": {"methods", "train", "prepare", "batches", "mining"},
    "export": {"methods", "train", "prepare", "batches", "mining"},
    "evaluation": {"methods", "train", "prepare", "export"},
    "analysis": {"methods", "train", "prepare", "export"},
    "train": {"prepare"},
    "methods": {"prepare", "corpus"},
    "functional": {"encoder", "batches", "corpus", "prepare"},
}


def rooms_used(path: Path) -> set[str]:
    used = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            modules = (
                [node.module]
                if node.module != "interlingua"
                else [f"interlingua.{a.name}" for a in node.names]
            )
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        used |= {module.split(".")[1] for module in modules if module.startswith("interlingua.")}
    return used - {"__version__"}


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_imports_go_downhill(path):
    room = room_of(path)
    if room == "__init__":
        pytest.skip("the package's own lazy names")
    level = next(i for i, rooms in enumerate(ORDER) if room in rooms)
    below = set().union(*ORDER[: level + 1])
    wrong = {used for used in rooms_used(path) if used not in below or used in NEVER.get(room, ())}
    assert not wrong, f"{path.name} must not import {sorted(wrong)}"


def modules_used(path: Path) -> set[str]:
    """What a file imports, anywhere in it, for types too."""
    used = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            used |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            used |= {alias.name for alias in node.names}
    return used


def test_there_is_no_import_circle():
    modules = {}
    for path in SOURCES:
        name = ".".join(("interlingua", *path.relative_to(PACKAGE).with_suffix("").parts))
        modules[name.removesuffix(".__init__")] = modules_used(path)
    del modules["interlingua"]  # its names are lazy, and every file may read its version
    graph = {name: used & modules.keys() - {name} for name, used in modules.items()}
    assert list(
        TopologicalSorter(graph).static_order()
    )  # raises CycleError where there is a circle


def test_progress_bars_are_made_in_one_place():
    makers = [
        name
        for path, name in zip(SOURCES, NAMES, strict=True)
        if "rich.progress" in path.read_text(encoding="utf-8")
    ]
    assert makers == ["progress_bars.py"]


def test_no_two_public_classes_share_a_name():
    places = defaultdict(list)
    for path, name in zip(SOURCES, NAMES, strict=True):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}


@pytest.mark.parametrize("path", SOURCES, ids=NAMES)
def test_functions_stay_small(path):
    """Their complexity is at most 10, which ruff checks.

    Files are split by subject, not by length.
    """
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # train/loop.py is one function one reads from top to bottom
            most = 200 if path.name == "loop.py" else 80
            assert node.end_lineno - node.lineno + 1 <= most, (
                f"{node.name} is longer than {most} lines"
            )


@pytest.mark.parametrize(
    ("package", "counts"), density.packages().items(), ids=list(density.packages())
)
def test_no_package_is_denser_than_its_limits(package, counts):
    assert density.excesses(package, counts.density) == []


@pytest.mark.parametrize("path", words.documents(), ids=lambda path: str(path.relative_to(ROOT)))
def test_plain_words(path):
    assert words.old_words(path) == []


TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_WORDS = 5
"""Words of prose in what a test matches of a message: its wording is in golden/messages.txt."""


def words_of_prose(pattern: str) -> list[str]:
    """Words of letters alone: no names, keys, paths, options, figures or quotes."""
    text = re.sub(r"\\[sSwWdDbB]|\{[^{}]*\}", "#", pattern)  # classes, and what is filled in
    text = re.sub(r"(?<!\\)\.[*+]", " ", text).replace("\\", "")
    pieces = re.split(r"[.:;,]+(?=\s|$)|[\s|()^$?\[\]]+", text)
    return [piece for piece in pieces if re.fullmatch(r"[A-Za-z]+(n't|'s)?", piece)]


def text_of(node: ast.expr) -> str | None:
    """A literal, with ``{}`` for what an f-string fills in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(text_of(part) or "{}" for part in node.values)
    return None


def parametrized(function: ast.FunctionDef, name: str) -> list[ast.expr]:
    """The values that the decorators of a test give to one of its arguments."""
    values = []
    for call in function.decorator_list:
        if not isinstance(call, ast.Call) or not ast.unparse(call.func).endswith("parametrize"):
            continue
        names, rows = ast.unparse(call.args[0]), call.args[1]
        names = re.findall(r"\w+", names)
        if name in names and isinstance(rows, ast.List | ast.Tuple):
            values += [cell(row, names.index(name), len(names)) for row in rows.elts]
    return values


def cell(row: ast.expr, column: int, width: int) -> ast.expr:
    """One value of a row of ``parametrize``: of a tuple, of ``pytest.param`` or the row itself."""
    values = [row]
    if isinstance(row, ast.Call):
        values = row.args
    elif width > 1 and isinstance(row, ast.Tuple | ast.List):
        values = row.elts
    return values[column] if column < len(values) else row


def matched(path: Path) -> list[ast.expr]:
    """What the tests of a file match of messages: ``match=``, also through an argument."""
    found = []
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef):
            keywords = [node for node in ast.walk(function) if isinstance(node, ast.keyword)]
            for value in [node.value for node in keywords if node.arg == "match"]:
                names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)]
                found += [value, *(v for name in names for v in parametrized(function, name))]
    return found


@pytest.mark.parametrize("path", TESTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_tests_match_options_paths_and_figures_rather_than_prose(path):
    texts = [(node.lineno, text_of(node) or "") for node in matched(path)]
    long = [f"{line}: {text}" for line, text in texts if len(words_of_prose(text)) > MOST_WORDS]
    assert long == []


def test_words_of_prose(tmp_path):
    assert words_of_prose(r"^a\.txt:2: '\w+' of run.seed \(0, 5\) .*--resume never") == [
        "of",
        "never",
    ]
    assert words_of_prose("the two (files|folders) aren't read: {path}") == [
        *("the", "two", "files", "folders", "aren't", "read")
    ]
    (tmp_path / "test_x.py").write_text(
        "@pytest.mark.parametrize(('n', 'message'), [(1, 'a b'), pytest.param(2, f'{n} c')])\n"
        "def test_x(n, message):\n"
        "    with pytest.raises(ValueError, match=message): f(n)\n"
        "    with pytest.raises(ValueError, match='d e'): f(n)\n",
        encoding="utf-8",
    )
    texts = [text_of(node) for node in matched(tmp_path / "test_x.py")]
    assert texts == [None, "a b", "{} c", "d e"]


def test_every_module_is_tested():
    """Tests follow behavior: those of a module are wherever it is imported, or in a file that is
    named after it."""
    imported = set()
    for path in sorted((ROOT / "tests").rglob("*.py")):
        imported |= modules_used(path)
    untested = []
    for name in NAMES:
        path = Path(name)
        module = ".".join(("interlingua", *path.with_suffix("").parts))
        has_own_tests = (ROOT / "tests" / path.parent / f"test_{path.name}").exists()
        if path.name != "__init__.py" and module not in imported and not has_own_tests:
            untested.append(name)
    assert untested == []


def test_import_order_names_every_room():
    rooms = {room_of(path) for path in SOURCES} - {"__init__"}
    assert rooms <= set().union(*ORDER)
    assert all(not (a & b) for a, b in pairwise(ORDER))


def test_contributing_names_the_import_order():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    written = re.search(r"The order of imports is\n\n```\n(.*?)```", text, re.DOTALL)[1]
    order = [{room.strip() for room in rooms.split(",")} for rooms in written.split("<")]
    assert order == ORDER
    never = re.search(r"^((?:`\w+`(?:, | and ))+`\w+`) use an encoder and never", text, re.M)[1]
    for room in re.findall(r"`(\w+)`", never):
        assert NEVER[room] >= {"methods", "train"}


@pytest.mark.parametrize(
    "statement", ["import interlingua", "import interlingua.cli.main", "import interlingua.corpus"]
)
def test_bare_imports_bring_no_torch(statement):
    code = f"import sys; {statement}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_in_the_project_needs_a_neighboring_folder():
    files = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8", errors="ignore")
        for name in files
        if (ROOT / name).is_file()
    }
    parent = ".." + "/shared"
    assert [name for name, text in texts.items() if parent in text or "/work" + "/" in text] == []
