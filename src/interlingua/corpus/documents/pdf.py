"""Blocks of PDF files with a text layer, by pdfminer.six.

A PDF contains glyphs and their positions, but no paragraphs. pdfminer.six groups the glyphs into
lines and boxes in reading order. This module joins lines to paragraphs, also across hyphens and
page breaks, and recognizes headings by their size. Lines at the edges that repeat from page to
page, such as headers and page numbers, are left out. pypdf was tried as well: it has no boxes or
sizes, and puts the brackets and marks of right-to-left lines in the wrong places. pdfminer.six
gives such lines in visual order, from which rules derive the reading order.
"""

from __future__ import annotations

import io
import logging
import re
import unicodedata
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from interlingua.corpus.documents.plain_text import ITEM_MARK, SENTENCE_ENDS
from interlingua.corpus.documents.units import (
    DEEPEST_HEADING,
    HEADING,
    ITEM,
    LONGEST_HEADING,
    PARAGRAPH,
    BlockDocument,
    TextBlock,
    declared_language,
    join_texts,
)
from interlingua.errors import DataError, InterlinguaError, import_extra
from interlingua.storage.files import PathLike, open_raw
from interlingua.storage.limits import FREE_EXPANSION_BYTES, max_expansion, read_limited

_MAX_PAGES = 20_000
_MAX_FIGURES = 20_000
"""Maximum number of drawings of a page, nested ones included: a few bytes can make billions."""
_EDGE = 0.12
"""Share of a page's height at its top and bottom, where headers and footers are."""
_REPEATED = 0.4
"""Minimum share of pages with the same header; left and right pages may have different ones."""
_LEAST_REPEATS = 3
_LARGER = 1.12
"""Minimum size of a heading, as a multiple of the size of most text."""
_UNKNOWN_GLYPH = re.compile(r"\(cid:\d+\)")
_MOST_UNKNOWN = 0.05
"""Maximum share of glyphs without a character."""
_STREAM = re.compile(rb"stream\r?\n")
_PART = 1 << 16
_RIGHT_TO_LEFT = ("R", "AL")
_LETTER = r"[^\W\d_\u0590-\u08ff\ufb1d-\ufefc]"
_TURNED = r"\u0590-\u065f\u066a-\u06ef\u06fa-\u08ff\ufb1d-\ufefc"
_LEFT_TO_RIGHT = re.compile(
    rf"{_LETTER}(?:(?:[^{_TURNED}()]|\([^{_TURNED}()]*\))*(?:{_LETTER}|[\d%]))?"
    r"|\d(?:[\d.,:/%٫٬-]*[\d%])?"
)
"""Words and numbers inside of a right-to-left line; a number behind a word belongs to it."""
_LOOSE_MARK = re.compile(r"\s+(?=[\u064b-\u065f\u0670])")
_MIRRORED = str.maketrans("()[]{}<>«»‹›", ")(][}{><»«›‹")
_LIGATURES = re.compile(r"[\ufb00-\ufb17]+")
_PRESENTATION = re.compile(r"[\ufb1d-\ufdff\ufe70-\ufefc]+")
"""Forms that letters have by their place in a word; one glyph may represent several letters."""
_HYPHENS = "-\u00ad\u2010"


class _Line(NamedTuple):
    """A line of a page."""

    text: str
    size: float
    left: float
    right: float
    middle: float
    """Height on the page, as a share: 1 is the top."""
    box: int
    """Number of the line's box; boxes are counted on each page."""


def read_pdf(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read a PDF with a text layer.

    Raises:
        DataError: it is broken or encrypted, has no text layer, or grows too large.
        MissingExtraError: pdfminer.six is not installed.
    """
    with open_raw(path) as file:
        content = read_limited(file, path)
    if b"%PDF-" not in content[:1024]:
        raise DataError("is not a PDF file; save it again as .pdf", path=path)
    _refuse_bomb(content, path)
    layout = _pdfminer("layout")
    logging.getLogger("pdfminer").setLevel(logging.ERROR)
    try:
        document = _open_document(content, path)
        pages = [list(_lines(page, layout)) for page in _layouts(document, path)]
        _refuse_without_text(pages, path)
        title = _text_of((document.info or [{}])[0].get("Title"))
        declared = declared_language(_text_of(document.catalog.get("Lang")))
    except InterlinguaError:
        raise
    except Exception as error:  # broken files cause dozens of kinds of exceptions
        reason = " ".join(str(error).split())[:100] or type(error).__name__
        raise DataError(
            f"cannot be read as PDF ({reason}); print it to a new PDF", path=path
        ) from error
    blocks = _blocks([page for page in _without_headers(pages) if page])
    return BlockDocument(blocks, " ".join(title.split()), declared)


def _pdfminer(module: str) -> Any:
    return import_extra(f"pdfminer.{module}", package="pdfminer.six", extra="documents")


def _open_document(content: bytes, path: PathLike) -> Any:
    """Open a document without a password.

    Raises:
        DataError: the document needs a password.
    """
    parser = _pdfminer("pdfparser").PDFParser(io.BytesIO(content))
    module = _pdfminer("pdfdocument")
    try:
        return module.PDFDocument(parser)
    except (module.PDFPasswordIncorrect, module.PDFEncryptionError) as error:
        raise DataError("is encrypted; save it without a password", path=path) from error


def _layouts(document: Any, path: PathLike) -> Iterator[Any]:
    """Yield the layout of each page."""
    interpreter = _pdfminer("pdfinterp")
    # Many programs put all text of a page in one drawing.
    parameters = _pdfminer("layout").LAParams(all_texts=True)
    manager = interpreter.PDFResourceManager()
    device = _pdfminer("converter").PDFPageAggregator(manager, laparams=parameters)
    reader = interpreter.PDFPageInterpreter(manager, device)
    figures = 0
    begin_figure = device.begin_figure

    def count_figure(*arguments: Any) -> None:
        nonlocal figures
        figures += 1
        if figures > _MAX_FIGURES:
            raise DataError(f"a page has more than {_MAX_FIGURES:,} drawings", path=path)
        begin_figure(*arguments)

    device.begin_figure = count_figure
    for number, page in enumerate(_pdfminer("pdfpage").PDFPage.create_pages(document), 1):
        if number > _MAX_PAGES:
            raise DataError(f"has more than {_MAX_PAGES:,} pages; split it", path=path)
        figures = 0
        reader.process_page(page)
        yield device.get_result()


def _lines(page: Any, layout: Any) -> Iterator[_Line]:
    """Yield the lines of a page in reading order."""
    pending = [page]
    box = 0
    while pending:
        item = pending.pop()
        if isinstance(item, layout.LTTextBox):
            box += 1
            for line in item:
                text = _in_reading_order(line.get_text().strip())
                sizes = [glyph.size for glyph in line if isinstance(glyph, layout.LTChar)]
                if text and sizes:
                    size = sorted(sizes)[len(sizes) // 2]
                    middle = ((line.y0 + line.y1) / 2 - page.y0) / max(page.height, 1.0)
                    yield _Line(text, round(size, 1), line.x0, line.x1, middle, box)
        elif isinstance(item, layout.LTPage | layout.LTFigure):
            pending += reversed(list(item))


def _in_reading_order(text: str) -> str:
    """Return a line in reading order; in the PDF, even right-to-left scripts run left to right.

    The letters and numbers of other scripts inside of such a line keep their order.
    """
    text = _LIGATURES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    text = _PRESENTATION.sub(
        lambda found: unicodedata.normalize("NFKC", found[0][::-1])[::-1], text
    )
    kinds = Counter(unicodedata.bidirectional(character) for character in text)
    turned = sum(kinds[kind] for kind in _RIGHT_TO_LEFT)
    if not turned:
        return text
    if turned < kinds["L"]:
        # A few words inside of a left-to-right line.
        return re.sub(
            r"[\u0590-\u08ff](?:[\u0590-\u08ff ]*[\u0590-\u08ff])?",
            lambda found: found[0][::-1],
            text,
        )
    pieces = []
    end = 0
    for found in _LEFT_TO_RIGHT.finditer(text):
        pieces += [text[end : found.start()][::-1].translate(_MIRRORED), found[0]]
        end = found.end()
    pieces.append(text[end:][::-1].translate(_MIRRORED))
    return _LOOSE_MARK.sub("", "".join(reversed(pieces)))


def _refuse_without_text(pages: list[list[_Line]], path: PathLike) -> None:
    """Refuse pages without text, or with glyphs that have no characters.

    Raises:
        DataError: with a remedy.
    """
    text = "".join(line.text for page in pages for line in page)
    remedy = "run text recognition first, for example: ocrmypdf --force-ocr in.pdf out.pdf"
    if not text.strip():
        raise DataError(
            f"has no text layer, its {len(pages):,} pages are pictures; {remedy}", path=path
        )
    unknown = len(_UNKNOWN_GLYPH.findall(text)) + text.count("\ufffd")
    if unknown > _MOST_UNKNOWN * len(text) / 4:
        raise DataError(f"its fonts do not specify their characters; {remedy}", path=path)


def _without_headers(pages: list[list[_Line]]) -> list[list[_Line]]:
    """Return pages without repeated lines at their edges; such lines may differ in numbers."""
    counts: Counter[tuple[bool, str]] = Counter()
    for page in pages:
        counts.update({_edge_key(line) for line in page if _is_at_edge(line)})
    least = max(_LEAST_REPEATS, _REPEATED * len(pages))
    kept = []
    for page in pages:
        inside = [line for line in page if not _is_at_edge(line) or counts[_edge_key(line)] < least]
        kept.append(inside)
    return kept


def _is_at_edge(line: _Line) -> bool:
    return not _EDGE < line.middle < 1 - _EDGE


def _edge_key(line: _Line) -> tuple[bool, str]:
    """Return the key that headers share: the edge, and the text without numbers."""
    text = re.sub(r"\d+", "#", line.text)
    if re.fullmatch(r"[ivxlcIVXLC]+", text):
        text = "#"
    return line.middle > 0.5, text


def _blocks(pages: list[list[_Line]]) -> list[TextBlock]:
    """Return the blocks of pages."""
    sizes: Counter[float] = Counter()
    for page in pages:
        for line in page:
            sizes[line.size] += len(line.text)
    body = sizes.most_common(1)[0][0] if sizes else 0.0
    larger = sorted((size for size in sizes if size >= _LARGER * body), reverse=True)
    levels = {size: min(number, DEEPEST_HEADING) for number, size in enumerate(larger, 1)}
    words = Counter(
        word for page in pages for line in page for word in re.findall(r"[\w-]+", line.text)
    )
    blocks: list[TextBlock] = []
    for page in pages:
        own = [_block(lines, levels, words) for lines in _paragraphs(page)]
        if blocks and own and _goes_on(blocks[-1], own[0]):
            text = _joined([blocks[-1].text, own[0].text], words)
            blocks[-1] = blocks[-1]._replace(text=text)
            own = own[1:]
        blocks += own
    return blocks


def _paragraphs(page: list[_Line]) -> Iterator[list[_Line]]:
    """Yield the lines of each paragraph of a page."""
    current: list[_Line] = []
    bounds: dict[int, tuple[float, float]] = {}
    for line in page:
        left, right = bounds.get(line.box, (line.left, line.right))
        bounds[line.box] = min(left, line.left), max(right, line.right)
    for line in page:
        if current and _begins(line, current[-1], *bounds[line.box]):
            yield current
            current = []
        current.append(line)
    if current:
        yield current


def _begins(line: _Line, before: _Line, left: float, right: float) -> bool:
    """Return whether a line starts a paragraph or a list item."""
    if line.box != before.box or abs(line.size - before.size) > 0.1 * before.size:
        return True
    if ITEM_MARK.match(line.text):
        return True
    width = 2 * line.size
    # The last line of a paragraph is short at the side where lines end.
    is_short = right - before.right > width and left + width > before.left
    if unicodedata.bidirectional(before.text[0]) in _RIGHT_TO_LEFT:
        is_short = before.left - left > width and before.right > right - width
    is_ended = before.text[-1] in SENTENCE_ENDS or before.text[-1] in '"”»:'
    return is_short and is_ended


def _block(lines: list[_Line], levels: dict[float, int], words: Counter[str]) -> TextBlock:
    text = _joined([line.text for line in lines], words)
    level = levels.get(lines[0].size, 0)
    if level and len(text) <= LONGEST_HEADING:
        return TextBlock(text, HEADING, level)
    mark = ITEM_MARK.match(text)
    if mark:
        return TextBlock(text[mark.end() :], ITEM, 1)
    return TextBlock(text, PARAGRAPH)


def _goes_on(before: TextBlock, block: TextBlock) -> bool:
    """Return whether the first block of a page continues the last one of the page before."""
    if block.kind != PARAGRAPH or before.kind == HEADING:
        return False
    last = before.text.rstrip("\"'”»）)")[-1:]
    first = block.text[:1]
    # In scripts without small letters, only the mark at the end decides.
    is_cased = first.isupper() or first.islower()
    return last not in (*SENTENCE_ENDS, ":") and (first.islower() or not is_cased)


def _joined(lines: list[str], words: Counter[str]) -> str:
    """Return lines as one text, in which words that were cut at a hyphen are joined."""
    text = lines[0]
    for line in lines[1:]:
        last = text[-1]
        if last in _HYPHENS and len(text) > 1 and text[-2].isalpha() and line[0].islower():
            start = re.findall(r"[\w-]+$", text[:-1])[-1:] or [""]
            rest = re.match(r"\w+", line)
            whole = start[0] + (rest[0] if rest else "")
            cut = f"{start[0]}-{rest[0] if rest else ''}"
            # If the hyphen belongs to the word, the form with it usually occurs elsewhere, too.
            has_own = last == "-" and words[cut] > words[whole]
            text = f"{text[:-1]}{'-' if has_own else ''}{line}"
        else:
            text = join_texts(text, line)
    return text.replace("\u00ad", "")


def _refuse_bomb(content: bytes, path: PathLike) -> None:
    """Refuse a document with compressed streams that grow without end.

    Raises:
        DataError: all of them together grow too large.
    """
    most = max(FREE_EXPANSION_BYTES, max_expansion() * len(content))
    size = 0
    for found in _STREAM.finditer(content):
        size += _unpacked_bytes(memoryview(content)[found.end() :], most - size, depth=3)
        if size > most:
            raise DataError(
                f"its {len(content):,} bytes expand to more than {most:,}, too many for a"
                " document; leave it out",
                path=path,
            )


def _unpacked_bytes(data: memoryview, most: int, depth: int) -> int:
    """Return how many bytes a compressed stream grows to; a stream may be compressed again."""
    if len(data) < 2 or data[0] & 15 != 8 or (data[0] << 8 | data[1]) % 31:
        return 0
    unpacker = zlib.decompressobj()
    size = 0
    head = b""
    # Decompress small parts: in one part, all bytes behind the stream's end would be copied.
    for start in range(0, len(data), _PART):
        part = bytes(data[start : start + _PART])
        try:
            while part and size <= most and not unpacker.eof:
                piece = unpacker.decompress(part, 1 << 24)
                part = unpacker.unconsumed_tail
                head = head or piece
                size += len(piece)
        except zlib.error:
            return size
        if unpacker.eof or size > most:
            break
    if depth and size <= most:
        size += _unpacked_bytes(memoryview(head), most - size, depth - 1)
    return size


def _text_of(value: Any) -> str:
    """Decode a string of a PDF: UTF-16 or UTF-8 with a byte-order mark, or nearly Latin-1."""
    value = value.resolve() if hasattr(value, "resolve") else value
    if isinstance(value, str):
        return value
    if not isinstance(value, bytes):
        return ""
    if value.startswith((b"\xfe\xff", b"\xff\xfe")):
        return value.decode("utf-16", "replace")
    return (
        value.decode("utf-8-sig", "replace")
        if value.startswith(b"\xef\xbb")
        else value.decode("latin-1")
    )
