"""Blocks of Word documents (.docx), by python-docx.

Headings are recognized by the outline level of the paragraph or of its style, list items by their
numbering. Paragraphs of tables are cells. Footnotes and endnotes come last. Deleted and hidden
text, headers, footers, comments and the table of contents are left out. python-docx opens the
package and knows its parts; its own paragraphs lack the text of insertions, fields and text boxes,
so that this module walks the elements.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from interlingua.corpus.documents.archives import open_document
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
from interlingua.errors import DataError, InterlinguaError, import_extra
from interlingua.storage.files import PathLike

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VALUE = f"{_W}val"
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_MATH_TEXT = "{http://schemas.openxmlformats.org/officeDocument/2006/math}t"
_HIDDEN = frozenset(
    [
        *(f"{_W}{name}" for name in ("del", "moveFrom", "instrText", "rt", "pPr", "rPr")),
        *(f"{_W}{name}" for name in ("footnotePr", "commentReference")),
        _FALLBACK,
    ]
)
"""Elements whose text is not shown. A fallback repeats a text box for old programs."""
_SPACES = {f"{_W}tab": "\t", f"{_W}br": "\n", f"{_W}cr": "\n", f"{_W}noBreakHyphen": "-"}
_TEXTS = frozenset((f"{_W}t", _MATH_TEXT))
_BOX = f"{_W}txbxContent"
_BODY_LEVEL = 9
_HEADING_NAME = re.compile(r"heading (\d)")
_LIST_NAME = re.compile(r"list (?:bullet|number) (\d)")
_CONTENTS_NAME = re.compile(r"toc \d|toc heading|table of figures")
_EAST_ASIAN = re.compile(r"[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff]")
_RIGHT_TO_LEFT = re.compile(r"[\u0590-\u08ff\ufb1d-\ufefc]")


class _Style(NamedTuple):
    """A paragraph style, with its inherited properties."""

    name: str = ""
    level: int = 0
    """Level of a heading; 0 if it is none."""
    list_level: int = 0


def read_word(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read a Word document.

    Raises:
        DataError: it is broken or encrypted, or grows too large.
        MissingExtraError: python-docx is not installed.
    """
    library = import_extra("docx", package="python-docx", extra="documents")
    with open_document(path, ".docx"):
        pass
    try:
        document = library.Document(str(path))
        reader = _Reader(document.styles.element)
        blocks = [*reader.blocks(document.element.body), *_notes(document.part, reader)]
        properties = document.core_properties
        declared = declared_language(properties.language) or reader.language()
        return BlockDocument(blocks, (properties.title or "").strip(), declared)
    except InterlinguaError:
        raise
    except Exception as error:  # broken files cause a dozen kinds of exceptions
        reason = " ".join(str(error).split())[:100]
        raise DataError(
            f"cannot be read as a Word document ({reason}); save it again as .docx", path=path
        ) from error


class _Reader:
    """A reader of the elements of a document."""

    def __init__(self, styles: Any) -> None:
        self._styles = _paragraph_styles(styles)
        default = styles.find(f"{_W}docDefaults/{_W}rPrDefault/{_W}rPr/{_W}lang")
        self._default = {} if default is None else dict(default.attrib)
        self._languages: Counter[str] = Counter()
        """Characters by language tag."""

    def language(self) -> str:
        """Return the language of most of the text; empty if it is not declared."""
        total = sum(self._languages.values())
        for name, count in self._languages.most_common(1):
            if count > total / 2:
                return declared_language(name)
        return ""

    def blocks(self, parent: Any, kind: str = "") -> Iterator[TextBlock]:
        """Yield the blocks of the body, a cell, a text box or a note."""
        for element in parent:
            if element.tag == f"{_W}p":
                yield from self._paragraph(element, kind)
            elif element.tag == f"{_W}tc":
                yield from self.blocks(element, CELL)
            elif element.tag not in _HIDDEN and element.tag != f"{_W}sdtPr":
                # Tables and rows, and elements around blocks: content controls, insertions.
                yield from self.blocks(element, kind)

    def _paragraph(self, paragraph: Any, kind: str) -> Iterator[TextBlock]:
        style = self._style(paragraph)
        parts: list[str] = []
        boxes: list[Any] = []
        self._gather(paragraph, parts, boxes)
        text = "".join(parts)
        is_contents = _CONTENTS_NAME.fullmatch(style.name)
        if text.strip() and not is_contents:
            if kind:
                yield TextBlock(text, kind)
            elif style.level:
                yield TextBlock(text, HEADING, style.level)
            elif style.list_level:
                yield TextBlock(text, ITEM, style.list_level)
            else:
                yield TextBlock(text, PARAGRAPH)
        for box in boxes:
            yield from self.blocks(box, kind)

    def _gather(self, element: Any, parts: list[str], boxes: list[Any]) -> None:
        """Add the text of an element to ``parts``, and its text boxes to ``boxes``."""
        for child in element:
            tag = child.tag
            if tag in _TEXTS:
                parts.append(child.text or "")
            elif tag in _SPACES:
                parts.append(_SPACES[tag])
            elif tag == _BOX:
                boxes.append(child)
            elif tag == f"{_W}r":
                if not _is_on(child, "vanish"):
                    start = len(parts)
                    self._gather(child, parts, boxes)
                    self._count_language(child, "".join(parts[start:]))
            elif tag not in _HIDDEN and isinstance(tag, str):
                self._gather(child, parts, boxes)

    def _count_language(self, run: Any, text: str) -> None:
        own = run.find(f"{_W}rPr/{_W}lang")
        attribute = f"{_W}val"
        if _EAST_ASIAN.search(text):
            attribute = f"{_W}eastAsia"
        elif _RIGHT_TO_LEFT.search(text):
            attribute = f"{_W}bidi"
        name = None if own is None else own.get(attribute)
        if name is None:
            name = self._default.get(attribute, "")
            # Templates have these defaults, whatever language the text in them is in.
            if name in ("en-US", "ar-SA"):
                name = ""
        self._languages[name] += len(text)

    def _style(self, paragraph: Any) -> _Style:
        """Return the style of a paragraph, with the paragraph's own properties."""
        properties = paragraph.find(f"{_W}pPr")
        if properties is None:
            return _Style()
        style = self._styles.get(_value(properties, "pStyle") or "", _Style())
        return _with_properties(style, properties)


def _paragraph_styles(styles: Any) -> dict[str, _Style]:
    """Return the styles by their ids, each with its inherited properties."""
    elements = {style.get(f"{_W}styleId"): style for style in styles.findall(f"{_W}style")}
    found: dict[str, _Style] = {}
    for name in elements:
        # A style may be based on itself in broken files.
        chain: list[str] = []
        current = name
        while current in elements and current not in chain and current not in found:
            chain.append(current)
            current = _value(elements[current], "basedOn") or ""
        inherited = found.get(current, _Style())
        for one in reversed(chain):
            inherited = _own_style(elements[one], inherited)
            found[one] = inherited
    return found


def _own_style(element: Any, inherited: _Style) -> _Style:
    name = (_value(element, "name") or "").lower()
    heading = _HEADING_NAME.fullmatch(name)
    style = inherited._replace(name=name)
    if heading:
        style = style._replace(level=min(int(heading[1]), DEEPEST_HEADING))
    elif name in ("title", "subtitle"):
        style = style._replace(level=1 if name == "title" else 2)
    properties = element.find(f"{_W}pPr")
    if properties is not None:
        style = _with_properties(style, properties)
    item = _LIST_NAME.fullmatch(name)
    if item:
        style = style._replace(list_level=max(style.list_level, int(item[1])))
    return style


def _with_properties(style: _Style, properties: Any) -> _Style:
    """Return a style with the outline level and numbering of some properties."""
    outline = _value(properties, "outlineLvl")
    if outline is not None and outline.isdigit():
        level = int(outline) + 1
        style = style._replace(level=min(level, DEEPEST_HEADING) if level <= _BODY_LEVEL else 0)
    numbering = properties.find(f"{_W}numPr")
    if numbering is not None:
        depth = _value(numbering, "ilvl") or "0"
        is_none = _value(numbering, "numId") == "0"
        style = style._replace(list_level=0 if is_none or not depth.isdigit() else int(depth) + 1)
    return style


def _value(element: Any, name: str) -> str | None:
    child = element.find(f"{_W}{name}")
    value: str | None = None if child is None else child.get(_VALUE)
    return value


def _is_on(run: Any, name: str) -> bool:
    """Return whether a property of a run is set."""
    found = run.find(f"{_W}rPr/{_W}{name}")
    return found is not None and found.get(_VALUE) not in ("0", "false", "off")


def _notes(part: Any, reader: _Reader) -> Iterator[TextBlock]:
    """Yield the footnotes and endnotes."""
    parse = import_extra("docx.oxml.parser", package="python-docx", extra="documents").parse_xml
    for relation in part.rels.values():
        kind = relation.reltype.rpartition("/")[2]
        if kind not in ("footnotes", "endnotes") or relation.is_external:
            continue
        for note in parse(relation.target_part.blob):
            # Other types are the lines between text and notes.
            if note.get(f"{_W}type") in (None, "normal"):
                yield from reader.blocks(note)
