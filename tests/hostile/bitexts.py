"""Bitexts that a stranger may send: each name is a file, made by a function that writes it into a
folder."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import struct
import zipfile
from pathlib import Path

DIGITS = "9" * 400
DEEP = 100_000
LONG = 1_200_000
"""Characters: more than the tests allow a line to have."""
GROWN = 1 << 19
"""Bytes: more than the tests let a small file grow to."""
PO = (
    'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset={charset}\\n"\n"Language: de\\n"\n'
    '"Plural-Forms: nplurals=2; plural={plural};\\n"\n\n'
    'msgid "one cat"\nmsgid_plural "many cats"\nmsgstr[0] "eine Katze"\nmsgstr[1] "viele Katzen"\n'
)
TMX = (
    '<?xml version="1.0" encoding="{encoding}"?><tmx version="1.4"><header srclang="en"/><body><tu>'
    '<tuv xml:lang="en"><seg>{inner}</seg></tuv><tuv'
    ' xml:lang="de"><seg>Katze</seg></tuv></tu></body></tmx>'
)


XLIFF = (
    '<?xml version="1.0" encoding="{encoding}"?><xliff version="1.2"><file source-language="en"'
    ' target-language="de"><body><trans-unit id="1"><source>{inner}</source><target>Katze</target>'
    "</trans-unit></body></file></xliff>"
)
XLIFF_2 = (
    '<xliff version="2.0" srcLang="en" trgLang="de"><file id="f"><unit id="1"><segment>'
    "<source>{inner}</source><target>Katze</target></segment></unit></file></xliff>"
)


def po(*, charset: str = "UTF-8", plural: str = "n!=1") -> bytes:
    return PO.format(charset=charset, plural=plural).encode()


def mo(strings: list[tuple[int, int]], body: bytes) -> bytes:
    """Build a compiled catalogue with these (length, place) in both of its tables."""
    table = b"".join(struct.pack("<2I", *string) for string in strings)
    head = struct.pack("<7I", 0x950412DE, 0, len(strings), 28, 28, 0, 0)
    return head + table + body


def tmx(*, encoding: str = "UTF-8", inner: str = "cat") -> bytes:
    return TMX.format(encoding=encoding, inner=inner).encode()


def xliff(*, encoding: str = "UTF-8", inner: str = "cat") -> bytes:
    return XLIFF.format(encoding=encoding, inner=inner).encode()


def bomb(root: str) -> bytes:
    """Build an element with entities that expand to 10^14 characters."""
    entities = b"".join(
        f'<!ENTITY {new} "{f"&{old};" * 100}">'.encode()
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
    element = root.format(inner="&h;", encoding="UTF-8").rpartition("?>")[2]
    return b'<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">' + entities + b"]>" + element.encode()


def workbook() -> bytes:
    """Build a sheet of one pair."""
    import openpyxl

    made = openpyxl.Workbook()
    made.active.append(["source", "target"])
    made.active.append(["eins", "one"])
    out = io.BytesIO()
    made.save(out)
    return out.getvalue()


def archive(
    *, flag: int = 0, method: int | None = None, members: int = 0, text: bytes = b"one\n"
) -> bytes:
    """Build a zip of two aligned members, and of empty ones.

    With another flag or compression in its heads.
    """
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("a.de-en.de", text)
        file.writestr("a.de-en.en", text)
        for number in range(members):
            file.writestr(f"x{number}.y{number}", b"")
    content = bytearray(out.getvalue())
    for mark, flags_at, method_at in ((b"PK\3\4", 6, 8), (b"PK\1\2", 8, 10)):
        at = -1
        while (at := content.find(mark, at + 1)) >= 0:
            content[at + flags_at] |= flag
            if method is not None:
                content[at + method_at] = method
    return bytes(content)


def row(**values: object) -> bytes:
    return (json.dumps({"source": "eins", "target": "one", **values}) + "\n").encode()


def nested(begin: str, end: str, middle: str = "") -> str:
    return begin * DEEP + middle + end * DEEP


QT = (
    "<!DOCTYPE TS><TS version='2.1' language='de'><context><name>A</name><message>"
    "<source>cat</source><translation>Katze</translation></message></context></TS>"
)
SRT = b"1\n00:00:01,000 --> 00:00:02,000\nKatze\n"
ANDROID = '<resources><string name="a">{inner}</string></resources>'
TWO_FILES: dict[str, bytes] = {
    "bytes.de.srt": SRT.replace(b"Katze", b"\xff\xfe"),
    "nul.de.srt": SRT.replace(b"Katze", b"\0"),
    "times.de.srt": SRT.replace(b"00:", b"xx:"),
    "empty.de.vtt": b"WEBVTT\n",
    "long.de.srt": SRT + b"x" * LONG,
    "bytes.de.strings": b'"a" = "\xff";',
    "nul.de.strings": b'"a" = "b\0";',
    "words.de.strings": b"no entry here",
    "deep.de.arb": nested('{"a":', "}", "1").encode(),
    "cut.de.arb": b'{"a": "b',
    "list.de.arb": b'["a"]',
    "surrogate.de.arb": b'{"a": "\\ud800"}',
    "digits.de.arb": f'{{"a": {DIGITS}}}'.encode(),
    "bytes.de.arb": b'{"a": "\xff"}',
    "deep.de.xml": ANDROID.format(inner=nested("<b>", "</b>")).encode(),
    "cut.de.xml": ANDROID.format(inner="Katze").encode()[:-20],
    "bomb.de.xml": bomb(ANDROID),
    "bytes.de.xml": ANDROID.format(inner="Katze").encode().replace(b"tze", b"\xff"),
    "not.de.xml": b"<html></html>",
}
"""Files of which a bitext needs two: each must be refused, with a good one in English."""
GOOD: dict[str, bytes] = {
    ".srt": SRT,
    ".vtt": b"WEBVTT\n\n00:01.000 --> 00:02.000\ncat\n",
    ".strings": b'"a" = "cat";',
    ".arb": b'{"a": "cat"}',
    ".xml": ANDROID.format(inner="cat").encode(),
}


def write_two(name: str, folder: Path) -> str:
    """Write one of the files that need another, and a good one; return both with a comma."""
    path = folder / name
    path.write_bytes(TWO_FILES[name])
    good = folder / f"good.en{path.suffix}"
    good.write_bytes(GOOD[path.suffix])
    return f"{path},{good}"


NOT_UTF8 = b"# gr\xfcn\n"
"""Else a catalogue is read as what it is, whatever it declares."""
LONG_LINE = b"a\tb\n" + b"x" * LONG
FILES: dict[str, bytes] = {
    "surrogate.de-en.jsonl": b'{"source": "eins \\ud800", "target": "one"}\n',
    "surrogate-key.de-en.jsonl": b'{"source": "eins", "target": "one", "source_language":'
    b' "\\udfff"}\n',
    "deep.de-en.jsonl": nested("[", "]").encode(),
    "deep-object.de-en.jsonl": nested('{"a":', "}", "1").encode(),
    "digits.de-en.jsonl": f'{{"source": "eins", "target": "one", "score": {DIGITS}}}\n'.encode(),
    "many-digits.de-en.jsonl": f'{{"source": "eins", "target": "one", "score": {"9" * 5000}}}\n'.encode(),  # noqa: E501
    "infinite.de-en.jsonl": b'{"source": "eins", "target": "one", "score": 1e999}\n',
    "nan.de-en.jsonl": b'{"source": "eins", "target": "one", "score": NaN}\n',
    "list.de-en.jsonl": b"[1, 2]\n",
    "number-language.jsonl": row(source_language=7, target_language=[1]),
    "long-language.jsonl": row(source_language="x" * 1_000_000, target_language="en"),
    "number-text.de-en.jsonl": row(source=5),
    "translation.jsonl": b'{"translation": {"de": 5, "en": null}}\n',
    "translation-names.jsonl": b'{"translation": {"nolanguage": "a", "en": "b"}}\n',
    "digits.de-en.tsv": f"{DIGITS}\teins\tone\n".encode(),
    "nan.de-en.tsv": b"nan\teins\tone\n",
    "long.de-en.tsv": LONG_LINE,
    "bytes.de-en.tsv": b"eins\tone\n\xff\xfe\t\x80\n",
    "columns.de-en.tsv": b"a\tb\nc\n",
    "long.de-en.csv": LONG_LINE,
    "bytes.de-en.csv": b"eins,one\n\xff\xfe,\x80\n",
    "columns.de-en.csv": b"a,b\nc\n",
    "quote.de-en.csv": b'source,target\n"a,b\nc,d\n',
    "quotes.de-en.csv": b'a,"b\n' * 2001,
    "nan.de-en.csv": b"score,source,target\nnan,a,b\n",
    "names.csv": b"a,b,c,d\n",
    "not.de-en.xlsx": b"no archive",
    "cut.de-en.xlsx": b"PK\3\4" + b"\0" * 60,
    "zip.de-en.xlsx": archive(),
    "encrypted.de-en.xlsx": archive(flag=1),
    "growth.de-en.xlsx": archive(text=b"eins und zwei\n" * (GROWN // 14)),
    "line.de-en.tsv.gz": gzip.compress(b"\0" * LONG),
    "growth.de-en.tsv.gz": gzip.compress((b"x" * 60 + b"\ty\n") * (GROWN // 63)),
    "growth.de-en.tsv.xz": lzma.compress(b"eins\tone\n" * (GROWN // 9)),
    "cut.de-en.tsv.gz": gzip.compress(b"eins\tone\n" * 1000)[:-20],
    "broken.de-en.tsv.gz": gzip.compress(b"eins\tone\n" * 1000)[:40] + b"\xff" * 40,
    "cut.de-en.tsv.xz": lzma.compress(b"eins\tone\n" * 1000)[:-20],
    "not.de-en.tsv.zst": b"no frame",
    "zero.de.po": po(plural="n/0"),
    "modulo-zero.de.po": po(plural="n%0"),
    "negative.de.po": po(plural="0-n"),
    "undefined.de.po": po(charset="undefined") + NOT_UTF8,
    "punycode.de.po": po(charset="punycode") + NOT_UTF8 + b"# " + b"abc-" * 100_000,
    "idna.de.po": po(charset="idna") + NOT_UTF8,
    "unknown.de.po": po(charset="no-such-charset") + NOT_UTF8,
    "escape.de.po": po(charset="unicode_escape") + NOT_UTF8,
    "quote.de.po": b'msgid "a"\nmsgstr "b\n',
    "overlap.de.mo": mo([(1_000_000, 28 + 8 * 4000)] * 4000, b"x" * 1_000_000),
    "count.de.mo": struct.pack("<7I", 0x950412DE, 0, 2**31, 28, 28, 0, 0),
    "short.de.mo": b"\xde\x12\x04\x95\0",
    "magic.de.mo": b"nothing",
    "utf-7.tmx": tmx(encoding="utf-7"),
    "unknown.tmx": tmx(encoding="no-such-encoding"),
    "deep.tmx": tmx(inner=nested("<a>", "</a>")),
    "deep-open.tmx": tmx(inner="<hi>" * 300),
    "long.tmx": tmx(inner="x" * LONG),
    "cut.tmx": tmx()[:-30],
    "bomb.tmx": b'<!DOCTYPE t [<!ENTITY a "aaaaaaaaaa">'
    + b"".join(
        f'<!ENTITY {new} "{f"&{old};" * 100}">'.encode()
        for old, new in zip("abcdefg", "bcdefgh", strict=True)
    )
    + b"]><tmx><body><tu>&h;</tu></body></tmx>",
    "not.tmx": b"<html></html>",
    "utf-7.xlf": xliff(encoding="utf-7"),
    "deep.xlf": xliff(inner=nested("<g>", "</g>")),
    "deep-open.xliff": xliff(inner="<g>" * 300),
    "long.xlf": xliff(inner="x" * LONG),
    "cut.xlf": xliff()[:-50],
    "cut-2.xlf": XLIFF_2.format(inner="cat").encode()[:-50],
    "bytes.xlf": xliff().replace(b"cat", b"c\xff\xfet"),
    "nul.xlf": b"\0" * 100,
    "bomb.xlf": bomb(XLIFF),
    "bomb-2.xliff": bomb(XLIFF_2),
    "not.xlf": b"<html></html>",
    "empty.xlf": b"",
    "deep.de.ts": f"<TS language='de'><message><source>{nested('<g>', '</g>')}".encode(),
    "cut.de.ts": QT.encode()[:-40],
    "bytes.de.ts": QT.encode().replace(b"Katze", b"\xff\xfe"),
    "bomb.de.ts": bomb(QT.removeprefix("<!DOCTYPE TS>").replace("cat", "{inner}")),
    "language.ts": QT.replace("de", "nolanguage").encode(),
    "alone.de.srt": SRT,
    "alone.de.strings": b'"a" = "b";',
    "alone.de.arb": b'{"a": "b"}',
    "language.xlf": xliff().replace(b'"de"', b'"nolanguage"'),
    "encrypted.zip": archive(flag=1),
    "exotic.zip": archive(method=97),
    "wavpack.zip": archive(method=98),
    "members.zip": archive(members=11_000),
    "growth.zip": archive(text=b"eins und zwei\n" * (GROWN // 14)),
    "line.zip": archive(text=b"x" * LONG),
    "cut.zip": archive()[:-30],
    "broken.zip": archive().replace(b"one\n", b"two\n")[:40] + b"\0" * 60 + archive()[100:],
    "none.zip": archive().replace(b".de", b".qq"),
    "bytes.zip": archive(text=b"\xff\xfe\n"),
    "not.parquet": b"PAR1" + b"\0" * 40 + b"PAR1",
}
"""Everything here must be refused, in one line."""


def write(name: str, folder: Path) -> Path:
    """Write one of the files."""
    path = folder / name
    path.write_bytes(FILES[name])
    return path
