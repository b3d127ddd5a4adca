"""``interlingua.look``: names of files, test sets, and what comes next."""

from __future__ import annotations

import subprocess
import sys

import pytest

import interlingua
from interlingua.errors import ConfigError, DataError
from interlingua.verbs.look import look_table
from tests.corpus.inspection.made import german_english, write_rows

PAIRS = german_english(120)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.delenv("INTERLINGUA_DATA", raising=False)
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "news.de-en.tsv", PAIRS)
    for side, code in enumerate(("de", "en")):
        text = "".join(f"{pair[side]}\n" for pair in PAIRS)
        (tmp_path / f"book.{code}.txt").write_text(text, encoding="utf-8")
        (tmp_path / f"moses.{code}").write_text(text, encoding="utf-8")
    return tmp_path


def test_each_file_is_a_row(folder):
    found = interlingua.look(["news.de-en.tsv", "book.de.txt"])
    assert [(one.kind, one.units) for one in found] == [("pairs", 120), ("texts", 120)]
    assert [record["path"] for record in found.records()] == ["news.de-en.tsv", "book.de.txt"]
    assert found[0].next_command == "interlingua score news.de-en.tsv -o news.scored.tsv"
    assert "news.de-en.tsv" in found.lines


def test_one_path_is_enough(folder):
    assert interlingua.look(folder / "news.de-en.tsv")[0].units == 120


def test_a_folder_and_a_pattern_are_their_files(folder):
    (folder / ".hidden").write_text("x", encoding="utf-8")
    everything = {one.path.rpartition("/")[2] for one in interlingua.look(folder)}
    assert everything == {"news.de-en.tsv", "book.de.txt", "book.en.txt", "moses.en"}
    assert len(interlingua.look("book.*.txt")) == 2


def test_both_files_of_a_moses_pair_are_looked_at_once(folder):
    (found,) = interlingua.look(["moses.de", "moses.en", "moses"])
    assert (found.format, found.path, found.units) == ("moses", "moses.de,moses.en", 120)


def test_two_texts_are_aligned_or_mined(folder):
    align = "interlingua align book.de.txt book.en.txt -o links.tsv"
    mine = "interlingua mine book.de.txt book.en.txt -o pairs.tsv"
    found = interlingua.look(["book.de.txt", "book.en.txt"])
    assert found.next_commands == (align, mine)
    (folder / "book.en.txt").write_text("".join(f"{b}\n" for _, b in PAIRS[:20]), encoding="utf-8")
    found = interlingua.look(["book.de.txt", "book.en.txt"])
    assert found.next_commands == (mine, align)


def test_files_named_like_aligned_ones_that_are_not_aligned_are_mined(folder):
    found = interlingua.look(["moses.de", "moses.en"])
    assert found.next_commands == ()
    with open("moses.en", "a", encoding="utf-8") as file:
        file.write("One line more.\n")
    found = interlingua.look(["moses.de", "moses.en"])
    assert [one.split()[1] for one in found.next_commands] == ["mine", "align"]
    assert all(" moses.de moses.en " in one for one in found.next_commands)


def test_a_table_without_tabs_is_a_text(folder):
    text = "".join(f"{source}\n" for source, _ in PAIRS)
    (folder / "plain.tsv").write_text(text, encoding="utf-8")
    (found,) = interlingua.look("plain.tsv")
    [fault] = [fault for fault in found.faults if fault.kind == "no tabs"]
    assert all(part in fault.text for part in ("a.de,a.en", "interlingua mine"))
    assert not [fault for fault in interlingua.look("book.de.txt")[0].faults if "tab" in fault.kind]
    with pytest.raises(DataError, match=r"plain\.tsv:1: .*found 1 column.* a\.de,a\.en"):
        interlingua.score("plain.tsv", source_language="de", target_language="en")


@pytest.mark.parametrize("names", [["de", "en"], ["both"]])
def test_folders_of_two_languages_become_a_memory(folder, names):
    for side, code in enumerate(("de", "en")):
        place = folder / (code if len(names) == 2 else f"both/{code}")
        place.mkdir(parents=True)
        text = "".join(f"<p>{pair[side]}</p>\n" for pair in PAIRS[:9])
        (place / "page.html").write_text(f"<html><body>{text}</body></html>", encoding="utf-8")
    found = interlingua.look(names)
    assert [one.kind for one in found] == ["document"] * 2
    expected = f"interlingua documents {' '.join(names)} -o memory.tmx"
    assert found.next_commands == (expected,)


@pytest.mark.parametrize("names", [["de", "en"], ["both"]])
def test_a_short_text_of_a_related_language_does_not_hide_the_folders(folder, names):
    for side, code in enumerate(("de", "en")):
        place = folder / (code if len(names) == 2 else f"both/{code}")
        place.mkdir(parents=True)
        for number in range(4):
            rows = PAIRS[9 * number : 9 * number + 9]
            text = "".join(f"<p>{pair[side]}</p>\n" for pair in rows)
            (place / f"{number}.html").write_text(f"<body>{text}</body>", encoding="utf-8")
    (place / "short.md").write_text("Der kat sidder pa maatten og ser ud.\n", encoding="utf-8")
    found = interlingua.look(names)
    assert found[-1].sides[0].found_language not in ("deu_Latn", "eng_Latn")
    expected = f"interlingua documents {' '.join(names)} -o memory.tmx"
    assert found.next_commands == (expected,)
    # Two folders of one language are no sides of a memory.
    assert len(names) == 1 or interlingua.look(["de", "de/0.html"]).next_commands == ()


def test_test_sets_are_named_or_below_the_data_folder(folder, monkeypatch):
    for name in ("own", "data/tatoeba_laser", "data/no_set_of_tests"):
        (folder / name).mkdir(parents=True)
        write_rows(folder / name / "deu-eng.tsv", PAIRS[:7])
    assert interlingua.look("news.de-en.tsv")[0].overlap == {}
    assert interlingua.look("news.de-en.tsv", tests=["own"])[0].overlap == {"own": 7}
    assert interlingua.look("news.de-en.tsv", tests="own")[0].overlap == {"own": 7}
    monkeypatch.setenv("INTERLINGUA_DATA", "data")
    two = interlingua.look(["news.de-en.tsv", "book.de.txt"])
    assert [one.overlap for one in two] == [{"tatoeba_laser": 7}] * 2


def test_a_file_that_can_not_be_read_is_reported_and_the_others_go_on(folder):
    names = ["missing.tsv", "no-*.tsv", "memory://nowhere/x.tsv", "news.de-en.tsv"]
    found = interlingua.look(names)
    assert [one.kind for one in found] == [*["unreadable"] * 3, "pairs"]
    assert "missing.tsv" in look_table(found[0]).rows[0][1]


def test_no_readable_file_is_an_error(folder):
    with pytest.raises(DataError, match=r"missing\.tsv"):
        interlingua.look("missing.tsv")


def test_one_column_alone_is_refused(folder):
    with pytest.raises(ConfigError, match="target"):
        interlingua.look("news.de-en.tsv", source_column="1")


def test_no_file_is_refused(folder):
    with pytest.raises(ConfigError, match="FILES"):
        interlingua.look([])


def test_it_does_without_torch(folder):
    code = (
        "import sys, interlingua; interlingua.look('news.de-en.tsv').lines;"
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_remote_file_has_its_own_name_in_the_report(folder):
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://corpus/news.de-en.tsv", "w", encoding="utf-8") as file:
        file.write("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    (found,) = interlingua.look("memory://corpus/*.tsv")
    assert found.units == 120
    assert found.path.startswith("memory://")
    assert found.path.endswith("/corpus/news.de-en.tsv")
    assert found.path in found.next_command


def test_a_format_of_a_package_that_is_missing_is_reported(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    (folder / "sheet.de-en.xlsx").write_bytes(b"PK\x03\x04xl/")
    found = interlingua.look(["sheet.de-en.xlsx", "news.de-en.tsv"])
    assert [one.kind for one in found] == ["unreadable", "pairs"]
