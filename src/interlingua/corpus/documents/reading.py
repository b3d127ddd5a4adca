"""Read a document of any kind as units: headings, paragraphs, list items, table cells and cues."""

from __future__ import annotations

import logging
from collections.abc import Callable

from interlingua.config.languages import resolve_code, written_tag
from interlingua.corpus.cleaning.language_evidence import LOOKED_AT, contradicting_script
from interlingua.corpus.documents.captions import read_captions
from interlingua.corpus.documents.catalogs import read_catalog_side
from interlingua.corpus.documents.encodings import DecodedText, declared_charset, decode_file
from interlingua.corpus.documents.epub import read_epub
from interlingua.corpus.documents.kinds import (
    CAPTION_SUFFIXES,
    DOCUMENT_SUFFIXES,
    GETTEXT_SUFFIXES,
    HTML_SUFFIXES,
    MARKDOWN_SUFFIXES,
    OTHER_DOCUMENTS,
    TEXT_SUFFIXES,
    XLIFF_SUFFIXES,
)
from interlingua.corpus.documents.markdown import markdown_blocks, read_front_matter
from interlingua.corpus.documents.markup import parse_markup
from interlingua.corpus.documents.opendocument import read_open_document
from interlingua.corpus.documents.pdf import read_pdf
from interlingua.corpus.documents.plain_text import text_blocks
from interlingua.corpus.documents.units import (
    BlockDocument,
    TextDocument,
    declared_language,
    units_of,
)
from interlingua.corpus.documents.word import read_word
from interlingua.corpus.segments.sentence_splitting import split_paragraph
from interlingua.errors import DataError
from interlingua.storage.content_kinds import find_kind
from interlingua.storage.files import LOOKED_AT_BYTES, PathLike, open_bytes, stem_and_suffix
from interlingua.storage.limits import read_limited

log = logging.getLogger("interlingua")
ReadBlocks = Callable[[PathLike, str | None], BlockDocument]


def read_document(path: PathLike, language: str | None = None) -> TextDocument:
    """Read a document as units in reading order.

    Args:
        path: a file of ``DOCUMENT_SUFFIXES``; text may be compressed (.gz, .xz, .zst).
        language: of the side to read, in a file with source and target; any code.

    Raises:
        DataError: it is no such document, is encrypted, broken or too large, has no text, or its
            encoding is not certain.
        MissingExtraError: its reader needs the extra ``documents``.
    """
    code = None if language is None else resolve_code(language)
    found = read_blocks(path, code)
    units = units_of(found.blocks)
    if not units:
        raise DataError("the document contains no text; leave it out", path=path)
    return TextDocument(units, found.title, found.language, found.notes)


def read_document_as_sentences(path: PathLike, language: str) -> list[str]:
    """Read a document and split each of its units into sentences; its notes are logged.

    Args:
        path: see ``read_document``.
        language: of the text, in any code; empty if it is unknown.
    """
    document = read_document(path, language or None)
    for note in document.notes:
        log.warning("%s: %s", path, note)
    return [text for unit in document.units for text in split_paragraph(unit.text, language)]


def read_blocks(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read the blocks of a document, possibly none; see ``read_document``."""
    suffix = stem_and_suffix(path)[1]
    reader = _READERS.get(suffix)
    if reader is None:
        raise DataError(f"this kind of document cannot be read; {remedy_of(suffix)}", path=path)
    found = reader(path, language)
    texts = [block.text for block in found.blocks[:LOOKED_AT]]
    if not found.language or contradicting_script(texts, found.language) is None:
        return found
    # Templates declare a language, whatever language the text in them is in.
    note = f"declares the language {written_tag(found.language)}, but is in another script"
    return found._replace(language="", notes=(*found.notes, note))


def remedy_of(suffix: str) -> str:
    """Return the remedy for a file of a kind that is not read."""
    if suffix in OTHER_DOCUMENTS:
        return f"{suffix} cannot be read: {OTHER_DOCUMENTS[suffix]}"
    return f"use one of: {', '.join(DOCUMENT_SUFFIXES)}"


def read_decoded(
    path: PathLike, language: str | None = None, *, is_markup: bool = False
) -> DecodedText:
    """Read a text file in any encoding.

    Args:
        path: plain or compressed.
        language: of the text, if it is known.
        is_markup: the file may declare its encoding as HTML and XML files do.

    Raises:
        DataError: it is binary or too large, or its encoding is not certain.
    """
    with open_bytes(path) as file:
        content = read_limited(file, path)
    head = content[:LOOKED_AT_BYTES]
    declared = declared_charset(head) if is_markup else None
    decoded = decode_file(content, path, declared, language)
    # The kind is found from the decoded text, so that the encoding does not matter.
    start = decoded.text[:LOOKED_AT_BYTES].encode("utf-8", "replace")
    kind = find_kind(start, stem_and_suffix(path)[1])
    if kind is not None and not kind.is_text:
        raise DataError(f"is {kind.name}, not text; {kind.remedy}", path=path)
    return decoded


def _read_text(path: PathLike, language: str | None) -> BlockDocument:
    decoded = read_decoded(path, language)
    return BlockDocument(text_blocks(decoded.text), notes=decoded.notes)


def _read_markdown(path: PathLike, language: str | None) -> BlockDocument:
    decoded = read_decoded(path, language)
    front = read_front_matter(decoded.text)
    blocks = markdown_blocks(decoded.text, front.stop)
    return BlockDocument(blocks, front.title, declared_language(front.language), decoded.notes)


def _read_markup(path: PathLike, language: str | None) -> BlockDocument:
    decoded = read_decoded(path, language, is_markup=True)
    return parse_markup(decoded.text)._replace(notes=decoded.notes)


_READERS: dict[str, ReadBlocks] = {
    **dict.fromkeys(TEXT_SUFFIXES, _read_text),
    **dict.fromkeys(MARKDOWN_SUFFIXES, _read_markdown),
    **dict.fromkeys(HTML_SUFFIXES, _read_markup),
    **dict.fromkeys(CAPTION_SUFFIXES, read_captions),
    **dict.fromkeys((*GETTEXT_SUFFIXES, *XLIFF_SUFFIXES), read_catalog_side),
    ".docx": read_word,
    ".odt": read_open_document,
    ".epub": read_epub,
    ".pdf": read_pdf,
}
