from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from interlingua.encoder.dual_encoder import QUESTION_FOLDER, DualEncoder, with_title
from interlingua.encoder.encoder import Encoder
from tests.encoder.conftest import SENTENCES, tiny_vocabulary
from tests.encoder.shapes import tiny_encoder


@pytest.fixture
def towers():
    vocabulary = tiny_vocabulary(frame=True)
    shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    return [tiny_encoder(vocabulary, "cls", seed=seed, **shape) for seed in (0, 1)]


def with_settings(encoder, **changes):
    encoder.settings = dataclasses.replace(encoder.settings, **changes)
    return encoder


def test_each_tower_reads_its_own(towers):
    passages, questions = towers
    both = DualEncoder(passages, questions)
    np.testing.assert_array_equal(both.encode_queries(SENTENCES), questions.encode(SENTENCES))
    np.testing.assert_array_equal(both.encode_passages(SENTENCES), passages.encode(SENTENCES))
    assert not np.allclose(both.encode_queries(SENTENCES), both.encode_passages(SENTENCES))
    assert both.dim == 16


def test_one_tower_for_both(towers):
    shared = DualEncoder(towers[0])
    np.testing.assert_array_equal(
        shared.encode_queries(SENTENCES), shared.encode_passages(SENTENCES)
    )


def test_prompts_of_the_model_come_first(towers):
    encoder = with_settings(towers[0], prompts={"query": "Yes. ", "passage": "The "})
    shared = DualEncoder(encoder)
    np.testing.assert_array_equal(shared.encode_queries(["cat"]), encoder.encode(["Yes. cat"]))
    np.testing.assert_array_equal(shared.encode_passages(["cat"]), encoder.encode(["The cat"]))


def test_inner_products_have_their_length_where_they_were_trained_so(towers):
    lengths = np.linalg.norm(DualEncoder(towers[0]).encode_queries(SENTENCES), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-5)
    plain = DualEncoder(with_settings(towers[0], normalize=False)).encode_passages(SENTENCES)
    np.testing.assert_array_equal(plain, towers[0].encode(SENTENCES, normalize_embeddings=False))
    np.testing.assert_allclose(
        np.linalg.norm(plain, axis=1), 4, rtol=1e-4
    )  # as the last LayerNorm left them


def test_titles_are_read_as_in_training(towers):
    found = DualEncoder(*towers).encode_passages(["cat", "mat"], titles=["Matte", ""])
    np.testing.assert_array_equal(found, towers[0].encode(["Matte </s> cat", "mat"]))
    shared = DualEncoder(towers[0]).encode_passages(["cat", "mat"], titles=["Matte", ""])
    np.testing.assert_array_equal(shared, towers[0].encode(["Matte cat", "mat"]))
    ids = towers[0].vocabulary.encode(["Matte </s> cat"])[0]
    assert ids.count(towers[0].vocabulary.tokenizer.token_to_id("</s>")) == 2


def test_a_title_without_a_separator():
    vocabulary = tiny_vocabulary(frame=False)
    assert with_title("text", "title", vocabulary) == "title text"
    assert with_title("text", "", vocabulary) == "text"


@pytest.mark.parametrize("separate", [True, False])
def test_saved_and_loaded(towers, tmp_path, separate):
    both = DualEncoder(towers[0], towers[1] if separate else None)
    # The older model goes, with its question tower.
    for model in (DualEncoder(*towers), both):
        model.save(tmp_path / "model")
    assert (tmp_path / "model" / QUESTION_FOLDER).is_dir() is separate
    loaded = DualEncoder.load(tmp_path / "model")
    assert (loaded.questions is loaded.passages) is not separate
    np.testing.assert_array_equal(loaded.encode_queries(SENTENCES), both.encode_queries(SENTENCES))
    passages = both.encode_passages(SENTENCES)
    np.testing.assert_array_equal(loaded.encode_passages(SENTENCES), passages)
    # By itself the folder is the passage tower.
    alone = Encoder.load(tmp_path / "model")
    np.testing.assert_array_equal(alone.encode(SENTENCES), passages)


def test_towers_move_together(towers):
    moved = DualEncoder(*towers).to("meta")
    assert {moved.passages.device.type, moved.questions.device.type} == {"meta"}
