"""docs/how-to/from-sentence-transformers.md: its programs run, on the default model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.docs.markdown import has_model, run_python

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "from-sentence-transformers.md"


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    """The names that the code of the page sets."""
    for library in ("datasets", "pandas", "polars", "sklearn"):
        pytest.importorskip(library)
    if not has_model():
        pytest.skip("the default model is not installed")
    return run_python(PAGE, tmp_path_factory.mktemp("notebook"))


def test_columns_have_their_vectors(names):
    assert names["embeddings"].shape == (2, 384)
    assert names["table"]["embedding"].dtype.shape == (64,)
    assert len(names["dataset"]["embedding"][0]) == 384


def test_translations_are_found_linked_and_clustered(names):
    pairs = {pair.source: pair.target for pair in names["pairs"]}
    assert pairs["Das Haus ist alt."] == "The house is old."
    assert [(link.source, link.target) for link in names["links"]] == [
        ((number,), (number,)) for number in range(3)
    ]
    first, second, third, fourth = names["labels"]
    assert first == second != third == fourth


def test_pairs_are_scored_and_evaluated(names):
    cosines = names["scored"]["cosine"].tolist()
    assert min(cosines[:2]) > cosines[2]
    assert names["scores"]["score"].between(0, 1).all()
    assert names["scores"]["source_language"].tolist() == ["deu_Latn"]


def test_the_nearest_passages_are_found(names):
    assert names["hits"][0].id == "a"
    assert [hit.id for hit in names["in_french"]] == ["b"]


def test_vectors_without_language_are_as_many(names):
    assert names["without_language"].shape == names["vectors"].shape
    lengths = np.linalg.norm(names["questions"], axis=1)
    assert np.allclose(lengths, 1, atol=1e-5)
