"""experiments/mini/passages.py: which sentences are joined to passages."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("passages")


@pytest.fixture
def made(script, tmp_path, monkeypatch):
    """Passages of two languages: half of German in documents, English on Chinese's left."""
    (tmp_path / "pairs").mkdir()
    (tmp_path / "held").mkdir()
    for kind in ("tico19", "tatoeba_challenge"):
        write(tmp_path / "pairs" / f"de-en.{kind}.tsv", [pair(kind, row) for row in range(400)])
    write(
        tmp_path / "pairs" / "en-zh.tico19.tsv", [pair("tico19", row)[::-1] for row in range(400)]
    )
    write(tmp_path / "pairs" / "de-en.debian_ddtp.tsv", [pair("ddtp", row) for row in range(400)])
    write(tmp_path / "held" / "de-en.tsv", [pair("tico19", row) for row in range(0, 400, 2)])
    call = [
        str(tmp_path / "pairs"),
        "--held-out",
        str(tmp_path / "held"),
        "--passages",
        "20",
        "-o",
        str(tmp_path / "o"),
    ]
    monkeypatch.setattr(sys, "argv", ["passages.py", *call])
    script.main()
    return {
        path.name: [line.split("\t") for line in path.read_text().splitlines()]
        for path in (tmp_path / "o").iterdir()
    }


def pair(kind, row):
    """Return a sentence, in German form, and its translation. Every tenth is a heading."""
    return (
        (f"Kopf{row}", f"Head {row}")
        if row % 10 == 9
        else (f"Satz{kind}{row}.", f"This is sentence {kind}-{row}.")
    )


def write(path, rows):
    path.write_text("".join(f"{one}\t{other}\n" for one, other in rows))


def test_neighbors_are_joined_with_their_translations(script, made):
    assert sorted(made) == ["de-en.passages.tsv", "zh-en.passages.tsv"]
    for other, english in made["de-en.passages.tsv"]:
        rows = [word.rsplit("-", 1)[1].rstrip(".") for word in english.split() if "-" in word]
        assert [
            sentence[-len(row) - 1 : -1]
            for sentence, row in zip(other.split(" "), rows, strict=True)
        ] == rows
        assert rows == sorted(rows, key=int)
        sentences = english.replace(". ", ".|").split("|")
        assert script.SHORTEST <= sum(map(len, sentences)) < script.LONGEST + len(sentences[-1])


def test_half_are_of_documents_and_none_of_manuals(made):
    kinds = [english.split()[3].split("-")[0] for _, english in made["de-en.passages.tsv"]]
    assert len(kinds) == 20
    assert kinds.count("tico19") == 9  # of documents without held-out sentences there are no more
    assert set(kinds) == {"tico19", "tatoeba_challenge"}


def test_held_out_sentences_and_headings_are_left_out(made):
    texts = " ".join(english for _, english in made["de-en.passages.tsv"])
    assert "Head" not in texts
    assert "tico19-1." in texts or "tico19-3." in texts
    assert "tico19-2." not in texts


def test_chinese_has_no_spaces(made):
    assert not any(" " in other for other, _ in made["zh-en.passages.tsv"])
