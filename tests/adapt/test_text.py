"""Which pairs and sentences extend reads, whatever their format."""

from __future__ import annotations

import pytest

from interlingua.adapt.development import sample_evenly
from interlingua.adapt.settings import ExtendSettings
from interlingua.adapt.text import adaptation_corpus_config, read_replay, read_sides, write_replay
from interlingua.errors import DataError
from tests.adapt.invented import write_lines


def settings(folder, *pairs, **changes):
    values = {"model": "m", "pairs": pairs, "language": "eus_Latn", "output": folder / "out"}
    return ExtendSettings(**(values | changes))


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("x.eu-en.tsv", "bat\tone"),
        ("x.en-eu.tsv", "one\tbat"),
        ("x.tsv", "bat\tone"),
        ("x.jsonl", '{"translation": {"en": "one", "eu": "bat"}}'),
    ],
)
def test_sides_are_told_apart_in_any_format(tmp_path, name, line):
    path = write_lines(tmp_path / name, [line])
    assert read_sides(settings(tmp_path, path)) == (["bat"], ["one"])


def test_moses_files_are_read(tmp_path):
    write_lines(tmp_path / "news.eu-en.eu", ["bat"])
    write_lines(tmp_path / "news.eu-en.en", ["one"])
    assert read_sides(settings(tmp_path, tmp_path / "news.eu-en")) == (["bat"], ["one"])


def test_pairs_of_other_languages_alone_are_an_error(tmp_path):
    path = write_lines(tmp_path / "x.de-fr.tsv", ["eins\tun"])
    with pytest.raises(DataError, match="deu_Latn-fra_Latn"):
        read_sides(settings(tmp_path, path))


def test_another_pivot_is_read(tmp_path):
    path = write_lines(tmp_path / "x.fr-eu.tsv", ["un\tbat"])
    assert read_sides(settings(tmp_path, path, pivot="fra_Latn")) == (["bat"], ["un"])


def test_the_corpus_takes_prompt_and_check_sets(tmp_path):
    path = write_lines(tmp_path / "x.tsv", ["bat\tone"])
    config = adaptation_corpus_config(
        settings(tmp_path, path, check=(tmp_path / "c",), seed=4), tmp_path / "m", "query: "
    )
    assert config.prompt == "query: "
    assert config.decontaminate == (tmp_path / "c",)
    assert config.languages == ("eus_Latn", "eng_Latn")
    assert config.sources[0].languages == ("eus_Latn", "eng_Latn")
    assert config.seed == 4


def test_replay_takes_texts_and_both_sides_of_pairs(tmp_path):
    texts = write_lines(tmp_path / "de.txt", ["eins", "zwei", "eins", "drei"])
    pairs = write_lines(tmp_path / "x.fr-it.tsv", ["un\tuno", "deux\tdue"])
    asked = settings(tmp_path, texts, replay=(texts, pairs), replay_sentences=2)
    assert read_replay(asked) == {
        "deu_Latn": ["eins", "zwei"],
        "fra_Latn": ["un", "deux"],
        "ita_Latn": ["uno", "due"],
    }


def test_replay_takes_a_table_in_one_language(tmp_path):
    table = write_lines(tmp_path / "de.csv", ["id,text", '1,"eins, zwei"', "2,drei"])
    assert read_replay(settings(tmp_path, table, replay=(table,))) == {
        "deu_Latn": ["eins, zwei", "drei"]
    }


def test_sentences_of_the_check_sets_are_not_replayed(tmp_path):
    texts = write_lines(tmp_path / "de.txt", ["Eins.", "zwei"])
    write_lines(tmp_path / "check" / "deu-eng.tsv", ["eins\tone"])
    asked = settings(tmp_path, texts, replay=(texts,), check=(tmp_path / "check",))
    assert read_replay(asked) == {"deu_Latn": ["zwei"]}
    write_lines(texts, ["eins!"])
    with pytest.raises(DataError, match="replay"):
        read_replay(asked)


def test_replay_files_carry_the_prompt_and_are_written_once(tmp_path):
    (tmp_path / "replay").mkdir()
    (path,) = write_replay(tmp_path / "replay", {"deu_Latn": ["ein  Haus", "zwei"]}, "query: ")
    assert path.read_text() == "query: ein Haus\nquery: zwei\n"


def test_samples_are_evenly_spread():
    assert sample_evenly(["a", "b", "c", "d", "e"], 3) == ["a", "c", "e"]
    assert sample_evenly(["a"], 3) == ["a"]
