"""Targets and negatives of a batch.

That they are right is tested with the method, tests/methods/test_anchor.py.
"""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.sentences import join
from interlingua.errors import ConfigError
from interlingua.methods.teachers.anchors import Anchors, is_vector_file
from interlingua.methods.teachers.frozen_teachers import ModelTeacher
from interlingua.methods.teachers.teacher_bank import BankRequest
from tests.methods.conftest import tiny_encoder, tiny_pairs
from tests.methods.test_distill import byte_encoder, byte_vocabulary, saved_teacher, text_pairs


def anchors(encoder=None, *, teachers=(), prompts=(), **request):
    return Anchors(
        encoder or tiny_encoder(),
        teachers=teachers,
        prompts=prompts,
        bank=BankRequest("", "en", **request),
    ).train()


def reading(anchors, pairs, **sides):
    return anchors.reading(anchors.prepare(pairs, **sides), **sides)


def test_without_a_name_the_teacher_is_a_copy_of_the_student():
    encoder = tiny_encoder()
    found = anchors(encoder)
    assert found.teacher is not encoder
    assert found.teacher.digest() == encoder.digest()
    assert not any(weight.requires_grad for weight in found.parameters())
    assert not found.teacher.training


def test_a_reading_has_the_sides_that_are_asked_for():
    found, pairs = anchors(), tiny_pairs()
    both = reading(found, pairs, translations=True, originals=True)
    assert torch.equal(both.sentences.input_ids, join(pairs.a, pairs.b).input_ids)
    assert len(both.targets) == len(both.languages) == 2
    assert all(torch.equal(target, both.anchors) for target in both.targets)
    assert both.owners is None
    for side in (pairs.a, pairs.b):
        translations = side is pairs.a
        one = reading(found, pairs, translations=translations, originals=not translations)
        assert one.sentences.input_ids.tolist() == side.input_ids.tolist()
        assert torch.equal(one.targets[0], both.anchors)
        assert torch.equal(one.languages[0], both.languages[0 if translations else 1])


def test_a_pair_may_be_stored_either_way_round():
    found, pairs = anchors(), tiny_pairs(languages=("deu_Latn",))
    exchanged = pairs._replace(a=pairs.b, b=pairs.a)
    first = reading(found, pairs, translations=True, originals=False)
    second = reading(found, exchanged, translations=True, originals=False)
    torch.testing.assert_close(first.targets, second.targets)
    assert first.sentences.input_ids.tolist() == second.sentences.input_ids.tolist()


def test_negatives_repeat_for_each_side():
    found, pairs = anchors(), tiny_pairs(languages=("deu_Latn", "fra_Latn"))
    made = found.prepare(pairs, translations=True, originals=True)
    one, both = (found.reading(made, translations=True, originals=o) for o in (False, True))
    once, twice = (found.negatives(made, read, 0, lambda rows: rows) for read in (one, both))
    assert twice.same_sentence.tolist() == [*once.same_sentence.tolist()] * 2
    assert twice.pairs.tolist() == once.pairs.repeat(2, 2).tolist()
    assert torch.equal(twice.vectors, once.vectors)
    size = pairs.a.batch_size
    assert torch.equal(twice.languages[:size], once.languages)
    assert not set(twice.languages[size:].tolist()) & set(once.languages.tolist())


def test_a_prompt_stands_in_front_of_what_the_teacher_reads(tmp_path):
    student, teacher = byte_encoder(byte_vocabulary()), byte_encoder(byte_vocabulary(size=320))
    teacher.save(tmp_path / "teacher")
    pairs = text_pairs(student.vocabulary)
    found = anchors(student, teachers=(str(tmp_path / "teacher"),), prompts=("query: ",))
    reader = ModelTeacher(teacher, student.vocabulary, pivot="eng_Latn", prompt="query: ")
    ids = [one.tolist() for one in pairs.b.input_ids.split(pairs.b.lengths.tolist())]
    expected = torch.from_numpy(reader.embed(ids, "eng_Latn"))
    torch.testing.assert_close(found.vectors(found.source(pairs.b)), expected, rtol=1e-4, atol=1e-5)


def test_teachers_are_opened_in_their_order(tmp_path):
    names = (saved_teacher(tmp_path / "one"), saved_teacher(tmp_path / "two", hidden_size=8))
    found = anchors(teachers=names).open_teachers(max_tokens=16)
    assert [(teacher.name, teacher.width) for teacher in found] == [(names[0], 16), (names[1], 8)]
    single = anchors(teachers=names[:1])
    assert single.open_teachers(max_tokens=16)[0].encoder is single.teacher


def test_a_vocabulary_that_loses_what_the_teacher_reads_is_an_error(tmp_path):
    byte_encoder(byte_vocabulary()).save(tmp_path / "cased")
    with pytest.raises(ConfigError, match="cased"):
        anchors(byte_encoder(byte_vocabulary(lowercase=True)), teachers=(str(tmp_path / "cased"),))


def test_matrices_are_known_by_their_suffix():
    assert is_vector_file("vectors/muse.npy")
    assert not is_vector_file("models/npy")
