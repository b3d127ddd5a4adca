"""Multilingual IR against its equations written out sentence by sentence, and what each option
does."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
import torch

from interlingua.batches.feeds import QuestionBatch
from interlingua.batches.sentences import join, take
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from interlingua.methods.multilingual_ir import MultilingualIR, MultilingualIRConfig
from tests.methods.conftest import tiny_encoder
from tests.methods.harness import cosine, tiny_batch, tiny_objective

NAME = "multilingual_ir"
VARIANTS = {
    "both": {},
    "both, with sentences": {"monolingual": True},
    "as printed": {"monolingual": True, "language_reduction": "literal"},
    "averaged": {"monolingual": True, "language_reduction": "mean"},
    "semantic": {"language_weight": 0.0},
    "language": {"semantic_weight": 0.0},
    "base": {"semantic_weight": 0.0, "language_weight": 0.0},
    "shared": {"towers": "shared"},
    "dot": {"similarity": "dot", "temperature": 4.0},
    "weights": {
        "semantic_weight": 0.3,
        "language_weight": 2.0,
        "semantic_temperature": 0.3,
        "temperature": 0.2,
    },
}


def build(**options):
    """Build the objective in training mode with two towers and no dropout: equal passes."""
    objective = tiny_objective(NAME, options)
    if objective.question_encoder is not None:
        torch.manual_seed(7)
        for weight in objective.question_encoder.parameters():
            weight.data += 0.1 * torch.randn_like(weight)
    return objective


def batch_of(options, *, seed=0):
    """Return a dict of batches, even if there are only questions."""
    batch = tiny_batch(NAME, options, seed=seed)
    return batch if isinstance(batch, dict) else {"questions": batch}


def alone(encoder, batch):
    """Return the first token's state of each separately encoded sentence."""
    sentences = batch.input_ids.split(batch.lengths.tolist())
    pool = {"mean": lambda states: states.mean(0), "cls": lambda states: states[0]}[encoder.pooling]
    return [
        pool(encoder.tokens(TokenBatch.from_lists([ids.tolist()], [""])).states)
        for ids in sentences
    ]


def reference(objective, batch):
    """Compute the terms of Eq. (4) with loops."""
    config = objective.config
    questions, passages = objective.question_encoder or objective.encoder, objective.encoder
    q, p = (
        alone(questions, batch["questions"].questions),
        alone(passages, batch["questions"].passages),
    )
    similarity = cosine if config.similarity == "cosine" else lambda u, v: float(u @ v)
    retrieval = 0.0
    for i, question in enumerate(q):  # Eq. (1)
        scores = [similarity(question, passage) / config.temperature for passage in p]
        retrieval -= scores[i] - math.log(sum(map(math.exp, scores)))
    terms = {"retrieval": retrieval / len(q)}
    if "parallel" not in batch:
        return terms
    z = [*alone(passages, batch["parallel"].a), *alone(passages, batch["parallel"].b)]
    pairs = len(z) // 2
    if config.semantic_weight:
        semantic = 0.0
        for i in range(2 * pairs):  # Eq. (2)
            scores = {
                k: cosine(z[i], z[k]) / config.semantic_temperature
                for k in range(2 * pairs)
                if k != i
            }
            semantic -= scores[(i + pairs) % (2 * pairs)] - math.log(
                sum(map(math.exp, scores.values()))
            )
        terms["semantic"] = config.semantic_weight * semantic / (2 * pairs)
    if config.language_weight:
        z += alone(passages, batch["monolingual"].sentences) if config.monolingual else []
        language, logarithms = 0.0, 0
        for i in range(pairs):  # Eq. (3)
            for k in set(range(len(z))) - {i, i + pairs}:
                near = math.exp(cosine(z[i], z[k])), math.exp(cosine(z[i + pairs], z[k]))
                language -= math.log(near[0] / sum(near)) + math.log(near[1] / sum(near))
                logarithms += 2
        factors = {"mean": logarithms, "literal": len(z) * (len(z) - 2), "sum": 1}
        terms["language"] = config.language_weight * language / factors[config.language_reduction]
    return terms


@pytest.mark.parametrize("name", VARIANTS)
@torch.no_grad()
def test_the_loss_is_equation_4(name):
    options = VARIANTS[name]
    objective, batch = build(**options), batch_of(options)
    expected = reference(objective, batch)
    output = objective(batch)
    assert {name: float(value) for name, value in output.terms.items()} == pytest.approx(
        expected, rel=2e-5
    )
    assert float(output.loss) == pytest.approx(sum(expected.values()), rel=1e-5)


@pytest.mark.parametrize("name", VARIANTS)
def test_feeds_and_parts_are_those_of_the_terms_that_are_on(name):
    options = VARIANTS[name]
    config = MultilingualIRConfig(**options)
    on = {
        "semantic": config.semantic_weight > 0,
        "language": config.language_weight > 0,
        "retrieval": True,
    }
    assert build(**options).parts == tuple(part for part, there in on.items() if there)
    feeds = MultilingualIR.feeds_for(config)
    assert feeds[0] == "questions"
    assert ("parallel" in feeds, "monolingual" in feeds) == (
        on["semantic"] or on["language"],
        config.monolingual,
    )


@pytest.mark.parametrize("part", ["semantic", "language"])
def test_only_the_passage_tower_sees_the_texts(part):
    options = VARIANTS["both, with sentences"]
    objective = build(**options)
    objective(batch_of(options), part=part).loss.backward()
    assert all(weight.grad is None for weight in objective.question_encoder.parameters())
    assert all(
        weight.grad.abs().sum() > 0 for weight in objective.encoder.parameters() if weight.ndim > 1
    )


def test_a_shared_tower_is_one_encoder():
    separate, shared = tiny_objective(NAME), tiny_objective(NAME, {"towers": "shared"})
    count = sum(weight.numel() for weight in shared.parameters())
    assert sum(weight.numel() for weight in separate.parameters()) == 2 * count
    for mine, copy in zip(
        separate.encoder.parameters(), separate.question_encoder.parameters(), strict=True
    ):
        assert torch.equal(mine, copy)
        assert mine.data_ptr() != copy.data_ptr()


@torch.no_grad()
def test_repeats_are_no_negatives_if_so_asked():
    options = {"exclude_repeats": True, "temperature": 0.1}
    batch = batch_of(options)
    answers = take(batch["questions"].passages, [0, 1, 0, 3, 4, 5])
    batch["questions"] = QuestionBatch(batch["questions"].questions, answers, 3)
    pairs = batch["parallel"]
    batch["parallel"] = ParallelBatch(pairs.a, take(pairs.b, [0, 1, 2, 1, 4, 5]), 3)
    with_repeats = build(**{**options, "exclude_repeats": False})(batch).terms
    without = build(**options)(batch).terms
    assert without["retrieval"] < with_repeats["retrieval"]
    assert without["semantic"] < with_repeats["semantic"]
    assert without["language"] == with_repeats["language"]
    objective = build(**options)
    q = alone(objective.question_encoder, batch["questions"].questions)
    p = alone(objective.encoder, answers)
    total = 0.0
    for i in range(6):
        scores = {k: cosine(q[i], p[k]) / 0.1 for k in range(6) if (i, k) not in {(0, 2), (2, 0)}}
        total -= scores[i] - math.log(sum(map(math.exp, scores.values())))
    assert float(without["retrieval"]) == pytest.approx(total / 6, rel=1e-4)


@torch.no_grad()
def test_an_answer_is_no_negative_as_another_question_s_hard_negative_if_so_asked():
    options = {
        "exclude_repeats": True,
        "temperature": 0.1,
        "semantic_weight": 0.0,
        "language_weight": 0.0,
    }
    batch = batch_of(options)["questions"]
    hard = [6, 0, 8, 3, 10, 11, 7, 6, 9, 8, 2, 1]  # two a question
    passages = take(batch.passages, [*range(6), *hard])
    objective = build(**options)
    found = objective(QuestionBatch(batch.questions, passages, 3)).loss
    q, p = alone(objective.question_encoder, batch.questions), alone(objective.encoder, passages)
    total = 0.0
    for i in range(6):
        scores = {k: cosine(q[i], p[k]) / 0.1 for k in range(18) if k < 6 or hard[k - 6] != i}
        total -= scores[i] - math.log(sum(map(math.exp, scores.values())))
    assert float(found) == pytest.approx(total / 6, rel=1e-4)


def test_the_model_directory_is_the_passage_tower_with_the_question_tower_inside(tmp_path):
    objective = build().eval()
    objective.save(tmp_path / "model")
    loaded, texts = DualEncoder.load(tmp_path / "model"), ["w1 w2 w3", "w7"]
    np.testing.assert_array_equal(loaded.encode_passages(texts), objective.encoder.encode(texts))
    np.testing.assert_array_equal(
        loaded.encode_queries(texts), objective.question_encoder.encode(texts)
    )
    np.testing.assert_array_equal(
        Encoder.load(tmp_path / "model").encode(texts), objective.encoder.encode(texts)
    )
    shared = build(towers="shared").eval()
    shared.save(tmp_path / "model")
    loaded = DualEncoder.load(tmp_path / "model")
    assert loaded.questions is loaded.passages


@pytest.mark.parametrize(("similarity", "normalize"), [("cosine", True), ("dot", False)])
@torch.no_grad()
def test_inner_products_of_the_export_are_the_similarities_of_training(
    tmp_path, similarity, normalize
):
    objective = build(similarity=similarity).eval()
    assert (
        objective.encoder.settings.normalize
        is objective.question_encoder.settings.normalize
        is normalize
    )
    objective.save(tmp_path / "model")
    loaded = DualEncoder.load(tmp_path / "model")
    texts = ["w1 w2 w3", "w7", "w9 w9 w2 w4"]
    found = loaded.encode_queries(texts) @ loaded.encode_passages(texts).T
    ids = objective.encoder.vocabulary.encode(texts)
    batch = TokenBatch.from_lists(ids, ["eng_Latn"] * 3)
    logits = torch.from_numpy(found)
    expected = torch.nn.functional.cross_entropy(logits, torch.arange(3))
    torch.testing.assert_close(
        objective.retrieve(QuestionBatch(batch, batch, 0), None), expected, rtol=1e-4, atol=1e-5
    )


def first_row(batch):
    return {
        "questions": QuestionBatch(
            take(batch["questions"].questions, [0]), take(batch["questions"].passages, [0]), 3
        ),
        "parallel": ParallelBatch(
            take(batch["parallel"].a, [0]), take(batch["parallel"].b, [0]), 3
        ),
    }


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("retrieval", "one question .*run.global_batch_size"),
        ("semantic", "one pair .*data.batch_size"),
        ("language", "one pair .*data.batch_size"),
    ],
)
def test_a_single_row_is_an_error(part, message):
    with pytest.raises(ConfigError, match=message):
        build()(first_row(batch_of({})), part=part)


def test_one_question_with_a_hard_negative_and_one_pair_with_a_sentence_are_enough():
    options = {"semantic_weight": 0.0, "monolingual": True}
    batch = batch_of(options)
    small = first_row(batch)
    questions = QuestionBatch(
        small["questions"].questions, take(batch["questions"].passages, [0, 6]), 3
    )
    small |= {"questions": questions, "monolingual": batch["monolingual"]}
    assert build(**options)(small).loss > 0


@pytest.mark.parametrize(
    ("reduction", "trains"), [({}, True), ({"language_reduction": "mean"}, False)]
)
def test_language_term_by_default_pulls_like_the_semantic(reduction, trains):
    """Use a tenth of the other's weight, as printed, and 48 pairs."""
    objective = build(semantic_weight=0.2, language_weight=0.02, **reduction)
    draw = torch.Generator().manual_seed(3)
    ids = [torch.randint(10, 40, (6,), generator=draw).tolist() for _ in range(96)]
    sides = [TokenBatch.from_lists(side, [""] * 48) for side in (ids[:48], ids[48:])]
    batch = {"parallel": ParallelBatch(*sides, 0)}
    norms = {}
    for part in ("semantic", "language"):
        objective.zero_grad()
        objective(batch, part=part).loss.backward()
        gradients = [
            weight.grad.norm() for weight in objective.parameters() if weight.grad is not None
        ]
        norms[part] = float(torch.stack(gradients).norm())
    assert (norms["language"] > 0.1 * norms["semantic"]) is trains


def test_the_defaults_are_the_paper_s():
    config = MultilingualIRConfig()
    assert (config.semantic_weight, config.language_weight, config.temperature) == (
        0.01,
        0.001,
        1.0,
    )
    assert (config.similarity, config.towers) == ("cosine", "separate")


def test_encoder_settings_but_for_the_length_stay():
    encoder = tiny_encoder()
    encoder.settings = dataclasses.replace(
        encoder.settings, prompts={"query": "w1 "}, pooling="cls", normalize=False
    )
    objective = MultilingualIR(MultilingualIRConfig(), encoder)
    for tower in (objective.encoder, objective.question_encoder):
        assert (tower.pooling, tower.settings.prompts, tower.settings.normalize) == (
            "cls",
            {"query": "w1 "},
            True,
        )


def test_texts_of_several_languages_are_read_in_one_pass(monkeypatch):
    options = VARIANTS["both, with sentences"]
    objective, batch = build(**options), batch_of(options)
    read = []
    forward = Encoder.forward
    monkeypatch.setattr(
        Encoder, "forward", lambda self, tokens: read.append(tokens) or forward(self, tokens)
    )
    objective(batch, part="language")
    pairs = join(batch["parallel"].a, batch["parallel"].b)
    assert [tokens.languages for tokens in read] == [
        pairs.languages + batch["monolingual"].sentences.languages
    ]
