from __future__ import annotations

import errno
import gzip
import hashlib
import io
import os
import stat
import threading
import zipfile

import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.storage import files, temporary
from interlingua.storage.formats import Format
from interlingua.storage.record import holds_record


def test_stem_and_suffix_look_through_compression():
    assert files.stem_and_suffix("x/news.tsv.gz") == ("news", ".tsv")
    assert files.stem_and_suffix("news.TSV") == ("news", ".tsv")
    assert files.stem_and_suffix("de-en.xz") == ("de-en", "")


def test_atomic_write_leaves_the_old_file_when_the_block_fails(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), files.atomic_write(path) as file:
        file.write("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
    with files.atomic_write(path) as file:
        file.write("new")
    assert path.read_text() == "new"


def test_full_disk_is_one_clear_line_and_the_old_file_stays(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_text("old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    no_space = pytest.raises(DataError, match=r"a\.txt: .*No space")
    with no_space, files.atomic_write(path) as file:
        file.write("new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_atomic_directory_appears_whole_or_not_at_all(tmp_path):
    target = tmp_path / "out"
    with pytest.raises(RuntimeError), files.atomic_directory(target) as folder:
        (folder / "half").write_text("x")
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    with files.atomic_directory(target) as folder:
        (folder / "a").write_text("1")
    with pytest.raises(DataError, match="already exists"), files.atomic_directory(target):
        pass
    with files.atomic_directory(target, overwrite=True) as folder:
        (folder / "b").write_text("2")
    assert [path.name for path in target.iterdir()] == ["b"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_text_round_trip_through_every_compression(tmp_path, suffix):
    path = tmp_path / f"a.txt{suffix}"
    with files.open_text_writer(path) as out:
        out.write("eins\nzwei ü\u2028drei\n")
    with files.open_text(path) as lines:
        assert list(lines) == ["eins\n", "zwei ü\u2028drei\n"]
    assert list(tmp_path.iterdir()) == [path]


def test_open_text_skips_the_byte_order_mark(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfhello\n")
    with files.open_text(path) as lines:
        assert list(lines) == ["hello\n"]


def test_bad_bytes_name_the_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\n" * 5000 + b"caf\xe9\n")
    not_utf8 = pytest.raises(DataError, match=r"a\.txt:5001: not UTF-8 \(byte 0xe9\)")
    with not_utf8, files.open_text(path) as lines:
        list(lines)


def test_missing_and_truncated_files_are_one_clear_line(tmp_path):
    with pytest.raises(DataError, match="file not found"), files.open_text(tmp_path / "absent.txt"):
        pass
    with pytest.raises(DataError, match="Is a directory"), files.open_bytes(tmp_path):
        pass
    for suffix in (".gz", ".xz", ".zst"):
        path = tmp_path / f"a{suffix}"
        with files.open_text_writer(path) as file:
            file.write("line\n" * 10_000)
        path.write_bytes(path.read_bytes()[:-20])
        with (
            pytest.raises(DataError, match="damaged or incomplete"),
            files.open_text(path) as lines,
        ):
            list(lines)


def test_digests_know_names_and_bytes(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("1")
    before = files.sha256_tree(tmp_path)
    expected = hashlib.sha256(b"1").hexdigest()
    assert files.sha256_file(tmp_path / "a" / "x") == expected
    (tmp_path / "a" / "x").rename(tmp_path / "a" / "y")
    assert files.sha256_tree(tmp_path) != before


def test_a_reader_of_the_old_file_keeps_it(tmp_path):
    """Rename onto the old file, so that open and linked files keep their content."""
    path, link = tmp_path / "a.txt", tmp_path / "hard"
    path.write_text("old")
    link.hardlink_to(path)
    with path.open() as reader:
        with files.atomic_write(path) as file:
            file.write("new")
        assert (reader.read(), link.read_text(), path.read_text()) == ("old", "old", "new")


def test_a_symbolic_link_stays_one(tmp_path):
    real, link = tmp_path / "real", tmp_path / "link"
    real.mkdir()
    (real / "a.txt").write_text("old")
    link.symlink_to(real / "a.txt")
    with files.atomic_write(link) as file:
        file.write("new")
    assert link.is_symlink()
    assert (real / "a.txt").read_text() == "new"


def test_a_pipe_is_written_to_and_not_replaced(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    read = []
    reader = threading.Thread(target=lambda: read.append(path.read_text()))
    reader.start()
    with files.atomic_write(path) as file:
        file.write("through")
    reader.join(10)
    assert read == ["through"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


def test_a_folder_is_no_file_and_a_file_no_folder(tmp_path):
    with pytest.raises(DataError, match="is a folder"), files.atomic_write(tmp_path):
        pass
    path = tmp_path / "a.txt"
    path.write_text("old")
    is_file = pytest.raises(DataError, match="expected a folder")
    with is_file, files.atomic_directory(path, overwrite=True):
        pass
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_only_what_is_ours_is_overwritten(tmp_path):
    target = tmp_path / "out"
    target.mkdir()

    def ours(folder):
        return holds_record(
            folder / "manifest.json", Format("interlingua-thing", 2, "make it again")
        )

    def write():
        with files.atomic_directory(target, overwrite=True, ours=ours) as folder:
            (folder / "manifest.json").write_text('{"format": "interlingua-thing-1"}')

    write()  # an empty folder has no owner
    write()
    (target / "manifest.json").write_text('{"format": "other-1"}')
    with pytest.raises(ConfigError, match=r"out: .*other files"):
        write()
    assert (target / "manifest.json").read_text() == '{"format": "other-1"}'


def test_what_could_not_be_put_in_place_leaves_the_old_folder(tmp_path, monkeypatch):
    target = tmp_path / "out"
    target.mkdir()
    (target / "a").write_text("old")
    rename = type(target).rename

    def failing(self, other):
        if other == target and "new" in {path.name for path in self.iterdir()}:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return rename(self, other)

    monkeypatch.setattr(type(target), "rename", failing)
    monkeypatch.setattr(temporary, "_renameat2", lambda: None)
    with (
        pytest.raises(DataError, match="Input/output"),
        files.atomic_directory(target, overwrite=True) as folder,
    ):
        (folder / "new").write_text("new")
    assert (target / "a").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_reader_that_left_is_an_error_of_a_folder(tmp_path):
    with pytest.raises(DataError, match="written"), files.atomic_directory(tmp_path / "m"):
        raise BrokenPipeError
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_another_made_meanwhile_is_not_replaced(tmp_path):
    with pytest.raises(DataError, match="another process"):  # noqa: SIM117
        with files.atomic_directory(tmp_path / "m") as folder:
            (folder / "mine").write_text("second")
            (tmp_path / "m").mkdir()
            (tmp_path / "m" / "theirs").write_text("first")
    assert [path.name for path in tmp_path.rglob("*")] == ["m", "theirs"]


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, "x")
    return file.getvalue()


SRT = b"\xef\xbb\xbf1\r\n00:00:01,200 --> 00:00:02,900\r\nHallo.\r\n"
TS = b'<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1"></TS>\n'
KINDS = [
    (zipped("[Content_Types].xml", "word/document.xml"), "Word.*align --split.*pandoc"),
    (zipped("[Content_Types].xml", "xl/workbook.xml"), r"Excel.*\.xlsx"),
    (zipped("mimetype"), "zip"),
    (b"%PDF-1.7\n%\xe2\xe3", "PDF.*align --split.*pdftotext"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "Office"),
    (b"{\\rtf1\\ansi Hallo}", "RTF"),
    (b"\x1f\x8b\x08\x00", r"gzip.*\.gz"),
    (b"\x93NUMPY\x01\x00", "NumPy"),
    ("Hallo".encode("utf-16"), "iconv -f UTF-16"),
    ("Hallo, Welt".encode("utf-16-le"), "iconv -f UTF-16"),
    (b"\n<!DOCTYPE html>\n<html><p>x", "HTML"),
    (b"<HTML lang='de'>", "HTML"),
    (SRT, "subtitles"),
    (b"WEBVTT\n\n00:01.000 --> 00:02.000\nHi\n", "subtitles"),
    (TS, "Qt.*score"),
    (b'<?xml version="1.0"?>\n<xliff version="1.2">', r"XLIFF.*\.xliff.*score"),
    (b'<?xml version="1.0"?><!DOCTYPE tmx SYSTEM "x">\n<tmx version="1.4">', r"TMX.*\.tmx"),
    (b'<?xml version="1.0"?><resources/>', "XML"),
    (b'[{"text": "a"}]', "JSON"),
    (b'["a", "b"]', "JSON"),
    (b'{"text": "a"}\n{"text": "b"}\n', "JSON"),
    (b"# One\n\ntext\n\n## Two\n\ntext\n", "Markdown"),
    (b'msgid "a"\nmsgstr "b"\n', "gettext"),
]


@pytest.mark.parametrize(("content", "message"), KINDS)
@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_what_is_no_plain_text_is_refused_with_its_remedy(tmp_path, content, message, errors):
    path = tmp_path / "de.txt"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message), files.open_text(path, errors=errors):
        pass
    packed = tmp_path / "de.txt.gz"
    packed.write_bytes(gzip.compress(content))
    with pytest.raises(DataError, match=message):
        files.check_content(packed)


@pytest.mark.parametrize(
    "content",
    [
        "[1] See the notes.\n",
        "[Music]\n",
        "{name}, hello\n",
        '{"a": 1} is JSON\n',
        "<b>Bold</b> at first\n",
        "# a comment\nText\n",
        "#1 hit\n\n#2 hit\n\n",
        "1\nTwo lines\n",
        "12:30 --> lunch\n",
        "[0]:[0]:0.120000\n[]:[1]:0.3\n",
        "PKW\n",
        "BZ and so on\n",
        "",
    ],
)
def test_plain_text_is_read(tmp_path, content):
    path = tmp_path / "de.txt"
    path.write_text(content)
    with files.open_text(path) as lines:
        assert lines.read() == content


def test_html_without_its_first_lines_is_known_by_its_name(tmp_path):
    path = tmp_path / "a.html"
    path.write_text("<p>Hello</p>\n")
    with pytest.raises(DataError, match="HTML"), files.open_text(path):
        pass


def test_json_is_read_where_it_is_expected(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "a"}\n')
    with files.open_text(path, is_json=True) as lines:
        assert lines.read()
    path.write_text("<html>")
    with pytest.raises(DataError, match="HTML"), files.open_text(path, is_json=True):
        pass


def test_a_folder_is_private_until_it_is_whole(tmp_path):
    with files.atomic_directory(tmp_path / "out") as folder:
        assert folder.stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o777 & ~files._umask()


def test_what_is_not_ours_stays_in_a_folder_that_is_replaced(tmp_path):
    target = tmp_path / "out"
    (target / "plots").mkdir(parents=True)
    (target / "train").mkdir()
    (target / "gone").mkdir()
    names = ("old.bin", "notes.txt", "plots/a.svg", "new.txt", "train/a.bin", "train/mine.txt")
    for name in (*names, "gone/a.bin", "model"):
        (target / name).write_text(name)
    (target / "link").symlink_to("notes.txt")
    (target / "train" / "others").symlink_to("../plots")
    options = {"overwrite": True, "ours": lambda _: True, "entries": r"((train|gone)/)?\w+\.bin"}
    with files.atomic_directory(target, **options) as folder:
        (folder / "new.txt").write_text("written now")
        (folder / "model").mkdir()
    found = {str(path.relative_to(target)) for path in target.rglob("*")}
    kept = {"notes.txt", "plots", "plots/a.svg", "link", "train", "train/mine.txt", "train/others"}
    assert found == {"new.txt", "model"} | kept
    assert (target / "new.txt").read_text() == "written now"
    assert (target / "link").is_symlink()


def test_our_files_are_removed_from_a_folder_and_no_others(tmp_path):
    for name in ("a/one.tsv", "b/two.tsv", "b/mine.txt", "c/d/e.txt"):
        (tmp_path / "out" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "out" / name).write_text(name)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "one.tsv").write_text("x")
    (tmp_path / "out" / "link").symlink_to("../elsewhere")
    files.remove_entries(tmp_path / "missing", r"\w/\w+\.tsv")
    files.remove_entries(tmp_path / "out", r"\w+/\w+\.tsv")
    left = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*")}
    assert left == {"b", "b/mine.txt", "c", "c/d", "c/d/e.txt", "link"}
    assert (tmp_path / "elsewhere" / "one.tsv").exists()
    for name in ("b/mine.txt", "c/d/e.txt", "link"):
        (tmp_path / "out" / name).unlink()
    files.remove_entries(tmp_path / "out", r"\w+/\w+\.tsv")
    assert not (tmp_path / "out").exists()
