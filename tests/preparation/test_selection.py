import dataclasses

import numpy as np
import pytest

from interlingua.corpus.cleaning.near_duplicates import NearDuplicates
from interlingua.corpus.formats.bad_lines import BadLines
from interlingua.errors import DataError
from interlingua.preparation.config import (
    DeduplicateConfig,
    SourceConfig,
    SplitConfig,
    VocabularyConfig,
)
from interlingua.preparation.ingest import ingest
from interlingua.preparation.progress import StageProgress
from interlingua.preparation.selection import drop_near_duplicates, select
from interlingua.preparation.shards import Fate, Shard
from interlingua.runtime.workers import Workers
from tests.preparation.conftest import config_for, sentences, shard_of, write_tsv


def selected(tmp_path, config):
    """Return the rows of each outcome as (source, target), and the findings of decontamination."""
    folder = tmp_path / "work"
    folder.mkdir(parents=True, exist_ok=True)
    shards, _ = ingest(config, folder, StageProgress(), BadLines())
    decontaminated = select(shards, config, folder, StageProgress())
    rows = {fate.name: [] for fate in Fate}
    for shard in shards:
        for fate in Fate:
            for block in shard.blocks(shard.fates == fate):
                rows[fate.name] += zip(*block, strict=True)
    return rows, decontaminated


def no_split(**changes):
    return {"heldout": SplitConfig(), "validation": SplitConfig()} | changes


def test_exact_duplicates_go_whatever_the_case_and_the_direction(tmp_path):
    write_tsv(
        tmp_path / "de-en.news.tsv",
        [("das Haus", "the house"), ("ein Baum", "a tree"), ("Das Haus.", "The house!")],
    )
    write_tsv(tmp_path / "en-de.talks.tsv", [("the house", "das Haus"), ("a stone", "ein Stein")])
    rows, _ = selected(tmp_path, config_for(tmp_path, tmp_path, **no_split()))
    assert rows["train"] == [
        ("das Haus", "the house"),
        ("ein Baum", "a tree"),
        ("ein Stein", "a stone"),
    ]
    assert len(rows["duplicate"]) == 2


def test_pairs_whose_numbers_differ_in_a_sign_are_no_duplicates(tmp_path):
    costs = [
        ("es kostet 1,5 Euro", "it costs 1.5 euros"),
        ("es kostet 15 Euro", "it costs 15 euros"),
    ]
    write_tsv(tmp_path / "en-de.talks.tsv", [("a stone", "ein Stein")])
    write_tsv(tmp_path / "de-en.news.tsv", [*costs, ("Es kostet 1.5 Euro.", "it costs 1.5 euros")])
    rows, _ = selected(tmp_path, config_for(tmp_path, tmp_path, **no_split()))
    assert rows["train"] == [*costs, ("ein Stein", "a stone")]
    assert len(rows["duplicate"]) == 1


def scored(tmp_path, count=40):
    rows = sentences(count)
    score_of = {(row[1], row[0]): (7 * n) % count for n, row in enumerate(rows)}
    path = write_tsv(tmp_path / "de-en.news.tsv", [(n, *pair) for pair, n in score_of.items()])
    return path, score_of


@pytest.mark.parametrize("weight", [1.0, 0.5])
def test_max_pairs_keeps_the_best_scored(tmp_path, weight):
    """Find the five best of a random half, which the draw does not know."""
    path, score_of = scored(tmp_path)
    source = SourceConfig(paths=(path,), weight=weight, max_pairs=5, max_pairs_by="score")
    rows, _ = selected(tmp_path, config_for(tmp_path, tmp_path, sources=(source,), **no_split()))
    kept, others = ([score_of[row] for row in rows[fate]] for fate in ("train", "over_max_pairs"))
    assert len(kept) == 5
    assert min(kept) > max(others)
    assert len(rows["over_weight"]) == 40 * (1 - weight)
    if weight == 1:
        assert sorted(kept) == [35, 36, 37, 38, 39]


def test_equal_scores_are_drawn_by_the_seed(tmp_path):
    path, score_of = scored(tmp_path)
    write_tsv(path, [(1, *pair) for pair in score_of])
    source = SourceConfig(paths=(path,), max_pairs=5, max_pairs_by="score")
    drawn = []
    for seed in (0, 0, 1):
        folder = tmp_path / f"run{len(drawn)}"
        config = config_for(tmp_path, tmp_path, sources=(source,), seed=seed, **no_split())
        drawn.append(selected(folder, config)[0]["train"])
    assert drawn[0] == drawn[1] != drawn[2]


def two_sources(tmp_path, first, **second):
    """Write German with 30 pairs in the second source, 12 of them also in the first.

    French in the second only.
    """
    rows = sentences(30)
    path = write_tsv(tmp_path / "de-en.human.tsv", [(row[1], row[0]) for row in rows[:first]])
    human = SourceConfig(paths=(path,), name="human")
    scored = list(enumerate(rows))
    paths = (
        write_tsv(tmp_path / "de-en.mined.tsv", [(n, row[1], row[0]) for n, row in scored]),
        write_tsv(tmp_path / "en-fr.mined.tsv", [(n, row[0], row[2]) for n, row in scored]),
    )
    mined = SourceConfig(paths=paths, name="mined", **second)
    return config_for(tmp_path, tmp_path, sources=(human, mined), **no_split()), rows


@pytest.mark.parametrize(
    ("human", "floor", "german", "french"), [(12, 20, 20, 20), (30, 20, 30, 20), (1, 99, 30, 30)]
)
def test_fill_to_adds_only_what_is_lacking(tmp_path, human, floor, german, french):
    """Check a floor, which is never a cap of the first source.

    Duplicates of the first source don't count twice.
    """
    config, rows = two_sources(tmp_path, human, fill_to=floor)
    train = selected(tmp_path, config)[0]["train"]
    assert sum(row[0].split()[0].endswith("en") for row in train) == german
    assert sum(row[0].split()[0].endswith("eau") for row in train) == french
    assert {(german, english) for english, german, _ in rows[:human]} <= set(train)
    assert len(set(train)) == len(train)


def test_fill_to_takes_the_best_scored(tmp_path):
    config, rows = two_sources(tmp_path, 12, fill_to=15, max_pairs_by="score")
    found = selected(tmp_path, config)[0]
    best = {(german, english) for english, german, _ in rows[-3:]}
    assert set(found["train"]) & {(german, english) for english, german, _ in rows[12:]} == best
    assert len(found["over_fill_to"]) == (30 - 15) + (30 - 15)


def test_only_missing_is_for_pairs_without_others(tmp_path):
    config, rows = two_sources(tmp_path, 12, only_missing=True)
    found = selected(tmp_path, config)[0]
    assert sorted(found["train"]) == sorted(
        [(german, english) for english, german, _ in rows[:12]]
        + [(french, english) for english, _, french in rows]
    )
    assert len(found["in_earlier_source"]) == 30 - 12


def test_near_duplicates_go_where_asked(tmp_path):
    german = "der alte Mann ging langsam über die lange Brücke nach Hause"
    english = "the old man walked home over the long bridge"
    write_tsv(
        tmp_path / "de-en.news.tsv",
        [(german, english), (german + " heim", english), ("ganz anderes", "another thing")],
    )
    write_tsv(tmp_path / "fr-en.talks.tsv", [("une autre chose", "another thing")])
    config = config_for(tmp_path, tmp_path, **no_split())
    assert selected(tmp_path / "a", config)[0]["near_duplicate"] == []
    near = dataclasses.replace(config, deduplicate=DeduplicateConfig(near=True, threshold=0.8))
    rows, _ = selected(tmp_path / "b", near)
    assert rows["near_duplicate"] == [(german + " heim", english)]
    assert len(rows["train"]) == 3


def test_sentences_of_an_evaluation_set_go_on_either_side(tmp_path):
    write_tsv(
        tmp_path / "de-en.news.tsv",
        [("das Haus", "the house"), ("ein Baum", "a tree"), ("ein Stein", "a stone")],
    )
    write_tsv(tmp_path / "fr-en.talks.tsv", [("une pierre", "a  Stone")])
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "deu-eng.tsv").write_text("Das Haus!\tIt is a house.\nfoo\tA stone?\n")
    (tmp_path / "set" / "README.md").write_text("ein Baum\n")
    rows, counts = selected(
        tmp_path, config_for(tmp_path, tmp_path, **no_split(decontaminate=(tmp_path / "set",)))
    )
    assert rows["train"] == [("ein Baum", "a tree")]
    assert counts == ({"set": 3}, (str(tmp_path / "set" / "README.md"),))


def test_weights_and_caps_are_per_language_pair_and_exact(tmp_path, corpus):
    sources = (
        SourceConfig(paths=(corpus / "*.news.tsv",), weight=0.5),
        SourceConfig(paths=(corpus / "*.talks.tsv",), weight=0.5, max_pairs=40),
    )
    rows, _ = selected(tmp_path, config_for(tmp_path, corpus, **no_split(sources=sources)))
    assert len(rows["train"]) == 150 + 40
    assert (len(rows["over_weight"]), len(rows["over_max_pairs"])) == (300, 110)
    assert sum(german.endswith("en") for german, _ in rows["train"]) == 150


def test_no_sentence_of_a_split_is_in_training_on_either_side(tmp_path, corpus):
    rows, _ = selected(tmp_path, config_for(tmp_path, corpus))
    assert len(rows["heldout"]) == 40
    assert len(rows["valid"]) == 20
    sides = {
        name: {text for row in rows[name] for text in row} for name in ("train", "heldout", "valid")
    }
    assert not sides["train"] & (sides["heldout"] | sides["valid"])
    assert not sides["heldout"] & sides["valid"]
    # Both language pairs hold out translations of the same English sentences, so nothing else is
    # lost.
    assert rows["in_heldout_or_valid"] == []
    assert len(rows["train"]) == 600 - 60


def test_the_seed_and_nothing_else_decides(tmp_path, corpus):
    config = config_for(tmp_path, corpus)
    runs = []
    for number, seed in enumerate((0, 0, 1)):
        runs.append(selected(tmp_path / str(number), dataclasses.replace(config, seed=seed))[0])
    assert runs[0] == runs[1]
    assert runs[0]["heldout"] != runs[2]["heldout"]


def test_split_options(tmp_path):
    rows = [(german, english) for english, german, _ in sentences(60)]
    short = [(f"Wort{chr(97 + i)}", f"word{chr(98 + i)}") for i in range(20)]
    write_tsv(tmp_path / "de-en.news.tsv", [*rows, *short])
    write_tsv(tmp_path / "de-en.talks.tsv", [(row[1], row[0]) for row in sentences(60, 1, " now")])
    write_tsv(tmp_path / "de-fr.talks.tsv", [(row[1], row[2]) for row in sentences(60, 2)])
    talks_too = config_for(
        tmp_path, tmp_path, heldout=SplitConfig(pairs=1000, short_pairs=3), validation=SplitConfig()
    )
    found = selected(tmp_path / "a", talks_too)[0]["heldout"]
    # max_share of the 140 German-English pairs
    assert sum(" " in english for _, english in found) == 28
    assert sum(" " not in english for _, english in found) == 3
    assert not any(french.endswith("eau") for _, french in found)

    sources = (talks_too.sources[0], dataclasses.replace(talks_too.sources[1], heldout=False))
    all_languages = SplitConfig(pairs=5, english_only=False)
    other = dataclasses.replace(talks_too, sources=sources, heldout=all_languages)
    found = selected(tmp_path / "b", other)[0]["heldout"]
    assert len(found) == 5
    assert not any(english.endswith(("now", "eau")) for _, english in found)


def test_an_earlier_rule_has_the_row():
    shard = Shard(None, 0, 0, ("deu_Latn", "eng_Latn"), rows=3, fates=np.zeros(3, np.uint8))
    shard.drop(np.array([True, True, False]), Fate.duplicate)
    shard.drop(np.array([False, True, True]), Fate.near_duplicate)
    assert shard.fates.tolist() == [Fate.duplicate, Fate.duplicate, Fate.near_duplicate]


def test_an_empty_corpus_is_no_crash(tmp_path):
    assert select([], config_for(tmp_path, tmp_path), tmp_path, StageProgress()) == ({}, ())
    absent = config_for(tmp_path, tmp_path, decontaminate=(tmp_path / "none",))
    with pytest.raises(DataError, match="none: evaluation folder"):
        select([], absent, tmp_path, StageProgress())


def test_weights_hold_over_the_shards_of_a_source_together(tmp_path, corpus, monkeypatch):
    sources = (SourceConfig(paths=(corpus / "*.news.tsv",), weight=0.5, max_pairs=40),)
    config = config_for(tmp_path, corpus, **no_split(sources=sources))
    whole, _ = selected(tmp_path / "a", config)
    monkeypatch.setattr("interlingua.preparation.ingest.SHARD_ROWS", 100)
    monkeypatch.setattr("interlingua.preparation.sources.CHUNK_PAIRS", 50)
    parts, _ = selected(tmp_path / "b", config)
    assert len(list((tmp_path / "b" / "work").glob("*.tsv"))) == 3
    assert parts == whole
    names = ("train", "over_weight", "over_max_pairs")
    assert [len(parts[name]) for name in names] == [40, 150, 110]


def test_long_pairs_are_dropped_before_limits_count(tmp_path, word_vocabulary):
    """Make a side of every second pair 12 words long. The source's limit may take none."""
    word_vocabulary.save(tmp_path / "vocabulary")
    rows = sentences(20)
    long = {english for english, _, _ in rows[::2]}
    pairs = [(german + " noch" * (7 * (english in long)), english) for english, german, _ in rows]
    source = SourceConfig(paths=(write_tsv(tmp_path / "de-en.news.tsv", pairs),), max_pairs=8)
    vocabulary = VocabularyConfig(path=str(tmp_path / "vocabulary"))
    config = config_for(
        tmp_path, tmp_path, sources=(source,), vocabulary=vocabulary, max_tokens=9, **no_split()
    )
    found = selected(tmp_path / "cut", config)[0]
    assert found["over_max_tokens"] == []
    assert long & {english for _, english in found["train"]}
    found = selected(tmp_path / "drop", dataclasses.replace(config, long_pairs="drop"))[0]
    assert {english for _, english in found["over_max_tokens"]} == long
    assert len(found["train"]) == 8
    assert not long & {english for _, english in found["train"]}


def test_the_later_pair_goes_across_shards_and_dropped_rows_count_for_nothing(tmp_path):
    german = "der alte Mann ging langsam nach Hause"
    english = "the old man walked home slowly that evening"
    first = shard_of(tmp_path, 0, [("etwas anderes", "something else"), (german, english)])
    near = [(german + "!", english + "s"), ("noch etwas", "yet another"), (german, english + "t")]
    second = shard_of(tmp_path, 1, near)
    second.fates[0] = Fate.duplicate
    drop_near_duplicates([first, second], 0.8, tmp_path / "near", StageProgress(), Workers())
    assert first.fates.tolist() == [0, 0]
    assert second.fates.tolist() == [Fate.duplicate, 0, Fate.near_duplicate]
    assert list((tmp_path / "near").iterdir()) == []


def test_one_equal_side_is_not_enough(tmp_path):
    english = "the old man walked home slowly that evening"
    rows = [
        ("der alte Mann ging an jenem Abend langsam heim", english),
        ("sehr gemächlich lief der Greis nach Hause", english),
    ]
    shard = shard_of(tmp_path, 0, rows)
    drop_near_duplicates([shard], 0.8, tmp_path / "near", StageProgress(), Workers())
    assert shard.fates.tolist() == [0, 0]


def test_an_error_leaves_no_index_behind(tmp_path, monkeypatch):
    def broken(self, hashed):
        raise OSError("No space left on device")

    monkeypatch.setattr(NearDuplicates, "append", broken)
    shard = shard_of(tmp_path, 0, [("ein Haus", "a house")])
    with pytest.raises(OSError, match="No space left"):
        drop_near_duplicates([shard], 0.8, tmp_path / "near", StageProgress(), Workers())
    assert list((tmp_path / "near").iterdir()) == []
