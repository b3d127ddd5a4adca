from __future__ import annotations

import json

import numpy as np
import pytest

from interlingua.encoder.dual_encoder import DualEncoder
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.training.build import build_objective
from interlingua.training.config import train_config_from
from interlingua.training.feeds.data_config import QuestionsConfig
from interlingua.training.feeds.open_feeds import _open_questions, open_data, open_questions
from interlingua.training.loop import run_training
from interlingua.vocabulary.vocabulary import Vocabulary
from tests.training.runs import records

COUNT = 12


def passage(number, title=""):
    return {"title": title, "text": f"en{number} en{number + 1} en{number + 2}"}


def write(path, items):
    path.write_text(json.dumps(items), encoding="utf-8")
    return path


@pytest.fixture
def file(tmp_path):
    """Twelve questions, two per passage, with a shared and an own hard negative and the answer."""
    return write(
        tmp_path / "train.json",
        [
            {
                "question": f"en{row} en0",
                "positive_ctxs": [passage(row // 2, title="en9")],
                "hard_negative_ctxs": [
                    passage(35),
                    passage(row // 2, title="en9"),
                    passage(20 + row),
                    passage(35),
                ],
            }
            for row in range(COUNT)
        ],
    )


def opened(vocabulary, path, **options):
    return open_questions(QuestionsConfig(paths=(path,), **options), vocabulary)


def texts(column, vocabulary, rows):
    batch = column.read(np.asarray(rows))
    return [
        vocabulary.decode(ids.tolist())
        for ids in batch.input_ids.split_with_sizes(batch.lengths.tolist())
    ]


def test_what_is_read(file, word_vocabulary):
    rows, valid = opened(word_vocabulary, file, hard_negatives=5)
    assert valid is None
    assert (len(rows), rows.hard_negatives) == (COUNT, 2)
    assert texts(rows.questions, word_vocabulary, [3]) == ["en3 en0"]
    assert texts(rows.passages, word_vocabulary, [rows.positives[3]]) == ["en9 en1 en2 en3"]
    assert rows.negative_counts.tolist() == [2] * COUNT  # repeated ones once, the answer never
    negatives = texts(rows.passages, word_vocabulary, rows.negatives[6:8])
    assert negatives == ["en35 en36 en37", "en23 en24 en25"]
    assert len(rows.passages) == 6 + 1 + COUNT  # each text once
    assert rows.positives[2] == rows.positives[3] != rows.positives[4]


def test_hard_negatives_are_not_even_tokenized_where_none_are_wanted(file, word_vocabulary):
    rows, _ = opened(word_vocabulary, file)
    assert (rows.hard_negatives, len(rows.passages), len(rows.negatives)) == (0, 6, 0)


def test_of_several_answers_the_first_is_learned_and_none_is_a_negative(word_vocabulary, tmp_path):
    answers, wrong = [passage(1), passage(5)], [passage(5), passage(9), passage(1)]
    items = [{"question": "en1", "positive_ctxs": answers, "hard_negative_ctxs": wrong}]
    path = write(tmp_path / "nq.json", items)
    rows, _ = opened(word_vocabulary, path, hard_negatives=2)
    assert texts(rows.passages, word_vocabulary, range(len(rows.passages))) == [
        "en1 en2 en3",
        "en9 en10 en11",
    ]
    assert (rows.positives.tolist(), rows.negatives.tolist()) == ([0], [1])


def test_a_hard_negative_that_reads_as_the_answer_is_none(word_vocabulary, tmp_path):
    """Join a title and a text without a separator to one text."""
    right, wrong = {"title": "en1", "text": "en2"}, {"title": "", "text": "en1 en2"}
    items = [
        {"question": "en3", "positive_ctxs": [right], "hard_negative_ctxs": [wrong, passage(9)]}
    ]
    rows, _ = opened(word_vocabulary, write(tmp_path / "nq.json", items), hard_negatives=2)
    assert texts(rows.passages, word_vocabulary, rows.negatives) == ["en9 en10 en11"]


@pytest.mark.parametrize("towers", ["separate", "shared"])
def test_titles_are_read_in_training_as_in_evaluation(tiny_table, file, word_vocabulary, towers):
    """Compare a run's tokens with a passage and its title in an evaluation."""
    roles = {**word_vocabulary.special_tokens, "sep_token": "en7"}
    tags = {
        code: word_vocabulary.tokenizer.id_to_token(tag)
        for code, tag in word_vocabulary.language_tags.items()
    }
    vocabulary = Vocabulary(
        word_vocabulary.tokenizer.to_str(), special_tokens=roles, language_tags=tags
    )
    tiny_table["data"]["questions"] = {"paths": [str(file)], "passage_prompt": "en8 "}
    tiny_table["method"] = {"name": "multilingual_ir", "towers": towers}
    config = train_config_from(tiny_table)
    rows = _open_questions(config, vocabulary)[0]
    objective = build_objective(config, vocabulary).eval()
    batch = rows.passages.read(np.asarray([rows.positives[3]]))
    trained = objective.encoder(batch).detach().numpy()
    assert (vocabulary.encode(["en7"])[0][0] in batch.input_ids.tolist()) == (towers == "separate")
    both = DualEncoder(objective.encoder, objective.question_encoder)
    for model in [both, objective.encoder] if towers == "shared" else [both]:
        with CachedEncoder(model) as cached:
            found = cached.encode(["en1 en2 en3"], role="passage", titles=["en9"])
        cosine = (found @ trained.T).item() / np.linalg.norm(found) / np.linalg.norm(trained)
        assert cosine == pytest.approx(1, abs=1e-6)


def test_a_text_in_two_languages_is_two_passages(word_vocabulary, tmp_path):
    items = [
        {"question": "en1", "language": code, "positive_ctxs": [passage(1)]}
        for code in ("en", "de", "en")
    ]
    rows, _ = opened(word_vocabulary, write(tmp_path / "nq.json", items))
    assert rows.positives.tolist() == [0, 1, 0]
    assert rows.passages.languages == ("eng_Latn", "deu_Latn")


def test_what_is_held_out_may_have_no_hard_negatives(word_vocabulary, tmp_path):
    def open_with(with_negatives):
        items = [
            {
                "question": f"en{row}",
                "positive_ctxs": [passage(row)],
                "hard_negative_ctxs": [passage(30)] if row in with_negatives else [],
            }
            for row in range(6)
        ]
        path = write(tmp_path / "nq.json", items)
        return opened(word_vocabulary, path, held_out=3, hard_negatives=1)

    _, valid = open_with(range(6))
    held_out = {
        int(text.removeprefix("en")) for text in texts(valid.questions, word_vocabulary, range(3))
    }
    rows, valid = open_with(set(range(6)) - held_out)
    assert (rows.hard_negatives, valid.hard_negatives) == (1, 0)


def test_prompts_and_limits(file, word_vocabulary):
    section = QuestionsConfig(
        paths=(file,),
        question_prompt="en38 ",
        passage_prompt="en39 ",
        max_question_tokens=2,
        max_passage_tokens=4,
    )
    rows, _ = open_questions(section, word_vocabulary)
    assert texts(rows.questions, word_vocabulary, [3]) == ["en38 en3"]
    assert texts(rows.passages, word_vocabulary, [rows.positives[3]]) == ["en39 en9 en1 en2"]
    assert rows.longest == 4


def test_a_title_is_parted_from_its_text_by_the_vocabulary_s_separator(
    file, word_vocabulary, monkeypatch
):
    monkeypatch.setitem(word_vocabulary.special_tokens, "sep_token", "<MASK>")
    rows, _ = opened(word_vocabulary, file)
    (ids,) = [rows.passages.read(rows.positives[:1]).input_ids.tolist()]
    assert ids[1] == word_vocabulary.mask_id
    assert len(ids) == 5


@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_questions_are_held_out_by_whole_passages(file, word_vocabulary, count):
    section = QuestionsConfig(paths=(file,), held_out=count, hard_negatives=2)
    rows, valid = open_questions(section, word_vocabulary)
    everything, _ = opened(word_vocabulary, file, hard_negatives=2)
    assert len(valid) == count + count % 2
    assert len(rows) + len(valid) == COUNT
    assert not set(rows.positives) & set(valid.positives)
    whole = sorted(
        zip(
            texts(everything.questions, word_vocabulary, range(COUNT)),
            everything.positives,
            strict=True,
        )
    )
    parts = [
        pair
        for part in (rows, valid)
        for pair in zip(
            texts(part.questions, word_vocabulary, range(len(part))), part.positives, strict=True
        )
    ]
    assert sorted(parts) == whole
    for part in (rows, valid):
        own = [
            number.split()[0].removeprefix("en")
            for number in texts(part.questions, word_vocabulary, range(len(part)))
        ]
        drawn = texts(part.passages, word_vocabulary, part.negatives)
        assert drawn[1::2] == [f"en{20 + int(n)} en{21 + int(n)} en{22 + int(n)}" for n in own]


def test_what_is_held_out_grows_and_does_not_depend_on_the_order(file, word_vocabulary, tmp_path):
    def held_out(path, count):
        _, valid = opened(word_vocabulary, path, held_out=count)
        return set(texts(valid.questions, word_vocabulary, range(len(valid))))

    turned = write(tmp_path / "turned.json", json.loads(file.read_text())[::-1])
    assert held_out(file, 4) == held_out(turned, 4)
    assert held_out(file, 2) < held_out(file, 4) < held_out(file, 8)


def test_validation_files(file, word_vocabulary, tmp_path):
    dev = write(tmp_path / "dev.json", [{"question": "en1", "positive_ctxs": [passage(1)]}])
    rows, valid = opened(word_vocabulary, file, valid=(dev,), hard_negatives=1)
    assert (len(rows), len(valid)) == (COUNT, 1)
    assert (rows.hard_negatives, valid.hard_negatives) == (1, 0)


def test_what_is_left_out_is_said(word_vocabulary, tmp_path, caplog):
    items = [
        {"question": "en1", "positive_ctxs": [passage(1)]},
        {"question": "en2", "positive_ctxs": []},
        {"question": "de1", "language": "de", "positive_ctxs": [passage(2)]},
    ]
    path = write(tmp_path / "nq.json", items)
    rows, _ = opened(word_vocabulary, path, languages=("en",))
    assert len(rows) == 1
    assert {record.getMessage().split(": ", 1)[1] for record in caplog.records} == {
        "skipped 1: question without an answering passage",
        "skipped 1: question in another language",
    }


def test_nothing_to_train_on(file, word_vocabulary):
    with pytest.raises(DataError, match=r"train.json: no question"):
        opened(word_vocabulary, file, languages=("ko",))
    with pytest.raises(ConfigError, match=r"held_out = 11 .*12 questions"):
        opened(word_vocabulary, file, held_out=11)


def test_the_feed_opens_them(file, tiny_table):
    tiny_table["method"] = {"name": "multilingual_ir", "semantic_weight": 0, "language_weight": 0}
    tiny_table["data"]["questions"] = {"paths": [str(file)], "held_out": 4}
    data = open_data(train_config_from(tiny_table), ("questions",))
    assert (len(data.train["questions"]), len(data.valid["questions"])) == (8, 4)
    assert data.digest


def test_the_best_model_is_chosen_by_the_loss_of_questions_alone(file, tiny_table):
    """Check that valid_loss ignores contrasts of other text, here a thousand times larger."""
    tiny_table["method"] = {
        "name": "multilingual_ir",
        "language_reduction": "mean",
        "language_weight": 1000.0,
    }
    tiny_table["data"]["questions"] = {"paths": [str(file)], "valid": [str(file)]}
    tiny_table["optimizer"]["learning_rate"] = 3e-2
    tiny_table["run"] |= {
        "global_batch_size": 4,
        "eval_steps": 1,
        "metric_for_best_model": "valid_retrieval",
        "greater_is_better": False,
    }
    config = train_config_from(tiny_table)
    result = run_training(config, progress=False)
    measured = {row["step"]: row for row in records(config.run.output, "evaluation")}
    by_retrieval = min(measured, key=lambda step: measured[step]["valid_retrieval"])
    by_loss = min(measured, key=lambda step: measured[step]["valid_loss"])
    assert result.best_step == by_retrieval != by_loss
