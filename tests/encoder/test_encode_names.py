"""``Encoder.encode`` as users of sentence-transformers call it."""

from __future__ import annotations

import dataclasses
import inspect

import numpy as np
import pytest
import torch

import interlingua
from interlingua.encoder.encode import token_budget_batches
from interlingua.encoder.encoder import Encoder, as_unit_rows
from interlingua.errors import ConfigError, DataError
from tests.tiny import tiny_encoder

TEXTS = ["de1 de2", "en3", "ru1 ru2 ru3"]


@pytest.fixture(scope="module")
def tiny(word_vocabulary):
    encoder = tiny_encoder(word_vocabulary)
    prompts = {"query": "en1 ", "passage": "en2 "}
    encoder.settings = dataclasses.replace(encoder.settings, prompts=prompts)
    return encoder


@pytest.fixture(scope="module")
def folder(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "tiny"
    tiny.save(folder)
    return folder


def test_a_single_string_is_one_vector(tiny):
    vector = tiny.encode(TEXTS[0])
    assert vector.shape == (tiny.dim,)
    assert np.allclose(vector, tiny.encode(TEXTS)[0], atol=1e-6)
    assert tiny.encode("", truncate_dim=4).tolist() == [0.0] * 4


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets", "numpy"])
def test_a_column_of_any_library_has_the_vectors_of_the_list(tiny, library):
    module = pytest.importorskip(library)
    columns = {
        "pandas": lambda: module.Series(TEXTS, index=[5, 6, 7]),
        "polars": lambda: module.Series(TEXTS),
        "pyarrow": lambda: module.chunked_array([TEXTS[:1], TEXTS[1:]]),
        "datasets": lambda: module.Dataset.from_dict({"text": TEXTS})["text"],
        "numpy": lambda: module.array(TEXTS),
    }
    assert np.array_equal(tiny.encode(columns[library]()), tiny.encode(TEXTS))


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow", "datasets"])
def test_a_whole_table_is_refused(tiny, library):
    module = pytest.importorskip(library)
    make = {"pyarrow": "table", "datasets": "Dataset"}.get(library, "DataFrame")
    kind = getattr(module, make)
    frame = (kind.from_dict if library == "datasets" else kind)({"text": TEXTS})
    with pytest.raises(ConfigError, match="one column"):
        tiny.encode(frame)


def test_tensors_are_the_arrays(tiny):
    found = tiny.encode(TEXTS, convert_to_tensor=True)
    assert isinstance(found, torch.Tensor)
    assert found.device == tiny.device
    assert np.array_equal(found.numpy(), tiny.encode(TEXTS, convert_to_numpy=True))
    assert tiny.encode(TEXTS[0], convert_to_tensor=True).shape == (tiny.dim,)


def test_the_size_of_a_batch_changes_no_vector(tiny):
    for size in (1, 2, 100):
        vectors = tiny.encode(TEXTS, batch_size=size, show_progress_bar=False)
        assert np.allclose(vectors, tiny.encode(TEXTS), atol=1e-6)
    assert list(map(len, token_budget_batches([1] * 5, 100, 2))) == [2, 2, 1]
    assert list(map(len, token_budget_batches([60] * 5, 100, 2))) == [1] * 5


def test_prompts_by_name_and_by_role(tiny):
    asked = tiny.encode(TEXTS, prompt="en1 ")
    assert np.array_equal(tiny.encode(TEXTS, prompt_name="query"), asked)
    assert np.array_equal(tiny.encode_query(TEXTS), asked)
    assert np.array_equal(tiny.encode_document(TEXTS), tiny.encode(TEXTS, prompt="en2 "))
    assert np.array_equal(tiny.encode_query(TEXTS, prompt=""), tiny.encode(TEXTS))


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"batch_sise": 3}, "'batch_size'"),
        ({"normalize": False}, "'normalize_embeddings'"),
        ({"prompt_name": "qeury"}, "'query'"),
        ({"prompt_name": "query", "prompt": "en1 "}, "prompt_name 'query'"),
        ({"truncate_dim": 33}, "1 to 32"),
        ({"convert_to_numpy": False}, "convert_to_tensor=True"),
        ({"convert_to_tensor": True, "out": "a.npy"}, "out"),
    ],
)
def test_a_wrong_option_is_an_error_that_names_the_right_one(tiny, options, named):
    with pytest.raises(ConfigError, match=named):
        tiny.encode(TEXTS, **options)


def test_encode_is_defined_in_the_class():
    function = inspect.unwrap(Encoder.encode)
    assert function.__qualname__ == "Encoder.encode"
    assert inspect.getsourcefile(function).endswith("encoder/encoder.py")
    parameters = inspect.signature(Encoder.encode).parameters
    assert {"batch_size", "show_progress_bar", "convert_to_tensor"} <= parameters.keys()


def test_cosines_of_sets_and_of_pairs(tiny):
    one = np.array([[3.0, 4.0], [0.0, 0.0]])
    other = torch.tensor([[4.0, 3.0], [1.0, 0.0], [0.0, 2.0]])
    expected = [[0.96, 0.6, 0.8], [0.0, 0.0, 0.0]]
    assert np.allclose(tiny.similarity(one, other), expected)
    assert np.allclose(tiny.similarity(list(one), list(other)), expected)
    assert np.allclose(tiny.similarity(one[0], other[0]), [[0.96]])
    assert np.allclose(tiny.similarity_pairwise(one, other[:2]), [0.96, 0.0])
    with pytest.raises(DataError, match=r"\(1, 1, 2\)"):
        as_unit_rows(np.zeros((1, 1, 2)))


@pytest.mark.parametrize(
    ("vectors", "named"),
    [("a text", "a str"), (["a", "b"], "a list"), ([[1.0], [1.0, 2.0]], "a list")],
)
def test_what_are_no_vectors_is_refused(tiny, vectors, named):
    with pytest.raises(DataError, match=named):
        tiny.similarity(vectors, np.eye(2))


def test_vectors_of_other_shapes_are_refused(tiny):
    with pytest.raises(DataError, match="truncate_dim"):
        tiny.similarity(np.eye(2), np.eye(3))
    with pytest.raises(DataError, match=r"\(2, 2\) and \(1, 2\)"):
        tiny.similarity_pairwise(np.eye(2), np.ones(2))


def test_load_sets_the_width_and_the_dtype(folder):
    encoder = interlingua.load(folder, device=None, dtype=torch.bfloat16, truncate_dim=8)
    assert encoder.get_sentence_embedding_dimension() == encoder.get_embedding_dimension() == 8
    expected = Encoder.load(folder).encode(TEXTS, dtype="bfloat16", truncate_dim=8)
    assert np.array_equal(encoder.encode(TEXTS), expected)
    assert not np.array_equal(encoder.encode(TEXTS, dtype="float32"), expected)


@pytest.mark.parametrize(
    ("options", "named"),
    [({"truncate_dim": 99}, "1 to 32"), ({"dtype": "half"}, "bfloat16"), ({"devise": 1}, "device")],
)
def test_load_refuses_what_can_not_be(folder, options, named):
    with pytest.raises(ConfigError, match=named):
        interlingua.load(folder, **options)


def test_an_encoder_is_shown_in_a_line(tiny):
    shown = repr(tiny)
    assert shown.startswith("Encoder(")
    assert "32 dimensions" in shown
    assert "\n" not in shown
