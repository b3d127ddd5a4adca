"""Verbs on lists write no file."""

from __future__ import annotations

import os

import pytest

import interlingua
from interlingua.mining.defaults import CHEAP
from tests.mining.invented import corpora, embed
from tests.written_files import written_files

SOURCES, TARGETS, PAIRS = corpora()
LANGUAGES = {"source_language": "de", "target_language": "en"}
CALLS = {
    "mine": lambda **options: interlingua.mine(embed, SOURCES, TARGETS, **options),
    "mine with all checks": lambda **options: interlingua.mine(
        embed,
        SOURCES,
        TARGETS,
        checks=[*CHEAP, "duplicate", "hub"],
        drop="duplicate,hub",
        **options,
    ),
    "mine approximately": lambda **options: interlingua.mine(
        embed, SOURCES, TARGETS, approximate="int8", **options
    ),
    "plan": lambda **options: interlingua.mine(embed, SOURCES, TARGETS, plan=True, **options).lines,
    "align": lambda **options: interlingua.align(embed, SOURCES, TARGETS, **options),
    "score": lambda **options: list(
        interlingua.score(
            embed, list(zip(SOURCES, TARGETS, strict=True)), checks="duplicate", **options
        )
    ),
}


def test_the_watch_sees_files_and_folders(tmp_path):
    with written_files() as found:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / "b").write_text("x")
        os.close(os.open(tmp_path / "c", os.O_CREAT | os.O_RDWR))
        (tmp_path / "c").read_text()
    assert [line.rpartition("/")[2] for line in found] == ["a", "b", "c"]


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_lists_leave_no_file(call):
    call(**LANGUAGES)  # the first call may import modules
    with written_files() as found:
        assert list(call(**LANGUAGES))
    assert found == []


@pytest.mark.parametrize("retrieval", ["max", "intersection", "forward", "backward"])
@pytest.mark.parametrize("equal", ["exact", "folded", "never"])
def test_in_memory_the_pairs_are_those_of_a_work_folder(tmp_path, retrieval, equal):
    sources = [*SOURCES, SOURCES[3], f"{SOURCES[4].upper()}.", "", SOURCES[3]]
    options = {"retrieval": retrieval, "equal": equal, "memory": "4MiB", **LANGUAGES}
    found = interlingua.mine(embed, sources, TARGETS, **options)
    on_disk = interlingua.mine(embed, sources, TARGETS, work=tmp_path / "w", **options)
    assert (tmp_path / "w" / "vectors-x").is_dir()
    assert len(found) > 20
    assert list(found) == list(on_disk)
    assert list(found.columns) == list(on_disk.columns)
    assert found.lines == on_disk.lines
