from __future__ import annotations

import gzip
import random

import pytest

from interlingua.corpus.cleaning.keys import text_key
from interlingua.errors import DataError
from interlingua.mining import texts
from interlingua.mining.texts import Line, build_side, exact_keys, guess_layout, read_text_lines
from interlingua.storage.files import count_lines
from tests.progress_records import Recorded

SEVERAL = ["", "a", "b", "c d", "C d!", "..", "!!", *(f"e{n}" for n in range(9))]


def oracle(lines, equal, keep_blank):
    """Return texts and the text of each line, one by one."""
    keys, found, of_line = {}, [], []
    for number, text in enumerate(lines):
        if not text and not keep_blank:
            of_line.append(-1)
            continue
        key = {"exact": text, "folded": text_key(text) or f"raw {text}", "never": number}[equal]
        if key not in keys:
            keys[key] = len(found)
            found.append(text)
        of_line.append(keys[key])
    return found, of_line


@pytest.mark.parametrize("memory", [2**30, 400])
@pytest.mark.parametrize("keep_blank", [True, False])
@pytest.mark.parametrize("equal", ["exact", "folded", "never"])
def test_each_text_is_there_once_with_all_its_lines(
    tmp_path, monkeypatch, equal, keep_blank, memory
):
    monkeypatch.setattr(texts, "_CHUNK", 7)
    draw, told = random.Random(0), Recorded()
    lines = [draw.choice(SEVERAL) for _ in range(100)]
    side = build_side(
        tmp_path / "side",
        lambda: (Line(text, f"n{number}") for number, text in enumerate(lines)),
        equal=equal,
        keep_blank=keep_blank,
        memory=memory,
        progress=told,
    )
    found, of_line = oracle(lines, equal, keep_blank)
    assert list(side.texts) == found
    assert side.text_of_line.tolist() == of_line
    assert side.blank == of_line.count(-1)
    for number in range(len(side)):
        own = [line for line, text in enumerate(of_line) if text == number]
        assert side.lines_of(number).tolist() == own
        assert side.origins(number) == [f"n{line}" for line in own]
    firsts = [of_line.index(number) for number in range(len(side))]
    assert side.first_lines(0, len(side)).tolist() == firsts
    lasts = [len(lines) - 1 - of_line[::-1].index(number) for number in range(len(side))]
    assert side.first_lines(0, len(side), last=True).tolist() == lasts
    assert [done for done, _ in told.counts] == sorted(done for done, _ in told.counts)
    assert told.counts[:2] == [(0, None), (7, None)]
    assert told.counts[-1] == (2 * len(lines), 2 * len(lines))


@pytest.mark.parametrize("lines", [[], [Line("", "1")]])
def test_no_text_at_all(tmp_path, lines):
    with pytest.raises(DataError, match=r"^news\.de: the file contains no text"):
        build_side(tmp_path / "side", lambda: lines, path="news.de")


def test_layouts(tmp_path):
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"d1\ts1\t one\ttwo \r\nd1\tno id\n\n"))
    assert list(read_text_lines([path], "lines"))[1:] == [Line("d1\tno id", "2"), Line("", "3")]
    assert next(iter(read_text_lines([path], "lines", strip=False))) == Line(
        "d1\ts1\t one\ttwo ", "1"
    )
    with pytest.raises(DataError, match=r"a.tsv.gz:3: .*no tab"):
        list(read_text_lines([path], "documents"))
    path.write_bytes(gzip.compress(b"d1\ts1\t one\ttwo \nd1\tno id\n"))
    assert list(read_text_lines([path], "documents")) == [
        Line("one\ttwo", "s1", "d1"),
        Line("no id", "d1#2", "d1"),
    ]
    assert list(read_text_lines([path], "ids")) == [
        Line("s1\t one\ttwo", "d1"),
        Line("no id", "d1"),
    ]
    (tmp_path / "next").write_text("d2\ttwo\nno tab\n", encoding="utf-8")
    both = [path, tmp_path / "next"]
    assert [line.name for line in read_text_lines(both, "lines")] == ["1", "2", "3", "4"]
    with pytest.raises(DataError, match=r"next:2: .*id TAB text"):
        list(read_text_lines(both, "ids"))


@pytest.mark.parametrize(("text", "lines"), [(b"", 0), (b"a", 1), (b"a\n", 1), (b"a\n\nb", 3)])
def test_lines_are_counted_as_they_are_read(tmp_path, text, lines):
    (tmp_path / "a.txt").write_bytes(text)
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(text))
    for path in (tmp_path / "a.txt", tmp_path / "a.txt.gz"):
        assert count_lines(path) == lines == len(list(read_text_lines([path], "lines")))


def test_lines_of_a_file_that_is_cut_are_not_counted(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"a\n" * 99)[:-9])
    with pytest.raises(DataError, match="incomplete"):
        count_lines(tmp_path / "a.gz")


@pytest.mark.parametrize(
    ("text", "layout"),
    [
        ("zh-1\tA text.\nzh-2\tAnother.\n", "ids"),
        ("A text.\nAnother\tone.\n", "lines"),
        ("two words\ttext\nother words\ttext\n", "lines"),
        ("d\tone\nd\ttwo\n", "lines"),
        ("only\n", "lines"),
    ],
)
def test_the_layout_shows_in_the_first_lines(tmp_path, text, layout):
    (tmp_path / "a").write_text(text)
    assert guess_layout(tmp_path / "a") == layout


def test_an_empty_file_has_no_layout(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(DataError, match="file is empty"):
        guess_layout(tmp_path / "a")


def test_keys_are_of_the_very_text():
    keys = exact_keys(["a", "A", "a", "a "])
    assert keys[0] == keys[2]
    assert len(set(keys.tolist())) == 3
