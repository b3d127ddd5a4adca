"""tests/tiers.py: each case has one marker, and the core cases hold every value of a parameter."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from tests import tiers
from tests.covers import cover, pairwise
from tests.tiers import TESTS, case_markers, folder_marker, is_excluded


@pytest.mark.parametrize(
    ("path", "marker"),
    [
        ("test_files.py", "core"),
        ("encoder/test_encode.py", "core"),
        ("kernels/test_calls.py", "kernels"),
        ("search/kill/test_kill.py", "kill"),
        ("docs/examples/test_examples.py", "docs"),
        ("hostile/peers/test_x.py", "hostile"),
        ("encoder/kernels.py", "core"),
    ],
)
def test_the_first_folder_that_is_a_marker_decides(path, marker):
    assert folder_marker(TESTS / path) == marker


@pytest.mark.parametrize(
    ("expression", "path", "expected"),
    [
        ("", "kernels/test_calls.py", False),
        ("core", "kernels/test_calls.py", True),
        ("core", "kernels", True),
        ("core", "encoder", False),
        ("core", "search/test_ranking.py", False),
        ("not core", "search/test_ranking.py", False),  # it may have cases that are products
        ("kernels", "search/test_ranking.py", False),
        ("docs", "search/test_ranking.py", True),
        ("docs or kill", "search/kill/test_kill.py", False),
        ("core and slow", "kernels/test_calls.py", True),
        ("core or slow", "kernels/test_calls.py", False),  # pytest decides
        ("core and", "kernels/test_calls.py", False),
        ("core.x", "kernels/test_calls.py", False),
        ("core/2", "kernels/test_calls.py", False),
    ],
)
def test_files_without_a_selected_test_are_not_imported(expression, path, expected):
    assert is_excluded(expression, TESTS / path) == expected
    assert not is_excluded(expression, TESTS)
    assert not is_excluded(expression, TESTS.parent)


def cases_of(**values):
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


@pytest.mark.parametrize(("strength", "least"), [(1, 4), (2, 12), (3, 24)])
def test_a_cover_holds_every_combination_in_few_cases(strength, least):
    cases = cases_of(a=range(3), b=range(4), c=range(2))
    chosen = [cases[i] for i in cover(cases, strength=strength)]
    assert len(chosen) == least
    for names in combinations("abc", strength):
        found, every = (
            {tuple(case[name] for name in names) for case in some} for some in (chosen, cases)
        )
        assert found == every


def test_pairwise_names_its_cases_and_passes_variants_to_their_fixture():
    mark = pairwise(variant=["amx", "avx2"], shape={"any": {}, "tiled": {"a": 1}}, n=[1, 2]).mark
    names, rows = mark.args
    assert names == ["variant", "shape", "n"]
    assert mark.kwargs["indirect"] == ["variant"]
    assert [row.id for row in rows] == ["amx-any-1", "amx-tiled-2", "avx2-any-2", "avx2-tiled-1"]
    assert rows[1].values == ("amx", {"a": 1}, 2)


def test_all_cases_of_one_parameter_are_core():
    assert case_markers(cases_of(a=range(30)), other_variants=set()) == ["core"] * 30
    assert case_markers([{}], other_variants=set()) == ["core"]


def test_other_variants_are_kernels_and_other_seeds_products():
    cases = cases_of(scanner=["amx", "avx2"], seed=[0, 1])
    expected = ["kernels", "kernels", "core", "products"]
    assert case_markers(cases, other_variants={"amx"}) == expected
    assert case_markers(cases, other_variants={"amx", "avx2"}) == ["kernels"] * 4


def test_every_folder_of_a_marker_has_tests():
    folders = {folder_marker(path) for path in TESTS.rglob("test_*.py")}
    assert folders == {"core", *tiers.FOLDERS}
