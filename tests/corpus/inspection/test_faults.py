from __future__ import annotations

import logging

import pytest

from interlingua.corpus.formats.bitext import read_pairs
from interlingua.corpus.formats.monolingual import language_of
from interlingua.corpus.inspection.faults import first_faults, header_fault
from tests.corpus.inspection.made import german_english, misread, write_rows


@pytest.mark.parametrize(
    ("cells", "is_header"),
    [
        (("source_sentence", "target sentence"), True),
        (("German", "English"), True),
        (("src.de", "tgt.en"), True),
        (("text",), True),
        (("No", "no"), False),
        (("He", "it"), False),
        (("source", "a target that is a sentence"), False),
        (("Das Haus", "the house"), False),
        (("", "target"), False),
    ],
)
def test_a_row_of_names(cells, is_header):
    assert (header_fault(cells) is not None) is is_header


def test_good_pairs_have_no_first_fault():
    assert first_faults(german_english(200)) == []
    assert first_faults([]) == []


@pytest.mark.parametrize("kind", ["header", "misread", "swapped", "shifted"])
def test_a_verb_that_reads_a_file_warns_of_its_first_pairs(tmp_path, caplog, kind):
    rows = german_english(200)
    if kind == "header":
        rows.insert(0, ("source_sentence", "target_sentence"))
    elif kind == "misread":
        rows[5:15] = [(misread("Größe") + source, target) for source, target in rows[5:15]]
    elif kind == "swapped":
        rows[50:70] = [row[::-1] for row in rows[50:70]]
    else:
        targets = [target for _, target in rows]
        moved = ["one more", *targets[:-1]]
        rows = [(source, target) for (source, _), target in zip(rows, moved, strict=True)]
    path = write_rows(tmp_path / f"{kind}.de-en.tsv", rows)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # a file may be opened several times
            assert len(list(read_pairs(path))) == len(rows)
    assert [fault.kind for fault in first_faults(rows[:200])] == [kind]
    assert [record.args[0] for record in caplog.records] == [str(path)]


def test_a_verb_that_reads_a_text_warns_if_it_was_misread(tmp_path, caplog):
    path = tmp_path / "misread.de.txt"
    path.write_text("".join(f"{misread(a)}\n" for a, _ in german_english(100)), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        assert [language_of(path) for _ in range(2)] == ["deu_Latn"] * 2
    assert [record.args[0] for record in caplog.records] == [str(path)]


@pytest.mark.parametrize(
    ("pair", "found"),
    [(("Igbo", "igbo"), 0), (("German", "Deutsch"), 0), (("German", "English"), 1)],
)
def test_a_pair_of_names_of_one_language_is_no_header(pair, found):
    assert [fault.kind for fault in first_faults([pair])] == ["header"] * found
