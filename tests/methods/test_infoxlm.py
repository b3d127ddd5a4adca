"""InfoXLM's contrast against loops, its queue, its slow encoder, and what each option does."""

from __future__ import annotations

import math

import pytest
import torch

from interlingua.batches.masking import coin_flips
from interlingua.methods.infoxlm import InfoXLM, InfoXLMConfig
from interlingua.methods.tlm import TLM
from tests.encoder.naive import naive_backbone
from tests.methods.framed import framed_encoder, framed_pairs, rows

SMALL = {"queue_size": 6}
ALONE = {**SMALL, "tlm_weight": 0.0, "mlm_weight": 0.0}


def build(encoder=None, *, training=False, **options):
    torch.manual_seed(1)
    return InfoXLM(InfoXLMConfig(**{**SMALL, **options}), encoder or framed_encoder()).train(
        training
    )


def with_keys(objective, count=6):
    """Put random keys into the queue, and move the slow encoder away from the other."""
    objective.queue[:count] = torch.randn(count, 12, generator=torch.Generator().manual_seed(8))
    objective.filled.fill_(count)
    with torch.no_grad():
        for weight in (*objective.keys.parameters(), *objective.project_keys.parameters()):
            weight += 0.05 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(9))
    return objective


def reference(objective, pairs):
    """Loop over the mixed pairs: queries and keys of two encoders, the queue as negatives."""
    config = objective.config
    a, b = pairs.a, pairs.b
    if config.contrast_masked:
        a, b = (
            objective.mask(s, pairs.place(n)._replace(side=f"xlco {n}")).batch
            for n, s in (("a", a), ("b", b))
        )
    swap, order_a, order_b = (
        coin_flips(pairs.a, pairs.place("a")._replace(side=name)).tolist()
        for name in ("swap", "a", "b")
    )
    sides = [
        (y, x) if heads else (x, y) for heads, x, y in zip(swap, rows(a), rows(b), strict=True)
    ]
    skip = 0 if config.reset_positions else 1
    examples = [([x], [y]) for x, y in sides]
    if config.mixup:
        examples = []
        for i in range(0, len(sides) - 1, 2):
            one, other = [sides[i][0], sides[i + 1][0]], [sides[i][1], sides[i + 1][1]]
            examples.append(
                (one[::-1] if order_a[i] else one, other[::-1] if order_b[i] else other)
            )

    def vector(backbone, project, parts):
        ids = torch.cat([part[skip if place else 0 :] for place, part in enumerate(parts)])
        places = [p for n, part in enumerate(parts) for p in range(skip if n else 0, len(part))]
        positions = places if config.reset_positions else range(len(ids))
        return project(naive_backbone(backbone, ids, positions, num_layers=objective.num_layers)[0])

    queue = objective.queue[: min(int(objective.filled), len(objective.queue))]
    total = 0.0
    for x, y in examples:
        q = vector(objective.encoder.backbone, objective.project, x)
        k = vector(objective.keys.encoder.backbone, objective.project_keys, y)
        logits = [float(q @ key) / config.temperature for key in (k, *queue)]
        total -= logits[0] - math.log(sum(map(math.exp, logits)))
    return total / len(examples)


@pytest.mark.parametrize("mlm_weight", [0.0, 1.0])
@pytest.mark.parametrize("tlm_weight", [0.0, 1.0])
def test_every_kept_weight_learns_with_any_of_the_terms(tlm_weight, mlm_weight):
    objective = build(tlm_weight=tlm_weight, mlm_weight=mlm_weight, contrast_depth=1.0)
    with_keys(objective)(framed_pairs()).loss.backward()
    rests = {
        name
        for name, weight in objective.named_parameters()
        if weight.requires_grad and weight.grad is None
    }
    assert not rests
    assert objective.reads_all_weights
    assert hasattr(objective, "head") == bool(tlm_weight or mlm_weight)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mixup": False},
        {"contrast_masked": False, "temperature": 1.0},
        {"reset_positions": True, "contrast_depth": 1.0},
        {"projection": False, "temperature": 2.0},
    ],
)
@torch.no_grad()
def test_contrast_pair_by_pair(options):
    objective, pairs = with_keys(build(**{"temperature": 0.5, **options})), framed_pairs(7)
    expected = reference(objective, pairs)
    assert expected > 0.1
    assert float(objective(pairs).terms["xlco"]) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_language_models_are_xlm_s():
    torch.manual_seed(1)
    objective, pairs = build(transform=False, reset_positions=True), framed_pairs()
    xlm = TLM(TLM.Config(), framed_encoder()).eval()
    for term, value in xlm(pairs).terms.items():
        torch.testing.assert_close(objective(pairs).terms[term], value)


def test_the_step_s_keys_replace_the_oldest():
    objective = build(training=True, mixup=False, **ALONE)
    pairs, seen = framed_pairs(4), []
    for step in range(3):
        objective.all_gather = lambda keys: seen.append(keys) or keys
        objective(pairs._replace(step=step))
        objective.after_step(step)
    keys = torch.cat(seen)
    assert int(objective.filled) == 12
    assert torch.equal(objective.queue, torch.cat([keys[6:12]]))


def test_keys_of_all_processes_and_micro_batches_wait_until_the_step_is_done():
    objective = build(training=True, mixup=False, **{**ALONE, "queue_size": 20})
    objective.all_gather = lambda keys: torch.cat([keys, keys + 1])
    before = objective(framed_pairs(3)).loss
    assert torch.equal(objective(framed_pairs(3)).loss, before)
    assert int(objective.filled) == 0
    objective.after_step(0)
    assert int(objective.filled) == 12
    torch.testing.assert_close(objective.queue[3:6], objective.queue[:3] + 1)
    assert objective(framed_pairs(3)).loss > before


def test_a_batch_larger_than_the_queue_leaves_its_last_keys():
    objective = build(training=True, mixup=False, **{**ALONE, "queue_size": 2})
    objective.all_gather = lambda keys: torch.arange(5.0)[:, None].expand(5, 12)
    objective(framed_pairs(5))
    objective.after_step(0)
    assert sorted(objective.queue[:, 0].tolist()) == [3.0, 4.0]


def test_validation_leaves_the_queue_alone():
    objective = build(**ALONE)
    objective(framed_pairs())
    objective.after_step(0)
    assert int(objective.filled) == 0


def test_the_slow_encoder_follows_by_the_decay_and_takes_no_gradient():
    objective = with_keys(build(training=True, decay=0.75, **ALONE))
    slow, fast = (
        encoder.backbone.layers[0].query.weight
        for encoder in (objective.keys.encoder, objective.encoder)
    )
    before, projection = slow.clone(), objective.project_keys.weight.clone()
    objective(framed_pairs()).loss.backward()
    assert slow.grad is objective.project_keys.weight.grad is None
    assert fast.grad.abs().sum() > 0
    objective.after_step(0)
    torch.testing.assert_close(slow, 0.75 * before + 0.25 * fast)
    torch.testing.assert_close(
        objective.project_keys.weight, 0.75 * projection + 0.25 * objective.project.weight
    )


def test_layers_above_the_contrast_are_left_to_the_language_models():
    objective = with_keys(build(contrast_depth=0.5, **ALONE))
    assert objective.num_layers == 1
    objective(framed_pairs()).loss.backward()
    first, last = objective.encoder.backbone.layers
    assert first.query.weight.grad.abs().sum() > 0
    assert last.query.weight.grad is None


@pytest.mark.parametrize(
    ("layers", "depth", "expected"), [(12, 0.667, 8), (24, 0.5, 12), (2, 0.667, 1), (6, 1.0, 6)]
)
def test_depth_is_a_share_of_the_layers(layers, depth, expected):
    encoder = framed_encoder(num_hidden_layers=layers)
    assert build(encoder, contrast_depth=depth).num_layers == expected
