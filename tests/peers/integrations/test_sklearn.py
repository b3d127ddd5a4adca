from __future__ import annotations

import pickle
import sys

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError, ConfigError, DataError, MissingExtraError

TEXTS = ["de2 de3", "en4 en5", "ru6", "de7", "en8", "ru9 ru1"]
LABELS = ["x", "y", "x", "y", "x", "y"]


def test_without_sklearn_the_extra_is_named(monkeypatch):
    for name in ("sklearn", "sklearn.base"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "interlingua.integrations.sklearn", raising=False)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[classification\]"):
        import interlingua.integrations.sklearn  # noqa: F401


@pytest.fixture
def embedder(model):
    pytest.importorskip("sklearn")
    from interlingua.integrations.sklearn import SentenceEmbedder

    return SentenceEmbedder(model, prompt="query", truncate_dim=12)


def test_a_pipeline_sees_what_encode_gives(embedder, model):
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    vectors = Encoder.load(model).encode(TEXTS, prompt="query", truncate_dim=12)
    by_hand = LogisticRegression().fit(vectors, LABELS)
    pipeline = make_pipeline(embedder, LogisticRegression()).fit(TEXTS, LABELS)
    assert np.array_equal(pipeline.predict_proba(TEXTS), by_hand.predict_proba(vectors))
    again = pickle.loads(pickle.dumps(pipeline))
    assert np.array_equal(again.predict_proba(np.array(TEXTS)), by_hand.predict_proba(vectors))


def test_a_pickle_holds_the_path_and_no_weights(embedder):
    embedder.fit(TEXTS)
    assert len(pickle.dumps(embedder)) < 1000
    assert len(embedder.get_feature_names_out()) == embedder.transform(TEXTS).shape[1]


def test_clone_and_set_params_change_what_is_loaded(embedder, tmp_path):
    from sklearn.base import clone

    assert clone(embedder.fit(TEXTS)).get_params() == embedder.get_params()
    assert embedder.set_params(truncate_dim=None).transform(TEXTS).shape == (6, 32)
    with pytest.raises(CheckpointError, match="absent"):
        embedder.set_params(model=str(tmp_path / "absent")).transform(TEXTS)


def test_columns_have_names(embedder):
    names = embedder.fit(TEXTS).get_feature_names_out()
    assert list(names[:2]) == ["sentenceembedder0", "sentenceembedder1"]
    assert len(names) == 12


def test_a_table_in_place_of_texts_is_refused(embedder):
    with pytest.raises(ConfigError, match="ColumnTransformer"):
        embedder.transform(np.array([TEXTS]))
    with pytest.raises(ConfigError):
        embedder.transform("one text")
    with pytest.raises(DataError):
        embedder.transform([1, 2])
