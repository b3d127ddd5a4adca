from __future__ import annotations

import numpy as np
import pytest

from interlingua.alignment.align import (
    _JOURNAL,
    LOCK,
    AlignJournal,
    DocumentPair,
    read_list,
)
from interlingua.errors import ConfigError, DataError
from interlingua.storage.locks import exclusive
from interlingua.verbs.align import AlignOptions, check_align
from tests.alignment.test_align import written
from tests.jobs import aligned
from tests.mining.words import encode


@pytest.fixture
def listed(tmp_path):
    """Three documents."""
    rows = ["{}\t{}\t\t{}\n".format(*written(tmp_path, seed, 25)) for seed in (1, 2, 3)]
    (tmp_path / "list").write_text("".join(rows))
    return tmp_path


def run(folder, name, *, model="m", encode=encode, **options):
    places = {"documents": folder / "list", "output": folder / name}
    texts = folder / f"{name}.tsv"
    return aligned(encode, model=model, texts=texts, **places, **options).report


def bytes_of(folder, name):
    paths = [path for path in sorted((folder / name).iterdir()) if path.name != _JOURNAL]
    return [path.read_bytes() for path in (*paths, folder / f"{name}.tsv")]


@pytest.fixture
def counted():
    """An encoder that remembers its texts."""

    def encode_counted(texts, **how):
        encode_counted.seen += texts
        return encode(texts, **how)

    encode_counted.seen = []
    return encode_counted


def embedded_documents(folder, texts):
    """Return the numbers of the documents of which the sentences were embedded."""
    return [
        number
        for number in (1, 2, 3)
        if set((folder / f"{number}.de").read_text().splitlines()) <= set(texts)
    ]


def test_only_what_is_left_is_done(listed, counted):
    """Leave only the third document, which is empty.

    The next run does only it, and one with other settings does all.
    """
    text = (listed / "3.de").read_text()
    (listed / "3.de").write_text("")
    assert len(run(listed, "links").failed) == 1
    (listed / "3.de").write_text(text)
    done = (listed / "links" / _JOURNAL).read_bytes()
    assert run(listed, "links", encode=counted).failed == []
    assert embedded_documents(listed, counted.seen) == [3]
    assert not (listed / "links" / _JOURNAL).exists()
    for changed in ({"model": "other"}, {"max_sentences": 3}):
        (listed / "links" / _JOURNAL).write_bytes(done)
        counted.seen.clear()
        run(listed, "links", encode=counted, **changed)
        assert embedded_documents(listed, counted.seen) == [1, 2, 3]


def test_documents_that_have_changed_are_done_again(tmp_path):
    de, en, _ = written(tmp_path, 1)
    pair = DocumentPair(de, en, str(tmp_path / "links"))
    (tmp_path / "links").write_text("[0]:[0]:0.5\n")
    journal = AlignJournal(tmp_path / "j", "settings")
    assert not journal.has(pair)
    journal.add(pair)
    assert AlignJournal(tmp_path / "j", "settings").has(pair)
    assert not AlignJournal(tmp_path / "k", "settings").has(pair)
    with open(tmp_path / "j", "a") as file:
        file.write('["cut')
    assert AlignJournal(tmp_path / "j", "settings").has(pair)
    (tmp_path / "links").write_text("")
    assert not AlignJournal(tmp_path / "j", "settings").has(pair)
    assert not AlignJournal(tmp_path / "j", "others").done


def test_mistakes_show_before_anything_is_loaded(tmp_path):
    for source, options, message in (
        ("a", {"target": None}, "SOURCE and TARGET"),
        ("a", {"texts": "c.tmx"}, "c.tmx.*languages"),
        ("a", {"split": True}, "--split"),
        ("l.source.txt", {"output": "l", "split": True}, "would be overwritten"),
    ):
        with pytest.raises(ConfigError, match=message):
            check_align(AlignOptions("mini", source, **{"target": "b"} | options))
    files = (tmp_path / "a.de", tmp_path / "a.en")
    check_align(AlignOptions("mini", *files, texts=tmp_path / "c.tmx"))


def test_documents_are_not_written_over(listed):
    source, target = (listed / "list").read_text().splitlines()[0].split("\t")[:2]
    for options in ({"output": source}, {"output": target}, {"output": "x.tsv", "texts": "x.tsv"}):
        with pytest.raises(ConfigError, match=r"be overwritten|two outputs"):
            check_align(AlignOptions("mini", source, target, **options))


def test_two_runs_do_not_write_one_folder(listed):
    with (
        exclusive(listed / "links", remedy="x", name=LOCK),
        pytest.raises(ConfigError, match="in use by"),
    ):
        run(listed, "links")
    assert run(listed, "links").documents == 3


@pytest.mark.parametrize("content", ["a thesis\n", '{"other": 1}\n', "\xff\xfe"])
def test_a_journal_of_others_is_not_written_over(listed, content):
    path = listed / "links" / _JOURNAL
    path.parent.mkdir()
    path.write_text(content, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"align\.journal: is damaged"):
        run(listed, "links")
    assert path.read_text(encoding="latin-1") == content


def test_a_cut_or_changed_journal_only_costs_time(listed):
    (listed / "3.de").write_text("")
    run(listed, "links")
    journal = listed / "links" / _JOURNAL
    done = journal.read_bytes()
    expected = bytes_of(listed, "links")
    for harmed in (b"", done[: len(done) // 2], done[:-3], done.replace(b"1.de", b"\xff.de")):
        journal.write_bytes(harmed)
        run(listed, "links")
        assert bytes_of(listed, "links") == expected


def test_documents_that_are_not_the_same_are_told_by_their_number(listed):
    rows = (listed / "list").read_text().splitlines()
    cells = [row.split("\t") for row in rows]
    # The second and the third document get each other's targets.
    cells[1][1], cells[2][1] = cells[2][1], cells[1][1]
    (listed / "list").write_text("".join(f"{one[0]}\t{one[1]}\n" for one in cells))
    lines = run(listed, "links").lines(quiet=True)
    assert [line.startswith("warning: document pair ") for line in lines] == [True, True]
    assert [line.split()[3] for line in lines] == ["2", "3"]


def test_no_linked_texts_give_files_of_the_known_languages(tmp_path):
    (tmp_path / "a.de").write_text("de1 de2\n")
    (tmp_path / "a.en").write_text("en30 en31 en32\n")
    (tmp_path / "t").mkdir()
    aligned(
        AlignedAlone(),
        source=tmp_path / "a.de",
        target=tmp_path / "a.en",
        output=tmp_path / "links",
        texts=tmp_path / "t" / "moses",
    )
    assert sorted(path.name for path in (tmp_path / "t").iterdir()) == ["moses.de", "moses.en"]


class AlignedAlone:
    """An encoder by which no two texts are similar."""

    def __call__(self, texts, *, language=None, report=None):
        vectors = np.zeros((len(texts), 4), np.float32)
        vectors[:, 0] = 1 if language == "deu_Latn" else -1
        return vectors


@pytest.mark.parametrize(
    "column", ["../outside.align", "a/../../outside.align", "{}/outside.align"]
)
def test_a_list_writes_nothing_outside_of_the_output(tmp_path, column):
    links = column.format(tmp_path)
    (tmp_path / "list.tsv").write_text(f"a.txt\tb.txt\tin.align\na.txt\tb.txt\t{links}\n")
    with pytest.raises(DataError, match=r"list\.tsv:2.*outside"):
        read_list(tmp_path / "list.tsv", tmp_path / "out")


def test_a_list_s_names_are_below_the_output(tmp_path):
    (tmp_path / "list.tsv").write_text("a.txt\tb.txt\tsub/in.align\nc.txt\td.txt\n")
    outputs = [pair.output for pair in read_list(tmp_path / "list.tsv", tmp_path / "out")]
    assert outputs == [str(tmp_path / "out" / name) for name in ("sub/in.align", "c.txt.align")]


def test_a_link_below_the_output_does_not_lead_out_of_it(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "away").symlink_to(tmp_path)
    (tmp_path / "list.tsv").write_text("a.txt\tb.txt\taway/x.align\n")
    with pytest.raises(DataError, match="outside"):
        read_list(tmp_path / "list.tsv", tmp_path / "out")
