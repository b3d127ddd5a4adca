"""Reports of files: each planted fault is named with its place, and good files have none."""

from __future__ import annotations

import pytest

from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.corpus.inspection import streams
from interlingua.corpus.inspection.files import LookSettings, look_into
from tests.corpus.inspection.made import faulty, german_english, write_rows


@pytest.fixture(scope="module")
def pairs():
    return german_english(2000)


@pytest.fixture(scope="module")
def looked(pairs, tmp_path_factory):
    """The report of a file with all faults except the order, and its faults by kind."""
    folder = tmp_path_factory.mktemp("faulty")
    tests = folder / "our-test-set"
    tests.mkdir()
    write_rows(tests / "deu-eng.tsv", pairs[900:912])
    path = write_rows(folder / "made.de-en.tsv", faulty(pairs))
    settings = LookSettings(evaluation=EvaluationKeys.from_folders([tests]))
    found = look_into(str(path), settings)
    return found, {fault.kind: fault for fault in found.faults}


def test_all_planted_faults_are_named(looked):
    found, faults = looked
    expected = {"swapped", "shifted", "misread", "copies", "empty", "header", "test sentences"}
    assert set(faults) == expected | {"duplicates"}
    assert len(found.faults) == len(faults)


@pytest.mark.parametrize(
    ("kind", "first", "last"),
    [("swapped", 202, 261), ("misread", 302, 331), ("shifted", 1502, 2001)],
)
def test_the_place_of_a_fault_is_named(looked, kind, first, last):
    fault = looked[1][kind]
    assert fault.first == pytest.approx(first, abs=10)
    assert fault.last == pytest.approx(last, abs=10)


def test_counted_faults_have_their_exact_numbers(looked):
    found, faults = looked
    assert (faults["copies"].units, faults["copies"].first) == (50, 402)
    assert (faults["empty"].units, faults["empty"].first) == (5, 702)
    assert faults["duplicates"].units == found.duplicates == 50
    assert found.overlap == {"our-test-set": 12}
    assert found.sides[1].empty == 5


def test_a_header_is_found_if_it_is_not_in_the_sample(pairs, tmp_path, monkeypatch):
    monkeypatch.setattr(streams, "_SAMPLE", 50)
    path = write_rows(tmp_path / "x.de-en.tsv", [("source_sentence", "target_sentence"), *pairs])
    assert [fault.kind for fault in look_into(str(path), LookSettings()).faults] == ["header"]


def test_a_good_file_has_no_fault(pairs, tmp_path):
    found = look_into(str(write_rows(tmp_path / "good.de-en.tsv", pairs)), LookSettings())
    assert found.faults == ()
    assert (found.kind, found.format, found.encoding, found.units) == (
        "pairs",
        "tsv",
        "UTF-8",
        2000,
    )
    assert [side.found_language for side in found.sides] == ["deu_Latn", "eng_Latn"]
    assert found.ratio.low < 1 < found.ratio.high


def test_languages_that_no_name_tells_are_found_and_passed_on(pairs, tmp_path):
    found = look_into(str(write_rows(tmp_path / "memory.tsv", pairs)), LookSettings())
    assert [side.language for side in found.sides] == ["", ""]
    assert "--source-language deu_Latn --target-language eng_Latn" in found.next_command


def test_columns_the_other_way_round_than_the_name_says(pairs, tmp_path):
    found = look_into(str(write_rows(tmp_path / "x.en-de.tsv", pairs)), LookSettings())
    assert [fault.kind for fault in found.faults] == ["swapped"]
    assert "--source-language deu_Latn" in found.faults[0].text


def test_a_half_that_is_swapped(pairs, tmp_path):
    rows = [row[::-1] if number >= 1000 else row for number, row in enumerate(pairs)]
    found = look_into(str(write_rows(tmp_path / "half.de-en.tsv", rows)), LookSettings())
    (fault,) = found.faults
    assert fault.kind == "swapped"
    assert fault.first == pytest.approx(1001, abs=5)
    assert fault.last == pytest.approx(2000, abs=5)


@pytest.mark.parametrize(
    ("key", "order"),
    [
        (lambda row: len(row[0]), "length of the source, ascending"),
        (lambda row: -len(row[1]), "length of the target, descending"),
        (lambda row: row[1], "alphabet of the target, ascending"),
    ],
)
def test_a_sorted_file(pairs, tmp_path, key, order):
    path = write_rows(tmp_path / "sorted.de-en.tsv", sorted(pairs, key=key))
    texts = [fault.text for fault in look_into(str(path), LookSettings()).faults]
    assert any(order in text for text in texts)


def test_scores_in_order(pairs, tmp_path):
    rows = [(f"{1 - number / 2000:.4f}", *row) for number, row in enumerate(pairs)]
    found = look_into(str(write_rows(tmp_path / "scored.de-en.tsv", rows)), LookSettings())
    assert found.sorted_by_score == "descending"


def test_lines_that_are_not_utf_8(pairs, tmp_path):
    path = tmp_path / "mixed.de-en.tsv"
    lines = [f"{source}\t{target}\n" for source, target in pairs]
    whole = [line.encode("latin-1" if 100 <= n < 140 else "utf-8") for n, line in enumerate(lines)]
    path.write_bytes(b"".join(whole))
    found = look_into(str(path), LookSettings())
    umlauts = sum(not line.isascii() for line in lines[100:140])
    assert [(fault.kind, fault.units) for fault in found.faults] == [("not UTF-8", umlauts)]
    assert "cp1252" in found.faults[0].text
    assert found.units == 2000 - umlauts
    assert found.left_out == {"unreadable": umlauts}


def test_files_of_unequal_length_are_read_up_to_the_end_of_the_shorter_one(pairs, tmp_path):
    (tmp_path / "news.de").write_text("".join(f"{a}\n" for a, _ in pairs), encoding="utf-8")
    targets = [b for _, b in pairs]
    del targets[1200]
    (tmp_path / "news.en").write_text("".join(f"{b}\n" for b in targets), encoding="utf-8")
    found = look_into(str(tmp_path / "news"), LookSettings())
    faults = {fault.kind: fault for fault in found.faults}
    assert found.format == "moses"
    assert faults["damaged"].first == found.units == 1999
    assert faults["shifted"].first == pytest.approx(1201, abs=10)


def test_the_wrong_script_is_named(pairs, tmp_path):
    found = look_into(str(write_rows(tmp_path / "x.ru-en.tsv", pairs)), LookSettings())
    assert [fault.kind for fault in found.faults] == ["language"]
    assert "deu_Latn" in found.faults[0].text


def test_what_can_not_be_read_has_its_reason(tmp_path):
    found = look_into(str(tmp_path / "missing.tsv"), LookSettings())
    assert found.kind == "unreadable"
    assert "missing.tsv" in found.error
