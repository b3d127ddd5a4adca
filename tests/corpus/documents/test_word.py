"""Word documents: what is shown, headings, lists and languages."""

from __future__ import annotations

import zipfile

import pytest

from interlingua.corpus.documents.units import units_of
from interlingua.corpus.documents.word import read_word
from tests.corpus.documents.made import write_docx, write_zip

MORE_NAMESPACES = (
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"'
    ' xmlns:v="urn:schemas-microsoft-com:vml"'
    ' xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"'
)


def run(text, properties=""):
    return f'<w:r><w:rPr>{properties}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def paragraph(content, properties=""):
    return f"<w:p><w:pPr>{properties}</w:pPr>{content}</w:p>"


def read(tmp_path, body, *, styles="", default=""):
    path = write_docx(tmp_path / "whole.docx", [])
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name).decode("latin-1") for name in archive.namelist()}
    text = members["word/document.xml"].replace(
        "<w:document ", f"<w:document {MORE_NAMESPACES} ", 1
    )
    if MORE_NAMESPACES.split('"')[1] in members["word/document.xml"]:
        text = members["word/document.xml"]
    start, end = text.index("<w:sectPr"), text.index("</w:body>")
    members["word/document.xml"] = text[:start] + body + text[start:end] + text[end:]
    if styles:
        name = "word/styles.xml"
        members[name] = members[name].replace("</w:styles>", f"{styles}</w:styles>")
    if default:
        name = "word/styles.xml"
        members[name] = members[name].replace('w:lang w:val="en-US"', f'w:lang w:val="{default}"')
    encoded = {name: value.encode("latin-1") for name, value in members.items()}
    return read_word(write_zip(tmp_path / "a.docx", encoded))


def texts(document):
    return [unit.text for unit in units_of(document.blocks)]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (run("a") + f"<w:ins>{run('b')}</w:ins><w:del><w:r><w:delText>x</w:delText></w:r></w:del>", "ab"),
        (f"<w:moveFrom>{run('x')}</w:moveFrom><w:moveTo>{run('y')}</w:moveTo>", "y"),
        (run("a") + run("hidden", "<w:vanish/>") + run("b", '<w:vanish w:val="0"/>'), "ab"),
        (f"<w:hyperlink>{run('link')}</w:hyperlink>{run(' end')}", "link end"),
        (f"<w:fldSimple>{run('12')}</w:fldSimple>", "12"),
        ("<w:r><w:instrText>PAGE</w:instrText></w:r>" + run("3"), "3"),
        ("<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/></w:r>", "a b c-"),
        (f"<w:sdt><w:sdtPr/><w:sdtContent>{run('field')}</w:sdtContent></w:sdt>", "field"),
        ("<w:ruby><w:rt><w:r><w:t>かん</w:t></w:r></w:rt><w:rubyBase>".encode().decode("latin-1") + run("X") + "</w:rubyBase></w:ruby>", "X"),
    ],
)  # fmt: skip
def test_text_of_a_paragraph(tmp_path, content, text):
    assert texts(read(tmp_path, paragraph(content))) == [text]


def test_tables_controls_and_text_boxes(tmp_path):
    cell = f"<w:tc>{paragraph(run('one'))}{paragraph(run('two'))}</w:tc>"
    inner = f"<w:tbl><w:tr><w:tc>{paragraph(run('inner'))}</w:tc></w:tr></w:tbl>"
    table = f"<w:tbl><w:tr>{cell}<w:tc>{inner}{paragraph('')}</w:tc></w:tr></w:tbl>"
    box = f"<w:txbxContent>{paragraph(run('box'))}</w:txbxContent>"
    drawn = (
        f"<w:r><mc:AlternateContent><mc:Choice>{box}</mc:Choice><mc:Fallback><w:pict><v:textbox>"
        f"{box}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r>"
    )
    control = f"<w:sdt><w:sdtContent>{paragraph(run('control'))}</w:sdtContent></w:sdt>"
    document = read(tmp_path, table + control + paragraph(run("around") + drawn))
    assert [(unit.kind, unit.text) for unit in units_of(document.blocks)] == [
        ("cell", "one"), ("cell", "two"), ("cell", "inner"), ("paragraph", "control"),
        ("paragraph", "around"), ("paragraph", "box"),
    ]  # fmt: skip


def test_styles_of_another_language_and_numbering(tmp_path):
    styles = (
        '<w:style w:type="paragraph" w:styleId="berschrift"><w:name w:val="Kapitel"/><w:pPr>'
        '<w:outlineLvl w:val="1"/></w:pPr></w:style>'
        '<w:style w:type="paragraph" w:styleId="Eigen"><w:name w:val="Eigen"/>'
        '<w:basedOn w:val="berschrift"/></w:style>'
        '<w:style w:type="paragraph" w:styleId="Kreis"><w:name w:val="K"/><w:basedOn w:val="Kreis"/>'
        "</w:style>"
        '<w:style w:type="paragraph" w:styleId="Inhalt"><w:name w:val="toc 1"/></w:style>'
    )
    numbering = '<w:numPr><w:ilvl w:val="{}"/><w:numId w:val="{}"/></w:numPr>'
    body = "".join(
        [
            paragraph(run("Inhalt 3"), '<w:pStyle w:val="Inhalt"/>'),
            paragraph(run("Eins"), '<w:pStyle w:val="Eigen"/>'),
            paragraph(run("Text"), '<w:pStyle w:val="Eigen"/><w:outlineLvl w:val="9"/>'),
            paragraph(run("Teil"), '<w:outlineLvl w:val="0"/>'),
            paragraph(run("Punkt"), numbering.format(1, 5)),
            paragraph(run("kein Punkt"), numbering.format(0, 0)),
            paragraph(run("Kreis"), '<w:pStyle w:val="Kreis"/>'),
        ]
    )
    document = read(tmp_path, body, styles=styles)
    assert [tuple(unit) for unit in units_of(document.blocks)] == [
        ("Eins", "heading", 2), ("Text", "paragraph", 0), ("Teil", "heading", 1),
        ("Punkt", "item", 2), ("kein Punkt", "paragraph", 0), ("Kreis", "paragraph", 0),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("properties", "default", "code"),
    [
        ('<w:lang w:val="de-DE"/>', "", "deu_Latn"),
        ("", "fr-FR", "fra_Latn"),
        # The default of the template says nothing.
        ("", "", ""),
        ('<w:lang w:val="en-GB"/>', "", "eng_Latn"),
    ],
)
def test_language(tmp_path, properties, default, code):
    body = paragraph(run("Ein langer Text", properties) + run("x", '<w:lang w:val="ru"/>'))
    assert read(tmp_path, body, default=default).language == code
