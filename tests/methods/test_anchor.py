"""Anchor against its equations, sentence by sentence, with a bank and without."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
import torch

from interlingua.batches.sentences import join, sentence_keys
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.functional import contrastive
from interlingua.methods.anchor import Anchor, AnchorConfig
from interlingua.methods.matryoshka import Matryoshka
from interlingua.methods.teachers.anchors import Negatives
from interlingua.methods.teachers.teacher_bank import BankRecord, TeacherBank, write_bank
from tests.functional.test_contrastive import LargestTensor
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import alone, cosine, token_lists
from tests.methods.test_distill import saved_teacher

TEMPERATURE, SOFT = 0.3, 0.2


def build(*, encoder=None, dropout=0.0, **options):
    encoder = encoder or tiny_encoder(
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    options = {
        "from_bank_weight": 1.0,
        "temperature": TEMPERATURE,
        "soft_temperature": SOFT,
        "student_reads": "both",
        **options,
    }
    return Anchor(AnchorConfig(**options), encoder).train()


def vectors(encoder, side):
    return [alone(encoder, ids) for ids in token_lists(side)]


def naive_contrast(students, targets, negatives):
    """Compute the contrast; negatives(i): the vectors from which row i is distinguished."""
    total = 0.0
    for i, (s, z) in enumerate(zip(students, targets, strict=True)):
        own = math.exp(cosine(s, z) / TEMPERATURE)
        total -= math.log(
            own / (own + sum(math.exp(cosine(s, t) / TEMPERATURE) for t in negatives(i)))
        )
    return total / len(students)


def naive_soft(students, targets, candidates):
    total = 0.0
    for i, (s, z) in enumerate(zip(students, targets, strict=True)):
        p = [math.exp(cosine(z, t) / SOFT) for t in (z, *candidates(i))]
        q = [math.exp(cosine(s, t) / SOFT) for t in (z, *candidates(i))]
        total += sum(
            a / sum(p) * math.log(a / sum(p) / (b / sum(q))) for a, b in zip(p, q, strict=True)
        )
    return total / len(students)


def without(rows, *places):
    return [row for place, row in enumerate(rows) if place not in places]


def bank_of(path, objective, batch, *, others=6, group=None):
    """Write a bank of the batch's originals and other sentences by the objective's own teacher."""
    generator = torch.Generator().manual_seed(5)
    more = [torch.randint(6, 20, (4,), generator=generator).tolist() for _ in range(others)]
    ids = token_lists(batch.b) + more
    keys = sentence_keys(TokenBatch.from_lists(ids, ["eng_Latn"] * len(ids))).numpy()
    order = np.argsort(keys)
    groups = np.arange(len(ids)) if group is None else np.asarray(group)
    with torch.no_grad():
        found = np.stack([alone(objective.anchors.teacher, ids[place]).numpy() for place in order])
    record = BankRecord(
        digest="d",
        negatives=len(ids),
        sentences=len(ids),
        largest_group=1,
        teachers=("t",),
        widths=(16,),
        explained_variance=0.5,
        cpu_seconds=2.0,
    )
    write_bank(path, record, keys[order], groups[order], [found])
    return TeacherBank(path), more


@torch.no_grad()
def test_terms_without_a_bank_are_the_equations(tmp_path):
    objective, pairs = build(teachers=(saved_teacher(tmp_path / "teacher"),)), tiny_pairs()
    y = vectors(objective.anchors.teacher, pairs.b)
    s, e = vectors(objective.encoder, pairs.a), vectors(objective.encoder, pairs.b)
    students, targets = s + e, y + y

    def others(i):
        return without(y, i % 5)

    output = objective(pairs)
    expected = {
        "mse": sum(2 - 2 * cosine(a, b) for a, b in zip(students, targets, strict=True)) / 10,
        "to_bank": naive_contrast(students, targets, others),
        "from_bank": naive_contrast(
            targets, students, lambda i: without(students, i, (i + 5) % 10) + others(i)
        ),
        "soft": naive_soft(students, targets, others),
    }
    assert {name: float(term) for name, term in output.terms.items()} == pytest.approx(
        expected, rel=1e-4
    )
    assert float(output.loss) == pytest.approx(sum(expected.values()), rel=1e-4)


@torch.no_grad()
def test_terms_with_a_bank_are_the_equations(tmp_path):
    objective, pairs = build(teachers=(saved_teacher(tmp_path / "teacher"),)), tiny_pairs()
    teacher = objective.anchors.teacher
    # the sixth sentence translates the same as the first
    bank, more = bank_of(
        tmp_path / "bank", objective, pairs, group=[0, 1, 2, 3, 4, 0, 6, 7, 8, 9, 10]
    )
    y, extra = vectors(teacher, pairs.b), [alone(teacher, ids) for ids in more]
    students = vectors(objective.encoder, pairs.a) + vectors(objective.encoder, pairs.b)
    objective.anchors.use_bank(bank)
    assert objective.anchors.teacher is None
    output = objective(pairs)
    contrast = naive_contrast(
        students, y + y, lambda i: without(y, i % 5) + (extra[1:] if i % 5 == 0 else extra)
    )
    soft = naive_soft(students, y + y, lambda i: without(y, i % 5) + extra)
    found = naive_contrast(
        y + y,
        students,
        lambda i: (
            without(students, i, (i + 5) % 10)
            + without(y, i % 5)
            + (extra[1:] if i % 5 == 0 else extra)
        ),
    )
    assert float(output.terms["from_bank"]) == pytest.approx(found, rel=2e-3)
    assert float(output.terms["to_bank"]) == pytest.approx(
        contrast, rel=2e-3
    )  # the bank keeps half precision
    assert float(output.terms["soft"]) == pytest.approx(soft, rel=2e-3)
    assert "50.0 % of the variance" in " ".join(objective.notes())


@torch.no_grad()
def test_prefixes_are_contrasted_with_the_bank_s(tmp_path):
    objective, pairs = build(teachers=(saved_teacher(tmp_path / "teacher"),)), tiny_pairs()
    teacher = objective.anchors.teacher
    bank, more = bank_of(tmp_path / "bank", objective, pairs)
    objective.anchors.use_bank(bank)
    objective.nest(Matryoshka(dims=(16, 4), weights=(1.0, 0.5)))
    y, extra = (
        [row[:4] for row in rows]
        for rows in (vectors(teacher, pairs.b), [alone(teacher, i) for i in more])
    )
    students = [row[:4] for side in (pairs.a, pairs.b) for row in vectors(objective.encoder, side)]
    terms = objective(pairs).terms
    contrast = naive_contrast(students, y + y, lambda i: without(y, i % 5) + extra)
    soft = naive_soft(students, y + y, lambda i: without(y, i % 5) + extra)
    assert float(terms["to_bank_4"]) == pytest.approx(0.5 * contrast, rel=2e-3)
    assert float(terms["soft_4"]) == pytest.approx(0.5 * soft, rel=2e-3)
    assert set(terms) == {
        f"{name}_{dim}" for name in ("mse", "to_bank", "from_bank", "soft") for dim in (16, 4)
    }


@torch.no_grad()
def test_a_bank_gives_what_the_teacher_gives(tmp_path):
    objective, pairs = build(), tiny_pairs()
    without_bank = objective(pairs)
    assert objective.notes() == []
    bank, _ = bank_of(tmp_path / "bank", objective, pairs, others=0)
    objective.anchors.use_bank(bank)
    torch.testing.assert_close(objective(pairs).loss, without_bank.loss, rtol=2e-3, atol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("which", ["language", "all"])
def test_side_negatives_are_the_batch_s_students(which):
    objective = build(side_weight=1.0, side_negatives=which)
    pairs = tiny_pairs(languages=("deu_Latn", "fra_Latn"))
    y = vectors(objective.anchors.teacher, pairs.b)
    students = vectors(objective.encoder, pairs.a) + vectors(objective.encoder, pairs.b)
    languages = pairs.a.languages + pairs.b.languages

    def negatives(i):
        return [
            student
            for k, student in enumerate(students)
            if k % 5 != i % 5 and (which == "all" or languages[k] == languages[i])
        ]

    expected = naive_contrast(students, y + y, negatives)
    assert float(objective(pairs).terms["side"]) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_the_center_of_each_language_is_drawn_to_its_targets():
    objective, pairs = build(center_weight=2.0), tiny_pairs(languages=("deu_Latn", "fra_Latn"))
    y = vectors(objective.anchors.teacher, pairs.b)
    students = vectors(objective.encoder, pairs.a) + vectors(objective.encoder, pairs.b)
    gaps = [a / a.norm() - b / b.norm() for a, b in zip(students, y + y, strict=True)]
    languages, total = pairs.a.languages + pairs.b.languages, 0.0
    for code in set(languages):
        own = torch.stack(
            [gap for gap, language in zip(gaps, languages, strict=True) if language == code]
        )
        total += len(own) / 10 * float(own.mean(dim=0).square().sum())
    assert float(objective(pairs).terms["center"]) == pytest.approx(2 * total, rel=1e-4)


@torch.no_grad()
def test_known_languages_have_the_mean_of_both_sides_for_target(tmp_path):
    teacher = saved_teacher(tmp_path / "teacher")
    objective = build(teachers=(teacher,), known_languages=("de",), student_reads="translations")
    pairs = tiny_pairs(languages=("deu_Latn", "fra_Latn"))
    x, y = vectors(objective.anchors.teacher, pairs.a), vectors(objective.anchors.teacher, pairs.b)
    z = [(a + b) / 2 if row % 2 == 0 else b for row, (a, b) in enumerate(zip(x, y, strict=True))]
    s = vectors(objective.encoder, pairs.a)
    expected = sum(2 - 2 * cosine(a, b) for a, b in zip(s, z, strict=True)) / 5
    assert float(objective(pairs).terms["mse"]) == pytest.approx(expected, rel=1e-4)


@torch.no_grad()
def test_one_step_of_three_reads_the_originals_instead():
    objective, read = build(student_reads="alternate"), []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, result: read.append(args[0].tolist())
    )
    pairs = tiny_pairs()
    for step in range(6):
        objective(pairs._replace(step=step))
    sides = {True: pairs.b.input_ids.tolist(), False: pairs.a.input_ids.tolist()}
    assert read == [sides[step % 3 == 2] for step in range(6)]
    objective.eval()(pairs._replace(step=2))
    assert read[-1] == sides[False]  # what is measured is the same in every step


@torch.no_grad()
def test_hard_negatives_have_a_softmax_of_their_own():
    objective = build(hard_weight=0.5, hard_kinds=("word_order",), hard_count=1)
    pairs = tiny_pairs()
    long = TokenBatch.from_lists([[16, 17, 18, 19, 30, 31], [20, 21, 22, 23, 24]], ["eng_Latn"] * 2)
    pairs = pairs._replace(a=TokenBatch.from_lists([[6, 7], [8, 9]], ["deu_Latn"] * 2), b=long)
    altered = objective.anchors.alter(
        long, seed=pairs.seed, step=pairs.step, is_known=objective.anchors.is_known
    )
    assert altered.owners.tolist() == [0, 1]
    y, s = vectors(objective.anchors.teacher, long), vectors(objective.encoder, pairs.a)
    e, h = vectors(objective.encoder, long), vectors(objective.encoder, altered.sentences)
    total = 0.0
    for queries in (y, s):
        for row, x in enumerate(queries):
            own = math.exp(cosine(x, e[row]) / TEMPERATURE)
            total -= math.log(own / (own + math.exp(cosine(x, h[row]) / TEMPERATURE))) / 4
    output = objective(pairs)
    assert float(output.terms["hard"]) == pytest.approx(total / 2, rel=1e-4)
    torch.testing.assert_close(output.loss, torch.stack([*output.terms.values()]).sum())


def test_hard_negatives_come_in_steps_that_read_originals():
    objective = build(
        student_reads="alternate", original_steps=2, hard_weight=1.0, hard_kinds=("word_order",)
    )
    pairs = tiny_pairs()
    pairs = pairs._replace(
        b=join(*[TokenBatch.from_lists([[16, 17, 18, 19, 30]], ["eng_Latn"])] * 5)
    )
    assert "hard" not in objective(pairs._replace(step=0)).terms
    assert "hard" in objective(pairs._replace(step=1)).terms


def test_repeats_of_a_translation_are_no_negatives():
    objective = build(
        student_reads="translations", soft_weight=0.0, soft_temperature=0.05, mse_weight=0.0
    )
    pairs = tiny_pairs(2)
    same = pairs._replace(a=TokenBatch.from_lists([[6, 7], [6, 7]], ["deu_Latn"] * 2))
    assert float(objective(same).loss.detach()) == pytest.approx(0, abs=1e-6)
    assert float(objective(pairs).loss.detach()) > 0.1


def random_negatives(rows, bank, width):
    """Draw some vectors of the bank, and of the rows of equal meaning, in two languages."""
    draw = torch.Generator().manual_seed(3)
    same_meaning = torch.rand(rows, bank, generator=draw) < 0.3
    return Negatives(
        torch.randn(bank, width, generator=draw),
        same_sentence=same_meaning & (torch.rand(rows, bank, generator=draw) < 0.5),
        same_meaning=same_meaning,
        pairs=torch.eye(rows, dtype=torch.bool),
        languages=torch.arange(rows) % 2,
    )


def contrasts_of(objective, rows, bank):
    """Return the terms by name, and their vectors."""
    draw = torch.Generator().manual_seed(4)
    width = objective.encoder.dim
    negatives = random_negatives(rows, bank, width)
    s, z = (torch.randn(rows, width, generator=draw).requires_grad_() for _ in range(2))
    return objective.contrasts(negatives, s, z, negatives.vectors), (s, z)


@pytest.mark.parametrize("rows", [1, 3, 10])
def test_similarities_in_chunks_give_the_same_terms(rows, monkeypatch):
    objective = build(center_weight=1.0, side_weight=1.0, side_negatives="language")
    whole, inputs = contrasts_of(objective, 10, 12)
    expected = torch.autograd.grad(sum(whole.values()), inputs)
    monkeypatch.setattr(contrastive, "WHOLE_LOGITS", 0)
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", rows * 22)
    terms, inputs = contrasts_of(objective, 10, 12)
    torch.testing.assert_close(terms, {name: whole[name] for name in terms}, rtol=1e-6, atol=1e-6)
    assert len(terms) == len(whole) == 6
    found = torch.autograd.grad(sum(terms.values()), inputs)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


def test_only_too_many_similarities_are_made_in_chunks(monkeypatch):
    objective = build(side_weight=1.0)
    monkeypatch.setattr(contrastive, "CHUNK_LOGITS", 8 * 128)
    for whole, rows in ((64 * 128, 64), (64 * 128 - 1, 8)):
        monkeypatch.setattr(contrastive, "WHOLE_LOGITS", whole)
        with LargestTensor() as seen:
            terms, _ = contrasts_of(objective, 64, 64)
            sum(terms.values()).backward()
        # The positives have a column of their own; the caller's masks are as large as they are.
        assert rows * 128 <= seen.most <= max(rows * 129, 64 * 64)


def test_without_a_contrast_the_center_alone_is_left(monkeypatch):
    nothing = {"mse_weight": 0.0, "to_bank_weight": 0.0, "from_bank_weight": 0.0}
    objective = build(
        **nothing, soft_weight=0.0, soft_temperature=0.05, temperature=0.05, center_weight=1.0
    )
    whole, _ = contrasts_of(objective, 10, 12)
    monkeypatch.setattr(contrastive, "WHOLE_LOGITS", 0)
    terms, _ = contrasts_of(objective, 10, 12)
    torch.testing.assert_close(terms, whole)


def test_several_teachers_without_a_bank_are_an_error(tmp_path):
    name = saved_teacher(tmp_path / "teacher")
    with pytest.raises(ConfigError, match="require a bank"):
        build(teachers=(name, name))(tiny_pairs())
    with pytest.raises(ConfigError, match="require a bank"):  # nor one of another width
        build(teachers=(saved_teacher(tmp_path / "narrow", hidden_size=8),))(tiny_pairs())


def test_no_teacher_there_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        build(teachers=(str(tmp_path / "nowhere"),))
    with pytest.raises(DataError, match="unknown language"):
        build(pivot="xx")


CONTRASTS = ("to_bank_weight", "from_bank_weight", "side_weight", "hard_weight")


@pytest.mark.parametrize("contrasts", [*combinations(CONTRASTS, 1), *combinations(CONTRASTS, 2)])
def test_every_contrast_reads_the_temperature(contrasts):
    weights = {name: float(name in contrasts) for name in CONTRASTS}
    assert AnchorConfig(**weights, temperature=0.1).temperature == 0.1
