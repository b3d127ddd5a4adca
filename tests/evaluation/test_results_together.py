from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.results import find_sidecar, write_together


@pytest.fixture
def place(tmp_path):
    return tmp_path / "t.json"


def write(place, items):
    sidecar = place.with_suffix(".items.npz")
    writer = None if items is None else lambda path: path.write_text(items)
    write_together(place, json.dumps, {sidecar: writer})
    return sidecar


def test_a_result_names_the_digests_of_its_files(place):
    sidecar = write(place, "a")
    digests = json.loads(place.read_text())
    assert list(digests) == ["items.npz"]
    assert find_sidecar(place, sidecar, digests) == sidecar
    assert sorted(path.name for path in place.parent.iterdir()) == ["t.items.npz", "t.json"]


def test_a_file_that_has_not_its_name_yet_is_found(place):
    sidecar = write(place, "a")
    coming = sidecar.with_name("t.items.npz.next")
    sidecar.rename(coming)
    sidecar.write_text("of the result before")
    assert find_sidecar(place, sidecar, json.loads(place.read_text())) == coming


def test_a_file_of_another_result_is_an_error(place):
    sidecar = write(place, "a")
    sidecar.write_text("b")
    with pytest.raises(DataError, match=r"t\.items\.npz: "):
        find_sidecar(place, sidecar, json.loads(place.read_text()))


def test_where_nothing_belongs_to_a_result_nothing_is_found(place):
    write(place, "a")
    sidecar = write(place, None)
    assert not sidecar.exists()
    sidecar.write_text("left")
    assert find_sidecar(place, sidecar, json.loads(place.read_text())) is None


def test_results_of_earlier_versions_have_the_file_of_the_usual_name(place):
    sidecar = place.with_suffix(".items.npz")
    assert find_sidecar(place, sidecar, None) is None
    sidecar.write_text("a")
    assert find_sidecar(place, sidecar, None) == sidecar
