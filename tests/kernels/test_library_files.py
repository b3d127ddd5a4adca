from __future__ import annotations

import struct

import pytest

from interlingua.kernels import library_files


@pytest.fixture
def on_a_mac(monkeypatch):
    monkeypatch.setattr(library_files.sys, "platform", "darwin")


def macho(*segments):
    """A Mach-O file by hand: a symbol table's command, and a segment from each place to another."""
    commands = [struct.pack("<II", 0x2, 24) + bytes(16)]
    for start, end in segments:
        head = struct.pack("<II16sQQQQ", 0x19, 72, b"__TEXT", start, 0, start, end - start)
        commands.append(head.ljust(72, b"\0"))
    length = sum(map(len, commands))
    head = struct.pack("<4sIIIIIII", b"\xcf\xfa\xed\xfe", 0, 0, 6, len(commands), length, 0, 0)
    whole = head + b"".join(commands)
    return whole.ljust(max((end for _, end in segments), default=0), b"\0")


def damage(folder, content):
    path = folder / "layers.neon.so"
    path.write_bytes(content)
    return library_files.damage(path)


@pytest.mark.usefixtures("on_a_mac")
def test_a_macs_library_ends_where_its_last_segment_does(tmp_path):
    for segments in [[(0, 500)], [(0, 400), (512, 600)], [(512, 600), (0, 400)]]:
        whole = macho(*segments)
        assert damage(tmp_path, whole) is None
        assert damage(tmp_path, whole + b"signed") is None
        assert damage(tmp_path, whole[:-1]) == "it is cut short"


@pytest.mark.usefixtures("on_a_mac")
@pytest.mark.parametrize("content", [b"", b"\x7fELF".ljust(900), macho((0, 500))[:60]])
def test_other_files_are_none_of_a_mac(tmp_path, content):
    assert damage(tmp_path, content) == "it is not a library of this system"


def test_windows_looks_itself(tmp_path, monkeypatch):
    monkeypatch.setattr(library_files.sys, "platform", "win32")
    assert damage(tmp_path, b"") is None
