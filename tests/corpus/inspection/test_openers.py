from __future__ import annotations

import json
import os
import threading
from pathlib import Path

import pytest

from interlingua.corpus.inspection.openers import CountedBadLines, open_units
from interlingua.corpus.inspection.streams import count_pairs_of
from interlingua.errors import DataError
from tests.corpus.inspection.made import german_english

PAIRS = german_english(20)
TSV = "".join(f"{a}\t{b}\n" for a, b in PAIRS)
LINES = "".join(f"{a}\n" for a, _ in PAIRS)
QUESTION = {
    "query": "Wo?",
    "positive_passages": [{"title": "", "text": "Da."}],
    "negative_passages": [],
}
CONTENTS = {
    "x.de-en.tsv": (TSV, "pairs", "tsv"),
    "x.tsv": (TSV, "pairs", "tsv"),
    "scores.tsv": ("".join(f"0.5\t{a}\t{b}\n" for a, b in PAIRS), "pairs", "tsv"),
    "x.de.txt": (LINES, "texts", "text"),
    "book.de": (LINES, "texts", "text"),
    "ids.de.txt": (
        "".join(f"s{n}\t{a}\n" for n, (a, _) in enumerate(PAIRS)),
        "texts",
        "id TAB text",
    ),
    "x.csv": ("source,target\nein Haus,a house\n", "pairs", "csv"),
    "names.csv": ("Deutsch,Englisch\nein Haus,a house\n", "pairs", "csv"),
    "column.csv": ("id,text\n1,ein Haus\n", "texts", "csv"),
    "x.jsonl": (json.dumps({"source": "ein Haus", "target": "a house"}), "pairs", "jsonl"),
    "x.de-en.jsonl": (json.dumps({"de": "ein Haus", "en": "a house"}), "pairs", "jsonl"),
    "passages.jsonl": (json.dumps({"id": "1", "text": "ein Haus"}), "passages", "jsonl"),
    "de.jsonl": (json.dumps(QUESTION), "questions", "questions"),
    "nli.tsv": (
        "entailment\tA man.\tA person.\nneutral\tA man.\tA tall man.\n",
        "labeled pairs",
        "nli",
    ),
    "page.html": ("<html lang='de'><p>Ein Haus.</p></html>", "document", "html"),
    "book.md": ("# Ein Titel\n\nEin Haus.\n", "document", "md"),
    "x.de-en.tmx": (
        '<tmx version="1.4"><header srclang="de"/><body><tu><tuv xml:lang="de"><seg>Haus</seg>'
        '</tuv><tuv xml:lang="en"><seg>house</seg></tuv></tu></body></tmx>',
        "pairs",
        "tmx",
    ),
}


@pytest.mark.parametrize("name", CONTENTS)
def test_the_reader_of_a_file(tmp_path, name):
    content, kind, format = CONTENTS[name]
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    opened = open_units(str(path))
    assert (opened.kind, opened.format) == (kind, format)
    assert next(opened.pairs if kind == "pairs" else opened.texts)


def test_chosen_columns(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("n,a,b\n1,ein Haus,a house\n", encoding="utf-8")
    opened = open_units(str(path), columns=("a", "b"), languages=("de", "en"))
    assert next(opened.pairs)[:4] == ("ein Haus", "a house", "deu_Latn", "eng_Latn")


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.docx", b"PK\x03\x04word/"), ("wide.csv", b"n,a,b\n1,x,y\n"), ("u.txt", b"\xff\xfea\0")],
)
def test_what_no_reader_takes_raises_its_reason(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=name):
        open_units(str(tmp_path / name))


def test_bad_lines_are_counted_with_their_bytes():
    bad = CountedBadLines()
    assert list(bad.numbered(["ok\n", "\udce4\n", "ö\n"], "x")) == [(1, "ok\n"), (3, "ö\n")]
    bad.reject(DataError("three columns", path="x", line=4), "a\tb\tc")
    assert (bad.count, bad.undecoded, bad.contents) == (2, 1, [b"\xe4\n"])


def test_a_sample_is_in_the_order_of_the_file(tmp_path):
    path = tmp_path / "x.de-en.tsv"
    path.write_text(TSV, encoding="utf-8")
    found = count_pairs_of(open_units(str(path)).pairs, tmp_path)
    assert [unit.number for unit in found.sample] == list(range(1, 21))
    assert found.languages == {("deu_Latn", "eng_Latn"): 20}


def test_objects_that_name_no_language_are_pairs(tmp_path):
    path = tmp_path / "x.jsonl"
    item = json.dumps({"source": "ein Haus", "target": "a house"})
    path.write_text(f"{item}\n" * 300, encoding="utf-8")
    opened = open_units(str(path))
    assert (len(list(opened.pairs)), opened.bad.count, opened.languages) == (300, 0, ())


def test_a_pipe_is_read_once(tmp_path):
    path = str(tmp_path / "pipe")
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: Path(path).write_text(TSV, encoding="utf-8"))
    writer.start()
    opened = open_units(path)
    assert len(list(opened.pairs)) == 20
    writer.join()
