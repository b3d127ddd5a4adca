"""Passages out of documents: sections with headings, titles and the declared language."""

from __future__ import annotations

import pytest

from interlingua.retrieval.passage_files import read_passages
from tests.corpus.documents.made import html_of, write_docx, write_epub, write_odt, write_pdf

BLOCKS = [
    ("heading", 1, "Bibliothek"),
    ("paragraph", 0, "Sie ist im Sommer geöffnet."),
    ("heading", 2, "Ausleihe"),
    ("item", 1, "Bücher zwei Wochen"),
    ("item", 1, "Filme drei Tage"),
]


def write(path):
    kind = path.suffix
    if kind == ".docx":
        write_docx(path, BLOCKS, "Führer", "de")
    elif kind == ".odt":
        write_odt(path, BLOCKS, "Führer", "de")
    elif kind == ".epub":
        write_epub(path, [html_of(BLOCKS)], "Führer", "de")
    elif kind == ".pdf":
        lines = [
            (50, 700, 20, "Bibliothek"), (50, 660, 12, "Sie ist im Sommer geöffnet."),
            (50, 620, 16, "Ausleihe"), (50, 580, 12, "• Bücher zwei Wochen"),
            (50, 560, 12, "• Filme drei Tage"),
        ]  # fmt: skip
        write_pdf(path, [lines], "de", "Führer")
    else:
        path.write_text(html_of(BLOCKS, "Führer", "de"))
    return path


@pytest.mark.parametrize("kind", [".docx", ".odt", ".epub", ".pdf", ".html"])
def test_sections_have_headings_title_and_language(tmp_path, kind):
    first, second = read_passages(write(tmp_path / f"a{kind}"))
    assert (first.title, first.heading, first.text) == (
        "Führer", "Bibliothek", "Sie ist im Sommer geöffnet.",
    )  # fmt: skip
    assert (second.heading, second.text) == (
        "Bibliothek › Ausleihe", "Bücher zwei Wochen\nFilme drei Tage",
    )  # fmt: skip
    assert {first.language, second.language} == {"deu_Latn"}
    assert (first.id, first.document) == (f"a{kind}:{first.offset}", f"a{kind}")


def test_the_name_of_a_file_is_before_its_declaration(tmp_path):
    path = write(tmp_path / "a.html")
    named = path.rename(tmp_path / "a.nl.html")
    assert {passage.language for passage in read_passages(named)} == {"nld_Latn"}
    assert {passage.language for passage in read_passages(named, language="fr")} == {"fra_Latn"}


@pytest.mark.parametrize(("name", "mark"), [("a.srt", ","), ("a.vtt", ".")])
def test_subtitles(tmp_path, name, mark):
    path = tmp_path / name
    cues = "".join(
        f"{n}\n00:00:0{n}{mark}000 --> 00:00:0{n}{mark}900\n{text}\n\n"
        for n, text in enumerate(("Heute ist", "Sonntag.", "Ja."), 1)
    )
    path.write_text(f"WEBVTT\n\n{cues}" if name.endswith("vtt") else cues)
    (passage,) = read_passages(path)
    assert passage.text == "Heute ist Sonntag.\nJa."


def test_a_doubt_is_a_warning(tmp_path, caplog):
    path = tmp_path / "a.html"
    path.write_text(html_of(BLOCKS, "T", "ru"))
    assert {passage.language for passage in read_passages(path)} == {""}
    assert "declares the language ru" in caplog.text
