"""Alignment that is killed and resumed."""

from __future__ import annotations

import signal
import sys

import pytest

from interlingua.alignment.align import _JOURNAL
from tests.mining.killed import run_script
from tests.mining.test_align_job import bytes_of as bytes_of
from tests.mining.test_align_job import counted as counted
from tests.mining.test_align_job import embedded_documents
from tests.mining.test_align_job import listed as listed
from tests.mining.test_align_job import run as run

KILLED = """
import sys
from pathlib import Path
from interlingua.alignment import align
from tests.mining import words
from tests.mining.killed import die_at
from tests.mining.test_align_job import run

places = {
    "encoder": (words, "encode"),
    "journal": (align.AlignJournal, "add"),
    "texts": (align, "join_sentences"),
}
die_at(*places[sys.argv[2]], int(sys.argv[3]))
run(Path(sys.argv[1]), "killed", encode=words.encode)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_a_run_killed_at_three_points_ends_with_the_same_files(listed, counted):
    """Kill in the second document's vectors, before its journal entry, and in the third's texts."""
    for place, moment in (("encoder", 3), ("journal", 1), ("texts", 250)):
        assert run_script(KILLED, listed, place, moment) == -signal.SIGKILL, place
    assert (listed / "killed" / _JOURNAL).is_file()
    report = run(listed, "killed", encode=counted)
    assert embedded_documents(listed, counted.seen) in ([3], [2, 3])
    assert not (listed / "killed" / _JOURNAL).exists()
    straight = run(listed, "straight")
    assert bytes_of(listed, "killed") == bytes_of(listed, "straight")
    assert report.documents == 3
    assert report.gold_lines == straight.gold_lines
