"""experiments/mini/long_texts.py: long passages made of paragraphs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest


@pytest.fixture(scope="module")
def script(mini_script):
    return mini_script("long_texts")


class Words:
    """A vocabulary with a token per word."""

    def encode(self, texts):
        return [text.split() for text in texts]


WORDS = SimpleNamespace(vocabulary=Words())


@pytest.fixture
def passages(script, tmp_path):
    """Two articles: paragraphs of 200, 150, 180, 120 and 10 words, and five of 90."""
    counts = [200, 150, 180, 120, 10, *[90] * 5]
    lines = [" ".join([f"p{number}"] * count) for number, count in enumerate(counts)]
    (tmp_path / "de.passages.txt").write_text("\n".join(lines), "utf-8")
    questions = "".join(f"q\t{number}\tquestion {number}\tanswer\n" for number in range(10))
    (tmp_path / "de.questions.tsv").write_text(questions, "utf-8")
    return script.joined(tmp_path, "de", WORDS)


def test_paragraphs_of_one_article_are_joined_to_the_limit(passages):
    # 200 + 150, then 180 + 120 + 10; all five of the other article have 450.
    assert passages.tokens == [350, 310, 450]
    assert [len(text.split()) for text in passages.texts] == passages.tokens
    assert passages.places == [0, 0, 1, 1, 1, 2, 2, 2, 2, 2]
    assert passages.starts == [0, 200, 0, 180, 300, 0, 90, 180, 270, 360]


def test_questions_on_passages_of_another_length_are_left_out(script, tmp_path, monkeypatch):
    monkeypatch.setattr(script, "SHORTEST", 4)
    monkeypatch.setattr(script, "LONGEST", 5)
    lines = ["a b c", "d e", "f g", "h", "i j k l m n"]
    (tmp_path / "de.passages.txt").write_text("\n".join(lines), "utf-8")
    questions = "".join(f"q\t{number}\tquestion {number}\tanswer\n" for number in range(5))
    (tmp_path / "de.questions.tsv").write_text(questions, "utf-8")
    found = script.joined(tmp_path, "de", WORDS)
    assert found.tokens == [5, 3, 6]
    assert found.questions == ["question 0", "question 1"]


def test_a_cut_text_has_its_first_tokens(script, passages):
    for text in passages.texts:
        start = script.cut(text, WORDS)
        assert len(start.split()) == 160
        assert text.startswith(start)
    assert script.cut("a short text", WORDS) == "a short text"


def test_ranks_are_those_of_the_right_passage(script):
    passages = np.eye(120)
    queries = np.zeros((3, 120))
    queries[0, 4] = 1  # the passage itself
    queries[1, [4, 5]] = 1, 2  # one passage is nearer
    queries[2, :110] = np.arange(110, 0, -1)  # the right one has rank 105
    assert script.reciprocal_ranks(queries, passages, [4, 4, 104]).tolist() == [1, 0.5, 0]


def test_columns_are_of_all_questions_and_of_later_paragraphs(script, passages):
    class Encoder:
        """Texts are near if they share words; besides, a question is near to the first article."""

        settings = SimpleNamespace(prompts={})

        def encode(self, texts, *, prompt):
            assert not prompt
            found = []
            for text in texts:
                words = text.replace("question ", "p").split()
                other = 0.0 if "p5" in words and len(words) > 1 else 1.0
                found.append([other / 2, *(float(f"p{number}" in words) for number in range(10))])
            return np.asarray(found)

    whole, short, later, later_short = script.scores(
        Encoder(), passages, [script.cut(text, WORDS) for text in passages.texts]
    )
    assert (whole, later) == (1, 1)
    # The last three of the other article's paragraphs are cut off: both other passages are nearer.
    assert short == pytest.approx((7 + 3 / 3) / 10)
    assert later_short == pytest.approx((3 + 3 / 3) / 6)
