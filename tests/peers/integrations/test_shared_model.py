from __future__ import annotations

import gc
import os

import numpy as np
import pytest

from interlingua.encoder.encoder import Encoder
from interlingua.errors import CheckpointError
from interlingua.integrations.shared_model import SearchModel, lasting_name, shared_encoder

TEXTS = ["de2 de3", "", "en4"]


def test_one_encoder_serves_all_who_hold_it(model, monkeypatch):
    first = shared_encoder(model, None)
    assert shared_encoder(model, None) is first
    monkeypatch.chdir(os.path.dirname(model))
    assert shared_encoder("tiny", None) is first
    assert shared_encoder(model, "cpu") is not first


def test_an_encoder_that_is_not_held_is_read_again(model, monkeypatch):
    loads = []
    load = Encoder.load
    monkeypatch.setattr(Encoder, "load", lambda *a, **k: loads.append(a) or load(*a, **k))
    for _ in range(2):
        shared_encoder(model, None)
        gc.collect()
    assert len(loads) == 2


def test_passages_and_questions_have_their_prompts(model):
    found = SearchModel(model, device=None, dtype="float32", language=None)
    encoder = Encoder.load(model)
    assert np.array_equal(found.embed_passages(TEXTS), encoder.encode(TEXTS, prompt="passage"))
    assert np.allclose(
        found.embed_questions(TEXTS), encoder.encode(TEXTS, prompt="query"), atol=1e-6
    )
    assert found.embed_passages([]).shape == found.embed_questions([]).shape == (0, 32)


def test_names_of_the_hub_stay_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m").mkdir()
    assert lasting_name("m") == str(tmp_path / "m")
    assert lasting_name("hf:owner/name") == "hf:owner/name"


def test_a_model_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="absent"):
        shared_encoder(str(tmp_path / "absent"), None)
