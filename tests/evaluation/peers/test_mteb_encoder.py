from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from interlingua.evaluation.mteb_encoder import MTEBEncoder
from tests.progress_records import Recorded

mteb = pytest.importorskip("mteb")


class Asked:
    """Remembers each call."""

    def __init__(self):
        self.calls = []

    def encode(self, texts, *, language=None, role=None, titles=None):
        self.calls.append((list(texts), language, role, titles))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


@pytest.fixture
def task():
    columns = {"sentence1": ["eins", "zwei"], "sentence2": ["one", "two"]}
    subsets = {"de-en": ["deu-Latn", "eng-Latn"], "fr": ["fra-Latn"], "x": ["xxx-Qqqq"]}
    return SimpleNamespace(
        dataset={"de-en": {"test": columns}},
        metadata=SimpleNamespace(hf_subsets_to_langscripts=subsets),
    )


def encode(encoder, texts, subset, **options):
    return encoder.encode(texts, task_metadata=None, hf_split="test", hf_subset=subset, **options)


def test_it_is_an_encoder_and_no_more(task):
    from mteb.models.models_protocols import CrossEncoderProtocol, EncoderProtocol, SearchProtocol

    encoder = MTEBEncoder(Asked(), task)
    assert isinstance(encoder, EncoderProtocol)
    assert not isinstance(encoder, SearchProtocol | CrossEncoderProtocol)


def test_batches_are_joined_and_languages_told_by_column_or_subset(task):
    asked = Asked()
    encoder = MTEBEncoder(asked, task)
    assert encode(encoder, [{"text": ["one"]}, {"text": ["two"]}], "de-en").tolist() == [
        [3, 1],
        [3, 1],
    ]
    encode(encoder, [{"text": ["eins", "zwei"]}], "de-en")
    encode(encoder, [{"text": ["un"]}], "fr")
    encode(encoder, [{"text": ["eins"]}], "de-en")  # not a whole column
    encode(encoder, [{"text": ["x"]}], "x")
    encode(encoder, [{"text": ["tri"]}], "ces_Latn")  # parallel sets
    encode(encoder, [{"text": ["y"]}], "default")
    assert [language for _, language, _, _ in asked.calls] == [
        "eng_Latn",
        "deu_Latn",
        "fra_Latn",
        None,
        None,
        "ces_Latn",
        None,
    ]
    assert len(encoder.digests) == 7
    assert encode(encoder, [], "fr").shape == (0, 0)


def test_roles_and_titles(task):
    from mteb.types import PromptType

    asked = Asked()
    encoder = MTEBEncoder(asked, task)
    encode(encoder, [{"text": ["what?"], "query": ["what?"]}], "fr", prompt_type=PromptType.query)
    titled = {"text": ["T it"], "title": ["T"], "body": ["it"], "id": ["1"]}
    encode(encoder, [titled], "fr", prompt_type=PromptType.document)
    encode(
        encoder,
        [titled, {"text": ["that"], "body": ["that"]}],
        "fr",
        prompt_type=PromptType.document,
    )
    assert [call[0::2] + call[3:] for call in asked.calls] == [
        (["what?"], "query", None),
        (["it"], "passage", ["T"]),
        (["T it", "that"], "passage", None),
    ]


def test_similarities_are_cosines_or_inner_products_of_two_towers(task):
    encoder = MTEBEncoder(Asked(), task)
    x, y = np.array([[3.0, 0.0], [0.0, 2.0]]), np.array([[1.0, 1.0], [0.0, 5.0]])
    half = np.sqrt(0.5)
    np.testing.assert_allclose(encoder.similarity(x, y), [[half, 0], [half, 1]], atol=1e-6)
    np.testing.assert_allclose(encoder.similarity_pairwise(x, y), [half, 1], atol=1e-6)
    encoder = MTEBEncoder(type("Towers", (Asked,), {"two_towers": True})(), task)
    np.testing.assert_allclose(encoder.similarity(x, y), [[3, 0], [2, 10]])
    np.testing.assert_allclose(encoder.similarity_pairwise(x, y), [3, 10])


def test_progress(task):
    seen = Recorded()
    encoder = MTEBEncoder(Asked(), task, seen)
    for texts in (["a", "b"], ["c"]):
        encode(encoder, [{"text": texts}], "fr")
    assert seen.states == [("fr", 2, None), ("fr", 3, None)]
