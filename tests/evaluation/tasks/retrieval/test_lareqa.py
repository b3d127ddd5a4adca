from __future__ import annotations

import json
import math

import numpy as np
import pytest

from interlingua.errors import DataError, LanguageAbsentError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.suite import evaluate_within
from interlingua.evaluation.tasks.retrieval.lareqa import LAReQA
from interlingua.evaluation.tasks.retrieval.retrieval import XQuADR
from interlingua.evaluation.time_limit import Budget
from interlingua.runtime.progress import SILENT
from tests.evaluation.encoders import Letters
from tests.evaluation.files import DATA, public_data
from tests.evaluation.tasks.retrieval.test_passages import Degrees, evaluate

OTHERS = "recall_at_20_other_languages"


def write_set(folder, code, sentences, questions):
    """Write a file in XQuAD-R's form: one paragraph.

    Questions as (id, text, number of the sentence that answers).
    """
    folder.mkdir(parents=True, exist_ok=True)
    starts = np.cumsum([0, *(len(sentence) + 1 for sentence in sentences)]).tolist()
    breaks = [
        [start, start + len(sentence)] for start, sentence in zip(starts, sentences, strict=False)
    ]
    asked = [
        {"id": name, "question": text, "answers": [{"answer_start": starts[number], "text": ""}]}
        for name, text, number in questions
    ]
    paragraph = {
        "context": " ".join(sentences),
        "sentences": sentences,
        "sentence_breaks": breaks,
        "qas": asked,
    }
    (folder / f"{code}.json").write_text(
        json.dumps({"data": [{"paragraphs": [paragraph]}]}), encoding="utf-8"
    )


@pytest.fixture
def folder(tmp_path):
    """English sentences at 0, 10 and 50 degrees, German ones at 30, 12 and 80.

    The first of each answers question q.
    """
    folder = tmp_path / "xquad_r"
    write_set(folder, "en", ["en 0", "en 10", "en 50"], [("q", "ask 4", 0)])
    write_set(folder, "de", ["de 30", "de 12", "de 80"], [("q", "ask 32", 0)])
    return folder


def by_name(result):
    return {subset.name: subset.scores for subset in result.subsets}


def test_both_variants_worked_by_hand(folder):
    result = evaluate(LAReQA(), folder.parent)
    english, german = by_name(result)["en"], by_name(result)["de"]
    # query at 4: en 0 (4), en 10 (6), de 12 (8), de 30 (26): answers at ranks 1 and 4
    assert english["map"] == pytest.approx((1 / 1 + 2 / 4) / 2)
    # without en 0: en 10, de 12, de 30: the answer at rank 3
    assert english["map_without_own_answer"] == pytest.approx(1 / 3)
    # query at 32: de 30 (2), en 50 (18), de 12 (20), en 10 (22), en 0 (32), de 80 (48): ranks 1 and
    # 5
    assert german["map"] == pytest.approx((1 / 1 + 2 / 5) / 2)
    assert german["map_without_own_answer"] == pytest.approx(1 / 4)
    assert english["mrr_at_100"] == german["mrr_at_100"] == 1.0
    assert result.main_score == pytest.approx((0.75 + 0.7) / 2)
    assert result.items["en"].values.tolist() == [pytest.approx(0.75)]
    assert result.task == "lareqa_xquad_r"
    assert list(result.groups) == ["all_2", "lareqa_2of11"]


def test_recall_counts_answers_in_other_languages_among_the_first_20(tmp_path):
    for between, recall in (
        (18, 1.0),
        (19, 0.0),
    ):  # the German answer is at rank 20, then at rank 21
        folder = tmp_path / str(between) / "xquad_r"
        near = [f"en {1 + n / 100}" for n in range(between)]
        write_set(folder, "en", ["en 0", *near], [("q", "ask 0", 0)])
        write_set(folder, "de", ["de 40", "de 60"], [("q", "ask 40", 0)])
        assert by_name(evaluate(LAReQA(), folder))["en"][OTHERS] == recall


def test_language_shares_of_the_first_20_worked_by_hand(tmp_path):
    folder = tmp_path / "xquad_r"
    write_set(folder, "en", [f"en {n}" for n in range(15)], [("q", "ask 0", 0)])
    write_set(folder, "de", [f"de {20 + n}" for n in range(15)], [("q", "ask 27", 7)])
    result = evaluate(LAReQA(), folder)
    # query at 0: the 15 English sentences, then 5 German ones; query at 27: the 15 German ones,
    # then 5 English ones
    expected = {"de-de": 0.75, "de-en": 0.25, "en-de": 0.25, "en-en": 0.75}
    assert result.tables["language_share_of_first_20"] == pytest.approx(expected)
    assert result.tables["language_share_of_relevant"]["en-de"] == pytest.approx(0.5)
    assert by_name(result)["en"]["language_fairness_at_20"] == pytest.approx(0.75)


def test_ir_measures_computes_the_same_map(tmp_path):
    """Compare over the whole ranking, with many equal scores of exact integer products."""
    ir_measures = pytest.importorskip("ir_measures")
    rng = np.random.default_rng(0)
    folder = tmp_path / "xquad_r"
    for code in ("de", "en", "th"):
        sentences, questions = ([numbers(code, rng) for _ in range(count)] for count in (40, 12))
        answers = rng.integers(0, 40, 12).tolist()
        asked = [
            (f"q{n}", text, answer)
            for n, (text, answer) in enumerate(zip(questions, answers, strict=True))
        ]
        write_set(folder, code, sentences, asked)
    result = evaluate(LAReQA(similarity="dot"), folder, Numbers())
    sets = {code: read() for code, read in LAReQA().files(folder).items()}
    passages = {
        f"{code}/{passage.id}": passage.text
        for code, one in sets.items()
        for passage in one.passages()
    }
    vectors = Numbers().encode([*passages.values()])
    for code, one in sets.items():
        scores = Numbers().encode([*one.queries.values()]) @ vectors.T
        run = {
            q: dict(zip(passages, row.tolist(), strict=True))
            for q, row in zip(one.queries, scores, strict=True)
        }
        qrels = {
            q: {f"{other}/{p}": 1 for other, there in sets.items() for p in there.qrels[q]}
            for q in one.queries
        }
        assert by_name(result)[code]["map"] == pytest.approx(
            mean_ap(ir_measures, qrels, run), abs=1e-7
        )
        for query, grades in qrels.items():
            (own,) = [passage for passage in grades if passage.startswith(f"{code}/")]
            del grades[own], run[query][own]
        without = by_name(result)[code]["map_without_own_answer"]
        assert without == pytest.approx(mean_ap(ir_measures, qrels, run), abs=1e-7)


def mean_ap(ir_measures, qrels, run):
    return ir_measures.pytrec_eval.calc_aggregate([ir_measures.AP], qrels, run)[ir_measures.AP]


def numbers(code, rng):
    return " ".join([code, *map(str, rng.integers(-3, 4, 5).tolist())])


class Numbers:
    """The vector of ``en 3 -1 0 2 1`` is its numbers."""

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        return np.array([list(map(int, text.split()[1:])) for text in texts], dtype=np.float32)


def test_it_shares_its_reciprocal_rank_with_xquad_r(folder):
    ours, theirs = by_name(evaluate(LAReQA(), folder)), by_name(evaluate(XQuADR(), folder))
    for name, scores in ours.items():
        assert scores["mrr_at_100"] == theirs[name]["mrr_at_100_all_languages"]
        assert scores["language_fairness_at_20"] == theirs[name]["language_fairness_at_20"]
    assert LAReQA.name != XQuADR.name


def test_answers_in_some_languages_only(folder):
    write_set(folder, "en", ["en 0", "en 10"], [("q", "ask 4", 0), ("only", "ask 9", 1)])
    result = evaluate(LAReQA(), folder)
    assert result.notes == (
        "en: without an answer in another language, scored only in map: 1 question",
    )
    # query at 4: en 0, en 10, de 12, de 30; query at 9: en 10 first
    assert by_name(result)["en"]["map"] == pytest.approx((0.75 + 1) / 2)
    assert by_name(result)["en"]["map_without_own_answer"] == pytest.approx(1 / 3)


def test_questions_and_passages_keep_their_roles(folder):
    asked = []

    class Recorded(CachedEncoder):
        def keep(self, texts, *, language=None, role=None, titles=None):
            asked.append((role, language, len(texts)))
            return super().keep(texts, language=language, role=role, titles=titles)

    with Recorded(Degrees()) as cached:
        LAReQA().evaluate(cached, folder)
    assert sorted(asked) == [
        ("passage", "deu_Latn", 3),
        ("passage", "eng_Latn", 3),
        ("query", "deu_Latn", 1),
        ("query", "eng_Latn", 1),
    ]


def test_wrong_first_sentences_and_runs_are_kept(folder, tmp_path):
    write_set(folder, "en", ["en 0", "en 10", "en 50"], [("q", "ask 11.5", 0)])
    result = evaluate(LAReQA(runs=tmp_path / "runs"), folder)
    (wrong,) = result.examples["en"]
    assert (wrong.query, wrong.expected, wrong.retrieved) == ("ask 11.5", "en 0", "de 12")
    assert wrong.retrieved_score == pytest.approx(math.cos(math.radians(0.5)))
    assert (tmp_path / "runs" / "lareqa.en.dense-all-languages.trec").is_file()


def test_one_language_is_no_pool_and_nothing_is_embedded(folder, number_encoder):
    with pytest.raises(LanguageAbsentError, match=r"2 languages .*found 1 .*--languages"):
        evaluate(LAReQA(languages=["en"]), folder, number_encoder)
    assert number_encoder.texts == []
    (folder / "de.json").unlink()
    with pytest.raises(DataError, match="add files"):
        evaluate(LAReQA(), folder, number_encoder)


def test_a_suite_of_one_language_goes_on_without_it(folder, caplog):
    tasks = build_tasks(["xquad_r", "lareqa", "mixed_pool"], languages=["en"], data=folder.parent)
    assert [task.name for task in tasks] == ["xquad_r", "mixed_pool"]
    assert "lareqa: no data in en" in caplog.text


def test_a_budget_leaves_languages_out(folder):
    write_set(folder, "th", ["th 1", "th 2", "th 3"], [("q", "ask 5", 0)])
    times = [0.0]

    class Slow(Degrees):
        def encode(self, texts, **options):
            times[0] += 3 if texts[0].startswith("ask") else 0
            return Degrees.encode(self, texts, **options)

    budget = Budget(5, clock=lambda: times[0])
    with CachedEncoder(Slow(), budget=budget) as cached:
        result = evaluate_within(budget, LAReQA(), cached, folder, progress=SILENT)
    assert list(by_name(result)) == ["de", "en"]
    assert budget.left_out == {"lareqa_xquad_r": "1 of 3 (th)"}


def test_a_folder_without_its_files(tmp_path):
    with pytest.raises(DataError, match=r"no XQuAD-R files \(ar.json\)"):
        evaluate(LAReQA(), tmp_path)


@pytest.mark.data
def test_the_public_set_is_recognized_and_a_naive_loop_agrees():
    public_data("xquad_r")
    result = evaluate(LAReQA(languages=["el", "th"]), DATA, Letters())
    assert (result.task, result.notes) == ("lareqa", ())
    assert result.data_revision
    sets = {
        code: read()
        for code, read in LAReQA().files(DATA / "xquad_r").items()
        if code in ("el", "th")
    }
    ids = [f"{code}/{passage.id}" for code, one in sets.items() for passage in one.passages()]
    rows = Letters().encode([passage.text for one in sets.values() for passage in one.passages()])
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = []
    for query, text in [*sets["el"].queries.items()][:200]:
        scores = rows @ (Letters().encode([text])[0] / np.linalg.norm(Letters().encode([text])))
        ranked = [ids[i] for i in np.argsort(-scores)]
        ranks = sorted(
            ranked.index(f"{code}/{p}") + 1 for code, one in sets.items() for p in one.qrels[query]
        )
        found.append(np.mean([number / rank for number, rank in enumerate(ranks, 1)]))
    assert np.mean(result.items["el"].values[:200]) == pytest.approx(np.mean(found), abs=2e-3)
