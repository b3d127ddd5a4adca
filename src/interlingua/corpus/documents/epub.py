"""Blocks of e-books (.epub): the pages of the spine, in its order."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from interlingua.corpus.documents.archives import DocumentArchive, open_document
from interlingua.corpus.documents.encodings import declared_charset, decode_file
from interlingua.corpus.documents.markup import parse_markup
from interlingua.corpus.documents.units import BlockDocument, TextBlock, declared_language
from interlingua.corpus.formats.xml_stream import parse_tree
from interlingua.errors import DataError
from interlingua.storage.files import LOOKED_AT_BYTES, PathLike
from interlingua.storage.limits import MAX_DOCUMENT_BYTES

_PAGES = ("application/xhtml+xml", "text/html", "application/x-dtbook+xml")
_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"


def read_epub(path: PathLike, language: str | None = None) -> BlockDocument:
    """Read an e-book.

    Raises:
        DataError: it is broken, protected, or grows too large.
    """
    with open_document(path, ".epub") as archive:
        roots = [
            root.get("full-path", "")
            for root in parse_tree(archive.read(_CONTAINER), path).iter("rootfile")
        ]
        if not roots:
            raise DataError(
                "the container of the book names no package; save the book again", path=path
            )
        package = parse_tree(archive.read(roots[0]), path)
        protected = _protected(archive)
        blocks: list[TextBlock] = []
        notes: dict[str, None] = {}
        declared = ""
        size = 0
        for name in _pages(package, posixpath.dirname(roots[0]), path):
            if name in protected:
                raise DataError("is protected against copying; leave it out", path=path)
            content = archive.read(name)
            size += len(content)
            if size > MAX_DOCUMENT_BYTES:
                raise DataError("the pages of the book are too large; split the book", path=path)
            place = f"{path}!{name}"
            decoded = decode_file(content, place, declared_charset(content[:LOOKED_AT_BYTES]))
            page = parse_markup(decoded.text)
            blocks += page.blocks
            declared = declared or page.language
            notes |= dict.fromkeys(decoded.notes)
        # The title comes from the package, because the title of a page is that of a chapter.
        metadata = package.find("metadata")
        title = "" if metadata is None else " ".join((metadata.findtext("title") or "").split())
        own = None if metadata is None else metadata.findtext("language")
        return BlockDocument(blocks, title, declared_language(own) or declared, tuple(notes))


def _pages(package: Element, folder: str, path: PathLike) -> Iterator[str]:
    """Yield the names of the members that are pages, in reading order, each once."""
    items = {item.get("id"): item for item in package.iterfind("manifest/item")}
    seen = set()
    for reference in package.iterfind("spine/itemref"):
        item = items.get(reference.get("idref"))
        if item is None:
            raise DataError(
                "the spine of the book names a page that does not exist; save the book again",
                path=path,
            )
        is_contents = "nav" in item.get("properties", "").split()
        if is_contents or item.get("media-type") not in _PAGES:
            continue
        address = unquote(item.get("href", "").partition("#")[0])
        name = posixpath.normpath(posixpath.join(folder, address))
        if name not in seen:
            seen.add(name)
            yield name


def _protected(archive: DocumentArchive) -> set[str]:
    """Return the encrypted members: often fonts, but pages only if the book is protected."""
    if _ENCRYPTION not in archive:
        return set()
    root = parse_tree(archive.read(_ENCRYPTION), archive.path)
    return {unquote(one.get("URI", "")) for one in root.iter("CipherReference")}
