from __future__ import annotations

import pytest
import torch
import transformers

from interlingua.batches.tokens import TokenBatch
from interlingua.encoder.modeling.attention_weights import (
    first_token_attention,
    sentence_attention,
    softmax_by_sentence,
)
from tests.encoder.shapes import saved_and_loaded, transformers_model

transformers_5 = pytest.mark.skipif(
    int(transformers.__version__.partition(".")[0]) < 5, reason="needs set_attn_implementation"
)

FAMILIES = [
    ("Bert", {}),
    ("XLMRoberta", {}),
    ("ModernBert", {}),
    ("ModernBert", {"layer_types": ["full_attention"] * 3 + ["sliding_attention"]}),
]


@transformers_5
@pytest.mark.parametrize(("name", "options"), FAMILIES)
def test_it_is_hugging_faces_attention(name, options, tmp_path, random_batch):
    model = transformers_model(name, **options)
    backbone = saved_and_loaded(model, tmp_path / "model")
    model.set_attn_implementation("eager")
    batch = random_batch([5, 1, 9, 5, 30])
    ids, mask = batch.padded(model.config.pad_token_id)
    with torch.no_grad():
        theirs = model(
            input_ids=ids, attention_mask=mask.long(), output_attentions=True
        ).attentions[-1][:, :, 0]
    ours = first_token_attention(backbone, batch)
    torch.testing.assert_close(ours, theirs.transpose(1, 2)[mask], rtol=1e-4, atol=1e-6)


@transformers_5
@pytest.mark.parametrize(("name", "options"), FAMILIES)
def test_the_attention_of_every_token_is_hugging_faces(name, options, tmp_path, random_batch):
    model = transformers_model(name, **options)
    backbone = saved_and_loaded(model, tmp_path / "model")
    model.set_attn_implementation("eager")
    batch = random_batch([30])
    with torch.no_grad():
        (theirs,) = model(input_ids=batch.input_ids[None], output_attentions=True).attentions[-1]
    torch.testing.assert_close(sentence_attention(backbone, batch), theirs, rtol=1e-4, atol=1e-6)


def test_worked_by_hand():
    scores = torch.tensor([[0.0, 1.0], [torch.log(torch.tensor(3.0)), 1.0], [7.0, -7.0]])
    weights = softmax_by_sentence(scores, torch.tensor([0, 0, 1]), 2)
    torch.testing.assert_close(weights, torch.tensor([[0.25, 0.5], [0.75, 0.5], [1.0, 1.0]]))


def test_large_scores_stay_finite():
    weights = softmax_by_sentence(torch.tensor([[1e4], [1e4]]), torch.tensor([0, 0]), 1)
    torch.testing.assert_close(weights, torch.tensor([[0.5], [0.5]]))


def test_each_head_sums_to_one_over_each_sentence(encoder):
    ids = encoder.vocabulary.encode(["The cat sits.", "Yes.", "One two three four five."])
    weights = first_token_attention(encoder.backbone, TokenBatch.from_lists(ids, ("",) * 3))
    sums = torch.stack([part.sum(0) for part in weights.split([len(i) for i in ids])])
    torch.testing.assert_close(sums, torch.ones(3, encoder.backbone.config.num_attention_heads))
