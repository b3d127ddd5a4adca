from __future__ import annotations

from pathlib import Path

import pytest

from interlingua.corpus.cleaning.decontaminate import EvaluationKeys
from interlingua.errors import DataError
from interlingua.training.feeds.data_config import MonolingualConfig
from interlingua.training.feeds.open_feeds import drawn_sentences, open_monolingual

NOTHING = EvaluationKeys({})


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "de.txt"
    path.write_text("".join(f"sentence number {n}\n" for n in range(1000)), encoding="utf-8")
    return path


def drawn(path, evaluation=NOTHING, **options):
    return drawn_sentences(path, MonolingualConfig(paths=(path,), **options), evaluation)


def test_sentences_are_drawn_and_not_the_first(text):
    """Draw 200 of 1,000 evenly: the mean place is 499.5 with a deviation of 18."""
    found = [int(line.split()[-1]) for line in drawn(text, max_sentences=200)]
    assert len(set(found)) == 200
    assert abs(sum(found) / 200 - 499.5) < 80
    assert drawn(text, max_sentences=200) == drawn(text, max_sentences=200)
    assert set(drawn(text, max_sentences=200)) != set(drawn(text, max_sentences=200, seed=1))
    assert len(drawn(text)) == 1000


def test_sentences_are_spelled_as_those_of_pairs(tmp_path):
    path = tmp_path / "de.txt"
    path.write_text("„Gut“\u00a0 gemacht…\n \n\u200b\n", encoding="utf-8")
    assert drawn(path) == ['"Gut" gemacht…']


def test_a_table_gives_a_column(tmp_path):
    path = tmp_path / "de.csv"
    path.write_text('\ufeffid,text,note\n1,"Eins, zwei",x\n2,Drei,y\n', encoding="utf-8")
    assert drawn(path) == ["Eins, zwei", "Drei"]
    assert drawn(path, column="note") == ["x", "y"]


def test_sentences_of_evaluation_sets_are_left_out_before_the_draw(
    text, tmp_path, word_vocabulary, caplog
):
    held_out = tmp_path / "tests"
    held_out.mkdir()
    lines = [f"Sentence number {n}!\tx y z\n" for n in range(990)]
    (held_out / "deu-eng.tsv").write_text("".join(lines), encoding="utf-8")
    options = {"decontaminate": (held_out,), "max_sentences": 10}
    found = drawn(text, EvaluationKeys.from_folders([held_out]), **options)
    assert sorted(found) == [f"sentence number {n}" for n in range(990, 1000)]
    column = open_monolingual(MonolingualConfig(paths=(text,), **options), word_vocabulary)
    assert len(column) == 10
    assert caplog.messages == [
        "data.monolingual: removed 990 sentences that occur in the evaluation set tests"
    ]


def test_nothing_left_is_one_line(text, tmp_path):
    (tmp_path / "all.txt").write_text(text.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.raises(DataError, match=r"de\.txt: no sentences"):
        drawn(text, EvaluationKeys.from_folders([tmp_path / "all.txt"]))
    with pytest.raises(DataError, match="nowhere"):
        open_monolingual(MonolingualConfig(paths=(text,), decontaminate=(Path("nowhere"),)), None)
