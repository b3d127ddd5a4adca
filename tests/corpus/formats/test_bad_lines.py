from __future__ import annotations

import gzip
import lzma
import random
import zipfile
from collections import Counter

import pytest

from interlingua.corpus.formats.bad_lines import _SHOWN, BadLines
from interlingua.corpus.formats.bitext import TextPair, read_pairs, write_pairs
from interlingua.errors import ConfigError, DamagedFileError, DataError
from tests.corpus.conftest import texts, write

CODES = {"source_language": "de", "target_language": "en"}
GOOD = [("eins", "one"), ("zwei", "two"), ("drei", "three")]
BAD_FILES = {
    "x.tsv": (b"eins\tone\nzwei\ttwo\textra\nnothing\n\xe4\tae\nzwei\ttwo\ndrei\tthree\n", [2, 3,
    4]), "y.tsv": (b"no score\tx\ty\n0.5\teins\tone\nnan\tx\ty\n1\tzwei\ttwo\n2\tdrei\tthree\n", [1,
    3]), "x.jsonl": (b'{"source": "eins", "target": "one"}\n{"source": 1}\n{\n{"source": "zwei",'
                b' "target": "two"}\n'
                b'{"source": "\xff", "target": "x"}\n{"source": "drei", "target": "three"}\n', [2,
                3, 5]),
    "x.csv": (b'source,target\n"eins",one\n"never closed,x\nzwei,two\na,b,c\n\xe4,x\ndrei,three\n',
    [3, 5, 6]),
}  # fmt: skip


def read(path, bad, **options):
    return texts(path, bad=bad, **CODES, **options)


@pytest.mark.parametrize("name", list(BAD_FILES))
def test_bad_lines_are_left_out_counted_and_kept(tmp_path, name):
    content, lines = BAD_FILES[name]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(path, None)
    # a whole file is decoded ahead, so that the first bad byte may come before an earlier line of
    # other faults
    assert caught.value.line in lines
    with BadLines("skip", tmp_path / "bad.tsv") as bad:
        assert read(path, bad) == GOOD
        assert not (tmp_path / "bad.tsv").exists()
    assert bad.count == len(lines)
    kept = (tmp_path / "bad.tsv").read_text(encoding="utf-8").splitlines()
    rows = [line.split("\t") for line in kept]
    assert rows[0] == ["file", "line", "problem", "content"]
    assert [(row[0], int(row[1])) for row in rows[1:]] == [(str(path), line) for line in lines]
    assert bad.lines()[0] == (
        f"warning: {len(lines)} lines could not be read and were left out; they are listed in"
        f" {tmp_path / 'bad.tsv'}"
    )
    assert bad.lines()[1].startswith(f"  {path}:{lines[0]}: ")


def test_bytes_that_are_not_utf8_can_be_found_again(tmp_path):
    (tmp_path / "x.tsv").write_bytes(b"caf\xe9\tcoffee\n")
    with BadLines("skip", tmp_path / "bad.tsv") as bad:
        assert read(tmp_path / "x.tsv", bad) == []
    kept = (tmp_path / "bad.tsv").read_text().splitlines()[1]
    assert kept.split("\t")[2:] == ["not UTF-8", r"caf\xe9 coffee"]


def test_moses_pairs_stay_aligned(tmp_path):
    (tmp_path / "x.de").write_bytes(b"eins\n\xe4\nzwei\nvier\ndrei\n")
    (tmp_path / "x.en").write_bytes(b"one\nx\ntwo\n\xff\nthree\n")
    bad = BadLines("skip")
    assert read(tmp_path / "x", bad) == GOOD
    assert bad.first == [f"{tmp_path}/x.de:2: not UTF-8", f"{tmp_path}/x.en:4: not UTF-8"]
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        for side in ("de", "en"):
            archive.write(tmp_path / f"x.{side}", f"x.{side}")
    again = BadLines("skip")
    assert read(tmp_path / "x.zip", again) == GOOD
    assert again.count == 2
    (tmp_path / "x.en").write_bytes(b"one\n")
    with pytest.raises(DataError, match="not aligned"):
        read(tmp_path / "x", BadLines("skip"))


def test_units_of_unknown_languages_are_left_out(tmp_path):
    write_pairs([TextPair(*sides, "deu_Latn", "eng_Latn") for sides in GOOD], tmp_path / "x.tmx")
    text = (tmp_path / "x.tmx").read_text(encoding="utf-8")
    write(tmp_path / "x.tmx", text.replace('xml:lang="de"', 'xml:lang="qqq"', 1))
    skipped = Counter()
    pairs = read_pairs(tmp_path / "x.tmx", skipped=skipped)
    assert [(pair.source, pair.target) for pair in pairs] == GOOD[1:]
    assert skipped["text in an unknown language"] == skipped["no such languages"] == 1


def test_a_line_that_is_read_twice_counts_once_and_ten_are_named():
    bad = BadLines("skip")
    for number in [*range(1, 15), 1, 2]:
        bad.reject(DataError("broken", path="x", line=number), "content")
    assert (bad.count, len(bad.first)) == (14, _SHOWN)
    assert bad.lines()[-1] == "  and 4 more"
    assert BadLines("skip").lines() == []


def test_to_stop_is_the_default_and_other_ways_are_refused(tmp_path):
    with pytest.raises(DataError, match="broken"):
        BadLines().reject(DataError("broken", path="x"))
    with pytest.raises(ConfigError, match=r"on_error: .* 'ignore'"):
        BadLines("ignore")


def test_no_file_stays_of_work_that_failed(tmp_path):
    with pytest.raises(KeyError), BadLines("skip", tmp_path / "bad.tsv") as bad:
        bad.reject(DataError("broken", path="x", line=1))
        raise KeyError
    assert list(tmp_path.iterdir()) == []


def test_a_thousand_open_quotes_are_a_thousand_lines(tmp_path):
    path = write(tmp_path / "x.csv", "source,target\n" + 'a,"b\n' * 1000 + "eins,one\n")
    bad = BadLines("skip")
    found = read(path, bad)
    assert found[-1] == ("eins", "one")
    assert len(found) + bad.count <= 1001


def test_rows_of_data_sets_are_left_out(tmp_path):
    pytest.importorskip("datasets")
    rows = [
        {"source": "eins", "target": "one", "source_language": code, "target_language": "en"}
        for code in ("de", "qqq")
    ]
    path = write(tmp_path / "b.json", *rows)
    bad = BadLines("skip")
    assert len(texts(path, format="huggingface", bad=bad)) == 1
    assert "row 2" in bad.first[0]


MANY = [
    (f"{random.Random(n).random()} eins", f"{random.Random(-n - 1).random()} one")
    for n in range(5000)
]
"""More than any reader's buffer, and nothing that a packer shortens much."""


def cut(path, content, share=0.7):
    path.write_bytes(content[: int(share * len(content))])
    return path


def packed_pairs(folder, kind):
    """Write a damaged file of ``MANY``, named by its kind."""
    lines = "".join(f"{a}\t{b}\n" for a, b in MANY).encode()
    if kind == "x.tsv.gz":
        return cut(folder / kind, gzip.compress(lines))
    if kind == "x.tsv.xz":
        return cut(folder / kind, lzma.compress(lines))
    if kind in ("x.jsonl.gz", "x.csv.gz", "x.tmx", "x.tmx.gz"):
        write_pairs([TextPair(*sides, "deu_Latn", "eng_Latn") for sides in MANY], folder / kind)
        return cut(folder / kind, (folder / kind).read_bytes())
    sides = [("".join(f"{pair[side]}\n" for pair in MANY)).encode() for side in (0, 1)]
    if kind == "x.zip":
        with zipfile.ZipFile(folder / kind, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("x.de", sides[0])
            archive.writestr("x.en", sides[1])
        content = bytearray((folder / kind).read_bytes())
        middle = int(0.7 * zipfile.ZipFile(folder / kind).getinfo("x.en").header_offset)
        content[middle : middle + 64] = b"\xff" * 64
        (folder / kind).write_bytes(content)
        return folder / kind
    cut(folder / "x.de.gz", gzip.compress(sides[0]))
    (folder / "x.en.gz").write_bytes(gzip.compress(sides[1]))
    return folder / "x"


@pytest.mark.parametrize(
    "kind",
    ["x.tsv.gz", "x.tsv.xz", "x.jsonl.gz", "x.csv.gz", "x.tmx", "x.tmx.gz", "x.zip", "x.de.gz"],
)
def test_pairs_before_the_damage_are_kept_and_counted(tmp_path, kind):
    path = packed_pairs(tmp_path, kind)
    with pytest.raises(DamagedFileError):
        read(path, None)
    skipped = Counter()
    with BadLines("skip", tmp_path / "bad.tsv") as bad:
        found = read(path, bad, skipped=skipped)
    # The damaged part is random bytes, of which a line or two may be read before the packer
    # notices.
    right = next((n for n, pair in enumerate(found) if pair != MANY[n]), len(found))
    assert right > 0.5 * len(MANY)
    assert len(found) - right <= (2 if kind == "x.zip" else 0)
    assert skipped["rest of a damaged file"] == 1
    assert bad.damages[0].endswith(f"; kept {len(found):,} pairs before the damage")
    assert str(tmp_path) in bad.lines()[-1]
    assert len((tmp_path / "bad.tsv").read_text(encoding="utf-8").splitlines()) == 2 + bad.count


def test_a_file_without_a_readable_pair_stops(tmp_path):
    cut(tmp_path / "x.tsv.gz", gzip.compress(b"eins\tone\n"), 0.3)
    (tmp_path / "x.tmx").write_text("<tmx><header/><body><tu>")
    with zipfile.ZipFile(tmp_path / "y.zip", "w") as archive:
        archive.writestr("x.de", b"eins\n")
        archive.writestr("x.en", b"one\n")
    cut(tmp_path / "x.zip", (tmp_path / "y.zip").read_bytes())  # the list of contents is at its end
    for name in ("x.tsv.gz", "x.tmx", "x.zip"):
        with pytest.raises(DataError, match=name):
            read(tmp_path / name, BadLines("skip"))


def test_damage_counts_once_however_often_it_is_read(tmp_path):
    path = packed_pairs(tmp_path, "x.tsv.gz")
    bad = BadLines("skip")
    assert read(path, bad) == read(path, bad)
    assert len(bad.lines()) == 1
