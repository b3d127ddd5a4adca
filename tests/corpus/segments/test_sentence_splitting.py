from __future__ import annotations

import time
from pathlib import Path

import pytest

from interlingua.corpus.segments.sentence_splitting import (
    paragraphs,
    split,
    split_paragraph,
    split_text,
)

CASES = [
    line.split("\t")
    for line in (Path(__file__).parent / "splitting_cases.tsv")
    .read_text(encoding="utf-8")
    .splitlines()[1:]
]
"""A language, what the case is about, and a text with ‖ before each sentence but the first."""
WRONG = {"kaz plain"}
"""Cases that rules have wrong: a year's abbreviation before the name of a city."""


@pytest.mark.parametrize(
    ("language", "sentences"),
    [
        ("eng", ["Dr. Smith met J. R. Miller at 5 p.m. in St. Louis.", "“Why?”"]),
        ("eng", ["They talked, e.g. about U.S. law.", "It did."]),
        ("eng", ["It cost 3.50 dollars!", "(He paid.)", "Then... nothing."]),
        ("deu", ["Am 3. Oktober 1990 war es so weit.", "Er kam z.B. mit Dr. Meier."]),
        ("deu", ["Das war 1990.", "Nichts."]),
        ("rus", ["Это было в 1990 г. в Москве, т.е. давно.", "«Правда?»", "Да."]),
        ("zho", ["他来了。", "“真的吗？”", "是的！"]),
        ("jpn", ["「そうですか。」", "はい。"]),
        ("hin", ["यह सच है।", "वह गया।"]),
        ("ara", ["هل هذا صحيح؟", "نعم."]),
        ("spa", ["El Sr. García llegó.", "¿Por qué?", "No sé."]),
        ("deu", ["Er mag z. B. Obst.", "Sie nicht."]),
        ("deu", ["Siehe S. 5 und Art. 7.", "Danke."]),
        ("spa", ["Vive en EE. UU. desde 2010.", "Trabaja mucho."]),
        ("ces", ["Viz str. 5.", "Děkuji."]),
        ("eng", ["I met Sgt. Miller.", "He left."]),
        ("hin", ["डॉ. शर्मा आए।", "वे बैठे।"]),
        ("vie", ["TP. Hồ Chí Minh rất đông.", "Tôi thích."]),
        ("ell", ["Είσαι καλά;", "Ναι.", "Είμαι καλά."]),
        ("fra", ["Voir p. 12.", "Il est né av. J.-C. en Gaule."]),
        ("fra", ["Il dit : « Oui. »", "Elle rit."]),
        ("kat", ["ის მოვიდა.", "ისინი დარჩნენ."]),
        ("hye", ["Նա եկավ:", "Նրանք մնացին։", "Այո։"]),
        ("mya", ["သူလာတယ်။", "သူမသွားတယ်။"]),
        ("eng", ["He asked; she left.", "They stayed."]),
    ],
)
def test_sentences_joined_by_a_space_are_found_again(language, sentences):
    assert split_paragraph(" ".join(sentences), language) == sentences


def without_spaces(sentences):
    return ["".join(sentence.split()) for sentence in sentences]


@pytest.mark.parametrize(
    ("language", "kind", "text"),
    [
        pytest.param(*case, id=f"{case[0]} {case[1]} {number}")
        for number, case in enumerate(CASES)
        if f"{case[0]} {case[1]}" not in WRONG
    ],
)
def test_a_text_is_split_as_a_reader_would(language, kind, text):
    text = text.replace(r"\n", "\n")
    found = split(text.replace("‖", ""), language)
    assert without_spaces(found) == without_spaces(text.split("‖"))


def test_the_cases_are_many_and_few_are_left_wrong():
    assert len(CASES) >= 130
    assert len({case[0] for case in CASES}) >= 25
    assert len(WRONG) < 0.05 * len(CASES)


def test_lines_of_a_list_are_not_joined_but_wrapped_dashes_and_numbers_are():
    text = "Er kam am Abend an und blieb dort bis zum\n3. Oktober, und dann ging er heim."
    assert split(text, "de") == [text.replace("\n", " ")]
    text = "The old man came home late in the evening\n- as always - and went to bed at once."
    assert split(text, "en") == [text.replace("\n", " ")]


def test_short_lines_that_begin_with_capitals_are_not_joined():
    assert split("Good morning\nGood night\nSee you") == ["Good morning", "Good night", "See you"]


def test_nothing_is_lost():
    texts = [case[2].replace(r"\n", "\n").replace("‖", "") for case in CASES]
    for text in texts:
        for language in ("en", "de", "zh", "th", "bo"):
            assert "".join(without_spaces(split(text, language))) == "".join(text.split())


def test_chinese_needs_no_space():
    assert split_paragraph("他来了。她走了！谁？", "zho") == ["他来了。", "她走了！", "谁？"]


def test_long_lines_are_paragraphs():
    long = "A sentence of some length that ends in a word" + " more" * 20
    found = paragraphs([f"{long}\n", "Another one\n", "", "A third"])
    assert list(found) == [long, "Another one", "A third"]


def test_lines_wrapped_at_a_width_are_joined_but_headings_stay():
    text = """Chapter 1

The first sentence is long enough to be
wrapped. The second one too, as it has
many words.

A Heading
And the last paragraph, which has a few
words.""".splitlines()
    assert split_text(text) == [
        "Chapter 1",
        "The first sentence is long enough to be wrapped.",
        "The second one too, as it has many words.",
        "A Heading",
        "And the last paragraph, which has a few words.",
    ]


def test_wrapped_chinese_is_joined_without_a_space():
    assert list(paragraphs(["他昨天从北京来到了", "上海。"])) == ["他昨天从北京来到了上海。"]


def test_blank_text_has_no_sentence():
    assert split_text(["", "  ", "\n"]) == []


UNITS = [
    ". ",
    "A. ",
    "... ",
    "! ",
    ".' ",
    '. "',
    "。 ",
    ".\n",
    ". (",
    ".",
    ".   ",
    "Mr. ",
    "。”",
    "1. ",
]


@pytest.mark.parametrize("unit", UNITS)
def test_the_time_is_linear_in_a_text_of_marks(unit):
    started = time.process_time()
    split_text((unit * 50_000).splitlines())
    assert time.process_time() - started < 3  # 0.3 s at most; minutes where it is quadratic


HOSTILE = [
    *UNITS,
    *["z. B. ", '"', "“ ", " ", "\u00a0", ".» ", ". »", ".[1]", "」と", "。”说"],
    *["ครับ ", "།", "- a\n"],
]


def seconds_of(text, language):
    lines = text.splitlines()
    best = 1e9
    for _ in range(2):
        started = time.process_time()
        split_text(lines, language)
        best = min(best, time.process_time() - started)
    return best


@pytest.mark.parametrize("language", ["eng", "zho", "tha"])
def test_twice_the_text_takes_at_most_about_twice_the_time(language):
    slow = []
    for unit in HOSTILE:
        text = unit * (20_000 // len(unit))
        # Four times where it is quadratic.
        if seconds_of(text * 2, language) > 3 * seconds_of(text, language) + 0.02:
            slow.append(unit)
    assert slow == []
