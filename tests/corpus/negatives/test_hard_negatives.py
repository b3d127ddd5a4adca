from __future__ import annotations

import hashlib
import random
from collections import Counter

import pytest

from interlingua.corpus.cleaning.keys import text_key
from interlingua.corpus.negatives.hard_negatives import (
    _PORTION,
    NEGATIVE_KINDS,
    Altered,
    Alterer,
    hard_negatives,
)
from interlingua.errors import ConfigError

TEXTS = [
    "In 1984 the old king of Denmark was not in Paris.",
    "Then Anna Berg sold 25 large houses in Oslo to Karl Lund.",
    "It is always warm in Rome before the summer, said Maria Holm.",
    "The old dog bites the young man.",
    "The young man bites the old dog.",
]


def test_every_kind_by_hand():
    made = list(hard_negatives(TEXTS, "en", per_sentence=50))
    assert set(Counter(one.kind for one in made)) == set(NEGATIVE_KINDS)
    for text, original, kind in (
        ("In 1984 the old king of Denmark was in Paris.", TEXTS[0], "negation"),
        ("Then Anna Berg sold 25 small houses in Oslo to Karl Lund.", TEXTS[1], "antonym"),
        ("Then Maria Holm sold 25 large houses in Oslo to Karl Lund.", TEXTS[1], "entity"),
    ):
        assert Altered(text, original, kind) in made
    years = [one.text for one in made if one[1:] == (TEXTS[0], "number")]
    assert all(text[:5] == "In 19" and text[7:] == TEXTS[0][7:] for text in years)


@pytest.mark.parametrize("language", ["en", "zh", "th", "kab", "ar"])
def test_no_negative_is_any_sentence_or_another_negative(language):
    made = list(hard_negatives(TEXTS, language, per_sentence=50))
    keys = [text_key(text) for text in (*TEXTS, *(one.text for one in made))]
    assert len(set(keys)) == len(keys)
    assert {one.original for one in made} <= set(TEXTS)
    swapped = "The young dog bites the old man."  # would have come of the last two otherwise
    assert sum(one.text == swapped for one in made) <= 1
    assert TEXTS[4] not in {one.text for one in made}


def test_a_pure_function_of_the_seed():
    assert list(hard_negatives(TEXTS, "en")) == list(hard_negatives(TEXTS, "eng_Latn", seed=1))
    assert list(hard_negatives(TEXTS, "en")) != list(hard_negatives(TEXTS, "en", seed=2))
    alone = list(hard_negatives(TEXTS[:1], "en", kinds=["number"]))
    among = [one for one in hard_negatives(TEXTS[::-1], "en") if one[1:] == (TEXTS[0], "number")]
    assert alone == among
    text = "\n".join("\t".join(one) for one in hard_negatives(TEXTS, "en"))
    # a change here changes results: raise the version of xsim_pp_generated with it
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "98afd1cba9fdcba1"


def test_at_most_so_many_of_a_kind():
    made = hard_negatives(TEXTS, "en", per_sentence=2)
    counts = Counter((one.original, one.kind) for one in made)
    assert max(counts.values()) == 2
    assert {kind for _, kind in counts} == set(NEGATIVE_KINDS)
    only = {one.kind for one in hard_negatives(TEXTS, "en", kinds=["entity", "number"])}
    assert only == {"entity", "number"}


def test_languages_without_a_lexicon_lack_its_kinds():
    assert {one.kind for one in hard_negatives(TEXTS, "kab")} == {"number", "entity", "word_order"}


def test_more_than_a_portion_read_anew_each_time():
    class Lines:
        """A corpus that is nowhere in memory."""

        def __init__(self):
            self.readings = 0

        def __iter__(self):
            self.readings += 1
            return (f"Line {10**9 + n} of the long list" for n in range(2 * _PORTION + 1))

    lines = Lines()
    made = hard_negatives(lines, "en", kinds=["number", "entity"], per_sentence=1)
    first = next(made)
    assert first.original == "Line 1000000000 of the long list"
    assert lines.readings == 3  # names, keys, and the one under way
    assert len({one.original for one in (first, *made)}) == 2 * _PORTION + 1


def test_an_iterator_is_refused():
    with pytest.raises(TypeError, match="several times"):
        next(hard_negatives(iter(TEXTS), "en"))


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"kinds": ["numbers"]}, "kinds: .*number, entity.* numbers"),
        ({"kinds": []}, "found none"),
        ({"per_sentence": 0}, "per_sentence: .* 1, found 0"),
    ],
)
def test_requests_that_make_no_sense(asked, message):
    with pytest.raises(ConfigError, match=message):
        next(hard_negatives(TEXTS, "en", **asked))


def test_an_alterer_takes_one_of_each_kind_before_a_second():
    alterer = Alterer(TEXTS, "en", kinds=("number", "negation", "word_order"))
    forms = alterer.forms(TEXTS[0], 3, random.Random(1))
    assert sorted(one.kind for one in forms) == ["negation", "number", "word_order"]
    assert {one.original for one in forms} == {TEXTS[0]}
    more = alterer.forms(TEXTS[0], 6, random.Random(1))
    assert len({text_key(one.text) for one in more} | {text_key(TEXTS[0])}) == 7
    assert Alterer(TEXTS, "en", kinds=("number",)).forms("Yes.", 2, random.Random(1)) == []


def test_an_alterer_depends_on_the_draw_alone():
    alterer = Alterer(TEXTS, "en")
    first = alterer.forms(TEXTS[1], 2, random.Random(5))
    alterer.forms(TEXTS[2], 2, random.Random(9))
    assert alterer.forms(TEXTS[1], 2, random.Random(5)) == first
    with pytest.raises(ConfigError, match="kinds"):
        Alterer(TEXTS, "en", kinds=("spelling",))
