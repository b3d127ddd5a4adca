from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.analysis.record import read_analysis, write_analysis
from interlingua.analysis.run import run_analyses
from interlingua.analysis.subject import Subject
from interlingua.analysis.token_matching import (
    CLASSES,
    Matches,
    Token,
    TokenMatching,
    draw_tokens,
    without_self,
)
from interlingua.analysis.tokens import token_ids, token_windows
from interlingua.encoder.backends.own import OwnEncoder
from interlingua.errors import ConfigError, DataError
from interlingua.retrieval.topk.exact import Neighbors
from tests.analysis.conftest import LANGUAGES, LINES, fixed_subject, random_vectors


def test_classes_worked_by_hand():
    """Use a token of line 3 of language 1, and one neighbor of each class."""
    queries = Token(np.array([1]), np.array([3]), np.array([5]))
    neighbors = Token(
        np.array([[1, 1, 0, 2, 2]]), np.array([[3, 4, 3, 3, 7]]), np.array([[6, 5, 5, 9, 5]])
    )
    names = list(CLASSES)
    found = [names[i] for i in Matches(queries, neighbors, np.zeros((1, 5))).classes()[0]]
    assert found == ["same_sentence", "same_language", "translation", "translation", "other"]


def test_codes_go_there_and_back():
    token = Token(np.array([0, 203]), np.array([0, 2**32 - 1]), np.array([7, 65_535]))
    for part, again in zip(token, Token.of(token.code), strict=True):
        np.testing.assert_array_equal(part, again)


def test_without_self():
    queries = Token(np.array([0, 0]), np.array([0, 1]), np.array([1, 1]))
    own = queries.code
    codes = np.array(
        [[own[0], 10, 11], [20, 21, 22]]
    )  # the second query is not among its nearest: its twins are
    found = without_self(
        queries,
        Neighbors(torch.tensor([[1.0, 0.9, 0.8], [1.0, 1.0, 1.0]]), torch.from_numpy(codes)),
        2,
    )
    assert found.neighbors.place.tolist() == [[10, 11], [20, 21]]
    np.testing.assert_allclose(found.cosines, [[0.9, 0.8], [1.0, 1.0]])


def test_draws_are_few_distinct_and_their_own_lines():
    line = np.repeat([0, 1, 2], [2, 9, 9])
    states, place = np.arange(20, dtype=np.float32)[:, None], np.arange(20)
    drawn = draw_tokens(states, line, place, count=3, seed=1)
    assert [int(n) for n in np.bincount(drawn[1])] == [2, 3, 3]
    assert len(set(drawn[2].tolist())) == 8
    np.testing.assert_array_equal(drawn[0][:, 0], drawn[2])
    later = draw_tokens(states[2:], line[2:], place[2:], count=3, seed=1)
    np.testing.assert_array_equal(later[2], drawn[2][2:])  # for any earlier tokens in the window
    assert draw_tokens(states, line, place, count=3, seed=2)[2].tolist() != drawn[2].tolist()


@pytest.mark.parametrize("batch_tokens", [1, 25, 4096])
def test_it_is_a_search_of_all_tokens_at_once(folder, subject, batch_tokens):
    found = TokenMatching(sentences=3, k=4, examples=99).run(
        subject._replace(batch_tokens=batch_tokens), folder
    )
    tables = {}
    for number, code in enumerate(LANGUAGES):
        ids = token_ids(subject.encoder, LINES[code], language=code)
        (window,) = token_windows(subject.encoder, ids)
        tables[number] = window
    states = np.concatenate([w.states for w in tables.values()])
    where = [
        (n, int(a), int(b)) for n, w in tables.items() for a, b in zip(w.line, w.place, strict=True)
    ]
    english = LANGUAGES.index("eng_Latn")
    _, lines, places = draw_tokens(*tables[english], count=3, seed=1)
    counts = {name: [] for name in CLASSES}
    for line, place in zip(lines.tolist(), places.tolist(), strict=True):
        if line >= 3:
            continue
        own = where.index((english, line, place))
        cosines = states @ states[own]
        cosines[own] = -2
        nearest = [where[i] for i in np.argsort(-cosines, kind="stable")[:4]]
        classes = [
            ("same_sentence" if there == line else "same_language")
            if n == english
            else ("translation" if there == line else "other")
            for n, there, _ in nearest
        ]
        for name in CLASSES:
            counts[name].append((line, classes.count(name) / 4))
    for name in CLASSES:
        by_line = [
            np.mean([share for at, share in counts[name] if at == line]) for line in range(3)
        ]
        np.testing.assert_allclose(found[name].items, by_line)
        assert found[name].value == pytest.approx(np.mean(by_line))
    assert sum(found[name].value for name in CLASSES) == pytest.approx(1)
    assert sum(found["translation"].by_language.values()) == pytest.approx(
        found["translation"].value, abs=0.2
    )
    assert "eng_Latn" not in found["translation"].by_language


def test_examples_of_one_class_with_as_many_neighbors_as_asked(folder, subject):
    whole = TokenMatching(examples=99).run(subject, folder).examples
    nearest = {example["neighbors"][0]["class"] for example in whole}
    for name in nearest:
        task = TokenMatching(examples=99, shown_neighbors=2, shown_classes=(name,))
        found = task.run(subject, folder).examples
        assert {example["neighbors"][0]["class"] for example in found} == {name}
        assert {len(example["neighbors"]) for example in found} == {2}
        assert len(found) == sum(one["neighbors"][0]["class"] == name for one in whole)


def test_examples_mark_the_tokens(folder, subject, tmp_path):
    found = TokenMatching(examples=5).run(subject, folder)
    assert len(found.examples) == 5
    for example in found.examples:
        query = example["query"]
        assert query["language"] == "eng_Latn"
        assert query["text"] == LINES["eng_Latn"][query["line"] - 1]
        assert query["text"][query["start"] : query["end"]].strip()
        assert len(example["neighbors"]) == 3
        cosines = [neighbor["cosine"] for neighbor in example["neighbors"]]
        assert cosines == sorted(cosines, reverse=True)
        for neighbor in example["neighbors"]:
            assert neighbor["text"] == LINES[neighbor["language"]][neighbor["line"] - 1]
            assert neighbor["class"] in CLASSES
    (whole,) = run_analyses(
        OwnEncoder(subject.encoder, name="t"), [TokenMatching(examples=5)], folder, output=tmp_path
    )
    (file,) = tmp_path.rglob("*.analysis.json")
    again = read_analysis(file)
    assert (again.measures, again.examples) == (whole.measures, whole.examples)
    assert write_analysis(whole, tmp_path) == file


def test_english_is_there_in_any_case(folder, subject):
    assert TokenMatching(languages=("fr",)).run(subject, folder).languages == (
        "eng_Latn",
        "fra_Latn",
    )
    other = TokenMatching(languages=("en",), query_language="French").run(subject, folder)
    assert {e["query"]["language"] for e in other.examples} == {"fra_Latn"}


def test_other_encoders_are_refused(folder):
    subject: Subject = fixed_subject(random_vectors(3, 4))
    assert TokenMatching().unfit(subject) == "its hidden states cannot be read"
    with pytest.raises(
        ConfigError,
        match=r"token_matching reads hidden states, .*test",
    ):
        TokenMatching().run(subject, folder)


def test_a_missing_language_is_one_line(folder, subject):
    with pytest.raises(DataError, match=r"no file .*'spa_Latn'"):
        TokenMatching(query_language="es").run(subject, folder)
