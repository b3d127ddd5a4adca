"""experiments/mini/vocabulary.py: which pieces a trained model gets back from its backbone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from tests.encoder.growing import unigram

PIECES = ["▁the", "▁cat", "▁dog", "▁კატა", "▁сөз", "▁ලංකා", "▁rare", "▁", *"thecatdogr"]


@pytest.fixture(scope="module")
def script(mini_script):
    """The script as a module."""
    return mini_script("vocabulary")


@pytest.fixture(scope="module")
def backbone():
    return encoder(unigram(list(dict.fromkeys(PIECES))), seed=0)


def encoder(vocabulary, *, seed):
    torch.manual_seed(seed)
    shape = {
        "hidden_size": 16,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    config = BackboneConfig(vocab_size=vocabulary.size, max_position_embeddings=96, **shape)
    return Encoder.from_scratch(config, vocabulary).eval()


def test_scripts_and_letters_come_first_then_what_texts_need(script, backbone):
    full = backbone.vocabulary
    pieces = script.pieces_of(full)
    counts = np.zeros(len(pieces))
    counts[pieces.index("▁dog")] = 10**7
    first = set(full.special_ids) | {
        pieces.index(piece) for piece in ("▁კატა", "▁сөз", "▁", *"thecadogr")
    }
    kept = script.chosen(full, full, counts, len(first) + 1)
    assert kept == first | {pieces.index("▁dog")}
    more = script.chosen(full, full, counts, len(first) + 3)
    # By the tokenizer's own probabilities then: earlier pieces have higher ones, and of Sinhala
    # none counts.
    assert more == kept | {pieces.index("▁the"), pieces.index("▁cat")}
    assert pieces.index("▁ලංකා") not in script.chosen(full, full, counts, len(pieces) - 1)


def test_the_model_keeps_its_weights_and_gets_the_vectors_of_pieces(script, backbone):
    trimmed = backbone.trim([index for index in range(backbone.vocabulary.size) if index != 5])
    with torch.no_grad():
        for name, weight in trimmed.backbone.named_parameters():
            if name != script.TABLE:
                weight.add_(0.1)
    pieces = script.pieces_of(backbone.vocabulary)
    kept = {index for index, piece in enumerate(pieces) if piece != "▁rare"}
    spelled = script.respelled(trimmed, backbone, kept)
    assert script.pieces_of(spelled.vocabulary) == [piece for piece in pieces if piece != "▁rare"]
    np.testing.assert_allclose(spelled.encode(["the cat"]), trimmed.encode(["the cat"]), atol=1e-6)
    row = spelled.vocabulary.encode(["dog"])[0][0]
    table = dict(spelled.backbone.named_parameters())[script.TABLE]
    torch.testing.assert_close(
        table[row], dict(backbone.backbone.named_parameters())[script.TABLE][pieces.index("▁dog")]
    )


def test_counts_of_a_corpus_are_those_of_its_pieces(script, backbone, tmp_path):
    trimmed = backbone.trim([index for index in range(backbone.vocabulary.size) if index != 5])
    trimmed.vocabulary.save(tmp_path / "vocabulary")
    (tmp_path / "train").mkdir()
    own = script.pieces_of(trimmed.vocabulary)
    tokens = [own.index("▁the"), own.index("▁cat"), own.index("▁the")]
    np.asarray(tokens, "<u4").tofile(tmp_path / "train" / "tokens.bin")
    pieces = script.pieces_of(backbone.vocabulary)
    expected = {pieces.index("▁the"): 2, pieces.index("▁cat"): 1}
    counts = script.corpus_counts(tmp_path, backbone.vocabulary)
    assert {index: count for index, count in enumerate(counts.tolist()) if count} == expected
