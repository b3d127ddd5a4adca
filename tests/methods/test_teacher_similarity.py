"""The teacher's rankings against a loop over questions, and what is compared with what."""

import math

import pytest
import torch

from interlingua.batches.feeds import QuestionBatch
from interlingua.batches.sentences import join
from interlingua.batches.tokens import TokenBatch
from interlingua.errors import ConfigError
from interlingua.methods.teacher_similarity import TeacherSimilarity, TeacherSimilarityConfig
from tests.methods.harness import cosine, sentences, tiny_batch, tiny_objective, token_lists
from tests.methods.test_distill import byte_encoder, byte_vocabulary


def vectors(encoder, batch):
    return list(encoder(batch))


def divergence(student, teacher, temperature, teacher_temperature):
    """Compute the KL divergence of two lists of cosines."""
    p = [math.exp(value / teacher_temperature) for value in teacher]
    q = [math.exp(value / temperature) for value in student]
    p = [value / sum(p) for value in p]
    q = [value / sum(q) for value in q]
    return sum(a * math.log(a / b) for a, b in zip(p, q, strict=True))


def moved(objective):
    """Move the student away from its teacher, its initial copy."""
    with torch.no_grad():
        for weight in objective.encoder.parameters():
            weight.add_(0.05 * torch.randn_like(weight))
    return objective


def mixed():
    """Build questions of two languages, each with its passage and a hard one."""
    german, french = ({"language": code} for code in ("deu_Latn", "fra_Latn"))
    questions = join(sentences(2, seed=1, **german), sentences(3, seed=2, **french))
    answers = join(sentences(2, seed=3, **german), sentences(3, seed=4, **french))
    hard = join(sentences(2, seed=5, **german), sentences(3, seed=6, **french))
    return QuestionBatch(questions, join(answers, hard), step=0)


@torch.no_grad()
@pytest.mark.parametrize("candidates", ["language", "all"])
def test_the_loss_is_that_of_a_loop(candidates):
    torch.manual_seed(0)
    options = {"candidates": candidates, "temperature": 0.1, "teacher_temperature": 0.05}
    objective, batch = moved(tiny_objective("teacher_similarity", options)), mixed()
    student, teacher = (
        (vectors(encoder, batch.questions), vectors(encoder, batch.passages))
        for encoder in (objective.encoder, objective.teacher)
    )
    languages = batch.questions.languages, batch.passages.languages

    def mean(own, other):
        rows = []
        for i, language in enumerate(languages[own]):
            seen = [
                j
                for j, code in enumerate(languages[other])
                if candidates == "all" or code == language
            ]
            lists = [
                [cosine(side[own][i], side[other][j]) for j in seen] for side in (student, teacher)
            ]
            rows.append(divergence(*lists, 0.1, 0.05))
        return sum(rows) / len(rows)

    output = objective(batch)
    assert output.terms["question"].item() == pytest.approx(mean(0, 1), rel=1e-3)
    assert output.terms["passage"].item() == pytest.approx(mean(1, 0), rel=1e-3)
    assert output.loss.item() == pytest.approx(mean(0, 1) + mean(1, 0), rel=1e-3)


def test_a_student_that_ranks_as_its_teacher_has_nothing_to_learn():
    options = {"temperature": 0.05, "teacher_temperature": 0.05}
    objective = tiny_objective("teacher_similarity", options)
    assert objective(mixed()).loss.item() == pytest.approx(0, abs=1e-4)


def test_another_language_has_no_say():
    """Change the other language's questions, which have no effect with one language only."""
    torch.manual_seed(0)
    objective = moved(tiny_objective("teacher_similarity", {"passage_weight": 0.0}))
    german = {"language": "deu_Latn"}
    questions, passages = sentences(2, seed=1, **german), sentences(4, seed=3, **german)
    alone = objective(QuestionBatch(questions, passages, 0)).loss.item()
    # A French question among German passages has no candidate, and a French passage is none.
    french = {"language": "fra_Latn"}
    batch = QuestionBatch(
        join(questions, sentences(1, seed=8, **french)),
        join(passages, sentences(1, seed=9, **french)),
        0,
    )
    assert objective(batch).loss.item() == pytest.approx(alone, rel=1e-4)


def test_a_teacher_of_another_width_reads_with_its_prompts(tmp_path):
    student, teacher = (byte_encoder(byte_vocabulary(size=size)) for size in (300, 320))
    teacher.save(tmp_path / "teacher")
    config = TeacherSimilarityConfig(
        teacher=str(tmp_path / "teacher"), question_prompt="query: ", passage_prompt="text: "
    )
    objective = TeacherSimilarity(config, student)
    texts = {"questions": ["Where?", "A bell?"], "passages": ["By the sea.", "In the church."]}
    read = {
        name: TokenBatch.from_lists(student.vocabulary.encode(lines), ["eng_Latn"] * 2)
        for name, lines in texts.items()
    }
    inputs = objective.prepare(QuestionBatch(**read, step=0))
    for name, prompt in (("questions", "query: "), ("passages", "text: ")):
        expected = teacher.vocabulary.encode([prompt + line for line in texts[name]])
        assert token_lists(getattr(inputs, name)) == expected
    output = objective(QuestionBatch(**read, step=0))
    output.loss.backward()
    assert output.loss.item() > 0
    assert all(weight.grad is None for weight in objective.teacher.parameters())


def test_prompts_need_a_teacher():
    with pytest.raises(ConfigError, match="question_prompt"):
        tiny_objective("teacher_similarity", {"question_prompt": "query: "})


def test_a_term_of_a_combination():
    options = {
        "terms": {
            "rank": {"method": "teacher_similarity", "weight": 0.5},
            "find": {
                "method": "multilingual_ir",
                "towers": "shared",
                "semantic_weight": 0.0,
                "language_weight": 0.0,
            },
        }
    }
    objective = tiny_objective("combination", options)
    output = objective(tiny_batch("combination", options))
    assert set(output.terms) == {"rank_question", "rank_passage", "find"}
