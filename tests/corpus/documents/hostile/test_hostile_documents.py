"""Damaged and malicious documents: one line of error in little time and memory."""

from __future__ import annotations

import contextlib
import random
import struct
import time
import zipfile
import zlib

import pytest

from interlingua.corpus.documents import DOCUMENT_SUFFIXES, read_document
from interlingua.errors import DataError
from interlingua.storage import limits
from tests.corpus.documents.made import (
    html_of,
    odt_content,
    pdf_of,
    stream,
    write_docx,
    write_epub,
    write_odt,
    write_pdf,
    write_zip,
)
from tests.corpus.documents.test_kinds import blocks_of

TEXT = "Летом библиотека открыта до вечера."
BOMB = zlib.compress(b"\0" * (1 << 27), 9)
CONTENT = "content.xml"


def whole(tmp_path, suffix):
    """Return a document without faults."""
    path = tmp_path / f"whole{suffix}"
    blocks = blocks_of(TEXT)
    if suffix == ".docx":
        write_docx(path, blocks)
    elif suffix == ".odt":
        write_odt(path, blocks)
    elif suffix == ".epub":
        write_epub(path, [html_of(blocks)])
    elif suffix == ".pdf":
        write_pdf(path, [[(50, 700, 12, TEXT)]])
    elif suffix in (".srt", ".vtt"):
        head = "WEBVTT\n\n" if suffix == ".vtt" else "1\n"
        path.write_text(f"{head}00:00:01.000 --> 00:00:02.000\n{TEXT}\n")
    elif suffix == ".po":
        path.write_text(f'msgid ""\nmsgstr "Language: ru\\n"\n\nmsgid "a"\nmsgstr "{TEXT}"\n')
    elif "xl" in suffix or "xliff" in suffix:
        path.write_text(
            '<xliff version="1.2"><file source-language="en" target-language="ru"><body>'
            f"<trans-unit id='1'><source>a</source><target>{TEXT}</target></trans-unit></body>"
            "</file></xliff>"
        )
    else:
        path.write_text(html_of(blocks) if "htm" in suffix else TEXT)
    return path


def read_quickly(path, seconds=5.0):
    """Read a document, or take its error of one line."""
    begin = time.process_time()
    message = path.name
    try:
        read_document(path)
    except DataError as error:
        message = str(error)
    assert "\n" not in message
    assert path.name in message
    assert time.process_time() - begin < seconds


@pytest.mark.parametrize("suffix", DOCUMENT_SUFFIXES)
def test_damaged_documents(tmp_path, suffix):
    content = whole(tmp_path, suffix).read_bytes()
    assert read_document(whole(tmp_path, suffix)).units
    path = tmp_path / f"a{suffix}"
    chance = random.Random(suffix)
    for _ in range(40):
        damaged = bytearray(content)
        for _ in range(chance.choice((1, 3, 20))):
            place = chance.randrange(len(damaged))
            if chance.random() < 0.7:
                damaged[place] = chance.randrange(256)
            else:
                del damaged[place : place + chance.randrange(1, 200)]
            damaged = damaged or bytearray(b"x")
        path.write_bytes(damaged[: chance.choice((len(damaged), len(damaged) // 2))] or b"x")
        read_quickly(path)


@pytest.mark.parametrize("suffix", DOCUMENT_SUFFIXES)
@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"PK\x03\x04", b"%PDF-1.7\n", b"\x89PNG\r\n"]
)
def test_other_content(tmp_path, suffix, content):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(content)
    with pytest.raises(DataError, match=path.name):
        read_document(path)


@pytest.mark.parametrize("suffix", [".docx", ".odt", ".epub"])
def test_archives_that_grow(tmp_path, suffix, monkeypatch):
    path = whole(tmp_path, suffix)
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/media/image1.png", b"\0" * (1 << 27))
    with pytest.raises(DataError, match="grow"):
        read_document(path)


@pytest.mark.parametrize("suffix", [".docx", ".odt", ".epub"])
def test_a_password(tmp_path, suffix):
    path = tmp_path / f"a{suffix}"
    path.write_bytes(b"\xd0\xcf\x11\xe0" + b"x" * 100)
    with pytest.raises(DataError, match="password"):
        read_document(path)
    encrypted = bytearray(whole(tmp_path, suffix).read_bytes())
    # The flag of encryption, of each entry of the directory and of each member.
    for mark, offset in ((b"PK\x01\x02", 8), (b"PK\x03\x04", 6)):
        at = encrypted.find(mark)
        while at >= 0:
            encrypted[at + offset] |= 1
            at = encrypted.find(mark, at + 4)
    path.write_bytes(encrypted)
    with pytest.raises(DataError, match=path.name):
        read_document(path)


def test_odt_with_an_encrypted_content(tmp_path):
    manifest = "<manifest><file-entry><encryption-data/></file-entry></manifest>"
    path = write_zip(tmp_path / "a.odt", {"META-INF/manifest.xml": manifest, CONTENT: "x"})
    with pytest.raises(DataError, match="password"):
        read_document(path)


def test_epub_that_is_protected(tmp_path):
    rights = '<encryption><CipherReference URI="OEBPS/text/page0.xhtml"/></encryption>'
    extra = {"META-INF/encryption.xml": rights}
    path = write_epub(tmp_path / "a.epub", [html_of(blocks_of(TEXT))], extra=extra)
    with pytest.raises(DataError, match="protected"):
        read_document(path)


@pytest.mark.parametrize(
    "content",
    [
        odt_content("<text:p>" * 300 + "x" + "</text:p>" * 300),
        odt_content("<text:p>x</text:p>").replace("?>", '?><!DOCTYPE x [<!ENTITY a "b">]>', 1),
        odt_content("<text:p>&a;</text:p>"),
        odt_content("<text:p>x"),
        "<a/>",
        "",
        "x",
    ],
)
def test_odt_with_hostile_xml(tmp_path, content):
    with pytest.raises(DataError, match=r"a\.odt"):
        read_document(write_zip(tmp_path / "a.odt", {CONTENT: content}))


@pytest.mark.parametrize(
    "body",
    [
        "<w:p>" * 300 + "</w:p>" * 300,
        "<w:tbl><w:tr><w:tc>" * 80 + "</w:tc></w:tr></w:tbl>" * 80,
        "<w:p><w:r><w:t>&amp;</w:t></w:r></w:p>" * 50_000,
        "<w:p><w:pPr><w:pStyle w:val='none'/><w:outlineLvl w:val='x'/></w:pPr></w:p>",
    ],
)
def test_docx_with_hostile_xml(tmp_path, body):
    path = write_docx(tmp_path / "whole.docx", blocks_of(TEXT))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["word/document.xml"].decode()
    members["word/document.xml"] = text.replace("<w:sectPr", f"{body}<w:sectPr", 1)
    read_quickly(write_zip(tmp_path / "a.docx", members), seconds=20.0)


def test_docx_with_entities_and_foreign_files(tmp_path):
    path = write_docx(tmp_path / "whole.docx", blocks_of(TEXT))
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    text = members["word/document.xml"].decode()
    (tmp_path / "foreign.txt").write_text("secret")
    head = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{tmp_path}/foreign.txt">]>'
    text = text.replace("?>", f"?>{head}", 1).replace(TEXT, "&a;", 1)
    members["word/document.xml"] = text
    text = ""
    with contextlib.suppress(DataError):
        units = read_document(write_zip(tmp_path / "a.docx", members)).units
        text = " ".join(unit.text for unit in units)
    assert "secret" not in text


def pdf_with(tmp_path, contents, resources=b"", more=b""):
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R /Resources <<"
        + resources
        + b" >> >>",
        stream(contents, more),
    ]
    path = tmp_path / "a.pdf"
    return path, objects


@pytest.mark.parametrize("twice", [False, True])
def test_pdf_that_grows(tmp_path, twice):
    filters = b"/Filter [/FlateDecode /FlateDecode]" if twice else b"/Filter /FlateDecode"
    path, objects = pdf_with(tmp_path, zlib.compress(BOMB) if twice else BOMB, more=filters)
    path.write_bytes(pdf_of(objects))
    with pytest.raises(DataError, match="grow"):
        read_document(path)


def test_pdf_with_drawings_in_drawings(tmp_path):
    path, objects = pdf_with(tmp_path, b"/X5 Do", b"/XObject << /X5 5 0 R >>")
    for number in range(5, 14):
        inner = f"/XObject << /X{number + 1} {number + 1} 0 R >>".encode()
        form = b"/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << " + inner + b" >>"
        objects.append(stream(f"/X{number + 1} Do ".encode() * 10, form))
    objects.append(stream(b"", b"/Type /XObject /Subtype /Form /BBox [0 0 9 9]"))
    path.write_bytes(pdf_of(objects))
    read_quickly(path, seconds=60.0)


def test_pdf_with_pages_in_a_circle(tmp_path):
    path, objects = pdf_with(tmp_path, b"")
    objects[1] = b"<< /Type /Pages /Kids [2 0 R 3 0 R 2 0 R] /Count 9 >>"
    path.write_bytes(pdf_of(objects))
    read_quickly(path)


def test_pdf_with_a_password(tmp_path):
    path, objects = pdf_with(tmp_path, b"")
    key = b"(" + b"a" * 32 + b")"
    encryption = b"/Encrypt << /Filter /Standard /V 1 /R 2 /O " + key + b" /U " + key + b" /P -4 >>"
    path.write_bytes(pdf_of(objects, encryption + b" /ID [(a) (a)]"))
    with pytest.raises(DataError, match="password"):
        read_document(path)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "- " * 200_000),
        ("a.txt", ("x" * 50 + "\n") * 50_000),
        ("a.txt", "=" * 300_000 + "\n" + "=" * 300_000),
        ("a.txt", "1." * 200_000),
        ("a.md", "[" * 100_000),
        ("a.md", "`" * 100_000 + " `a" * 50_000),
        ("a.md", "*a" * 100_000 + "_b" * 100_000),
        ("a.md", "<" * 100_000 + "<!--" * 50_000),
        ("a.md", "> " * 100_000),
        ("a.md", "".join(f"{' ' * n}- x\n" for n in range(1500))),
        ("a.md", "|" * 200_000 + "\n" + "|-" * 100_000),
        ("a.md", " " * 300_000 + "|"),
        ("a.html", "<table><td>" * 50_000),
        ("a.html", "<ul><li>" * 50_000 + "</li>" * 50_000),
        ("a.html", "</td>" * 100_000 + "<td>" * 100_000),
        ("a.html", "<ruby>a<rt>" * 50_000),
        ("a.html", "<p>x<br>" * 100_000),
    ],
)
def test_text_takes_linear_time(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content)
    read_quickly(path, seconds=10.0)


def test_a_large_document_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 1000)
    path = tmp_path / "a.txt"
    path.write_text("x " * 1000)
    with pytest.raises(DataError, match=r"a\.txt"):
        read_document(path)


def test_an_archive_that_lies_about_sizes(tmp_path):
    path = whole(tmp_path, ".odt")
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    content[at + 24 : at + 28] = struct.pack("<I", 2)
    path.write_bytes(content)
    read_quickly(path)
