"""One damaged file for each reader, in process; tests/hostile has hundreds, and all verbs."""

from __future__ import annotations

import pytest

from interlingua.errors import InterlinguaError
from tests.hostile.fuzz.readers import READERS

DAMAGED = {
    "tsv": b"\xff\xfe\tone\n",
    "csv": b'"eins,one\n',
    "xlsx": b"PK\x03\x04",
    "jsonl": b'{"translation": {"de": "\\ud800", "en": "one"}}\n',
    "tmx": b"<tmx><body><tu>",
    "xliff": b"<xliff><file><body><trans-unit>",
    "qt": b"<TS language='de'><message>",
    "srt": b"1\n00:00:01,000 --> 00:00:02,000\n\xff\n",
    "strings": b'"a" = \xff\xff;\n',
    "android": b"<resources><string name='a'>",
    "po": b'msgid "one\n',
    "mo": b"\xde\x12\x04\x95\0\0\0\0",
    "zip": b"PK\x05\x06",
    "gz": b"\x1f\x8b\x08\0",
    "zst": b"(\xb5/\xfd",
    "toml": b"output = [\n",
    "config": b'{"vocab_size": "many"}',
    "settings": b"[[[[",
    "tokenizer": b'{"model": {"type": "WordLevel", "vocab": []}}',
    "npy": b"\x93NUMPY\1\0\xff\xff",
    "result": b'{"languages": [1]}',
    "table": b'{"languages": [1]}\n',
    "labeled": b'{"sentence1": 1}\n',
    "questions": b'[{"question": ["a"]}]',
}


@pytest.mark.parametrize("name", list(READERS))
def test_a_damaged_file_is_an_error_of_one_line(name, tmp_path):
    path = tmp_path / f"a.de-en{READERS[name].suffix}"
    path.write_bytes(DAMAGED[name])
    with pytest.raises(InterlinguaError) as error:
        READERS[name].read(path)
    assert "\n" not in str(error.value)
