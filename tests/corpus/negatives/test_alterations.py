from __future__ import annotations

import itertools
import random

import pytest

from interlingua.corpus.negatives.alterations import (
    in_word,
    other_numbers,
    other_order,
    other_phrases,
    word_like,
)
from interlingua.corpus.negatives.contrasts import contrasts


def take(forms, count=300):
    return list(itertools.islice(forms, count))


def draw(seed=1):
    return random.Random(seed)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("9 of 9", {f"{n} of 9" for n in range(1, 9)} | {f"9 of {n}" for n in range(1, 9)}),
        ("page 0", {f"page {n}" for n in range(1, 10)}),
        ("on 30 May", {f"on {n} May" for n in range(10, 32) if n != 30}),
        ("in 1985", {f"in 19{n:02}" for n in range(100) if n != 85}),
        ("about 00", {f"about {n:02}" for n in range(1, 100)}),
    ],
)
def test_numbers_keep_their_length(text, expected):
    assert set(take(other_numbers(text, draw()), 2000)) == expected


@pytest.mark.parametrize("zero", ["٠", "०", "๐", "০", "０", "𝟎"])
def test_numbers_stay_in_their_script(zero):
    digits = [chr(ord(zero) + n) for n in range(10)]
    old = digits[4] + digits[7] + digits[2]
    for form in take(other_numbers(f"a {old} b", draw())):
        new = form[2:-2]
        assert len(new) == 3
        assert set(new) <= set(digits)
        assert new != old
        assert new[0] != zero


def test_numbers_grown_together_with_letters():
    assert take(other_numbers("the 21st of A4 and H5N1", draw())) == []
    decades = take(other_numbers("1980s", draw()))
    assert all(form.endswith("s") and form.startswith("19") for form in decades)
    assert take(other_numbers("在2023年", draw())) != []
    assert take(other_numbers("no number", draw())) == []
    assert take(other_numbers("1" * 19, draw())) == []


NOT_ALL = {"All is lost", "Not none is lost", "Not all is not lost"}
MINE = {"It is mine, you can't", "It isn\u2019t mine, you can"}


@pytest.mark.parametrize(
    ("text", "kind", "language", "expected"),
    [
        # A negation comes and goes.
        ("It is not large.", "negation", "en", {"It is large."}),
        ("Not all is lost", "negation", "en", NOT_ALL),
        ("It isn\u2019t mine, you can't", "negation", "en", MINE),
        ("Она не была там", "negation", "ru", {"Она была там"}),
        ("C'est à l'est, il est là", "negation", "fr", {"C'est à l'est, il n'est pas là"}),
        ("这不是问题", "negation", "zh", {"这是问题"}),
        # Antonyms keep the case of what was there.
        ("Before noon", "antonym", "en", {"After noon"}),
        ("BIG news", "antonym", "en", {"SMALL news"}),
        ("größer als", "antonym", "de", {"kleiner als"}),
        ("Männer lachen", "antonym", "de", {"Frauen lachen"}),
        # Phrases are whole words where there are spaces.
        ("highlands renewed upstairs", "antonym", "en", set()),
        # Not the shorter verb before a vowel sign.
        ("घर हैं", "negation", "hi", {"घर नहीं हैं"}),
        ("人口增加了", "antonym", "zh", {"人口减少了"}),
        # A part of a word that a joiner ties together.
        ("او می‌شد", "negation", "fa", set()),
    ],
)
def test_a_phrase_is_put_for_its_opposite(text, kind, language, expected):
    opposites = contrasts(language)[kind]
    assert set(take(other_phrases(text, draw(), opposites=opposites))) == expected


def test_words_change_places_by_hand():
    assert set(take(other_order("The dog bites the man, hard", draw(), script="Latn"))) == {
        "The the bites dog man, hard",
        "The man bites the dog, hard",
        "The hard bites the man, dog",
        "The dog man the bites, hard",
        "The dog hard the man, bites",
        "The dog bites hard man, the",
    }
    assert take(other_order("One two three", draw(), script="Latn")) == []
    assert take(other_order("go one one one", draw(), script="Latn")) == []


def test_what_stands_in_for_words():
    def words(text, script):
        return [text[start:end] for start, end in word_like(text, script)]

    assert words("Wir (Alten) zahlten 1000 ‚Euro‘ zu.", "Latn") == ["Alten", "zahlten", "Euro"]
    assert words("北京的天气和上海的天气", "Hans") == ["北京", "天气", "上海", "天气"]
    assert words("東京でコンピューターを買う人口", "Jpan") == ["東京", "コンピューター", "人口"]
    assert words("나는 큰 집 에서 산다", "Hang") == ["에서", "산다"]
    assert words("ខ្ញុំ\u200bចង់\u200bសាលា", "Khmr") == ["ចង់", "សាលា"]


def test_draws_decide_everything():
    text = "In 1990 the old men of three towns met 25 young women."
    for alteration in (other_numbers, lambda text, d: other_order(text, d, script="Latn")):
        assert take(alteration(text, draw(7)), 20) == take(alteration(text, draw(7)), 20)
        assert take(alteration(text, draw(7)), 20) != take(alteration(text, draw(8)), 20)


def test_marks_and_digits_are_in_words():
    assert [in_word(c) for c in "aं٣-' "] == [True, True, True, False, False, False]
