"""Search with the best passage: by hand, against a naive ranking, and where there is nothing to
find."""

from __future__ import annotations

import numpy as np
import pytest

from interlingua.retrieval.feedback import rankings_with_feedback
from interlingua.retrieval.passage_files import Passage
from interlingua.retrieval.passage_index import IndexSettings, PassageIndex
from interlingua.storage.arrays import normalize_rows

pytest.importorskip("lancedb")
LANGUAGES = ("deu_Latn", "eng_Latn", "tha_Thai")
QUESTION = np.array([1.0, 0.0, 0.0, 0.0], dtype=np.float32)


def index_of(folder, rows):
    """Build an index of passages from id, language and vector."""
    passages = [Passage(name, name, language=language) for name, language, _ in rows]
    vectors = normalize_rows(np.array([vector for _, _, vector in rows], dtype=np.float32))
    settings = IndexSettings(model="m", digest="d", dim=vectors.shape[1])
    index = PassageIndex.create(folder, settings)
    index.add(passages, lambda block: vectors)
    return index


def test_the_translation_of_the_best_passage_comes_first(tmp_path):
    """Make the wrong passage in Thai nearer to the question: 0.5 against 0.4."""
    best = [0.8, 0.6, 0.0, 0.0]
    translation = [0.4, 0.9, 0.17, 0.0]
    wrong = [0.5, 0.0, 0.0, 0.87]
    index = index_of(
        tmp_path / "i",
        [("best", "deu_Latn", best), ("same", "tha_Thai", translation), ("not", "tha_Thai", wrong)],
    )
    assert [hit.id for hit in index.nearest(QUESTION, 1, languages=["tha_Thai"])] == ["not"]
    german, thai = rankings_with_feedback(index, QUESTION, 1, ["deu_Latn", "tha_Thai"])
    assert [hit.id for hit in german] == ["best"]
    assert [hit.id for hit in thai] == ["same"]
    # q' = (1.8, 0.6) / sqrt(3.6), so cos(q', best) = (1.44 + 0.36) / sqrt(3.6) = 0.9487
    assert german[0].score == pytest.approx(0.9487, abs=1e-4)


@pytest.fixture
def random_index(tmp_path):
    draw = np.random.default_rng(0)
    rows = [(f"{code}{n:02}", code, draw.normal(size=4)) for code in LANGUAGES for n in range(12)]
    return index_of(tmp_path / "index", rows), rows


def test_the_rankings_are_those_of_a_naive_search(random_index):
    index, rows = random_index
    vectors = normalize_rows(np.array([vector for _, _, vector in rows], dtype=np.float32))
    plain = vectors @ QUESTION
    best = int(plain.argmax())
    joined = (QUESTION + vectors[best]) / np.linalg.norm(QUESTION + vectors[best])
    rankings = rankings_with_feedback(index, QUESTION, 5, LANGUAGES)
    assert len(rankings) == len(LANGUAGES)
    for ranking in rankings:
        language = ranking[0].language
        cosines = plain if language == rows[best][1] else vectors @ joined
        own = [row for row in np.argsort(-cosines) if rows[row][1] == language][:5]
        assert [hit.id for hit in ranking] == [rows[row][0] for row in own]
        scores = [hit.score for hit in ranking]
        assert scores == sorted(set(scores), reverse=True)
    assert rankings[0][0].id == rows[best][0]


def test_one_language_alone_is_ranked_as_without_feedback(random_index):
    index, _ = random_index
    for language in LANGUAGES:
        [ranking] = rankings_with_feedback(index, QUESTION, 12, [language])
        assert [hit.id for hit in ranking] == [
            hit.id for hit in index.nearest(QUESTION, 12, languages=[language])
        ]


def test_where_nothing_is_found_there_is_no_ranking(random_index):
    index, _ = random_index
    assert rankings_with_feedback(index, QUESTION, 5, LANGUAGES, where="id = 'absent'") == []
    found = rankings_with_feedback(index, QUESTION, 5, LANGUAGES, where="id LIKE 'tha%'")
    [ranking] = filter(None, found)
    assert {hit.language for hit in ranking} == {"tha_Thai"}
