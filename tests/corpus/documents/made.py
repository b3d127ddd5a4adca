"""Write small documents of each kind."""

from __future__ import annotations

import zipfile
from xml.sax.saxutils import escape

import docx

PAGE_HEIGHT = 800


def write_docx(path, blocks, title="", language=""):
    """Write (kind, level, text) blocks by python-docx; cells of one table in a row each."""
    document = docx.Document()
    document.core_properties.title = title
    document.core_properties.language = language
    for kind, level, text in blocks:
        if kind == "heading":
            document.add_heading(text, level)
        elif kind == "item":
            document.add_paragraph(
                text, style="List Bullet" if level == 1 else f"List Bullet {level}"
            )
        elif kind == "cell":
            document.add_table(1, 1).cell(0, 0).text = text
        else:
            document.add_paragraph(text)
    document.save(str(path))
    return path


def odt_content(body):
    return (
        '<?xml version="1.0" encoding="UTF-8"?><office:document-content'
        ' xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"'
        ' xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0"'
        ' xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0">'
        '<office:automatic-styles><style:style style:name="P1" style:parent-style-name="Title"/>'
        f"</office:automatic-styles><office:body><office:text>{body}</office:text></office:body>"
        "</office:document-content>"
    )


def write_odt(path, blocks, title="", language=""):
    parts = []
    for kind, level, text in blocks:
        words = escape(text)
        if kind == "heading":
            parts.append(f'<text:h text:outline-level="{level}">{words}</text:h>')
        elif kind == "item":
            start, end = (
                "<text:list><text:list-item>" * level,
                "</text:list-item></text:list>" * level,
            )
            parts.append(f"{start}<text:p>{words}</text:p>{end}")
        elif kind == "cell":
            cell = f"<table:table-cell><text:p>{words}</text:p></table:table-cell>"
            parts.append(f"<table:table><table:table-row>{cell}</table:table-row></table:table>")
        else:
            parts.append(f"<text:p>{words}</text:p>")
    meta = (
        '<office:document-meta xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0"'
        ' xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta>'
        f"<dc:title>{escape(title)}</dc:title><dc:language>{language}</dc:language>"
        "</office:meta></office:document-meta>"
    )
    members = {"content.xml": odt_content("".join(parts)), "meta.xml": meta}
    return write_zip(path, {"mimetype": "application/vnd.oasis.opendocument.text", **members})


def html_of(blocks, title="", language=""):
    parts = []
    for kind, level, text in blocks:
        words = escape(text)
        if kind == "heading":
            parts.append(f"<h{level}>{words}</h{level}>")
        elif kind == "item":
            parts.append(f"{'<ul>' * level}<li>{words}</li>{'</ul>' * level}")
        elif kind == "cell":
            parts.append(f"<table><tr><td>{words}</td></tr></table>")
        else:
            parts.append(f"<p>{words}</p>")
    named = f' lang="{language}"' if language else ""
    head = f"<head><meta charset='utf-8'/><title>{escape(title)}</title></head>"
    return f"<html{named}>{head}<body>{''.join(parts)}</body></html>"


def markdown_of(blocks, title="", language=""):
    parts = [f"---\ntitle: {title}\nlang: {language}\n---"]
    for kind, level, text in blocks:
        if kind == "heading":
            parts.append(f"{'#' * level} {text}")
        elif kind == "item":
            parts.append(f"{'  ' * (level - 1)}- {text}")
        elif kind == "cell":
            parts.append(f"| {text} |\n| --- |")
        else:
            parts.append(text)
    return "\n\n".join(parts) + "\n"


def write_zip(path, members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return path


def write_epub(path, pages, title="", language="", extra=None):
    """Write an e-book of XHTML pages."""
    items = "".join(
        f'<item id="p{n}" href="text/page{n}.xhtml" media-type="application/xhtml+xml"/>'
        for n in range(len(pages))
    )
    # The spine, not the manifest, is the order of reading.
    spine = "".join(f'<itemref idref="p{n}"/>' for n in range(len(pages)))
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0">'
        '<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:title>{escape(title)}</dc:title><dc:language>{language}</dc:language></metadata>"
        '<manifest><item id="nav" href="nav.xhtml" properties="nav"'
        f' media-type="application/xhtml+xml"/>{items}</manifest>'
        f'<spine><itemref idref="nav"/>{spine}</spine></package>'
    )
    container = (
        '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
        '<rootfile full-path="OEBPS/content.opf"/></rootfiles></container>'
    )
    members = {"mimetype": "application/epub+zip", "META-INF/container.xml": container}
    members |= {"OEBPS/content.opf": package, "OEBPS/nav.xhtml": "<html><p>Contents</p></html>"}
    members |= {f"OEBPS/text/page{n}.xhtml": page for n, page in enumerate(pages)}
    return write_zip(path, {**members, **(extra or {})})


def pdf_page(lines):
    """Return the content of a page: (x, y, size, text) from the lower left corner."""
    shown = []
    for x, y, size, text in lines:
        codes = "".join(f"{ord(character):04x}" for character in text)
        shown.append(f"BT /F1 {size} Tf 1 0 0 1 {x} {y} Tm <{codes}> Tj ET")
    return "\n".join(shown).encode()


def write_pdf(path, pages, language="", title=""):
    """Write pages of lines in a font that has a character for each code, and wide ones twice."""
    characters = sorted({one for page in pages for line in page for one in line[3]})
    mapped = "".join(f"<{ord(one):04x}> <{ord(one):04x}>\n" for one in characters)
    to_unicode = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n1 begincodespacerange"
        f" <0000> <ffff> endcodespacerange\n{len(characters)} beginbfchar\n{mapped}endbfchar\n"
        "endcmap end end"
    )
    widths = " ".join(f"{ord(one)} [{1000 if one > chr(0x2E80) else 500}]" for one in characters)
    objects = [
        f"<< /Type /Catalog /Pages 2 0 R /Lang ({language}) >>".encode(),
        b"",
        b"<< /Type /Font /Subtype /Type0 /BaseFont /Made /Encoding /Identity-H"
        b" /DescendantFonts [4 0 R] /ToUnicode 6 0 R >>",
        b"<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Made /FontDescriptor 5 0 R"
        b" /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >>"
        b" /W [" + widths.encode() + b"] >>",
        b"<< /Type /FontDescriptor /FontName /Made /Flags 4 /Ascent 800 /Descent -200"
        b" /FontBBox [0 -200 1000 800] >>",
        stream(to_unicode.encode()),
        b"<< /Title <feff" + title.encode("utf-16-be").hex().encode() + b"> >>",
    ]
    numbers = []
    for page in pages:
        objects.append(stream(pdf_page(page)))
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 {PAGE_HEIGHT}] /Contents"
            f" {len(objects)} 0 R /Resources << /Font << /F1 3 0 R >> >> >>".encode()
        )
        numbers.append(len(objects))
    kids = " ".join(f"{number} 0 R" for number in numbers)
    objects[1] = f"<< /Type /Pages /Kids [{kids}] /Count {len(numbers)} >>".encode()
    path.write_bytes(pdf_of(objects, b"/Info 7 0 R"))
    return path


def stream(content, more=b""):
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(content), more, content)


def pdf_of(objects, trailer=b""):
    """Return a PDF of numbered objects, the first of which is the catalog."""
    out = bytearray(b"%PDF-1.7\n")
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer << /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, trailer)
    return bytes(out + b"startxref\n%d\n%%%%EOF" % start)
