"""The review sheet of ``score``: which pairs it holds, how it looks, and how its answers return."""

from __future__ import annotations

import csv
import json

import openpyxl
import pytest

from interlingua.corpus.formats.bitext import PairWithFields, TextPair, read_pairs, write_pairs
from interlingua.errors import ConfigError, DataError
from interlingua.mining.calibration.calibration import load_calibration
from interlingua.mining.filter import JUDGED_BAD
from interlingua.mining.review import ReviewSampler, judged_key, read_labels
from interlingua.mining.writer import PairRow
from interlingua.verbs.score import score
from tests.mining.invented import write_lines
from tests.mining.test_score import bitext, is_right, pair
from tests.mining.words import embed

HEADER = ["id", "file", "position", "source", "target", "score", "reasons", "chosen", "answer"]
LANGUAGES = {"source_language": "de", "target_language": "en"}


@pytest.fixture
def noisy(tmp_path):
    pairs = bitext(300, wrong=0.4, repeated=0)
    write_pairs(pairs, tmp_path / "noisy.de-en.tsv")
    return pairs


def cells_of(path):
    """Return the rows of a sheet as texts."""
    if path.suffix == ".xlsx":
        rows = openpyxl.load_workbook(path).active.iter_rows(values_only=True)
        return [["" if cell is None else str(cell) for cell in row] for row in rows]
    delimiter = "," if path.suffix == ".csv" else "\t"
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def fill_in(path, answer_of, limit=None):
    """Answer the rows of a sheet by a function of source and target."""
    rows = cells_of(path)
    source, target, answer = (rows[0].index(name) for name in ("source", "target", "answer"))
    answers = [answer_of(row[source], row[target]) for row in rows[1:limit]]
    if path.suffix == ".xlsx":
        book = openpyxl.load_workbook(path)
        for number, word in enumerate(answers, 2):
            book.active.cell(number, answer + 1).value = word
        book.save(path)
        return
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="," if path.suffix == ".csv" else "\t")
        writer.writerow(rows[0])
        for row, word in zip(rows[1:limit], answers, strict=True):
            writer.writerow([*row[:answer], word, *row[answer + 1 :]])


@pytest.mark.parametrize("name", ["review.xlsx", "review.csv", "review.tsv"])
def test_answers_of_a_sheet_become_a_calibration(noisy, tmp_path, name):
    file = tmp_path / "noisy.de-en.tsv"
    sheet = tmp_path / name
    scored = score(embed, file, output=tmp_path / "s.tsv", review=sheet, review_rows=120)
    assert any("120 of 300 pairs" in line and name in line for line in scored.lines)
    rows = cells_of(sheet)
    assert rows[0] == HEADER
    assert len(rows) == 121
    numbers = [float(row[5]) for row in rows[1:] if not row[6]]
    assert numbers == sorted(numbers)
    truth = {(one.source, one.target): is_right(one) for one in noisy}
    fill_in(sheet, lambda *texts: "good" if truth[texts] else "bad")
    learned = score(embed, file, learn=tmp_path / "c.json", labels=sheet, drop="none")
    assert any("0 without an answer" in line for line in learned.lines)
    found = load_calibration(tmp_path / "c.json", "de", "en")
    share = sum(truth.values()) / len(truth)
    assert found.basis == "labels"
    assert found.prior == pytest.approx(share, abs=0.1)


def test_a_sheet_of_excel_has_filters_choices_and_texts_that_are_no_formulas(tmp_path):
    pairs = [
        ("=1+1 ist zwei", "=1+1 is two"),
        ("-x", "@y"),
        ("שלום לכולם", "Hello"),
        ("a", "مرحبا"),
    ]
    sheet = tmp_path / "r.xlsx"
    list(score(embed, pairs, review=sheet, drop="none", **LANGUAGES))
    book = openpyxl.load_workbook(sheet).active
    assert book.freeze_panes == "A2"
    assert book.auto_filter.ref == "A1:I5"
    (choice,) = book.data_validations.dataValidation
    assert (choice.type, choice.formula1) == ("list", '"good,bad,unsure"')
    assert str(choice.sqref) == "I2:I5"
    cells = {cell.value: cell for row in book.iter_rows(min_row=2) for cell in row[3:5]}
    assert {cell.data_type for cell in cells.values()} == {"s"}
    assert cells["=1+1 ist zwei"].quotePrefix
    assert cells["@y"].quotePrefix
    assert cells["שלום לכולם"].alignment.readingOrder == 2
    assert cells["مرحبا"].alignment.horizontal == "right"
    assert cells["Hello"].alignment.horizontal is None
    assert cells["Hello"].alignment.wrap_text
    assert book.column_dimensions["D"].width == 60


def test_texts_of_a_table_are_no_formulas_and_are_found_again(tmp_path):
    pairs = [("=1+1", "+1"), ("a", "b")]
    sheet = tmp_path / "r.csv"
    list(score(embed, pairs, review=sheet, drop="none", **LANGUAGES))
    rows = cells_of(sheet)
    assert {tuple(row[3:5]) for row in rows[1:]} == {("'=1+1", "'+1"), ("a", "b")}
    fill_in(sheet, lambda *_: "good")
    assert set(read_labels(sheet).answers) == set(pairs)


def rows_of(count, findings=()):
    for number in range(count):
        one = pair(f"s{number}", f"t{number}")._replace(score=number / count)
        found = ("numbers",) if number in findings else ()
        yield PairRow(one, {"score": one.score}, [], findings=found)


def test_a_sheet_has_the_worst_pairs_those_with_findings_and_a_sample():
    sampler = ReviewSampler(30)
    assert len(list(sampler.noted(rows_of(5000, findings=range(4000, 4100))))) == 5000
    chosen = sampler.chosen()
    places = {name: [item.position for item, why in chosen if why == name] for _, name in chosen}
    assert places["worst"] == list(range(1, 11))
    assert places["finding"] == list(range(4001, 4011))
    assert len(places["sample"]) == 10
    assert len(sampler.worst) <= 120


def test_a_small_bitext_is_in_the_sheet_whole():
    sampler = ReviewSampler(30)
    list(sampler.noted(rows_of(20)))
    assert [item.position for item, _ in sampler.chosen()] == list(range(1, 21))


def answered(folder, *answers, name="a.csv"):
    rows = [f"s{number},t{number},{answer}" for number, answer in enumerate(answers)]
    return write_lines(folder / name, ["Source,Target,Answer", *rows])


def test_words_for_good_and_bad(tmp_path):
    good = [
        "good",
        "Y",
        "yes",
        "1",
        "1.0",
        "TRUE",
        "ja",
        "да",
        "はい",
        "是",
        "نعم",
        "１",
        "१",
        "Oui.",
    ]
    bad = ["bad", "N", "no", "0", "FALSE", "nein", "нет", "いいえ", "否", "0.0", "٠"]
    labels = read_labels(answered(tmp_path, *good, *bad, "unsure", "?", "", " "))
    assert list(labels.answers.values()) == [True] * len(good) + [False] * len(bad)
    assert "14 good, 11 bad; left out: 2 unsure, 2 without an answer" in labels.notes[0]


def test_an_unknown_answer_is_named_with_its_cell(tmp_path):
    with pytest.raises(DataError, match=r"a\.csv: cell C3: .*'perhaps'"):
        read_labels(answered(tmp_path, "good", "perhaps"))
    with pytest.raises(DataError, match="no column answer"):
        read_labels(write_lines(tmp_path / "b.csv", ["source,target", "a,b"]))
    with pytest.raises(DataError, match="1 unsure, 1 blank"):
        read_labels(answered(tmp_path, "unsure", ""))


def test_two_answers_to_one_pair_are_reported(tmp_path, caplog):
    path = write_lines(tmp_path / "a.csv", ["source,target,answer", "a,b,good", "a,b,bad"])
    assert read_labels(path).answers == {("a", "b"): True}
    assert "row 2 and row 3" in caplog.text


def test_what_spreadsheets_change_in_a_text_does_not_matter():
    assert judged_key("'=a\r\n b", "e\u0301\x01") == judged_key("=a b", "\xe9")
    assert judged_key("a" * 40_000, "b") == judged_key("a" * 32_000 + "…", "b")
    assert judged_key("a", "b") != judged_key("b", "a")


def test_answers_to_changed_texts_are_reported(noisy, tmp_path):
    file = tmp_path / "noisy.de-en.tsv"
    sheet = tmp_path / "r.tsv"
    score(embed, file, output=tmp_path / "s.tsv", review=sheet, review_rows=200)
    truth = {(one.source, one.target): is_right(one) for one in noisy}
    fill_in(sheet, lambda *texts: int(truth[texts]))
    text = sheet.read_text(encoding="utf-8").splitlines()
    text[3] = text[3].replace("\tde", "\tchanged", 1)
    sheet.write_text("\n".join(text), encoding="utf-8")
    learned = score(embed, file, learn=tmp_path / "c.json", labels=sheet, drop="none")
    assert any("1 judged pair of 200" in line and "row 4" in line for line in learned.lines)


def test_options_of_a_sheet_are_checked(tmp_path):
    pairs = [("a", "b")]
    with pytest.raises(ConfigError, match=r"r\.html"):
        score(embed, pairs, review=tmp_path / "r.html", **LANGUAGES)
    with pytest.raises(ConfigError, match="review_rows"):
        score(embed, pairs, review=tmp_path / "r.csv", review_rows=0, **LANGUAGES)
    labels = write_lines(tmp_path / "l.tsv", ["1\ta\tb"])
    with pytest.raises(ConfigError, match="--review"):
        score(
            embed,
            pairs,
            review=tmp_path / "r.csv",
            learn=tmp_path / "c.json",
            labels=labels,
            **LANGUAGES,
        )


def test_no_sheet_is_left_by_a_stream_that_is_not_read_to_its_end(tmp_path):
    pairs = [(f"de{n} de{n + 1}", f"en{n} en{n + 1}") for n in range(50)]
    scored = score(embed, pairs, review=tmp_path / "r.csv", **LANGUAGES)
    next(scored)
    scored.pairs.close()
    assert not list(tmp_path.iterdir())


XLIFF = """<?xml version="1.0"?>
<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2">
<file original="menu.html" source-language="de" target-language="en" datatype="html"><body>
<trans-unit id="u1"><source>de1 <g id="1">de2</g></source><target>en1 en2</target></trans-unit>
<trans-unit id="u2"><source><x id="7"/>de3</source><target>en3<x id="7"/></target></trans-unit>
</body></file></xliff>
"""


def test_units_of_xliff_have_their_ids_and_the_tags_that_were_taken_out(tmp_path):
    (tmp_path / "a.xlf").write_text(XLIFF, encoding="utf-8")
    score(embed, tmp_path / "a.xlf", output=tmp_path / "s.tsv", review=tmp_path / "r.csv")
    rows = sorted(cells_of(tmp_path / "r.csv")[1:])
    assert [row[:2] for row in rows] == [["u1", "menu.html"], ["u2", "menu.html"]]
    assert ["tags differ: <g id=1> is missing" in row[6] for row in rows] == [True, False]


@pytest.mark.parametrize("name", ["review.xlsx", "review.csv", "review.tsv"])
def test_answers_decide_which_pairs_are_written(noisy, tmp_path, name):
    file = tmp_path / "noisy.de-en.tsv"
    sheet = tmp_path / name
    score(embed, file, output=tmp_path / "s.tsv", review=sheet, review_rows=120)
    judged = [(row[3], row[4]) for row in cells_of(sheet)[1:]]
    # The answers contradict the score: the first 10 rows, the worst ones, are good.
    answers = {texts: ("good" if at < 10 else "bad") for at, texts in enumerate(judged)}
    fill_in(sheet, lambda *texts: answers[texts])
    output, rest = tmp_path / "final.tmx", tmp_path / "rest.jsonl"
    found = score(embed, file, labels=sheet, threshold=5, output=output, rejected=rest)
    kept = {(pair.source, pair.target) for pair in read_pairs(output)}
    # The threshold is above all scores, so that only answers keep a pair.
    assert kept == set(judged[:10])
    rejected = [json.loads(line) for line in rest.read_text(encoding="utf-8").splitlines()]
    bad = [row for row in rejected if JUDGED_BAD in row["reasons"]]
    assert {(row["source"], row["target"]) for row in bad} == set(judged[10:])
    assert all("below the threshold" in row["reasons"] for row in rejected)
    assert len(rejected) == 300 - len(kept)
    assert any("10 pairs good" in line and "110 bad" in line for line in found.lines)
    assert any("0 without an answer" in line for line in found.lines)


def test_answers_that_fit_no_pair_are_reported_and_those_of_copies_fit_all(tmp_path):
    pairs = [("a", "b"), ("c", "d"), ("a", "b")]
    labels = write_lines(tmp_path / "l.tsv", ["0\ta\tb", "1\tx\ty"])
    found = score(embed, pairs, labels=labels, drop="none", cosine=True, **LANGUAGES)
    assert [pair.source for pair in found] == ["c"]
    assert any("2 bad" in line for line in found.lines)
    assert any("1 judged pair of 2" in line for line in found.lines)


def test_answers_are_not_overwritten_and_are_for_one_bitext(noisy, tmp_path):
    file = tmp_path / "noisy.de-en.tsv"
    labels = write_lines(tmp_path / "l.tsv", ["0\ta\tb"])
    for option in ("output", "rejected", "review"):
        with pytest.raises(ConfigError, match=r"l\.tsv"):
            score(embed, file, labels=labels, **{"output": tmp_path / "o.tsv", option: labels})
    assert labels.read_text(encoding="utf-8") == "0\ta\tb\n"
    folder = tmp_path / "more"
    folder.mkdir()
    for name in ("a.po", "b.po"):
        po = f'msgid ""\nmsgstr "Language: de\\n"\n\nmsgid "en1 {name}"\nmsgstr "de1 {name}"\n'
        (folder / name).write_text(po, encoding="utf-8")
    with pytest.raises(ConfigError, match="--parallel"):
        score(embed, folder, output=tmp_path / "out", parallel=labels)
    for option in ("output", "review"):
        with pytest.raises(ConfigError, match=r"l\.tsv"):
            score(embed, folder, labels=labels, **{"output": tmp_path / "o.tsv", option: labels})
        with pytest.raises(ConfigError, match=r"a\.po"):
            score(embed, f"{folder}/*.po", **{"output": tmp_path / "o.po", option: folder / "a.po"})


@pytest.mark.parametrize("name", ["memory.tmx", "memory.tsv", "memory.jsonl"])
def test_a_probability_of_the_input_is_not_taken_for_the_score(tmp_path, name):
    # The memory that interlingua documents writes has a column of this name.
    pairs = [("de1 de2", "en1 en2"), ("de3 de4", "en5 en6")]
    fields = {"probability": "0.99", "source_document": "de/a.md"}
    rows = [
        PairWithFields.of(TextPair(*texts, "deu_Latn", "eng_Latn", None), fields) for texts in pairs
    ]
    write_pairs(rows, tmp_path / name)
    sheet = tmp_path / "r.xlsx"
    score(embed, tmp_path / name, output=tmp_path / "s.tmx", review=sheet, cosine=True, **LANGUAGES)
    header, *found = cells_of(sheet)
    assert "score" in header
    assert [row[header.index("source")] for row in found] == ["de3 de4", "de1 de2"]
    assert {row[header.index("file")] for row in found} == {"de/a.md"}
