"""Records: version, damage and what is no record at all are one line each that names the remedy."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path

import pytest

from interlingua.errors import DataError
from interlingua.storage import formats
from interlingua.storage.formats import Format
from interlingua.storage.record import (
    RecordError,
    checksum_of,
    fault_of,
    holds_record,
    read_record,
    write_record,
)

THING = Format("interlingua-thing", 3, "make it again")
OPEN = Format("interlingua-thing", 3, "make it again", is_sealed=False)
CONTENT = {"a": 1, "b": (2.5, "x"), 10: None, "c": Path("d/e")}
READ = {"a": 1, "b": [2.5, "x"], "10": None, "c": "d/e"}


@pytest.mark.parametrize("format", [THING, OPEN])
def test_what_was_written_is_read(tmp_path, format):
    write_record(tmp_path / "thing.json", format, CONTENT)
    assert read_record(tmp_path / "thing.json", format) == READ
    assert holds_record(tmp_path / "thing.json", format)


FORMATS = [value for value in vars(formats).values() if isinstance(value, Format)]


def test_every_format_has_a_name_of_its_own():
    assert len({format.name for format in FORMATS}) == len(FORMATS)
    assert all(format.is_named_by(format.tag) for format in FORMATS)


@pytest.mark.parametrize("format", FORMATS, ids=lambda format: format.name)
def test_another_version_of_every_format_is_one_line(tmp_path, format):
    other = Format(format.name, format.version + 1, "", is_sealed=format.is_sealed)
    write_record(tmp_path / "r.json", other, {})
    with pytest.raises(RecordError, match="another version") as caught:
        read_record(tmp_path / "r.json", format)
    assert str(caught.value).endswith(format.remedy)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "format", [one for one in FORMATS if one.is_sealed], ids=lambda format: format.name
)
def test_no_flipped_bit_of_a_record_goes_unnoticed(tmp_path, format):
    path = tmp_path / "thing.json"
    write_record(path, format, CONTENT)
    content = path.read_bytes()
    for place in range(len(content) - 1):
        path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        # A flipped bit of white space may leave JSON of the same content.
        with contextlib.suppress(RecordError):
            assert read_record(path, format) == READ


@pytest.mark.parametrize("length", [0, 1, 20, 60])
def test_a_record_that_was_cut_is_refused(tmp_path, length):
    path = tmp_path / "thing.json"
    write_record(path, THING, CONTENT)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(RecordError, match=r"thing\.json: .*again"):
        read_record(path, THING)


@pytest.mark.parametrize(
    "text", ["", "[]", "3", "no json", "[" * 5000, '{"format": 3}', '{"format": "interlingua-3"}']
)
def test_what_is_no_record(tmp_path, text):
    path = tmp_path / "thing.json"
    path.write_text(text)
    assert not holds_record(path, THING)
    with pytest.raises(RecordError, match="thing"):
        read_record(path, THING)


def test_another_version_names_both_and_the_remedy(tmp_path):
    path = tmp_path / "thing.json"
    write_record(path, Format("interlingua-thing", 2, ""), CONTENT)
    assert holds_record(path, THING)
    with pytest.raises(
        RecordError, match=r"interlingua-thing-3, .* interlingua-thing-2.*; make it"
    ):
        read_record(path, THING)
    with pytest.raises(DataError, match=r"; elsewhere$"):
        read_record(path, THING, remedy="elsewhere")


def test_a_name_that_begins_with_another_is_another(tmp_path):
    write_record(tmp_path / "a.json", Format("interlingua-thing-two", 3, ""), {})
    assert not holds_record(tmp_path / "a.json", THING)


def test_a_missing_record_says_so(tmp_path):
    assert not holds_record(tmp_path / "absent.json", THING)
    with pytest.raises(RecordError) as caught:
        read_record(tmp_path / "absent.json", THING)
    assert caught.value.is_missing


def test_a_folder_in_place_of_a_record(tmp_path):
    with pytest.raises(RecordError) as caught:
        read_record(tmp_path, THING)
    assert not caught.value.is_missing


def test_bytes_that_are_not_utf8(tmp_path):
    (tmp_path / "thing.json").write_bytes(b'{"format": "\xff"}')
    assert not holds_record(tmp_path / "thing.json", THING)
    with pytest.raises(RecordError, match="UTF-8"):
        read_record(tmp_path / "thing.json", THING)


def test_a_checksum_leaves_itself_out():
    record = {"b": 1, "a": [2]}
    assert checksum_of(record) == hashlib.sha256(b'{"a": [2], "b": 1}').hexdigest()
    assert checksum_of(record | {"checksum": "x"}) == checksum_of(record)
    sealed = json.loads(json.dumps({"format": THING.tag, "checksum": "x"}))
    assert fault_of(sealed, THING)
    assert not fault_of(sealed, OPEN)
