"""A share of the sentences in other forms: what the encoder reads, and what stays as it is."""

from __future__ import annotations

import pytest
import torch

from interlingua.batches.feeds import LabeledBatch, QuestionBatch, SentenceBatch
from interlingua.batches.tokens import ParallelBatch, TokenBatch
from interlingua.batches.written_forms import FormsRequest
from interlingua.config import from_mapping
from interlingua.config.registry import METHODS, resolve_name
from interlingua.encoder.encoder import Encoder
from interlingua.errors import ConfigError
from tests.methods.harness import tiny_objective
from tests.methods.test_distill import byte_encoder, byte_vocabulary

OPTIONS = {
    "distill": {"replay_weight": 1.0},
    "anchor": {"student_reads": "both"},
    "multilingual_ir": {"towers": "shared", "monolingual": True, "exclude_repeats": True},
}
TAKES_FORMS = sorted(name for name in METHODS if resolve_name(METHODS, name).takes_forms)


def texts(*words):
    vocabulary = byte_vocabulary()
    lines = [f"the {word} by the sea" for word in words]
    return TokenBatch.from_lists(vocabulary.encode(lines), ["eng_Latn"] * len(lines))


def lower_batch(method):
    a, b = texts("house", "church", "bell"), texts("home", "temple", "gong")
    german = b._replace(languages=("deu_Latn",) * 3)
    if method in ("sts", "nli"):
        return LabeledBatch(a, b, torch.tensor([0.0, 1.0, 1.0]), 0)
    questions, pairs = QuestionBatch(a, b, 0), ParallelBatch(german, a, 0)
    if method == "teacher_similarity":
        return questions
    if method == "multilingual_ir":
        return {"questions": questions, "parallel": pairs, "monolingual": SentenceBatch(b, 0)}
    if method == "distill":
        return {"parallel": pairs, "monolingual": SentenceBatch(b, 0)}
    return pairs


def made(method, encoder):
    kind = resolve_name(METHODS, method)
    return kind(from_mapping(kind.Config, OPTIONS.get(method, {})), encoder).train()


def read_by(objective, batch, monkeypatch):
    """Return the texts that each encoder reads."""
    read = {}
    plain = Encoder.forward

    def forward(self, sentences, *args, **options):
        kind = "student" if self is objective.encoder else "teacher"
        ids = torch.split(sentences.input_ids, sentences.lengths.tolist())
        read.setdefault(kind, set()).update(self.vocabulary.decode(one.tolist()) for one in ids)
        return plain(self, sentences, *args, **options)

    monkeypatch.setattr(Encoder, "forward", forward)
    objective(batch)
    return read


@pytest.mark.parametrize("method", TAKES_FORMS)
def test_the_encoder_reads_forms_and_its_teacher_the_texts(method, monkeypatch):
    objective = made(method, byte_encoder(byte_vocabulary()))
    objective.write_forms(FormsRequest(1.0, ("capitals",)))
    read = read_by(objective, lower_batch(method), monkeypatch)
    assert read["student"]
    assert all(text.isupper() for text in read["student"])
    assert all(text.islower() for text in read.get("teacher", set()))
    assert ("teacher" in read) == (method in ("anchor", "distill", "teacher_similarity"))


@pytest.mark.parametrize("method", TAKES_FORMS)
def test_without_a_request_nothing_changes(method, monkeypatch):
    objective = made(method, byte_encoder(byte_vocabulary()))
    read = read_by(objective, lower_batch(method), monkeypatch)
    assert all(text.islower() for text in read["student"])


def test_methods_that_predict_tokens_refuse_forms():
    with pytest.raises(ConfigError, match=r"data.forms"):
        tiny_objective("retromae").write_forms(FormsRequest(0.5))


def test_of_a_combination_the_terms_that_can():
    options = {"terms": {"a": {"method": "infonce"}, "b": {"method": "retromae"}}}
    objective = tiny_objective("combination", options)
    objective.write_forms(FormsRequest(0.5))
    assert objective.methods["a"].written_forms is not None
    assert objective.methods["b"].written_forms is None
