"""Rule on the first words of docstrings, with the share of plain ones per package.

    python tools/house.py --rule docstrings

A function's docstring starts with a verb of ``VERB_LIST``. That of a class, an attribute, a
property or a fixture is a noun phrase. The rule also prints the share of docstrings per package
that follow it and contain none of the constructions of ``tools/words.py``.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from tools.rules.base import Finding, Rule, SourceFile
from tools.words import CONSTRUCTIONS

FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
VERB_LIST = """
    accept add admit advance align allocate allow analyze announce answer append apply arrange
    ask assign average begin bound build calibrate call cap capitalize center change check
    choose clean close collect combine compare compile complete compute concatenate consume
    continue contrast convert copy correlate count create cross-validate cut damage decide
    declare decode derive describe disable dispatch distill distribute divide do download draw
    drop embed empty encode end enter escape estimate evaluate examine exclude explain export
    extend extract fail feed fetch fill find finish fit flip follow forget format forward free
    fuse fuzz gather generate give group guess halve hand handle hash hide hold import infer
    initialize insert install join judge keep kill label learn leave let limit link list load
    lock log look loop lowercase make map mark mask match measure merge mine move multiply name
    normalize note number omit open pack pad pair parametrize parse pass permute plan point pool
    predict prepare press prevent print process put quantize query queue quote raise rank read
    record redirect refuse register reject release reload remove rename render reorder repeat
    replace report require reset resolve restore resume retokenize retrieve return rotate round
    run save scale scan score search seed select send serve set shard share shift shorten show
    silence simulate skip smooth solve sort split square stack start stop store stream subtract
    suggest sum summarize swap switch take teach test time tokenize train transform translate
    trim try turn unify unpack update use validate verify wait warn weigh wrap write yield zero
"""
"""Reviewed verbs. Add one if it describes an action: not "be", "have" or "become"."""
NOUN_LIST = """
    answers averages blocks bounds calls changes checks copies counts cuts draws drops ends
    formats forms groups joins limits links lists logs loops marks measures merges names numbers
    pairs passes plans points processes queries ranks records reports rounds samples scores sets
    shares starts steps sums tests times weights
"""
"""Words that are the third person of a verb, but also a plural."""
OPENINGS = re.compile(
    r"(?:What|Whether|Which|Where|When|Why|How|Those|That|As|Of|See|So|It|They|There|Is)\b"
)
"""First words of fragments and clauses, which are no noun phrases."""
VERBS = frozenset(VERB_LIST.split())
NOUNS = frozenset(NOUN_LIST.split())
LIBRARY = "src/interlingua/"


class Share(NamedTuple):
    """The number of docstrings of a package, and how many of them are plain."""

    plain: int = 0
    total: int = 0


class Docstrings(Rule):
    """Docstrings of functions begin with a verb, others with a noun phrase."""

    name = "docstrings"

    def __init__(self) -> None:
        self.packages: defaultdict[str, Share] = defaultdict(Share)

    def check(self, file: SourceFile) -> Iterator[Finding]:
        """Report each docstring with another first word, and count all."""
        if not file.is_python:
            return
        package = package_of(file)
        for line, text, is_function in docstrings(file):
            wrong = fault(text, is_function=is_function)
            is_plain = not wrong and not has_construction(text)
            plain, total = self.packages[package]
            self.packages[package] = Share(plain + is_plain, total + 1)
            if wrong:
                yield Finding(file.path, line, wrong)

    def summary(self) -> Iterator[str]:
        """Yield the share of plain docstrings of each package."""
        for package, share in sorted(self.packages.items()):
            percent = 100 * share.plain / share.total
            yield f"{percent:5.1f} % of {share.total:5,} docstrings are plain in {package}"


def package_of(file: SourceFile) -> str:
    """Return the first folder of a file, in the library that of the package."""
    if file.path.startswith(LIBRARY):
        folder, separator, _ = file.path.removeprefix(LIBRARY).partition("/")
        return LIBRARY + folder if separator else LIBRARY.rstrip("/")
    folder, separator, _ = file.path.partition("/")
    return folder if separator else "."


def docstrings(file: SourceFile) -> Iterator[tuple[int, str, bool]]:
    """Yield line, text, and whether it is a function's, of all docstrings but those of modules."""
    for node in file.nodes:
        if isinstance(node, FUNCTION | ast.ClassDef) and (text := ast.get_docstring(node)):
            is_function = isinstance(node, FUNCTION) and not is_value(node)
            yield node.body[0].lineno, text, is_function
        if isinstance(node, ast.Module | ast.ClassDef):
            yield from attribute_docstrings(node.body)


def attribute_docstrings(body: list[ast.stmt]) -> Iterator[tuple[int, str, bool]]:
    """Yield line and text of each string directly after an assignment, and False."""
    for pair in pairwise(body):
        match pair:
            case (
                ast.Assign() | ast.AnnAssign(),
                ast.Expr(value=ast.Constant(value=str() as text), lineno=line),
            ):
                yield line, inspect.cleandoc(text), False


def is_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether a function is used as a value: a property or a fixture."""
    names = [ast.unparse(decorator).partition("(")[0] for decorator in node.decorator_list]
    return any(name.endswith(("property", "fixture", ".setter")) for name in names)


def fault(text: str, *, is_function: bool) -> str:
    """Return what is wrong with the first word of a docstring, or an empty text."""
    word = re.split(r"[\s,.:;]", text, maxsplit=1)[0]
    if is_function:
        return "" if word.lower() in VERBS else f'no verb of the list is first: "{word}"'
    if OPENINGS.match(text) or is_third_person(word):
        return f'no noun phrase: "{word}"'
    return ""


def is_third_person(word: str) -> bool:
    """Return whether a word is like "takes", but not like "steps", which is also a noun."""
    lowered = word.lower()
    if lowered in NOUNS or not lowered.endswith("s"):
        return False
    stems = {lowered[:-1], lowered[:-2], lowered[:-3] + "y"}
    return bool(stems & VERBS) or lowered in {"knows", "says", "tells", "stands", "gets"}


def has_construction(text: str) -> bool:
    """Return whether a docstring contains a construction of ``tools/words.py``."""
    return any(map(CONSTRUCTIONS.search, f'"""{text}'.splitlines()))
