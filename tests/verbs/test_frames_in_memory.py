"""Verbs on tables and columns in memory, and their results as tables."""

from __future__ import annotations

import numpy as np
import pytest

import interlingua
from interlingua.errors import ConfigError, DataError
from tests.tiny import tiny_encoder

pandas = pytest.importorskip("pandas")
GERMAN = [f"de{n} de{n + 1}" for n in range(8)]
ENGLISH = [f"en{n} en{n + 1}" for n in range(8)]


@pytest.fixture(scope="module")
def tiny(word_vocabulary):
    return tiny_encoder(word_vocabulary)


@pytest.fixture(scope="module")
def frame():
    return pandas.DataFrame({"de": GERMAN, "en": ENGLISH, "note": ["x"] * 8})


def test_columns_are_mined_as_lists_are(tiny, frame):
    pairs = interlingua.mine(tiny, frame["de"], frame["en"], checks=(), retrieval="forward")
    lists = interlingua.mine(tiny, GERMAN, ENGLISH, checks=(), retrieval="forward")
    assert pairs == lists
    assert len(pairs)
    found = pairs.to_pandas()
    assert found["source"].tolist() == [pair.source for pair in pairs]
    assert found["score"].tolist() == [pair.score for pair in pairs]


def test_columns_are_aligned_as_lists_are(tiny, frame):
    links = interlingua.align(tiny, frame["de"], frame["en"])
    assert links == interlingua.align(tiny, GERMAN, ENGLISH)
    texts = links.to_pandas()["source_text"]
    assert " ".join(texts[texts != ""]) == " ".join(GERMAN)


def test_the_pairs_of_a_table_are_scored_as_a_list_is(tiny, frame):
    expected = list(interlingua.score(tiny, zip(GERMAN, ENGLISH, strict=True), drop="none"))
    scored = interlingua.score(tiny, frame, drop="none").to_pandas()
    assert scored["score"].tolist() == [pair.score for pair in expected]
    named = interlingua.score(
        tiny, frame, source_column="de", target_column="en", cosine=True, drop="none"
    )
    assert [pair.source for pair in named] == GERMAN
    assert "\n" not in repr(named)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"source_column": "de"}, "target.column"),
        ({"source_column": "de", "target_column": "eng"}, "'en'"),
    ],
)
def test_columns_that_are_not_there_are_named(tiny, frame, options, named):
    with pytest.raises((ConfigError, DataError), match=named):
        list(interlingua.score(tiny, frame, **options))
    pairs = zip(GERMAN, ENGLISH, strict=True)
    with pytest.raises(ConfigError, match=r"source.column"):
        list(interlingua.score(tiny, pairs, source_column="de", target_column="en"))


def test_translations_in_a_table_are_evaluated_as_a_file_is(tiny, frame, tmp_path):
    lines = [f"{a}\t{b}\n" for a, b in zip(GERMAN, ENGLISH, strict=True)]
    (tmp_path / "pairs").mkdir()
    (tmp_path / "pairs" / "deu-eng.tsv").write_text("".join(lines), encoding="utf-8")
    options = {"output": None, "check": False}
    [by_file] = interlingua.evaluate(tiny, "tatoeba", tmp_path / "pairs", **options)
    found = interlingua.evaluate(tiny, data=frame[["de", "en"]], **options)
    assert found[0].main_score == by_file.main_score
    assert found[0].subsets[0].languages == by_file.subsets[0].languages
    row = found.to_pandas().iloc[0]
    assert (row["source_language"], row["pairs"]) == ("deu_Latn", 8)
    assert row["score"] == by_file.main_score
    assert "accuracy" in repr(found)
    with pytest.raises(DataError, match="rename"):
        interlingua.evaluate(
            tiny, data=frame[["de", "note"]].set_axis(["left", "right"], axis=1), **options
        )


def test_arrays_are_debiased_as_files_are(tmp_path):
    draw = np.random.default_rng(0)
    vectors = draw.normal(size=(200, 8)).astype(np.float32)
    vectors[:100] += 2
    labels = ["de"] * 100 + ["en"] * 100
    np.save(tmp_path / "vectors.npy", vectors)
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n")
    interlingua.debias(
        vectors=tmp_path / "vectors.npy", labels=tmp_path / "labels.txt", output=tmp_path / "out"
    )
    found = interlingua.debias(vectors=vectors, labels=labels)
    assert np.array_equal(found.vectors, np.load(tmp_path / "out" / "vectors.npy"))
    assert np.array_equal(np.asarray(found), found.vectors)
    by_map = interlingua.debias(vectors=vectors, map=tmp_path / "out")
    assert np.allclose(by_map.vectors, found.vectors, atol=1e-5)
    assert "200 vectors" in repr(found)
    with pytest.raises(DataError, match="99 labels for 200 vectors"):
        interlingua.debias(vectors=vectors, labels=labels[:99])
    with pytest.raises(ConfigError, match="output"):
        interlingua.debias(vectors=vectors, labels=labels, output=tmp_path / "b")


def test_a_text_is_split_in_any_code_of_its_language():
    text = "Das ist z.B. kurz. Am 3. Mai kam er."
    assert interlingua.split(text, "de") == ["Das ist z.B. kurz.", "Am 3. Mai kam er."]
    assert interlingua.split(text, "deu_Latn") == interlingua.split(text, "de")
    assert interlingua.split("One. Two.\n\nThree") == ["One.", "Two.", "Three"]
    with pytest.raises(ConfigError, match="one text"):
        interlingua.split(["One. Two."])
    with pytest.raises(DataError, match="Germn"):
        interlingua.split("Eins.", "Germn")
    with pytest.raises(ConfigError, match="'language'"):
        interlingua.split("One.", langage="en")


def test_a_table_without_rows_is_no_set_of_translations(tiny, frame):
    with pytest.raises(DataError, match=r"^data: .*empty"):
        interlingua.evaluate(tiny, data=frame[:0], output=None)
