"""The files that make corpora: each reads files of its own, cuts as its paper does, and writes a
folder of its own."""

from __future__ import annotations

from functools import cache
from itertools import chain, combinations

import pytest

from interlingua.config import load_toml
from tests.experiments.test_experiments import ROOT

FILES = sorted(path for path in ROOT.rglob("*.toml") if "sources" in load_toml(path))
PUBLISHED = "$INTERLINGUA_DATA/"
"""Archives of public sets, where the name of a file says which corpus it is of. Elsewhere the user
puts the files, or a script of the experiment writes them."""


@cache
def overlaps(one: str, other: str) -> bool:
    """Return whether some path matches both patterns; ``*`` stops at a slash, ``**`` is in none."""
    if not one or not other:
        return not one.strip("*") and not other.strip("*")
    if other[0] == "*" != one[0]:
        one, other = other, one
    if one[0] == "*":
        # no character, or one more of the other
        return overlaps(one[1:], other) or (other[0] != "/" and overlaps(one, other[1:]))
    return (one[0] == other[0] or "?" in (one[0], other[0])) and overlaps(one[1:], other[1:])


def patterns(path):
    """Return each source's patterns, absolute unless they are of a published archive."""
    return [
        [
            given if given.startswith(PUBLISHED) else str((path.parent / given).resolve())
            for given in source["paths"]
        ]
        for source in load_toml(path)["sources"]
    ]


def named(path):
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("bitext/*.tsv.gz", "bitext/*.tsv.gz", True),
        ("bitext81/*.tsv.gz", "bitext14/*.tsv.gz", False),
        ("bitext/*.tsv", "bitext/*.tsv.gz", False),
        ("bitext/*.gz", "bitext/en-*.tsv.gz", True),
        ("data/*", "data/one/two.tsv", False),
        ("data/*/*.tsv", "data/one/*", True),
        ("a?.tsv", "*b.tsv", True),
        ("*", "", True),
        ("a", "", False),
    ],
)
def test_whether_two_patterns_can_name_one_file(one, other, expected):
    assert overlaps(one, other) is expected
    assert overlaps(other, one) is expected


def sharers(path):
    """Return a file's own corpus and the corpora that its comments name."""
    text = path.read_text(encoding="utf-8")
    found = {path}
    for other in FILES:
        if named(other) in text or (other.parent == path.parent and other.name in text):
            found.add(other)
    return found


def test_no_two_corpora_read_the_same_files_unless_they_say_so():
    """Accept a comment that names the other file, or two that name a third."""
    mixed = []
    for one, other in combinations(FILES, 2):
        if sharers(one) & sharers(other):
            continue
        for first in chain.from_iterable(patterns(one)):
            for second in chain.from_iterable(patterns(other)):
                is_own = not first.startswith(PUBLISHED)
                if is_own and overlaps(first, second):
                    mixed.append((named(one), named(other), first))
    assert mixed == []


@pytest.mark.parametrize("path", FILES, ids=named)
def test_no_two_sources_of_a_corpus_read_the_same_file_of_the_users(path):
    twice = [
        (first, second)
        for one, other in combinations(patterns(path), 2)
        for first in one
        for second in other
        if not first.startswith(PUBLISHED) and overlaps(first, second)
    ]
    assert twice == []


def test_each_corpus_has_a_folder_of_its_own():
    folders = [(path.parent / load_toml(path)["output"]).resolve() for path in FILES]
    assert len(set(folders)) == len(FILES) > 10


@pytest.mark.parametrize("path", FILES, ids=named)
def test_wikimatrix_with_margins_is_cut_where_its_authors_cut(path):
    """Check Hu et al.'s counts, LASER's pairs with a margin of 1.04 or more.

    EMS takes OPUS' release, which has no margins, and all of it.
    """
    for source in load_toml(path)["sources"]:
        if any("WikiMatrix" in pattern and ".tsv" in pattern for pattern in source["paths"]):
            assert source["min_score"] == 1.04


def test_every_row_of_multilingual_ir_is_chosen_on_questions():
    """Check that validation is on Natural Questions, because valid_loss includes other text."""
    rows = [
        path
        for path in (ROOT / "multilingual_ir").rglob("*.toml")
        if load_toml(path).get("method", {}).get("name") == "multilingual_ir"
    ]
    chosen = {
        (run["metric_for_best_model"], run["greater_is_better"])
        for run in (load_toml(path)["run"] for path in rows)
    }
    assert len(rows) > 40
    assert chosen == {("valid_retrieval", False)}
