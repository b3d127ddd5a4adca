"""``align`` on folders and patterns: one file of links each, one for all, and resumed runs."""

from __future__ import annotations

import pytest

import interlingua
from interlingua.alignment.align import read_links
from interlingua.corpus.formats.bitext import pair_fields, read_pairs
from interlingua.errors import ConfigError, DataError
from tests.alignment.test_align import documents
from tests.mining.invented import write_lines
from tests.mining.words import embed


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for number, name in enumerate(("a", "sub/b")):
        source, target, _ = documents(number, 20)
        for code, lines in (("de", source), ("en", target)):
            path = tmp_path / f"{code}/{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_lines(path, lines)
    (tmp_path / "de/only.txt").write_text("de1 de2\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_in(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(folder)) for path in files)


@pytest.mark.parametrize("sides", [("de", "en"), ("de/**/*.txt", "en/**/*.txt")])
def test_each_pair_has_a_file_of_links_and_all_are_one_bitext(folder, sides):
    found = interlingua.align(embed, *sides, output="out", texts="all.tsv")
    assert found == []
    assert files_in(folder / "out") == ["a.txt.align", "sub/b.txt.align"]
    alone = interlingua.align(embed, "de/sub/b.txt", "en/sub/b.txt")
    assert list(read_links(folder / "out/sub/b.txt.align")) == list(alone)
    rows = read_pairs("all.tsv", source_language="de", target_language="en")
    files = {pair_fields(pair)["file"] for pair in rows}
    assert files == {"a.txt", "sub/b.txt"}
    assert len(found.report.unpaired) == 1
    assert "de/only.txt" in found.report.unpaired[0]


def test_one_file_and_the_list_in_memory_have_all_links_with_their_files(folder):
    found = interlingua.align(embed, "de", "en")
    interlingua.align(embed, "de", "en", output="all.align")
    rows = [line.split("\t") for line in (folder / "all.align").read_text().splitlines()]
    assert {row[0] for row in rows} == {"a.txt", "sub/b.txt"}
    assert [row[0] for row in rows] == [record["file"] for record in found.records()]
    assert not (folder / "all.align.work").exists()


def test_a_folder_with_both_languages_needs_no_target(folder):
    found = interlingua.align(embed, folder)
    assert {record["file"] for record in found.records()} == {"de/a.txt", "de/sub/b.txt"}


def test_a_run_resumes_and_does_only_what_failed(folder):
    good = (folder / "de/a.txt").read_bytes()
    (folder / "de/a.txt").write_bytes(b"\xff\xfe\xff\n")
    found = interlingua.align(embed, "de", "en", output="all.align")
    assert len(found.report.failed) == 1
    assert (folder / "all.align.work/align.journal").exists()
    (folder / "de/a.txt").write_bytes(good)
    embedded = []

    def counted(texts):
        embedded.extend(texts)
        return embed(texts)

    counted.__module__, counted.__qualname__ = embed.__module__, embed.__qualname__
    found = interlingua.align(counted, "de", "en", output="all.align")
    assert not found.report.failed
    assert embedded
    assert not set(embedded) & set((folder / "de/sub/b.txt").read_text().splitlines())
    assert not (folder / "all.align.work").exists()


@pytest.fixture
def broken(folder):
    """Make the German documents of the folder unreadable."""
    for name in ("a.txt", "sub/b.txt"):
        (folder / "de" / name).write_bytes(b"\xff\xfe\xff\n")


def test_earlier_links_are_kept_if_no_pair_can_be_aligned(refused, folder, broken):
    """Name the first errors, and write no empty file of links or of linked sentences."""
    (folder / "all.align").write_text("links\n")
    (folder / "texts.jsonl").write_text("texts\n")
    command = "align tests.mining.words:embed de en --backend function -o all.align"
    said = refused(f"{command} --texts texts.jsonl").err
    assert "none of the 2 document pairs could be aligned; the first errors: " in said
    assert "de/a.txt" in said
    assert "de/sub/b.txt" in said
    assert (folder / "all.align").read_text() == "links\n"
    assert (folder / "texts.jsonl").read_text() == "texts\n"
    assert not (folder / "all.align.work").exists()


def test_finished_links_are_kept_if_no_pair_can_be_aligned_later(folder):
    """Make all documents unreadable after one of two was aligned, and then correct them."""
    good = {name: (folder / "de" / name).read_bytes() for name in ("a.txt", "sub/b.txt")}
    (folder / "de/a.txt").write_bytes(b"\xff\n")
    interlingua.align(embed, "de", "en", output="all.align")
    made = (folder / "all.align").read_bytes()
    (folder / "de/sub/b.txt").write_bytes(b"\xff\n")
    with pytest.raises(DataError, match="none of the 2 document pairs"):
        interlingua.align(embed, "de", "en", output="all.align")
    assert (folder / "all.align").read_bytes() == made
    assert (folder / "all.align.work/align.journal").exists()
    for name, text in good.items():
        (folder / "de" / name).write_bytes(text)
    assert not interlingua.align(embed, "de", "en", output="all.align").report.failed


def test_the_error_of_the_only_pair_of_a_list_is_raised(refused, folder, broken):
    (folder / "list.tsv").write_text("de/a.txt\ten/a.txt\n")
    command = "align tests.mining.words:embed --backend function --list list.tsv -o out"
    said = refused(command).err
    assert "de/a.txt" in said
    assert "none of" not in said
    assert not (folder / "out").exists()


def test_the_command_line_names_what_was_left_out(done, refused, folder):
    ran = done("align tests.mining.words:embed de en --backend function -o out")
    assert "left out: de/only.txt" in ran.err
    assert len(read_links(folder / "out/a.txt.align")) > 10
    # Without a model the first folder is the source.
    assert "de/only.txt" in refused("align de/only.txt de -o out").err


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"gold": "de/a.txt"}, "--gold"),
        ({"output": "x.align", "split": True}, "--split"),
        ({"output": "x.tmx"}, "--texts"),
        ({"texts": "x.tsv", "source": ".", "target": None}, "jsonl"),
    ],
)
def test_options_that_do_not_go_with_folders_are_refused(folder, options, match):
    (folder / "fr").mkdir()
    (folder / "fr/a.txt").write_text("fr1 fr2\n")
    with pytest.raises(ConfigError, match=match):
        interlingua.align(embed, **{"source": "de", "target": "en"} | options)
