"""The fuzz targets, without atheris: their first inputs, and a fixed number of changes to them."""

from __future__ import annotations

import random

import pytest

from interlingua.config.registry import FORMATS
from tests.hostile.fuzz.readers import LARGEST_FIRST_BYTES, READERS

MUTATIONS = 40


def changed(content: bytes, draw: random.Random) -> bytes:
    """Return the content with some bytes overwritten, doubled or cut out."""
    made = bytearray(content)
    for _ in range(draw.randint(1, 4)):
        at = draw.randrange(len(made) + 1)
        how = draw.randrange(4)
        if how == 0:
            made[at : at + 1] = bytes([draw.randrange(256)])
        elif how == 1:
            made[at:at] = made[at : at + draw.randint(1, 20)]
        elif how == 2:
            del made[at : at + draw.randint(1, 20)]
        else:
            made[at:at] = draw.choice(
                [b"\xff", b"\0", b"[", b'"', b"\\ud800", b"9" * 30, b"-1", b"\n"]
            )
    return bytes(made)


@pytest.fixture(autouse=True)
def small_limits(monkeypatch):
    monkeypatch.setenv("INTERLINGUA_MAX_LINE", "1000000")


@pytest.mark.parametrize("name", list(READERS))
def test_changed_inputs_end_in_errors_of_ours(name, tmp_path):
    target, draw = READERS[name].target(tmp_path), random.Random(name)
    small = [content for content in READERS[name].first if 0 < len(content) < LARGEST_FIRST_BYTES]
    assert small
    for content in [*small, b""]:
        target(content)
    for _ in range(MUTATIONS):
        target(changed(draw.choice(small), draw))


def test_every_format_of_pairs_has_a_target():
    # Moses is lines, as tsv; data sets are read by their own library, in a process of its own kind.
    of = {
        "tsv": "tsv",
        "csv": "csv",
        "xlsx": "xlsx",
        "jsonl": "jsonl",
        "tmx": "tmx",
        "gettext": "po",
        "opus": "zip",
        "moses": "gz",
        "xliff": "xliff",
        "qt": "qt",
        "subtitles": "srt",
        "catalog": "strings",
    }
    assert set(FORMATS) - {"huggingface"} == set(of)
    assert set(of.values()) <= set(READERS)


def test_a_target_lets_other_errors_out(monkeypatch, tmp_path):
    monkeypatch.setattr("interlingua.corpus.formats.tabular.Tsv.read", lambda *_: iter([1 / 0]))
    reader = READERS["tsv"]
    with pytest.raises(ZeroDivisionError):
        reader.target(tmp_path)(reader.first[0])
