"""Detection of a file's kind by its first bytes: documents, archives, markup, subtitles, code.

All other files are plain text. Binary files and markup have known first bytes. Source code is
recognized by its lines: nearly all of them must be statements of one language, and of several
kinds, so that prose that mentions code counts as text.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import NamedTuple

SAVE_AS_TEXT = "save it as plain text (UTF-8), for example with pandoc -t plain"
READ_AS_DOCUMENT = "use `documents`, `index build`, `mine --split` or `align --split` to read"
"""Start of the remedy for a document that was passed to a command for plain text."""
UNPACK = "unpack it, or rename it to end in"
IN_TEXT = "extract the texts, one sentence per line"
GIVE_TEXT = "use a text file"
MOST_CONTROLS = 0.1
"""Minimum share of control characters in a binary file."""
LEAST_LINES = 3
"""Minimum number of lines of source code, unless its start identifies it."""
LEAST_KINDS = 2
"""Minimum number of kinds of statements, as a single one may occur in a text."""
SHARE_OF_CODE = 0.7
LONGEST_LINE = 500
"""Maximum number of characters of a statement; longer lines are text."""
SHARE_OF_SETTINGS = 0.9


class ContentKind(NamedTuple):
    """The kind of a file, and how to handle it."""

    name: str
    remedy: str
    is_text: bool = True
    """True for text in a special format; False for a binary file."""


BINARY = (
    (b"%PDF", "a PDF", f"{READ_AS_DOCUMENT} .pdf; or extract its text, for example with pdftotext"),
    (b"\xd0\xcf\x11\xe0", "an old Office document", SAVE_AS_TEXT),
    (b"{\\rtf", "RTF", SAVE_AS_TEXT),
    (b"\x1f\x8b", "gzip", f"{UNPACK} .gz"),
    (b"\xfd7zXZ", "xz", f"{UNPACK} .xz"),
    (b"\x28\xb5\x2f\xfd", "Zstandard", f"{UNPACK} .zst"),
    (b"BZh91AY&SY", "bzip2", "unpack it: bunzip2"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it: 7z x"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it: unrar x"),
    (b"PAR1", "Parquet", "rename it to end in .parquet"),
    (b"ARROW1", "Arrow", "rename it to end in .arrow"),
    (b"\x93NUMPY", "a NumPy array", "use a file of texts"),
    (b"SQLite format 3", "an SQLite database", IN_TEXT),
    (b"\xde\x12\x04\x95", "a compiled gettext catalogue", "rename it to end in .mo"),
    (b"\x95\x04\x12\xde", "a compiled gettext catalogue", "rename it to end in .mo"),
    (b"\x89PNG", "an image", GIVE_TEXT),
    (b"\xff\xd8\xff", "an image", GIVE_TEXT),
    (b"GIF87a", "an image", GIVE_TEXT),
    (b"GIF89a", "an image", GIVE_TEXT),
    (b"OggS\0", "sound", GIVE_TEXT),
    (b"\x7fELF", "a program", GIVE_TEXT),
    (b"\xff\xfe", "UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8"),
    (b"\xfe\xff", "UTF-16", "convert it to UTF-8: iconv -f UTF-16 -t UTF-8"),
)
"""First bytes -> the kind of the file and its remedy."""
ZIPPED = (
    (b"word/", "a Word document (.docx)", f"{READ_AS_DOCUMENT} .docx; or {SAVE_AS_TEXT}"),
    (
        b"xl/",
        "an Excel workbook (.xlsx)",
        "rename it to end in .xlsx for verbs that read tables, or save it as .csv",
    ),
    (b"ppt/", "a presentation (.pptx)", SAVE_AS_TEXT),
    (
        b"application/epub+zip",
        "an e-book (.epub)",
        f"{READ_AS_DOCUMENT} .epub; or {SAVE_AS_TEXT}",
    ),
    (
        b"application/vnd.oasis.opendocument.text",
        "an OpenDocument text (.odt)",
        f"{READ_AS_DOCUMENT} .odt; or {SAVE_AS_TEXT}",
    ),
    (b"application/vnd.oasis.opendocument", "an OpenDocument file", SAVE_AS_TEXT),
    (b"[Content_Types].xml", "an Office document (.docx, .xlsx, .pptx)", SAVE_AS_TEXT),
)
"""Mark of a zip archive near its start -> the kind of the file and its remedy."""
HTML = ContentKind(
    "HTML", f"{READ_AS_DOCUMENT} .html; or extract its text, for example with pandoc -t plain"
)
_MARKDOWN = ContentKind(
    "Markdown", f"{READ_AS_DOCUMENT} .md; or extract its text, for example with pandoc -t plain"
)
JSON = ContentKind(
    "JSON",
    f"{IN_TEXT}, for example with jq -r .text, or rename it to end in .jsonl or .json for"
    " verbs that read these",
)
SUBTITLES = ContentKind("subtitles", f"{IN_TEXT}, without numbers and times")
_LATEX = ContentKind("LaTeX", "extract its text, for example with pandoc -f latex -t plain")
XML = ContentKind("XML", IN_TEXT)
YAML = ContentKind("YAML", IN_TEXT)
SETTINGS = ContentKind("a file of keys and values", "extract the values, one sentence per line")
MARKUP = (
    (re.compile(rb"<!doctype html|<html[\s>]|<head[\s>]|<body[\s>]", re.IGNORECASE), HTML),
    (
        re.compile(rb"(<\?xml[^>]*>\s*)?(<!DOCTYPE TS[^>]*>\s*)?<TS[\s>]|<!DOCTYPE TS"),
        ContentKind(
            "Qt Linguist XML",
            "rename it to end in .ts; `score` and `prepare` read its pairs",
        ),
    ),
    (
        re.compile(rb"(<\?xml[^>]*>\s*)?(<!--.*?-->\s*)?<xliff[\s>]", re.DOTALL),
        ContentKind(
            "XLIFF",
            "rename it to end in .xliff; `score` and `prepare` read its pairs, and `mine` and"
            " `align` with --split read one side",
        ),
    ),
    (
        re.compile(rb"(<\?xml[^>]*>\s*)?(<!DOCTYPE tmx[^>]*>\s*)?<tmx[\s>]"),
        ContentKind(
            "TMX", "rename it to end in .tmx, or name the format for verbs that read pairs"
        ),
    ),
    (
        re.compile(rb"<\?xml[\s>]|<!DOCTYPE\s|<(?!img\b)[a-zA-Z][\w:.-]*\s[^<>]*\bxmlns(:\w+)?="),
        XML,
    ),
    (re.compile(rb"<\?php\b|<\?="), ContentKind("PHP source", IN_TEXT)),
    (re.compile(rb"#!\s*/[^\n]*\n"), ContentKind("a script", IN_TEXT)),
    (
        re.compile(
            rb"\d+\s*\r?\n\d{1,3}:\d\d:\d\d[,.]\d{1,3}\s*-->|WEBVTT|\[Script Info\]"
            rb"|\d:\d\d:\d\d\.\d{3},\d:\d\d:\d\d\.\d{3}\s|\{\d+\}\{\d+\}"
        ),
        SUBTITLES,
    ),
    (
        re.compile(rb'\[\s*\{\s*"|\[\s*"[^"\n]*"\s*[,\]]|\{\s*"[^"\n]{1,100}"\s*:'),
        JSON,
    ),
    (
        re.compile(rb'(#[^\n]*\n|\s)*msgid\s+"[^\n]*\n("[^\n]*\n)*msgstr\s'),
        ContentKind(
            "a gettext catalogue",
            "rename it to end in .po; `score` and `prepare` read its pairs, and `mine` and"
            " `align` with --split read one side",
        ),
    ),
)
"""Starts of text in a special format."""
_HEADING = re.compile(rb"^#{1,6} \S[^\n]*\r?\n\s*\r?$", re.MULTILINE)
"""A Markdown heading that is followed by a blank line."""
_CONTROLS = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")
_LATEX_COMMENT = re.compile(r"\s*%")
_LATEX_BEGINNING = re.compile(
    r"\\(documentclass|documentstyle|usepackage|RequirePackage|begin|chapter|section|subsection"
    r"|part|input|include|newcommand|renewcommand|def|title|author|label|maketitle|appendix)\b"
    r"\*?(\[[^\]]*\])?\{?"
)
_LATEX_LINE = re.compile(
    r"\s*\\(documentclass|usepackage|begin|end|chapter|(sub)*section|input|include|newcommand"
    r"|title|author|maketitle|label|item|caption|bibliography|centering|includegraphics)\b"
)
_TAG_ALONE = re.compile(
    r"<(?!(a|b|br|code|div|em|hr|i|img|input|p|pre|s|span|strong|sub|sup|u)\b)[A-Za-z_][\w.:-]*(\s+[\w.:-]+\s*=\s*(\"[^\"]*\"|'[^']*'))*\s*>"
)
"""An opening tag, except the tags of HTML that occur inside texts."""
_YAML_KEY = re.compile(r"\s*(- )*[a-z_][\w.-]*:\s*(#.*)?")
_YAML_LINE = re.compile(r"\s*(- )*([\w.$/-]{1,40}|\"[^\"]*\"|'[^']*'):(\s.*)?|\s*- \S.*|\s*#.*")
_SETTING = re.compile(r"[\w]*[\w-]*[._-][\w.-]+\s*=\s*\S.*|[\w.-]+\s*=\s*\"[^\"]*\"")
_SECTION = re.compile(r"\[[\w.: \"-]+\]")
_ANY_SETTING = re.compile(r"[\w.-]+\s*=.*|[#;!].*")
_STRINGS_LINE = re.compile(r"\"[^\"]+\"\s*=\s*\"[^\"]*\";|\s*/\*.*\*/|\s*//.*")
_NAME = r"[A-Za-z_$][\w$]*"
_PATH = rf"{_NAME}(\.{_NAME})*"
_CLOSING = r"\s*[\])}]+[\])};,]*( from ['\"].*)?"
_CALL = rf"\s*(await |return |new )*{_PATH}(<.*>)?\(.*[;,{{(\[)]"
_BRACES = (
    _CLOSING,
    r"\s*(//|/\*|\*/|\* ).*|\s*\*",
    r"\s*import\b.*['\"][^'\"]+['\"].*;?|\s*import \{|\s*(import|package|using|use) [\w.:*{}, ]+;",
    rf"\s*(export |declare |default )*(const|let|var|type) ({_NAME}|[\[{{]).*[=;{{(,\[].*",
    r"\s*((export|default|declare|public|private|protected|static|final|abstract|async|override"
    r"|readonly|get|set|pub|virtual|inline|const|unsigned) )*"
    rf"(function|class|interface|enum|namespace|constructor|struct|impl|fn|func|void|{_PATH})"
    r"\b[^.!?]*[{(]",
    r"\s*(public|private|protected|static|readonly|final|const|int|char|void|double|float|bool"
    r"|boolean|string|String|var|let|auto) .*;",
    r"\s*(\} )?(if|for|while|switch|catch|else if) ?\(.*[{;)]|\s*(\} )?(else|try|finally|do) \{",
    r"\s*(return|throw|break|continue|case|default|yield)\b.*[;:({\[]",
    rf"\s*@{_PATH}(\(.*)?",
    _CALL,
    r"\s*[\w.$\[\]]+ ?[-+*/|&]?= ?.*[;{(\[,]",
    rf"\s*['\"]?[\w$-]+['\"]?\??: .*[;,{{(\[]|\s*{_NAME}\??: [\w\[\]<>|. ]+",
    r"\s*module\.exports\b.*|\s*['\"]use strict['\"];",
    r"\s*#\s*(include [<\"].*|define \w+.*|if(n?def)? .*|endif.*|pragma .*)",
    r"\s*</?[A-Za-z][\w.]*(\s[^<>]*)?/?>|\s*<([A-Za-z][\w.]*)[^<>]*>.*</\2>",
    r"\s*package \w+",
)
"""Statements of TypeScript, JavaScript, Java, C and their relatives."""
_PYTHON = (
    rf"import {_PATH}( as \w+)?(, {_PATH})*|from [\w.]+ import .+",
    r"\s*(async )?(def|class) \w+.*[:(]",
    r"\s*(if|for|while|with|elif|except)\b.*:|\s*(else|try|finally):",
    rf"\s*@{_PATH}(\(.*\)?)?",
    rf"\s*{_PATH}(\[.*\])?(: [\w\[\], |.]+)? [-+*/|&]?= \S.*",
    r"\s*(return|raise|yield|assert|del|global|nonlocal)\b.*[^.!?]|\s*return|\s*(pass|break|continue)",
    rf"\s*{_PATH}\(.*[\]),(\[{{]",
    r"\s*#.*",
    r'\s*[rf]?("""|\'\'\').*',
    r"\s*[\])}]+,?",
    r"\s*\w+=.*,|\s*['\"].*['\"](: .*)?,",
)
_CSS = (
    r"\s*[.#@&*:]?[\w.#:>,\s\[\]=\"'()*+~^$|-]+\{",
    r"\s*(--)?[a-z-]+\s*:\s*[^;]+;",
    _CLOSING,
    r"\s*[^{}]+\{[^{}]*:[^{}]*\}+",
    r"\s*(/\*|\*/|\* ).*|\s*@(import|charset)\b.*;|\s*[.#]?[\w.#:-]+,",
)
_SQL = (
    r"\s*(CREATE|DROP|ALTER) (OR REPLACE )?(TABLE|INDEX|VIEW|DATABASE|UNIQUE|TYPE|SCHEMA)\b.*",
    r"\s*INSERT (OR \w+ )?INTO\b.*|\s*VALUES ?\(.*",
    r"\s*(SELECT|FROM|WHERE|UPDATE|DELETE FROM|SET|BEGIN|COMMIT|LEFT JOIN|JOIN|GROUP BY)\b.*",
    r"\s*(--).*",
    r"\s*\(.*\)[,;]|\s*[`\"]?\w+[`\"]? (INT|INTEGER|TEXT|VARCHAR|BIGINT|BOOLEAN|REAL|DATE)\b.*",
    r"\s*\)+;?",
)
_BIB = (r"@\w+\{[\w:./+-]+,", r"\s*\w+\s*=\s*[{\"].*[}\"],?", r"\}")
_CODE = (
    (ContentKind("Python source", IN_TEXT), tuple(map(re.compile, _PYTHON))),
    (ContentKind("a style sheet (CSS)", IN_TEXT), tuple(map(re.compile, _CSS))),
    (
        ContentKind("source code (TypeScript, JavaScript, Java, C ...)", IN_TEXT),
        tuple(map(re.compile, _BRACES)),
    ),
    (ContentKind("SQL", IN_TEXT), tuple(map(re.compile, _SQL))),
    (ContentKind("BibTeX", IN_TEXT), tuple(map(re.compile, _BIB))),
)


def find_kind(head: bytes, suffix: str, *, is_json: bool = False) -> ContentKind | None:
    """Return the kind of a file; None for plain text.

    Args:
        head: its first bytes, unpacked.
        suffix: suffix of its name, in lower case.
        is_json: JSON is expected; then the result is None for JSON too.
    """
    found = _binary_kind(head)
    if found is not None:
        return found
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for pattern, kind in MARKUP:
        if not pattern.match(text):
            continue
        if kind is JSON and (is_json or _is_json_in_a_sentence(text)):
            continue
        return kind
    if suffix in (".html", ".htm", ".xhtml"):
        return HTML
    if suffix in (".md", ".markdown") or len(_HEADING.findall(head)) > 1:
        return _MARKDOWN
    if is_json:
        return None
    return _kind_of_lines(_whole_lines(head))


def _binary_kind(head: bytes) -> ContentKind | None:
    """Return the kind of a file that is no text."""
    for start, name, remedy in BINARY:
        if head.startswith(start):
            return ContentKind(name, remedy, is_text=False)
    if head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        for mark, name, remedy in ZIPPED:
            if mark in head:
                return ContentKind(name, remedy, is_text=False)
        return ContentKind("a zip archive", "unpack it: unzip", is_text=False)
    if head[257:262] == b"ustar":
        return ContentKind("a tar archive", "unpack it: tar -xf", is_text=False)
    is_wide = head.count(b"\0") * 4 > len(head)
    if is_wide or len(_CONTROLS.findall(head)) > MOST_CONTROLS * len(head):
        remedy = "if it is text, convert it: iconv -f UTF-16 -t UTF-8"
        return ContentKind("UTF-16 or binary", remedy, is_text=False)
    return None


def _is_json_in_a_sentence(text: bytes) -> bool:
    """Return whether the text starts with a JSON value that words follow in the same line."""
    decoded = text.decode("utf-8", errors="replace")
    try:
        _, end = json.JSONDecoder().raw_decode(decoded)
    except (ValueError, RecursionError):
        return False
    return bool(decoded[end:].partition("\n")[0].strip(" \t\r,"))


def _whole_lines(head: bytes) -> list[str]:
    """Return the lines that are not blank, without the last one, which the head may cut."""
    text = head.removeprefix(b"\xef\xbb\xbf").decode("utf-8", errors="replace")
    lines = text.split("\n")
    if len(lines) > 1:
        lines.pop()
    return [line.rstrip() for line in lines if line.strip()]


def _kind_of_lines(lines: list[str]) -> ContentKind | None:
    """Return the kind of a text by the form of its lines; None for plain text."""
    if _is_latex(lines):
        return _LATEX
    if any(re.match(r"\.\. [\w-]+::", line) for line in lines):
        return ContentKind(
            "reStructuredText", "extract its text, for example with pandoc -f rst -t plain"
        )
    if len(lines) < LEAST_LINES:
        return None
    is_tag = _TAG_ALONE.fullmatch(lines[0]) is not None
    if is_tag and sum(line.lstrip().startswith("<") for line in lines) >= 0.8 * len(lines):
        return XML
    if _is_settings(lines):
        return SETTINGS
    if _is_yaml(lines):
        return YAML
    met, kind = max(
        ((_code_lines(lines, patterns), kind) for kind, patterns in _CODE), key=lambda pair: pair[0]
    )
    if met >= max(LEAST_LINES, SHARE_OF_CODE * len(lines)):
        return kind
    return None


def _is_latex(lines: list[str]) -> bool:
    """Return whether the text starts with a command of LaTeX, or has many."""
    own = [line for line in lines if not _LATEX_COMMENT.match(line)]
    if own and _LATEX_BEGINNING.match(own[0]):
        return True
    commands = sum(_LATEX_LINE.match(line) is not None for line in own)
    return commands >= LEAST_LINES and commands > 0.1 * len(own)


def _is_settings(lines: list[str]) -> bool:
    """Return whether the lines are keys and values, in sections or with compound keys."""
    if not _most(lines, SHARE_OF_SETTINGS, _ANY_SETTING, _SECTION):
        return _most(lines, SHARE_OF_SETTINGS, _STRINGS_LINE)
    if any(map(_SECTION.fullmatch, lines)):
        return True
    return _most([line for line in lines if line[0] not in "#;!"], 0.5, _SETTING)


def _is_yaml(lines: list[str]) -> bool:
    """Return whether the lines are keys in lower case, some with indented lines below.

    A dialogue also has names in front of colons, but no indented lines below them.
    """
    own = lines[1:] if lines[0] == "---" else lines
    if not _most(own, SHARE_OF_SETTINGS, _YAML_LINE):
        return False
    for line, below in itertools.pairwise(own):
        if _YAML_KEY.fullmatch(line) and _depth(below) > _depth(line):
            return True
    return False


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip(" -"))


def _most(lines: list[str], share: float, *patterns: re.Pattern[str]) -> bool:
    """Return whether at least this share of the lines match one of the patterns."""
    met = 0
    for line in lines:
        if len(line) <= LONGEST_LINE:
            met += any(pattern.fullmatch(line) for pattern in patterns)
    return bool(lines) and met >= share * len(lines)


def _code_lines(lines: list[str], patterns: tuple[re.Pattern[str], ...]) -> int:
    """Return the number of lines that are statements; 0 if all are of the same kind."""
    met = 0
    kinds = set()
    for line in lines:
        # A table has tabs between its cells; code has tabs only at the start of a line.
        if "\t" in line.lstrip() or len(line) > LONGEST_LINE:
            continue
        for number, pattern in enumerate(patterns):
            if pattern.fullmatch(line):
                met += 1
                kinds.add(number)
                break
    return met if len(kinds) >= LEAST_KINDS else 0
