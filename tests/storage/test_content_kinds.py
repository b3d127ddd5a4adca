"""Binary content is recognized, and plain text is not refused."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile

import pytest

from interlingua.corpus.formats.bitext import guess_format
from interlingua.corpus.formats.monolingual import read_sentences
from interlingua.errors import DataError
from interlingua.storage.content_kinds import find_kind
from interlingua.storage.files import open_text

SOURCES = {
    "a.bib": (
        "BibTeX",
        "@article{knuth84,\n  author = {Donald Knuth},\n  title = {Literate programming}\n}\n",
    ),
    "a.c": (
        "source code",
        '#include <stdio.h>\nint main(void) {\n  printf("hello\\n");\n  return 0;\n}\n',
    ),
    "a.css": (
        "CSS",
        "body {\n"
        "  margin: 0;\n"
        "  font-family: sans-serif;\n"
        "}\n"
        ".menu > li { color: #333; }\n"
        "@media (max-width: 600px) { .menu { display: none; } }\n",
    ),
    "a.ini": ("keys and values", "[section]\nopen=Open\nclose=Close\n"),
    "a.java": (
        "Java",
        "package org.example;\n"
        "import java.util.List;\n"
        "public class Main {\n"
        '  public static void main(String[] args) { System.out.println("hi"); }\n'
        "}\n",
    ),
    "a.js": (
        "JavaScript",
        "'use strict';\n"
        "const fs = require('fs');\n"
        "function read(name) {\n"
        "  return fs.readFileSync(name, 'utf8');\n"
        "}\n"
        "module.exports = { read };\n",
    ),
    "a.php": ("PHP", '<?php\necho "hello";\n'),
    "a.properties": (
        "keys and values",
        "# comment\nmenu.open=Open the file\nmenu.close=Close the file\nmenu.exit=Exit\n",
    ),
    "a.rst": ("reStructuredText", "Title\n=====\n\n.. note:: this is\n\nSome text here.\n"),
    "a.sbv": ("subtitles", "0:00:01.000,0:00:02.000\nHello there\n"),
    "a.sh": ("script", "#!/bin/bash\nset -e\necho hello\n"),
    "a.strings": (
        "keys and values",
        '/* Menu */\n"open" = "Open the file";\n"close" = "Close the file";\n',
    ),
    "a.svg": (
        "XML",
        '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"><rect/></svg>\n',
    ),
    "a.toml": ("keys and values", '[project]\nname = "x"\nversion = "1.0"\n'),
    "a.yaml": (
        "YAML",
        "---\n"
        "name: build\n"
        "on: [push]\n"
        "jobs:\n"
        "  test:\n"
        "    runs-on: ubuntu-latest\n"
        "    steps:\n"
        "      - uses: actions/checkout@v4\n",
    ),
    "app.ts": (
        "TypeScript",
        "import { Component } from '@angular/core';\n"
        "\n"
        "/** A widget that shows the weather. */\n"
        "@Component({ selector: 'app-weather', templateUrl: './weather.html' })\n"
        "export class WeatherComponent {\n"
        '  private readonly name: string = "Berlin";\n'
        "  constructor(private http: HttpClient) {}\n"
        "  public load(): void {\n"
        "    this.http.get<Weather>(`/api/${this.name}`).subscribe((data) => {\n"
        "      console.log(data);\n"
        "    });\n"
        "  }\n"
        "}\n",
    ),
    "chap.tex": (
        "LaTeX",
        "% chapter two\n"
        "\\chapter{The second}\n"
        "\\label{sec:two}\n"
        "This is the text of the chapter, which has \\textbf{bold} words and\n"
        "a citation \\cite{knuth84}. We go on.\n",
    ),
    "en.yml": (
        "YAML",
        "en:\n"
        '  hello: "Hello world"\n'
        "  menu:\n"
        "    open: Open the file\n"
        "    close: Close the file\n",
    ),
    "m.py": (
        "Python",
        '"""A module of things."""\n'
        "import os\n"
        "from pathlib import Path\n"
        "\n"
        "def main(argv):\n"
        "    for name in argv:\n"
        "        print(name)\n"
        "\n"
        'if __name__ == "__main__":\n'
        "    main([])\n",
    ),
    "p.tex": (
        "LaTeX",
        "\\documentclass[11pt]{article}\n"
        "\\usepackage[utf8]{inputenc}\n"
        "\\title{A paper}\n"
        "\\begin{document}\n"
        "\\maketitle\n"
        "\\section{Introduction}\n"
        "We show that $x^2$ is \\emph{convex}.\n"
        "\\end{document}\n",
    ),
    "strings.xml": (
        "XML",
        "<resources>\n"
        '    <string name="app_name">My App</string>\n'
        '    <string name="hello">Hello</string>\n'
        "</resources>\n",
    ),
    "types.ts": (
        "TypeScript",
        "export interface User {\n"
        "  id: number;\n"
        "  name: string;\n"
        "}\n"
        "export type Id = string | number;\n",
    ),
    "x.tsx": (
        "TypeScript",
        'import React from "react";\n'
        "\n"
        "export default function App({ name }: Props) {\n"
        "  const [count, setCount] = useState(0);\n"
        "  return (\n"
        '    <div className="app">\n'
        "      <p>Hello {name}, you clicked {count} times</p>\n"
        "    </div>\n"
        "  );\n"
        "}\n",
    ),
}


@pytest.mark.parametrize("name", list(SOURCES))
def test_source_and_markup_are_refused(tmp_path, name):
    """Check any name, and that a remedy is named."""
    kind, text = SOURCES[name]
    for path in (tmp_path / name, tmp_path / "en.txt"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match=kind) as caught:
            list(read_sentences(path))
        assert "; " in str(caught.value)
        with pytest.raises(DataError, match=kind), open_text(path):
            pass


def test_typescript_is_not_tsonga(tmp_path):
    (tmp_path / "app.ts").write_text(SOURCES["app.ts"][1], encoding="utf-8")
    with pytest.raises(DataError, match="TypeScript"):
        guess_format(tmp_path / "app.ts")
    (tmp_path / "news.ts").write_text("Ndzi lava ku famba.\n", encoding="utf-8")
    assert guess_format(tmp_path / "news.ts") == "moses"


def archive():
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("a.txt", "Hello")
    return made.getvalue()


def opened(mimetype):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as file:
        file.writestr("mimetype", mimetype)
    return made.getvalue()


def tar():
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as file:
        file.addfile(tarfile.TarInfo("a.txt"))
    return made.getvalue()


BINARY = {
    "gzip": (gzip.compress(b"Hello"), ".gz"),
    "xz": (lzma.compress(b"Hello"), ".xz"),
    "bzip2": (bz2.compress(b"Hello"), "bunzip2"),
    "zip": (archive(), "unzip"),
    "tar": (tar(), "tar -xf"),
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(20), "7z x"),
    "OpenDocument": (opened("application/vnd.oasis.opendocument.text"), "pandoc"),
    "epub": (opened("application/epub+zip"), "pandoc"),
    "RTF": (b"{\\rtf1\\ansi Hello}", "pandoc"),
    "PDF": (b"%PDF-1.7\n", "pdftotext"),
    "Office": (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "pandoc"),
    "SQLite": (b"SQLite format 3\0", "sentence"),
    "image": (b"GIF89a\1\0\1\0", "use a text file"),
    "binary": (bytes(range(32)) * 4, "iconv"),
}


@pytest.mark.parametrize("name", list(BINARY))
def test_binary_files_are_refused_with_their_remedy(name):
    content, remedy = BINARY[name]
    kind = find_kind(content, ".txt")
    assert name in kind.name
    assert remedy in kind.remedy
    assert not kind.is_text


PROSE = [
    "To import a module, write import os.\nThen call os.getcwd() to see where you are.\n"
    "The result is a string.\nfor example, this works:\n    print(os.getcwd())\nThat is all.\n",
    "Use \\section{Title} to begin a section.\nThe command \\emph{x} is for emphasis.\nEasy.\n",
    "Tom: Hello.\nAnna: Hi, how are you?\nTom: I am fine; thanks,\nAnna: Good.\n",
    "One day,\nwhen all was still;\nthe sea, the hill,\nlay far away.\n",
    "x = 5\nThen the value of x is five.\nThis is an equation, not a program.\nOK?\n",
    "<i>Hello there.</i>\n<i>How are you?</i>\n<b>Fine.</b>\n",
    "SELECT YOUR LANGUAGE\nCREATE A NEW ACCOUNT\nSET THE DATE\nFROM HERE TO THERE\n",
    "const is a word of C.\nvar is one of JavaScript.\nfunction is one;\nreturn to sender.\n",
    "# 1 song\n# 2 songs\nclass is over, everybody goes home\nif so, then do this:\nreturn home.\n",
    "int main(void) {\treturn 0;\nint main(void) {\treturn 0;\nif (x) {\twenn (x) {\n}\t}\n",
    "Haus = house\nHund = dog\nKatze = cat\nBaum = tree\n",
    "menu: a list of dishes\nbill: what you pay\ntip: what you give\n",
    "[Music]\nHello.\n[Applause]\nThank you all.\n",
    "hello\nworld\nbuild\n---\nname\n",
    "- One.\n- Two.\n- Three.\n",
    "1. One (1);\n2. Two (2);\n3. Three (3);\n",
    "@user thanks!\n@other see you\n#fun is here\n@user bye\n",
    "(Laughter)\n(Applause)\nThank you.\n(Music)\n",
    "}\n{\nHello\nthere, friend\nof mine\n",
    "",
    "\n",
    "Hi",
]


@pytest.mark.parametrize("text", PROSE)
def test_ordinary_text_is_not_refused(text):
    assert find_kind(text.encode(), ".txt") is None


def test_long_hostile_lines_are_looked_at_in_time():
    import time

    for line in ("_" * 4096, "a." * 2048, "<a " + 'b="c" ' * 600, "import " * 500, "f(" * 2000):
        began = time.perf_counter()
        find_kind(f"{line}\n{line}\n{line}\n{line[:400]}\n{line[:490]}\n".encode(), ".txt")
        assert time.perf_counter() - began < 2
