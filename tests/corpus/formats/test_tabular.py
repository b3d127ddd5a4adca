from collections import Counter

import pytest

from interlingua.corpus.formats.bitext import TextPair, pair_fields, read_pairs, write_pairs
from interlingua.corpus.formats.tabular import pair_of_object, pair_of_translation
from interlingua.errors import ConfigError, DataError
from tests.corpus.conftest import write


def test_scored_tsv(tmp_path):
    path = write(tmp_path / "x.de-en.tsv", "1.25\teins\tone\r\n0.5\tzwei\ttwo\n")
    assert list(read_pairs(path)) == [
        TextPair("eins", "one", "deu_Latn", "eng_Latn", 1.25),
        TextPair("zwei", "two", "deu_Latn", "eng_Latn", 0.5),
    ]
    again = tmp_path / "y.de-en.tsv"
    write_pairs(read_pairs(path), again)
    assert again.read_text() == "1.25\teins\tone\n0.5\tzwei\ttwo\n"


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("eins\tone\nzwei\n", 2, "1 column, expected 2"),
        ("eins\tone\nzwei\ttwo\tdrei\n", 2, "3 columns, expected 2"),
        ("eins\n", 1, "1 column, expected source<TAB>target"),
        ("a\tb\tc\td\n", 1, "4 columns"),
        ("eins\tone\tuno\n", 1, "expected a score"),
        ("1.0\teins\tone\nx\tzwei\ttwo\n", 2, "expected a score"),
    ],
)
def test_broken_tsv_names_the_line(tmp_path, text, line, message):
    path = write(tmp_path / "x.de-en.tsv", text)
    with pytest.raises(DataError, match=message) as caught:
        list(read_pairs(path))
    assert str(caught.value).startswith(f"{path}:{line}: ")


def test_blank_lines_are_counted(tmp_path):
    skipped = Counter()
    path = write(tmp_path / "x.de-en.tsv", "eins\tone\n\nzwei\ttwo\n\n")
    assert len(list(read_pairs(path, skipped=skipped))) == 2
    assert skipped == {"empty line": 2}


def test_tabs_and_line_ends_in_a_text_become_spaces(tmp_path):
    path = tmp_path / "x.de-en.tsv"
    write_pairs([TextPair("a\tb", "c\nd", "deu_Latn", "eng_Latn")], path)
    assert path.read_text() == "a b\tc d\n"


def test_jsonl_keys(tmp_path):
    keys = {"source": "eins", "target": "one", "source_language": "de", "target_language": "en"}
    french = {"translation": {"fr": "deux", "en": "two"}}
    path = write(tmp_path / "x.jsonl", keys | {"score": 1, "id": 3}, "", french)
    assert list(read_pairs(path)) == [
        TextPair("eins", "one", "deu_Latn", "eng_Latn", 1.0),
        TextPair("deux", "two", "fra_Latn", "eng_Latn"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting"),
        ("[1]", "expected an object"),
        ('{"source": "a"}', "the key 'target' is missing"),
        ('{"source": "a", "target": 1}', "'target' is not"),
        ('{"source": "a", "target": "b"}', "languages are unknown"),
        (
            '{"source": "a", "target": "b", "source_language": "de", "target_language": "qqq"}',
            "qqq",
        ),
        (
            '{"source": "a", "target": "b", "source_language": "de", "target_language": "en",'
            ' "score": "x"}',
            "score: ",
        ),
        ('{"translation": {"de": "a", "en": "b", "fr": "c"}}', "3 languages"),
    ],
)
def test_broken_jsonl_names_the_line(tmp_path, text, message):
    path = write(tmp_path / "x.jsonl", {"translation": {"fr": "deux", "en": "two"}}, text)
    with pytest.raises(DataError, match=message) as caught:
        list(read_pairs(path))
    assert str(caught.value).startswith(f"{path}:2: ")


def test_two_of_many_translations_are_chosen_by_name():
    codes = ("fra_Latn", "deu_Latn")
    found = pair_of_translation({"de": "a", "en": "b", "fr": "c"}, *codes)
    assert found == TextPair("c", "a", *codes)
    with pytest.raises(ValueError, match="not text"):
        pair_of_translation({"de": None, "en": "b"}, None, None)


def test_the_objects_own_languages_come_before_the_given_ones():
    item = {"source": "a", "target": "b", "source_language": "fr"}
    assert pair_of_object(item, "deu_Latn", "eng_Latn").source_language == "fra_Latn"


def test_further_variants_of_a_translation_stay_with_the_pair(tmp_path):
    texts_of_unit = {"en": "road", "de-DE": "Straße", "de-CH": "Strasse", "fr": "rue"}
    path = write(tmp_path / "x.jsonl", {"id": 7, "translation": texts_of_unit})
    (pair,) = read_pairs(path, source_language="en", target_language="de-CH")
    assert (pair.target, pair_fields(pair)) == ("Strasse", {"de-DE": "Straße", "id": 7})


def test_regions_of_json_are_requested_by_them(tmp_path):
    texts_of_unit = {"en-US": "color", "en-GB": "colour", "de-CH": "Strasse"}
    path = write(tmp_path / "x.jsonl", {"translation": texts_of_unit})
    (pair,) = read_pairs(path, source_language="en-GB", target_language="en-US")
    assert pair[:2] == ("colour", "color")
    row = {"source": "a", "target": "b", "source_language": "en", "target_language": "de-CH"}
    path = write(tmp_path / "y.jsonl", row, row | {"target_language": "de-DE"})
    skipped = Counter()
    (pair,) = read_pairs(path, source_language="de-CH", target_language="en", skipped=skipped)
    assert (pair[:2], pair.source_language.region) == (("b", "a"), "CH")
    assert skipped == {"other languages": 1}


FIVE = "http://a\thttp://b\tHallo\tHello\t0.9\nhttp://c\thttp://d\tJa\tYes\t0.8\n"


@pytest.mark.parametrize(
    ("name", "content", "columns", "found", "fields"),
    [
        ("x.de-en.tsv", "de\ten\nHallo\tHello\n", None, [("Hallo", "Hello", None)], {}),
        ("x.de-en.tsv", "en\tde\nHello\tHallo\n", None, [("Hello", "Hallo", None)], {}),
        (
            "x.de-en.tsv",
            "score\tsource\ttarget\n0.9\tHallo\tHello\n",
            None,
            [("Hallo", "Hello", 0.9)],
            {},
        ),
        (
            "x.de-en.tsv",
            "id\tanchor\tpositive\turl\n7\tHallo\tHello\tu\n",
            None,
            [("Hallo", "Hello", None)],
            {"id": "7", "url": "u"},
        ),
        (
            "x.de-en.tsv",
            FIVE,
            ("3", "4"),
            [("Hallo", "Hello", None), ("Ja", "Yes", None)],
            {"column 1": "http://a", "column 2": "http://b", "column 5": "0.9"},
        ),
        ("x.fra-eng.txt", "Va !\tGo.\tCC-BY\n", ("1", "2"), [("Va !", "Go.", None)], None),
        ("x.de-en.tsv", "a\tb\tc\n1\tHallo\tHello\n", ("b", "c"), [("Hallo", "Hello", None)], None),
        ("x.de-en.csv", "1,2,Hallo,Hello\n", ("3", "4"), [("Hallo", "Hello", None)], None),
        (
            "x.de-en.jsonl",
            '{"anchor": "Hallo", "positive": "Hello", "id": [1]}\n',
            None,
            [("Hallo", "Hello", None)],
            {"id": [1]},
        ),
        ("x.jsonl", '{"de": "Hallo", "en": "Hello"}\n', None, [("Hallo", "Hello", None)], {}),
        (
            "x.fr-de.jsonl",
            '{"english": "Hello", "non_english": "Hallo"}\n',
            None,
            [("Hello", "Hallo", None)],
            {},
        ),
        ("x.de-en.jsonl", '{"q": "a", "r": "b", "score": 1}\n', ("q", "r"), [("a", "b", 1.0)], {}),
        ("x.de-en.json", '[{"src": "a",\n "tgt": "b"}]', None, [("a", "b", None)], {}),
    ],
)
def test_columns_by_name_and_number(tmp_path, name, content, columns, found, fields):
    (tmp_path / name).write_text(content, encoding="utf-8")
    given = {}
    if "non_english" in content:
        given = {"source_language": "en", "target_language": "de"}
    pairs = list(read_pairs(tmp_path / name, columns=columns, **given))
    assert [(pair.source, pair.target, pair.score) for pair in pairs] == found
    if fields is not None:
        assert pair_fields(pairs[0]) == fields


@pytest.mark.parametrize(
    ("name", "content", "columns", "message"),
    [
        ("x.de-en.tsv", FIVE, None, "5 columns.*--source-column"),
        ("x.fra-eng.txt", "Va !\tGo.\tCC-BY\n", None, "a score.*--source-column"),
        ("x.de-en.csv", "1,2,Hallo,Hello\n", None, "4 cells.*--source-column"),
        ("x.de-en.jsonl", '{"a": "Hallo", "b": "Hello"}\n', None, "'source'.*--source-column"),
        ("x.de-en.tsv", FIVE, ("3", "6"), "'6'.*1 to 5"),
        ("x.de-en.tsv", FIVE, ("3", "3"), "'3'"),
        ("x.de-en.jsonl", '{"a": "Hallo", "b": "Hello"}\n', ("a", "c"), "'c'.*a, b"),
        ("x.de-en.tmx", "", ("1", "2"), "tmx has none"),
    ],
)
def test_columns_that_are_not_known_name_the_option(tmp_path, name, content, columns, message):
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises((ConfigError, DataError), match=message):
        list(read_pairs(tmp_path / name, columns=columns))


@pytest.mark.parametrize("name", ["x.de-en.tsv", "x.csv", "x.jsonl", "x.tmx"])
def test_other_columns_of_a_pair_are_written(tmp_path, name):
    row = {"source": "Ja", "target": "Yes", "source_language": "de", "target_language": "en"}
    path = write(tmp_path / "in.jsonl", row | {"id": 7, "url": "u"}, row | {"id": 8})
    write_pairs(read_pairs(path), tmp_path / name)
    first, second = read_pairs(tmp_path / name)
    assert {key: str(value) for key, value in pair_fields(first).items()} == {"id": "7", "url": "u"}
    assert str(pair_fields(second)["id"]) == "8"


def test_two_words_that_are_also_languages_are_no_header_of_a_file_of_others(tmp_path):
    path = write(tmp_path / "x.es-en.tsv", "no\tin\nsí\tyes\n")
    assert [pair[:2] for pair in read_pairs(path)] == [("no", "in"), ("sí", "yes")]
