"""docs/how-to/from-sentence-transformers.md: its programs run, on the default model."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import interlingua
from interlingua.encoder.encoder import Encoder
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


def test_a_setting_of_tokens_and_a_saved_model(names):
    assert names["short"].max_tokens == 128
    assert len(names["ids"]) == 2


def rows_of_table():
    """Return the cells of the table of methods and arguments."""
    section = PAGE.read_text(encoding="utf-8").split("## Find each method")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line[:3] == "| `"]
    assert all(len(row) == 2 for row in rows)
    return rows


def test_each_public_name_and_argument_of_sentence_transformers_is_in_the_table():
    library = pytest.importorskip("sentence_transformers")
    from torch import nn

    model = library.SentenceTransformer
    expected = {name for name in dir(model) if name[0] != "_"} - set(dir(nn.Sequential))
    for function in (model.__init__, model.encode):
        expected |= set(inspect.signature(inspect.unwrap(function)).parameters)
    expected -= {"self", "kwargs", "inputs"}
    cells = " ".join(theirs for theirs, _ in rows_of_table())
    found = set(re.findall(r"`([\w.]+)", cells))
    assert expected - found == set()


def test_each_equivalent_exists_and_takes_these_arguments():
    roots = {"interlingua": interlingua, "model": Encoder}
    calls = 0
    for _, ours in rows_of_table():
        for code in re.findall(r"`((?:interlingua|model)\.[^`]+)`", ours):
            statement = ast.parse(code.replace("=)", "=None)")).body[0]
            call = statement.value if isinstance(statement, ast.Expr) else None
            # Calls of attributes, such as the vocabulary, are in the page's code.
            if isinstance(call, ast.Call) and isinstance(call.func.value, ast.Name):
                function = getattr(roots[call.func.value.id], call.func.attr)
                given = {keyword.arg for keyword in call.keywords}
                if call.func.attr != "to":
                    assert given <= set(inspect.signature(function).parameters), code
                calls += 1
    assert calls > 15
