"""Blocks of OpenDocument texts (.odt): headings, paragraphs, list items and cells.

Notes come behind the paragraph that refers to them. Deleted text, comments, headers, footers and
indexes, such as the table of contents, are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from interlingua.corpus.documents.archives import DocumentArchive, open_document
from interlingua.corpus.documents.units import (
    CELL,
    DEEPEST_HEADING,
    HEADING,
    ITEM,
    PARAGRAPH,
    BlockDocument,
    TextBlock,
    declared_language,
)
from interlingua.corpus.formats.xml_stream import parse_tree
from interlingua.errors import DataError
from interlingua.storage.files import PathLike

_HIDDEN = frozenset(
    [
        "tracked-changes",
        "annotation",
        "table-of-content",
        "alphabetical-index",
        "illustration-index",
        "table-index",
        "object-index",
        "user-index",
        "bibliography",
        "ruby-text",
        "note-citation",
        "sequence-decls",
        "variable-decls",
        "forms",
        "event-listeners",
        "title",
        "desc",
    ]
)
_SPACES = {"s": " ", "tab": "\t", "line-break": "\n"}
_APART = frozenset(("note-body", "text-box"))
"""Blocks inside of a paragraph."""


def read_open_document(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read an OpenDocument text.

    Raises:
        DataError: it is broken or encrypted, is no text document, or grows too large.
    """
    with open_document(path, ".odt") as archive:
        if "META-INF/manifest.xml" in archive:
            manifest = parse_tree(archive.read("META-INF/manifest.xml"), path)
            if next(manifest.iter("encryption-data"), None) is not None:
                raise DataError("is encrypted; save it without a password", path=path)
        content = parse_tree(archive.read("content.xml"), path)
        body = content.find("body/text")
        if body is None:
            raise DataError("is not a text document of OpenDocument; save it as .odt", path=path)
        title, declared = _properties(archive)
        return BlockDocument(list(_Reader(content).blocks(body)), title, declared)


def _properties(archive: DocumentArchive) -> tuple[str, str]:
    """Return the title and the language of a document."""
    title = ""
    declared = ""
    if "meta.xml" in archive:
        meta = parse_tree(archive.read("meta.xml"), archive.path)
        title = " ".join((meta.findtext("meta/title") or "").split())
        declared = declared_language(meta.findtext("meta/language"))
    if not declared and "styles.xml" in archive:
        styles = parse_tree(archive.read("styles.xml"), archive.path)
        for style in styles.findall("styles/default-style"):
            text = style.find("text-properties")
            if style.get("family") == "paragraph" and text is not None:
                name = text.get("language") or "none"
                country = text.get("country") or "none"
                if name != "none":
                    declared = declared_language(name if country == "none" else f"{name}-{country}")
    return title, declared


class _Reader:
    """A reader of the elements of a document."""

    def __init__(self, content: Element) -> None:
        styles = content.iterfind("automatic-styles/style")
        self._parents = {
            style.get("name", ""): style.get("parent-style-name", "") for style in styles
        }
        """Automatic style of a paragraph -> the named style that it is based on."""

    def blocks(self, parent: Element, kind: str = PARAGRAPH, lists: int = 0) -> Iterator[TextBlock]:
        """Yield the blocks of an element."""
        for child in parent:
            tag = child.tag
            if tag in _HIDDEN:
                continue
            if tag in ("h", "p"):
                yield from self._paragraph(child, kind, lists)
            elif tag == "list":
                yield from self.blocks(child, CELL if kind == CELL else ITEM, lists + 1)
            elif tag == "table-cell":
                yield from self.blocks(child, CELL, lists)
            elif tag in _APART:
                yield from self.blocks(child)
            else:
                # Sections, list items, tables, rows and frames.
                yield from self.blocks(child, kind, lists)

    def _paragraph(self, element: Element, kind: str, lists: int) -> Iterator[TextBlock]:
        parts: list[str] = []
        apart: list[Element] = []
        _gather(element, parts, apart)
        text = "".join(parts)
        style = element.get("style-name", "")
        style = self._parents.get(style, style)
        outline = element.get("outline-level", "1")
        if text.strip():
            if element.tag == "h" and kind != CELL:
                level = int(outline) if re.fullmatch("[0-9]{1,2}", outline) else 1
                yield TextBlock(text, HEADING, min(max(level, 1), DEEPEST_HEADING))
            elif style in ("Title", "Subtitle"):
                yield TextBlock(text, HEADING, 1 if style == "Title" else 2)
            else:
                yield TextBlock(text, kind, lists if kind == ITEM else 0)
        for one in apart:
            yield from self.blocks(one)


def _gather(element: Element, parts: list[str], apart: list[Element]) -> None:
    """Add the text of an element to ``parts``, and the separate blocks in it to ``apart``."""
    parts.append(element.text or "")
    for child in element:
        if child.tag in _SPACES:
            parts.append(_SPACES[child.tag])
        elif child.tag in _APART:
            apart.append(child)
        elif child.tag not in _HIDDEN:
            _gather(child, parts, apart)
        parts.append(child.tail or "")
