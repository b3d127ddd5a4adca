"""Journals keep only complete lines."""

from __future__ import annotations

import pytest

from interlingua.errors import ConfigError
from interlingua.storage.journal import Journal


@pytest.fixture
def journal(tmp_path):
    return Journal(tmp_path / "a.journal")


def test_a_journal_keeps_whole_lines_alone(journal):
    assert journal.read() == []
    journal.add([0, 1])
    journal.add({"name": "ü\n"})
    assert journal.read() == [[0, 1], {"name": "ü\n"}]
    journal.write([[0, 3]])
    assert Journal(journal.path).read() == [[0, 3]]


def test_a_cut_line_counts_as_none_and_goes_with_the_next(journal):
    journal.add("a")
    whole = journal.path.read_bytes()
    journal.add("b")
    for end in range(len(whole), len(journal.path.read_bytes())):
        journal.path.write_bytes(journal.path.read_bytes()[:end])
        assert journal.read() == ["a"]
        journal.add("b")
        assert journal.read() == ["a", "b"]
    assert journal.path.read_bytes() == whole + whole.replace(*map(str.encode, "ab")).replace(
        whole[:8], journal.path.read_bytes()[len(whole) : len(whole) + 8]
    )


def test_a_journal_cut_in_its_first_line_is_empty(journal):
    journal.path.write_text("12345678 0")
    assert journal.read() == []
    journal.add(2)
    assert journal.read() == [2]


def test_no_flipped_bit_gives_another_value(journal):
    for value in ([0, 1], [17, 384, 99], "end"):
        journal.add(value)
    content = journal.path.read_bytes()
    for place in range(len(content)):
        for bit in (1, 8, 64):
            changed = bytes([content[place] ^ bit])
            journal.path.write_bytes(content[:place] + changed + content[place + 1 :])
            assert all(value in ([0, 1], [17, 384, 99], "end") for value in journal.read())


HEAD = {"model": "m", "k": 4}


def test_parts_belong_to_a_head(journal):
    assert journal.resume(HEAD, remedy="name another") == []
    journal.add([0, 1])
    with journal.path.open("ab") as file:
        file.write(b"12345678 cut")
    assert journal.resume(HEAD, remedy="name another") == [[0, 1]]
    assert journal.read() == [HEAD, [0, 1]]
    with pytest.raises(ConfigError, match=r"a\.journal: .*k \(then 4, now 5\).*; name another"):
        journal.parts({**HEAD, "k": 5}, remedy="name another")
    assert journal.read() == [HEAD, [0, 1]]


def test_a_journal_without_parts_is_begun_anew(journal):
    journal.resume(HEAD, remedy="name another")
    assert journal.resume({"k": 5}, remedy="name another") == []
    assert journal.head() == {"k": 5}


def test_a_damaged_head_is_no_head(journal):
    journal.resume(HEAD, remedy="name another")
    journal.add([0, 1])
    content = journal.path.read_bytes()
    journal.path.write_bytes(b"0" * 8 + content[8:])
    with pytest.raises(ConfigError, match="damaged"):
        journal.parts(HEAD, remedy="name another")
    journal.path.write_text("a thesis")
    with pytest.raises(ConfigError, match="another program"):
        journal.resume(HEAD, remedy="name another")
