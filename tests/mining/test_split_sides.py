"""Sides of plain text that are split into sentences: ``mine --split`` and ``calibrate --split``."""

from __future__ import annotations

import csv

import pytest

import interlingua
from interlingua.alignment.align import read_document_sentences
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.corpus.segments.sentence_splitting import split_text
from interlingua.errors import ConfigError, DataError
from interlingua.mining.pipeline import TextFile, with_lines
from tests.mining.invented import corpora, embed

WRAPPED = """A Heading

The first sentence of the text was wrapped at a
width, as Dr. Smith likes it. The second one is
short. And the third one?
"""


def lines_of(side, folder):
    """Return the lines of all files of a side, as mining reads them."""
    parts = with_lines(side, folder).parts
    return [line for part in parts for line in part.read_text(encoding="utf-8").splitlines()]


def test_wrapped_text_becomes_a_sentence_per_line(tmp_path):
    path = tmp_path / "a.en"
    path.write_text(WRAPPED, encoding="utf-8")
    found = lines_of(TextFile(path, "eng_Latn", split=True), tmp_path)
    assert found == split_text(WRAPPED.splitlines(), "eng_Latn")
    assert found[1].endswith("as Dr. Smith likes it.")


def test_texts_of_a_table_are_split(tmp_path):
    path = tmp_path / "a.csv"
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["text"], ["Er mag z. B. Obst. Sie nicht."], ["Danke."]])
    assert lines_of(TextFile(path, "deu_Latn", split=True), tmp_path) == [
        "Er mag z. B. Obst.",
        "Sie nicht.",
        "Danke.",
    ]
    assert len(lines_of(TextFile(path, "deu_Latn"), tmp_path)) == 2


def test_unreadable_lines_are_counted_once(tmp_path):
    path = tmp_path / "a.en"
    path.write_bytes(b"One. Two.\n\xff\xfe\nThree.\n")
    with pytest.raises(DataError, match=r"a\.en:2"):
        with_lines(TextFile(path, "eng_Latn", split=True, bad=BadLines()), tmp_path)
    bad = BadLines("skip")
    side = TextFile(path, "eng_Latn", split=True, bad=bad)
    assert lines_of(side, tmp_path) == ["One.", "Two.", "Three."]
    assert bad.count == 1


@pytest.mark.parametrize("layout", ["ids", "documents"])
def test_another_layout_is_refused(layout, tmp_path):
    path = tmp_path / "a.en"
    path.write_text("a\tOne. Two.\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=rf"a\.en: --split .*{layout}.*--layout lines"):
        with_lines(TextFile(path, "eng_Latn", layout=layout, split=True), tmp_path)


@pytest.fixture
def documents(tmp_path):
    """Two texts with five sentences in each line, and the same with a sentence per line."""
    sources, targets, _ = corpora(30, 40)
    for name, texts in (("de", sources), ("en", targets)):
        sentences = [f"{text.capitalize()}." for text in texts]
        rows = [" ".join(sentences[at : at + 5]) for at in range(0, len(sentences), 5)]
        (tmp_path / f"whole.{name}").write_text("\n".join(rows), encoding="utf-8")
        (tmp_path / f"lines.{name}").write_text("\n".join(sentences), encoding="utf-8")
        markup = "".join(f"<p>{row}</p>" for row in rows)
        html = f"<html lang='{name}'><body>{markup}</body></html>"
        (tmp_path / f"page.{name}.html").write_text(html, encoding="utf-8")
    return tmp_path


def test_mining_of_documents_finds_what_is_found_in_their_sentences(documents):
    found = [
        interlingua.mine(embed, documents / f"{name}.de", documents / f"{name}.en", split=split)
        for name, split in (("whole", True), ("lines", False))
    ]
    assert len(found[0]) > 5
    assert [pair.source for pair in found[0]] == [pair.source for pair in found[1]]


def test_mining_reads_markup_if_it_is_split(documents):
    files = (documents / "page.de.html", documents / "page.en.html")
    found = interlingua.mine(embed, *files, split=True)
    lines = interlingua.mine(embed, documents / "lines.de", documents / "lines.en")
    assert [pair.source for pair in found] == [pair.source for pair in lines]
    with pytest.raises(DataError, match=r"HTML.*--split"):
        interlingua.mine(embed, *files)


def test_lists_and_known_vectors_are_not_split(documents):
    with pytest.raises(ConfigError, match=r"split.*interlingua\.split"):
        interlingua.mine(embed, ["One. Two."], ["Eins. Zwei."], split=True)
    with pytest.raises(ConfigError, match=r"--source-vectors .*--split"):
        interlingua.mine(
            embed,
            documents / "whole.de",
            documents / "whole.en",
            split=True,
            source_vectors=documents / "whole.de",
        )


HTML = "<html lang='de'><h1>Titel</h1><p>Er mag z. B. Obst. Sie nicht.</p></html>"
PO = """msgid ""
msgstr "Language: de\\n"

msgid "Open"
msgstr "Öffnen. Jetzt."

#, fuzzy
msgid "Close"
msgstr "Falsch"
"""


@pytest.mark.parametrize(
    ("name", "content", "sentences"),
    [
        ("a.html", HTML, ["Titel", "Er mag z. B. Obst.", "Sie nicht."]),
        ("a.md", "# Titel\n\n- Eins\n- Zwei\n", ["Titel", "Eins", "Zwei"]),
        ("de.po", PO, ["Öffnen.", "Jetzt."]),
    ],
)
def test_documents_are_read_and_split(tmp_path, caplog, name, content, sentences):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    assert lines_of(TextFile(path, "deu_Latn", split=True), tmp_path) == sentences
    assert read_document_sentences(path, split_as="deu_Latn") == sentences
    # A warning counts what a document leaves out, here one fuzzy message.
    assert ("fuzzy" in caplog.text) == (name == "de.po")
