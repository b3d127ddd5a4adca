"""Three short documents in 13 languages: a heading and three sentences each."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from tests.corpus.documents.made import html_of, markdown_of, write_docx, write_epub, write_odt

FILE = Path(__file__).with_suffix(".tsv")
"""Language, heading and paragraph of a document in every line."""
FORMATS = ("txt", "md", "html", "docx", "odt", "epub", "srt", "vtt", "po", "xlf")


def languages():
    """Return the languages in order; English is the first."""
    return list(dict.fromkeys(line.split("\t")[0] for line in _lines()))


def blocks_of(language):
    """Return (kind, level, text) of each document of a language."""
    rows = [line.split("\t") for line in _lines()]
    return [
        [("heading", 1, title), ("paragraph", 0, text)]
        for own, title, text in rows
        if own == language
    ]


def _lines():
    return FILE.read_text(encoding="utf-8").splitlines()


def write_document(folder, name, format, blocks, language):
    """Write a document in a format; its name says nothing of its content."""
    path = folder / f"{name}.{format}"
    title = blocks[0][2]
    if format == "docx":
        return write_docx(path, blocks, title, language)
    if format == "odt":
        return write_odt(path, blocks, title, language)
    if format == "epub":
        return write_epub(path, [html_of(blocks, title, language)], title, language)
    path.write_text(_as_text(format, blocks, language), encoding="utf-8")
    return path


def _as_text(format, blocks, language):
    texts = [text for _, _, text in blocks]
    if format == "txt":
        return "\n\n".join(texts) + "\n"
    if format == "md":
        return markdown_of(blocks, texts[0], language)
    if format == "html":
        return html_of(blocks, texts[0], language)
    if format in ("srt", "vtt"):
        mark = {"srt": ",", "vtt": "."}[format]
        # A cue that ends within a sentence is joined with the next one.
        texts[0] += "。" if language == "zh" else "."
        cues = [
            f"{n}\n00:00:{n}0{mark}000 --> 00:00:{n}9{mark}000\n{text}\n"
            for n, text in enumerate(texts, 1)
        ]
        return "\n".join(["WEBVTT\n", *cues] if format == "vtt" else cues)
    if format == "po":
        entries = [f'msgid "{n}"\nmsgstr "{text}"\n' for n, text in enumerate(texts)]
        fields = f"Language: {language}\\nContent-Type: text/plain; charset=UTF-8\\n"
        head = f'msgid ""\nmsgstr "{fields}"\n'
        return "\n".join([head, *entries])
    units = [
        f'<trans-unit id="{n}"><source>{n}</source><target>{escape(text)}</target></trans-unit>'
        for n, text in enumerate(texts)
    ]
    return (
        '<xliff version="1.2" xmlns="urn:oasis:names:tc:xliff:document:1.2"><file'
        f' source-language="la" target-language="{language}" original="a" datatype="plaintext">'
        f"<body>{''.join(units)}</body></file></xliff>"
    )
