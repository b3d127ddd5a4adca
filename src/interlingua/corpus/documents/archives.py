"""Documents that are zip archives of XML: Word, OpenDocument and EPUB."""

from __future__ import annotations

import contextlib
import zipfile
from collections.abc import Iterator
from typing import NamedTuple

from interlingua.corpus.formats.moses import open_archive
from interlingua.errors import DataError
from interlingua.storage.files import PathLike, open_raw
from interlingua.storage.limits import (
    FREE_EXPANSION_BYTES,
    MAX_DOCUMENT_BYTES,
    guard_expansion,
    max_expansion,
    read_limited,
)

_OLE = b"\xd0\xcf\x11\xe0"
"""First bytes of old Office documents, and of new ones with a password."""


class DocumentArchive(NamedTuple):
    """An open document.

    Attributes:
        archive: the zip archive.
        path: path of the document, for errors.
    """

    archive: zipfile.ZipFile
    path: PathLike

    def __contains__(self, name: object) -> bool:
        return name in self.archive.NameToInfo

    def read(self, name: str) -> bytes:
        """Return the content of a member.

        Raises:
            DataError: there is no such member, or it is encrypted or too large.
        """
        place = f"{self.path}!{name}"
        try:
            member = self.archive.getinfo(name)
        except KeyError as error:
            raise DataError(
                "a part of the document is missing, so the document is damaged; save it again",
                path=place,
            ) from error
        if member.flag_bits & 1:
            raise DataError("is encrypted; save it without a password", path=self.path)
        with self.archive.open(member) as raw:
            return read_limited(guard_expansion(raw, place, member.compress_size), place)


@contextlib.contextmanager
def open_document(path: PathLike, kind: str) -> Iterator[DocumentArchive]:
    """Open a document that is a zip archive.

    Args:
        path: of the file.
        kind: the expected kind of document, for errors.

    Raises:
        DataError: it is no archive, is damaged or encrypted, or grows too large.
    """
    with open_raw(path) as file:
        head = file.read(4)
    if head == _OLE:
        raise DataError(
            f"is an old Office document, or has a password; save it as {kind} without a password",
            path=path,
        )
    if head[:2] != b"PK":
        raise DataError(f"is not a {kind} file; save it again as {kind}", path=path)
    with open_archive(path) as archive:
        _refuse_growth(archive, path)
        yield DocumentArchive(archive, path)


def _refuse_growth(archive: zipfile.ZipFile, path: PathLike) -> None:
    """Refuse a document that expands far beyond its packed size, or too far for memory."""
    members = archive.infolist()
    packed = max(1, sum(member.compress_size for member in members))
    unpacked = sum(member.file_size for member in members)
    most = min(max(FREE_EXPANSION_BYTES, max_expansion() * packed), 4 * MAX_DOCUMENT_BYTES)
    if unpacked > most:
        raise DataError(
            f"its {packed:,} bytes expand to {unpacked:,}, too many for a document; leave it out,"
            " or save it again without pictures",
            path=path,
        )
