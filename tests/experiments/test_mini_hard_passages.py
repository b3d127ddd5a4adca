"""experiments/mini/hard_passages.py: which passages are a question's hard negatives."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from interlingua.corpus.formats.questions import read_questions
from tests.adapt.invented import small_model


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("hard_passages")


def test_the_nearest_that_do_not_answer(script):
    passages = ["own", "red and blue", "nothing", "blue", "far", "farther", "farthest"]
    ranked = np.array([1, 0, 2, 3, 4, 5, 6])
    assert script.nearest_wrong(ranked, passages, 0, "red") == [2, 3, 4, 5]
    assert script.nearest_wrong(ranked, passages, 0, "nowhere") == [1, 2, 3, 4]
    assert script.nearest_wrong(ranked[:3], passages, 1, "own") == [2]


def test_it_writes_questions_that_train_reads(script, tmp_path, monkeypatch):
    passages = [f"en{row} en{row + 1}" for row in range(8)]
    (tmp_path / "en.train.passages.txt").write_text("\n".join(passages), encoding="utf-8")
    rows = [f"q{row}\t{row}\ten{row}\ten{row} " for row in range(8)]
    (tmp_path / "en.train.questions.tsv").write_text("\n".join(rows), encoding="utf-8")
    small_model(tmp_path / "model")
    output = tmp_path / "made" / "questions.json"
    monkeypatch.setattr(
        sys,
        "argv",
        ["hard_passages.py", str(tmp_path / "model"), str(tmp_path), "-o", str(output)],
    )
    script.main()
    found = list(read_questions(output))
    assert [question.positives[0].text for question in found] == passages
    assert all(len(question.hard_negatives) == script.PASSAGES for question in found)
    for question, written in zip(found, json.loads(output.read_text("utf-8")), strict=True):
        assert question.positives[0] not in question.hard_negatives
        assert written["answers"][0] not in [passage.text for passage in question.hard_negatives]


def test_none_is_nearer_than_a_question_s_own(script):
    cosines = np.array([0.5, 0.9, 0.8, 0.7, 0.2, 0.1, 0.8])
    assert script.nearest_below(cosines, 2) == [3, 0, 4, 5]
    assert script.nearest_below(cosines, 5) == []


def test_questions_of_many_languages_get_passages_of_their_passage_s(script, tmp_path, monkeypatch):
    items = []
    for row in range(12):
        language = ("eng_Latn", "deu_Latn")[row % 2]
        # The tiny vocabulary has letters and no digits.
        word = "abcdefghijkl"[row]
        context = {"title": "", "text": f"the {word} {word}", "language": language}
        items.append({"question": word, "language": "eng_Latn", "positive_ctxs": [context]})
    source, output = tmp_path / "questions.json", tmp_path / "ranked.json"
    source.write_text(json.dumps(items), "utf-8")
    small_model(tmp_path / "model")
    command = ["hard_passages.py", str(tmp_path / "model"), str(source), "-o", str(output)]
    monkeypatch.setattr(sys, "argv", command)
    script.main()
    found = list(read_questions(output))
    assert sum(len(question.hard_negatives) for question in found) >= 12
    for question in found:
        own = question.positives[0]
        assert {passage.language for passage in question.hard_negatives} <= {own.language}
        assert own not in question.hard_negatives


def test_sentences_take_the_place_of_passages_and_questions_are_negatives(
    script, tmp_path, monkeypatch
):
    items = []
    for word in "abcdef":
        long = f"The {word} {word} {word} stands here. Another sentence is about nothing else."
        context = {"title": "", "text": long, "language": "eng_Latn"}
        items.append({"question": word, "language": "eng_Latn", "positive_ctxs": [context]})
    # A question to a passage of another language keeps the whole passage.
    across = {**items[0]["positive_ctxs"][0], "text": f"{long} More.", "language": "eng_Latn"}
    items.append({"question": "z", "language": "deu_Latn", "positive_ctxs": [across]})
    source, output = tmp_path / "questions.json", tmp_path / "ranked.json"
    source.write_text(json.dumps(items), "utf-8")
    small_model(tmp_path / "model")
    command = ["hard_passages.py", str(tmp_path / "model"), str(source), "-o", str(output)]
    monkeypatch.setattr(sys, "argv", [*command, "--sentences", "1", "--questions", "2"])
    script.main()
    *alike, other = list(read_questions(output))
    asked = {item["question"] for item in items}
    for question in alike:
        assert question.positives[0].text.count(".") == 1
        negatives = [passage.text for passage in question.hard_negatives]
        questions = set(negatives) & asked
        assert 1 <= len(questions) <= 2
        assert question.text not in questions
        assert "z" not in questions  # a question in another language
        assert all(text.count(".") == 1 for text in negatives if text not in asked)
        assert any(text not in asked for text in negatives)
    assert other.positives[0].text == across["text"]


def test_the_nearest_of_its_own_sentences_and_those_below_it(script):
    pool = script.Candidates(None, "", "eng_Latn")
    pool.texts = [{"text": str(place)} for place in range(5)]
    pool.vectors = np.array([[0.9], [0.2], [0.7], [0.5], [0.1]])
    own, hard = pool.ranked(np.array([1.0]), [1, 2])
    assert own["text"] == "2"
    # 0 is nearer than its own, so it may be an answer too.
    assert [one["text"] for one in hard] == ["3", "1", "4"]


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("questions.json", ["--sentences", "1.5"], "between 0 and 1"),
        ("questions.json", ["--questions", "-1"], "0 or more"),
        ("tydi", ["--questions", "2"], "require a file questions.json"),
    ],
)
def test_options_that_cannot_be_are_refused(script, monkeypatch, capsys, source, options, message):
    monkeypatch.setattr(sys, "argv", ["hard_passages.py", "m", source, "-o", "out", *options])
    with pytest.raises(SystemExit):
        script.main()
    assert message in capsys.readouterr().err
