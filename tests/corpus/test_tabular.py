from collections import Counter

import pytest

from interlingua.corpus.formats import TextPair, read_pairs, write_pairs
from interlingua.corpus.tabular import pair_of_object, pair_of_translation
from interlingua.errors import DataError

from .conftest import write


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
        ("eins\tone\nzwei\n", 2, "1 columns, expected 2"),
        ("eins\tone\nzwei\ttwo\tdrei\n", 2, "3 columns, expected 2"),
        ("eins\n", 1, "1 columns, expected source<TAB>target"),
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
            "score is",
        ),
        ('{"translation": {"de": "a", "en": "b", "fr": "c"}}', "holds 3 languages"),
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
    with pytest.raises(ValueError, match="not a text"):
        pair_of_translation({"de": None, "en": "b"}, None, None)


def test_the_objects_own_languages_come_before_the_given_ones():
    item = {"source": "a", "target": "b", "source_language": "fr"}
    assert pair_of_object(item, "deu_Latn", "eng_Latn").source_language == "fra_Latn"


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
