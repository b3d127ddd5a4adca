"""Heads that predict tokens: their selections, and the translation head against loops over
sentences."""

from __future__ import annotations

import torch
from torch.nn import functional as F

from interlingua.batches.masking import IGNORED, LabeledTokens
from interlingua.methods.heads.token_heads import MaskedTokenHead, TranslationHead
from tests.encoder.naive import naive_backbone


def test_only_labeled_states_are_looked_at():
    torch.manual_seed(0)
    head, states = MaskedTokenHead(4, 9, transform=True), torch.randn(5, 4)
    labels, words = torch.tensor([IGNORED, 3, IGNORED, 8, 0]), torch.randn(9, 4)
    labeled = LabeledTokens.of(labels)
    told = head(states, labeled, words)
    dense, _, norm = head.transform
    torch.testing.assert_close(told.hidden, norm(F.gelu(dense(states[[1, 3, 4]]))))
    assert told.targets.tolist() == [3, 8, 0]
    assert told.output_embeddings is words
    assert told.bias.tolist() == [0.0] * 9
    states[0] = torch.nan
    assert torch.isfinite(head(states, labeled, words).hidden).all()


def test_without_a_transform_states_are_compared_with_words_themselves():
    states, labeled = torch.randn(3, 4), LabeledTokens.of(torch.tensor([1, IGNORED, 2]))
    told = MaskedTokenHead(4, 9, transform=False)(states, labeled, torch.randn(9, 4))
    assert torch.equal(told.hidden, states[[0, 2]])


def translation(encoder, batch, *, layers=1, skip=1, language=None, hidden=None):
    """Return the head's answer for (2i translated into 2i + 1), and the answer by hand."""
    head = TranslationHead(encoder.backbone, layers, mask_id=2, skip=skip).eval()
    with torch.no_grad():
        head.backbone.word_embeddings.weight += 0.1 * torch.randn_like(
            head.backbone.word_embeddings.weight
        )
    source, target = batch
    states = encoder.tokens(target).states
    labels = target.input_ids if hidden is None else torch.where(hidden, target.input_ids, IGNORED)
    read = encoder.tokens(source)
    arrangement = head.arranged(source.cu_seqlens, target.cu_seqlens, labels)
    found = head(read.states, states, arrangement, language=language)
    expected, targets = [], []
    parts = [
        t.split(b.lengths.tolist())
        for t, b in ((read.states, source), (states, target), (labels, target))
    ]
    for row, (x, y, told) in enumerate(zip(*parts, strict=True)):
        mask = head.backbone.word_embeddings.weight[2]
        if language is not None:
            mask = mask + language[row]
        masks = [y[i] if label == IGNORED else mask for i, label in enumerate(told.tolist())]
        words = torch.cat([x[skip:], torch.stack(masks[skip:])])
        places = [*range(skip, len(x)), *range(skip, len(y))]
        out = naive_backbone(head.backbone, [0] * len(words), places, words=words)[len(x) - skip :]
        kept = told[skip:] != IGNORED
        expected.append(head.tell.transform(out[kept]))
        targets.append(told[skip:][kept])
    torch.testing.assert_close(found.hidden, torch.cat(expected), rtol=1e-4, atol=1e-5)
    assert torch.equal(found.targets, torch.cat(targets))
    assert found.output_embeddings is head.backbone.word_embeddings.weight
    return head


@torch.no_grad()
def test_translation_is_told_sentence_by_sentence(framed_encoder, random_batch):
    batch = random_batch([4, 7, 2, 5]), random_batch([6, 2, 5, 5], seed=1)
    translation(framed_encoder, batch)
    translation(framed_encoder, batch, layers=2, skip=0)
    translation(framed_encoder, batch, language=torch.randn(4, 32))
    chosen = torch.rand(18, generator=torch.Generator().manual_seed(0)) < 0.5
    translation(framed_encoder, batch, hidden=chosen)


def test_the_head_begins_with_the_encoder_s_last_layers_and_shares_nothing(framed_encoder):
    head = TranslationHead(framed_encoder.backbone, 1, mask_id=2, skip=1)
    last = framed_encoder.backbone.layers[-1]
    assert len(head.backbone.layers) == 1
    assert torch.equal(head.backbone.layers[0].query.weight, last.query.weight)
    mine, theirs = (
        {p.data_ptr() for p in module.parameters()} for module in (head, framed_encoder)
    )
    assert not mine & theirs


def test_hidden_target_tokens_do_not_reach_the_head(framed_encoder, random_batch):
    source, target = random_batch([4, 3]), random_batch([5, 2], seed=1)
    head = TranslationHead(framed_encoder.backbone, 1, mask_id=2, skip=1).eval()
    read = framed_encoder.tokens(source).states
    arrangement = head.arranged(source.cu_seqlens, target.cu_seqlens, target.input_ids)
    told = [
        head(read, states, arrangement).hidden
        for states in (torch.randn(7, 32), torch.randn(7, 32))
    ]
    assert torch.equal(*told)
