"""tests/tiers.py: each case has one marker, and the core cases hold every value of a parameter."""

from __future__ import annotations

from itertools import product

import pytest

from tests import tiers
from tests.tiers import TESTS, case_markers, cover_values, folder_marker, is_excluded


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
    ],
)
def test_files_without_a_selected_test_are_not_imported(expression, path, expected):
    assert is_excluded(expression, TESTS / path) == expected
    assert not is_excluded(expression, TESTS)
    assert not is_excluded(expression, TESTS.parent)


def cases_of(**values):
    return [dict(zip(values, row, strict=True)) for row in product(*values.values())]


def test_a_cover_holds_every_value_once_or_more():
    cases = cases_of(a=range(3), b=range(4), c=range(2))
    chosen = cover_values(cases)
    assert len(chosen) == 4
    for name, values in (("a", range(3)), ("b", range(4)), ("c", range(2))):
        assert {cases[i][name] for i in chosen} == set(values)


def test_all_cases_of_one_parameter_are_core():
    assert case_markers(cases_of(a=range(30)), own_variants=set()) == ["core"] * 30
    assert case_markers([{}], own_variants=set()) == ["core"]


def test_other_variants_are_kernels_and_other_seeds_products():
    cases = cases_of(variant=["amx", "avx2"], seed=[0, 1])
    assert case_markers(cases, own_variants={"avx2"}) == ["kernels", "kernels", "core", "products"]
    assert case_markers(cases, own_variants=set()) == ["kernels"] * 4


def test_every_folder_of_a_marker_has_tests():
    folders = {folder_marker(path) for path in TESTS.rglob("test_*.py")}
    assert folders == {"core", *tiers.FOLDERS}
