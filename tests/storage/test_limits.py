from __future__ import annotations

import gzip
import io
import subprocess
import sys
import zlib

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.storage import limits
from interlingua.storage.files import open_bytes, open_text


@pytest.mark.parametrize("block", [1, 3, 7, 64])
@pytest.mark.parametrize("ends", ["\n", ""])
def test_a_line_may_have_as_many_characters_as_the_limit(monkeypatch, block, ends):
    class Slow(io.BytesIO):
        def read1(self, size=-1):
            return super().read1(min(size, block))

    monkeypatch.setenv(limits.LINE_VARIABLE, "4")
    good = f"ab\n猫猫猫猫\n\nabcd{ends}".encode()
    assert limits.guard_lines(Slow(good), "f").read() == good
    for line, bad in (
        (2, f"ab\n猫猫猫猫猫{ends}"),
        (1, f"abcde{ends}"),
        (4, f"a\nb\nc\nabcde\nx{ends}"),
    ):
        with pytest.raises(DataError, match=rf"f:{line}: .*more than 4 characters.*--max-line"):
            limits.guard_lines(Slow(bad.encode()), "f").read()


def test_the_limit_may_be_set_for_a_block(monkeypatch, tmp_path):
    monkeypatch.delenv(limits.LINE_VARIABLE, raising=False)
    (tmp_path / "a.txt").write_text("x" * 200)
    with (
        limits.line_limit(100),
        pytest.raises(DataError, match="--max-line"),
        open_text(tmp_path / "a.txt") as file,
    ):
        file.read()
    assert limits.max_line_characters() == limits.MAX_LINE_CHARACTERS == 10_000_000
    with open_text(tmp_path / "a.txt") as file:
        assert len(file.read()) == 200


@pytest.mark.parametrize("text", ["", "0", "-1", "1e6", "9" * 30, "٣"])
def test_a_limit_that_is_none_is_refused(monkeypatch, text):
    monkeypatch.setenv(limits.LINE_VARIABLE, text)
    with pytest.raises(ConfigError, match=limits.LINE_VARIABLE):
        limits.max_line_characters()


def test_a_compressed_file_may_grow_so_often(monkeypatch, tmp_path):
    monkeypatch.setattr(limits, "FREE_EXPANSION_BYTES", 1000)
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n" * 100_000))
    monkeypatch.setenv(limits.EXPANSION_VARIABLE, "20")
    with (
        pytest.raises(DataError, match=limits.EXPANSION_VARIABLE),
        open_bytes(tmp_path / "a.gz") as file,
    ):
        file.read()
    monkeypatch.setenv(limits.EXPANSION_VARIABLE, "2000")
    with open_bytes(tmp_path / "a.gz") as file:
        assert len(file.read()) == 200_000


def test_a_document_has_a_limit():
    assert limits.read_limited(io.BytesIO(b"abc"), "f", 3) == b"abc"
    with pytest.raises(DataError, match="larger than"):
        limits.read_limited(io.BytesIO(b"abcd"), "f", 3)


def test_three_gigabytes_in_one_line_need_little_memory(tmp_path):
    """Read the attack on 0.1.0: 3 MB of gzip with one line of 3 GB took 7 GB of memory.

    Here in 700 MB of addresses.
    """
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = b"x" * (1 << 20)
    packed = [packer.compress(block) for _ in range(301)]
    (tmp_path / "a.txt.gz").write_bytes(b"".join([*packed, packer.flush()]))
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (700 << 20, 700 << 20))\n"
        "from interlingua.storage.files import open_text\n"
        "from interlingua.errors import DataError\n"
        f"path = {str(tmp_path / 'a.txt.gz')!r}\n"
        "try:\n    with open_text(path) as file:\n        next(file)\n"
        "except DataError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "more than 10,000,000 characters" in done.stdout, done.stderr
