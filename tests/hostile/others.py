"""Texts, arrays, training files and results that a stranger may send."""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import zipfile
from collections.abc import Callable

import numpy as np

from tests.hostile.bitexts import DIGITS, GROWN, LONG, nested

TEXTS: dict[str, bytes] = {
    "long.de.txt": b"de1\n" + b"x" * LONG,
    "option.de.txt": b"de1\n" + b"x" * 200_000,
    "line.de.txt.gz": gzip.compress(b"\0" * LONG),
    "growth.de.txt.gz": gzip.compress(b"de1 de2\n" * (GROWN // 8)),
    "cut.de.txt.gz": gzip.compress(b"de1 de2\n" * 1000)[:-15],
    "cut.de.txt.xz": lzma.compress(b"de1 de2\n" * 1000)[:-15],
    "bytes.de.txt": b"de1\n\xff\n",
}


def npy(
    head: str, *, version: tuple[int, int] = (1, 0), body: bytes = b"\0" * 64
) -> Callable[[], bytes]:
    """Build a ``.npy`` file with this text as its head."""
    text = head.encode() + b"\n"
    size = struct.pack("<H", len(text)) if version == (1, 0) else struct.pack("<I", len(text))
    return lambda: b"\x93NUMPY" + bytes(version) + size + text + body


def growing() -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, a=np.zeros((GROWN,), np.int8))
    return out.getvalue()


def packed(content: bytes) -> Callable[[], bytes]:
    def made() -> bytes:
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w") as file:
            file.writestr("a.npy", content)
        return out.getvalue()

    return made


SHAPE = "{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}"
ARRAYS: dict[str, Callable[[], bytes]] = {
    "syntax.npy": npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2"),
    "not-a-dict.npy": npy("[1, 2]"),
    "keys.npy": npy("{'descr': '<f4'}"),
    "huge.npy": npy(SHAPE.format(descr="'<f4'", shape="(2, 10000000000000000000)")),
    "digits.npy": npy(SHAPE.format(descr="'<f4'", shape=f"(2, {DIGITS})")),
    "below-zero.npy": npy(SHAPE.format(descr="'<f4'", shape="(-2, -2)")),
    "object.npy": npy(SHAPE.format(descr="'|O'", shape="(2, 2)")),
    "descr.npy": npy(SHAPE.format(descr="[('a', '<f4'), 5]", shape="(2, 2)")),
    "unknown.npy": npy(SHAPE.format(descr="'<q9'", shape="(2, 2)")),
    "text-shape.npy": npy(SHAPE.format(descr="'<f4'", shape="'22'")),
    "scalar.npy": npy(SHAPE.format(descr="'<f4'", shape="()")),
    "deep.npy": npy("(" * 4000),
    "version.npy": npy("{}", version=(9, 9)),
    "empty.npy": lambda: b"\x93NUMPY",
    "short.npy": npy(SHAPE.format(descr="'<f4'", shape="(2, 2000)"), body=b""),
    "growing.npz": growing,
    "syntax.npz": packed(npy("{'descr'")()),
    "cut.npz": lambda: packed(npy("{}")())()[:-30],
}

LABELED: dict[str, bytes] = {
    "nli-deep.jsonl": nested("[", "]").encode(),
    "nli-surrogate.jsonl": b'{"sentence1": "\\ud800", "sentence2": "b", "gold_label": "neutral"}\n',
    "nli-digits.jsonl": f'{{"sentence1": "a", "sentence2": "b", "gold_label": {DIGITS}}}\n'.encode(),  # noqa: E501
    "nli-list.jsonl": b"[1]\n",
    "nli-language.jsonl": b'{"sentence1": "a", "sentence2": "b", "gold_label": "neutral",'
    b' "language": [1]}\n',
    "nli-long.tsv": b"a\tb\tneutral\n" + b"x" * LONG,
    "nli-bytes.tsv": b"a\tb\tneutral\n\xff\n",
    "ir-deep.json": (nested("[", "]")).encode(),
    "ir-deep-object.json": ('{"data": ' + nested("[", "]") + "}").encode(),
    "ir-number.json": b'{"data": 5}',
    "ir-dpr.json": b'[{"question": 5}]',
    "ir-surrogate.json": b'[{"question": "\\ud800", "positive_ctxs": [], "hard_negative_ctxs":'
    b" []}]",
    "ir-long.json": b'[{"question": "' + b"x" * (2 * LONG),
    "ir-deep.jsonl": nested('{"query":', "}", "1").encode(),
}
RESULTS: dict[str, bytes] = {
    "deep": nested("[", "]").encode(),
    "digits": f'{{"scores": {{"test": [{{"main_score": {DIGITS}}}]}}, "format": {DIGITS}}}'.encode(),  # noqa: E501
    "list": b"[1]",
    "number": b"5",
    "empty": b"",
    "bytes": b"\xff\xfe",
    "surrogate": b'{"task_name": "\\ud800", "format": "\\udc00"}',
    "scores": b'{"task_name": "x", "scores": {"test": [5]}, "interlingua": {}, "format": []}',
    "none": b'{"scores": {}, "format": "interlingua-calibration-2", "pairs": [1]}',
}
