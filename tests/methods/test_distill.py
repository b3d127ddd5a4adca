"""Distillation from a frozen teacher against its equation, sentence by sentence, and what a teacher
may be."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from interlingua.batches.feeds import SentenceBatch
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.encoder.encoder import Encoder
from interlingua.encoder.modeling.backbone import BackboneConfig
from interlingua.errors import CheckpointError, ConfigError, DataError
from interlingua.methods.distill import PROBE, Distill, DistillConfig
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.harness import alone, token_lists

TEXTS = [
    PROBE,
    "A house by the sea.",
    "Who's there? (Me.)",
    "ein Haus am Meer",
    "Wer ist da?",
    "THE END",
]


def build(*, encoder=None, dropout=0.0, **options):
    encoder = encoder or tiny_encoder(
        hidden_dropout_prob=dropout, attention_probs_dropout_prob=dropout
    )
    return Distill(DistillConfig(**options), encoder).train()


def squares(u, v):
    return sum((x - y) ** 2 for x, y in zip(u.tolist(), v.tolist(), strict=True)) / len(u)


def saved_teacher(folder, **sizes):
    teacher = tiny_encoder(**sizes)
    torch.manual_seed(9)
    teacher.backbone.initialize("torch")
    teacher.save(folder)
    return str(folder)


def byte_vocabulary(*, lowercase=False, size=300):
    """Build a vocabulary that spells anything, in lower case if requested."""
    tokenizer = Tokenizer(models.BPE())
    if lowercase:
        tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<unk>", "<mask>"]
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    roles = dict(zip(("pad_token", "unk_token", "mask_token"), special, strict=True))
    return Vocabulary(tokenizer.to_str(), special_tokens=roles)


def byte_encoder(vocabulary, *, max_tokens=96, hidden_size=16):
    torch.manual_seed(2)
    sizes = {
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 24,
        "hidden_dropout_prob": 0.0,
    }
    config = BackboneConfig(
        vocab_size=vocabulary.size,
        hidden_size=hidden_size,
        max_position_embeddings=max_tokens,
        **sizes,
    )
    return Encoder.from_scratch(config, vocabulary).eval()


def text_pairs(vocabulary):
    a, b = vocabulary.encode(["ein Haus am Meer", "Wer ist da?"]), vocabulary.encode(TEXTS[1:3])
    return ParallelBatch(
        TokenBatch.from_lists(a, ["deu_Latn"] * 2), TokenBatch.from_lists(b, ["eng_Latn"] * 2), 0
    )


@torch.no_grad()
def test_both_terms_are_the_equation(tmp_path):
    objective, pairs = build(teacher=saved_teacher(tmp_path / "teacher")), tiny_pairs()
    target = [alone(objective.teacher, ids) for ids in token_lists(pairs.b)]
    expected = {
        name: sum(
            squares(alone(objective.encoder, ids), t)
            for ids, t in zip(token_lists(side), target, strict=True)
        )
        / 5
        for name, side in (("translation", pairs.a), ("original", pairs.b))
    }
    output = objective(pairs)
    assert {name: float(term) for name, term in output.terms.items()} == pytest.approx(
        expected, rel=1e-5
    )
    assert float(output.loss) == pytest.approx(sum(expected.values()), rel=1e-5)
    weighted = build(
        teacher=str(tmp_path / "teacher"), translation_weight=2.0, original_weight=0.5
    )(pairs)
    assert float(weighted.loss) == pytest.approx(
        2 * expected["translation"] + expected["original"] / 2, rel=1e-5
    )


@torch.no_grad()
def test_the_pivot_may_stand_on_either_side():
    objective, pairs = build(), tiny_pairs(languages=("deu_Latn", "fra_Latn"))
    exchanged = pairs._replace(a=pairs.b, b=pairs.a)
    torch.testing.assert_close(objective(exchanged).loss, objective(pairs).loss)
    german = build(pivot="de")
    assert german.pivot == "deu_Latn"
    with pytest.raises(DataError, match=r"no side in .*deu_Latn"):
        german(pairs)


@torch.no_grad()
def test_at_its_own_start_a_student_already_embeds_originals_as_it_shall():
    output = build()(tiny_pairs())
    assert float(output.terms["original"]) == pytest.approx(0, abs=1e-10)
    assert float(output.terms["translation"]) > 1e-3


def test_without_the_original_s_term_the_student_does_not_read_it():
    objective, pairs, read = build(original_weight=0.0), tiny_pairs(), []
    objective.encoder.backbone.register_forward_hook(
        lambda module, args, result: read.append(args[0].tolist())
    )
    output = objective(pairs)
    assert list(output.terms) == ["translation"]
    assert read == [pairs.a.input_ids.tolist()]
    assert list(build(translation_weight=0.0)(pairs).terms) == ["original", "translation"]


@torch.no_grad()
def test_a_teacher_of_another_vocabulary_reads_the_text(tmp_path):
    student, teacher = byte_encoder(byte_vocabulary()), byte_encoder(byte_vocabulary(size=320))
    teacher.save(tmp_path / "teacher")
    objective = build(encoder=student, teacher=str(tmp_path / "teacher"))
    pairs = text_pairs(student.vocabulary)
    assert teacher.vocabulary.encode(TEXTS) != student.vocabulary.encode(TEXTS)
    expected = torch.stack([alone(teacher, ids) for ids in teacher.vocabulary.encode(TEXTS[1:3])])
    found = objective.teach(objective.for_teacher(pairs.b))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)
    assert torch.isfinite(objective(pairs).loss)


@torch.no_grad()
def test_a_teacher_that_takes_less_reads_the_beginning(tmp_path):
    student = byte_encoder(byte_vocabulary())
    teacher = byte_encoder(byte_vocabulary(), max_tokens=3)
    teacher.save(tmp_path / "teacher")
    objective, pairs = (
        build(encoder=student, teacher=str(tmp_path / "teacher")),
        text_pairs(student.vocabulary),
    )
    expected = torch.stack([alone(teacher, ids[:3]) for ids in token_lists(pairs.b)])
    found = objective.teach(objective.for_teacher(pairs.b))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_vocabulary_that_loses_what_the_teacher_reads_is_an_error(tmp_path):
    byte_encoder(byte_vocabulary()).save(tmp_path / "cased")
    with pytest.raises(ConfigError, match="another vocabulary"):
        build(
            encoder=byte_encoder(byte_vocabulary(lowercase=True)), teacher=str(tmp_path / "cased")
        )
    byte_encoder(byte_vocabulary(lowercase=True)).save(tmp_path / "lower")
    build(
        encoder=byte_encoder(byte_vocabulary()), teacher=str(tmp_path / "lower")
    )  # what it does not read may be lost


def test_a_teacher_of_another_width_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"width 8, .* width 16"):
        build(teacher=saved_teacher(tmp_path / "teacher", hidden_size=8))


def test_a_pivot_that_is_no_language_is_an_error():
    with pytest.raises(DataError, match="unknown language 'xx'"):
        build(pivot="xx")


def test_no_teacher_there_is_an_error(tmp_path):
    with pytest.raises(CheckpointError, match="nowhere"):
        build(teacher=str(tmp_path / "nowhere"))


@torch.no_grad()
def test_replayed_sentences_are_kept_where_the_teacher_puts_them(tmp_path):
    objective = build(teacher=saved_teacher(tmp_path / "teacher"), replay_weight=3.0)
    pairs = tiny_pairs()
    batch = {"parallel": pairs, "monolingual": SentenceBatch(pairs.a, 0)}
    output = objective(batch)
    alone_on_pairs = objective(pairs)
    squared = [
        squares(alone(objective.encoder, ids), alone(objective.teacher, ids))
        for ids in token_lists(pairs.a)
    ]
    assert float(output.terms["replay"]) == pytest.approx(3 * sum(squared) / len(squared), rel=1e-5)
    assert float(output.loss) == pytest.approx(
        float(alone_on_pairs.loss + output.terms["replay"]), rel=1e-5
    )


def test_replay_asks_for_a_second_feed():
    assert Distill.feeds_for(DistillConfig()) == ("parallel",)
    assert Distill.feeds_for(DistillConfig(replay_weight=0.5)) == ("parallel", "monolingual")
    with pytest.raises(ConfigError, match="replay_weight"):
        DistillConfig(replay_weight=-1.0)
