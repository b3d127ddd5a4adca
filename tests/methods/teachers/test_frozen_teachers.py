"""Teachers: models that read the student's tokens or their text, and ready vectors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from interlingua.batches.tokens import TokenBatch
from interlingua.errors import ConfigError, DataError
from interlingua.methods.teachers.frozen_teachers import ModelTeacher, VectorTeacher
from tests.methods.conftest import tiny_encoder, tiny_vocabulary
from tests.methods.test_distill import byte_encoder, byte_vocabulary

SENTENCES = [[6, 7, 8], [9, 10], [11]]


@torch.no_grad()
def alone(encoder, ids):
    return encoder(TokenBatch.from_lists([ids], ["eng_Latn"]))[0].numpy()


def test_a_model_of_the_student_s_vocabulary_reads_its_tokens():
    encoder = tiny_encoder().eval()
    teacher = ModelTeacher(encoder, tiny_vocabulary(), pivot="eng_Latn")
    found = teacher.embed(SENTENCES, "eng_Latn")
    np.testing.assert_allclose(
        found, [alone(encoder, ids) for ids in SENTENCES], rtol=1e-4, atol=1e-5
    )
    assert teacher.width == 16
    # It takes 16 tokens.
    assert teacher.in_own_tokens([list(range(6, 40))], "eng_Latn") == [list(range(6, 22))]


def test_a_model_of_another_vocabulary_reads_the_text_behind_its_prompt():
    student, encoder = byte_vocabulary(), byte_encoder(byte_vocabulary(size=320))
    ids = student.encode(["A house by the sea."])
    for prompt in ("", "query: "):
        teacher = ModelTeacher(encoder, student, pivot="eng_Latn", prompt=prompt)
        own = encoder.vocabulary.encode([prompt + "A house by the sea."])[0]
        np.testing.assert_allclose(
            teacher.embed(ids, "eng_Latn")[0], alone(encoder, own), rtol=1e-4, atol=1e-5
        )


def test_a_prompt_changes_the_digest():
    encoder, student = byte_encoder(byte_vocabulary()), byte_vocabulary()
    digests = {
        ModelTeacher(encoder, student, pivot="eng_Latn", prompt=p).digest() for p in ("", "query: ")
    }
    assert len(digests) == 2


def test_tokens_that_lose_the_text_are_refused():
    with pytest.raises(ConfigError, match="another vocabulary"):
        ModelTeacher(
            byte_encoder(byte_vocabulary()), byte_vocabulary(lowercase=True), pivot="eng_Latn"
        )


def opened(tmp_path, student):
    return VectorTeacher(str(tmp_path / "muse.npy"), student, pivot="eng_Latn", max_tokens=16)


def ready(tmp_path, lines=("w0 w1 w2", "w3 w4"), rows=None, student=None):
    vectors = np.arange(3 * (rows or len(lines)), dtype=np.float32).reshape(-1, 3)
    np.save(tmp_path / "muse.npy", vectors)
    (tmp_path / "muse.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return opened(tmp_path, student or tiny_vocabulary())


def test_ready_vectors_are_found_by_their_sentence(tmp_path):
    teacher = ready(tmp_path)
    assert teacher.embed([[9, 10], [6, 7, 8]], "eng_Latn").tolist() == [[3, 4, 5], [0, 1, 2]]
    assert teacher.width == 3
    assert teacher.missing([[9, 10], [9], [6, 7, 8]]) == [1]
    assert teacher.text([9, 10]) == "w3 w4"
    with pytest.raises(DataError, match="'w3'"):
        teacher.embed([[9]], "eng_Latn")


def test_ready_vectors_are_found_by_the_text_of_a_sentence_that_is_read_again_in_other_tokens(
    tmp_path,
):
    # Byte pairs make "ab" one token; a sentence that was cut, or comes from another tokenizer, may
    # have two.
    student = byte_vocabulary()
    teacher = ready(tmp_path, ("the cats",), student=student)
    (whole,) = student.encode(["the cats"])
    opening, closing = student.opening_tokens, student.closing_tokens
    characters = []
    for ids in student.encode("the cats"):
        characters += ids[opening : len(ids) - closing]
    pieces = [*whole[:opening], *characters, *whole[len(whole) - closing :]]
    assert pieces != whole
    assert teacher.missing([pieces]) == []
    assert teacher.embed([pieces], "eng_Latn").tolist() == [[0, 1, 2]]


def test_other_vectors_have_another_digest(tmp_path):
    first = ready(tmp_path).digest()
    assert ready(tmp_path).digest() == first
    assert ready(tmp_path, lines=("w0 w1 w2", "w3 w5")).digest() != first


def test_vectors_and_lines_that_do_not_belong_together_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"2 lines.*\(3, 3\)"):
        ready(tmp_path, rows=3)
    (tmp_path / "muse.npy").write_bytes(b"nothing")
    with pytest.raises(DataError, match="matrix"):
        opened(tmp_path, tiny_vocabulary())
