from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.storage import limits
from interlingua.storage.json_text import (
    _MAX_DEPTH,
    MAX_DIGITS,
    load_json,
    parse_json,
    parse_json_value,
    read_json_text,
)

GOOD = [
    "1",
    '"\\u00e9"',
    '{"a": [1, 2.5, null, true]}',
    '"\\ud83d\\ude00"',
    "[" * 150 + "]" * 150,
    "9" * MAX_DIGITS,
]


@pytest.mark.parametrize("text", GOOD)
def test_good_json_is_what_python_reads(text):
    assert parse_json(text) == json.loads(text)
    assert parse_json_value(f"x{text} ", 1) == (json.loads(text), 1 + len(text))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ("[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("[" * (_MAX_DEPTH + 1) + "]" * (_MAX_DEPTH + 1), "nested too deeply"),
        ('{"a":' * 5000 + "1" + "}" * 5000, "nested too deeply"),
        ("9" * (MAX_DIGITS + 1), "digits"),
        ("9" * 10_000, "digits"),
        ('"\\ud800"', "incomplete character"),
        ('{"a": ["\\uDFFF"]}', "incomplete character"),
        ('{"\\ud800": 1}', "incomplete character"),
        ("{", "Expecting"),
    ],
)
def test_json_that_can_not_be_used_is_a_value_error(text, reason, tmp_path):
    with pytest.raises(ValueError, match=reason):
        parse_json(text)
    with pytest.raises(ValueError, match=reason):
        parse_json_value(text, 0)
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(DataError, match=r"a\.json"):
        load_json(tmp_path / "a.json")


def test_a_file_is_read_with_its_mark_and_bad_bytes_have_a_line(tmp_path):
    (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert load_json(tmp_path / "a.json") == {"a": 1}
    (tmp_path / "a.json").write_bytes(b'{\n"a": "\xff"}')
    with pytest.raises(DataError, match=r"a\.json:2: not UTF-8"):
        load_json(tmp_path / "a.json")


def test_a_device_that_never_ends_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "MAX_DOCUMENT_BYTES", 1 << 22)
    with pytest.raises(DataError, match=r"/dev/zero: .*4 MiB"):
        read_json_text("/dev/zero")
