"""Each data set's own layout, pools and names; what they share is in test_passages.py."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.data.folders import full_code
from interlingua.evaluation.metrics.ranking import ranking_metrics
from interlingua.evaluation.scores import SubsetScores
from interlingua.evaluation.task import Findings
from interlingua.evaluation.tasks.retrieval.retrieval import (
    Beir,
    Miracl,
    MrTyDi,
    TyDiGoldP,
    XQuAD,
    XQuADR,
)
from tests.evaluation.encoders import Letters
from tests.evaluation.files import DATA, json_lines, public_data, write
from tests.evaluation.tasks.retrieval.test_passages import evaluate


def test_mr_tydi_names_how_many_of_its_languages(tmp_path, number_encoder):
    for language in ("swahili", "korean"):
        folder = tmp_path / f"mrtydi-v1.1-{language}"
        write(folder / "topic.test.tsv", "1\twhat 1?\n2\twhat 2?\n")
        write(folder / "qrels.test.txt", "1 0 a#0 1\n2 0 a#0 1\n")
        docs = [{"id": f"a#{n}", "contents": f"Title\n\ntext {n + 1}"} for n in range(2)]
        write(folder / "collection" / "docs.jsonl", json_lines(*docs))
    result = evaluate(MrTyDi(), tmp_path, number_encoder)
    assert (result.task, result.main_metric) == ("mr_tydi", "mrr_at_100")
    groups = ["all_2", "mr_tydi_2of11", "with_parallel_1of7", "without_parallel_1of4"]
    assert list(result.groups) == groups
    assert result.groups["mr_tydi_2of11"]["mrr_at_100"] == 0.75
    assert [subset.languages[0] for subset in result.subsets] == ["kor_Hang", "swh_Latn"]
    assert "Title text 1" in number_encoder.texts
    assert not any("all_languages" in metric for metric in result.subsets[0].scores)
    with pytest.raises(DataError, match=r"no Mr.TyDi folders \(mrtydi-v1.1-arabic/\)"):
        evaluate(MrTyDi(split="dev"), tmp_path, number_encoder)


def test_miracl(tmp_path, number_encoder):
    write(tmp_path / "miracl-v1.0-sw" / "topics" / "topics.miracl-v1.0-sw-dev.tsv", "7\twhat 1?\n")
    write(
        tmp_path / "miracl-v1.0-sw" / "qrels" / "qrels.miracl-v1.0-sw-dev.tsv",
        "7 Q0 1#0 1\n7 Q0 1#1 0\n",
    )
    docs = [{"docid": f"1#{n}", "title": "T", "text": f"text {n}"} for n in range(3)]
    write(tmp_path / "miracl-corpus-v1.0-sw" / "docs-0.jsonl", json_lines(*docs))
    result = evaluate(Miracl(), tmp_path, number_encoder)
    assert (result.task, list(result.groups)) == ("miracl", ["all_1", "miracl_1of18"])
    assert result.main_metric == "ndcg_at_10"
    assert (
        0 < result.main_score < 1
    )  # the passage with the question's number comes first, and it is another


def test_the_split_is_part_of_the_name(tmp_path, number_encoder):
    write(tmp_path / "t" / "sw.train.questions.tsv", "q\t0\twhat 1?\tx\n")
    write(tmp_path / "t" / "sw.train.passages.txt", "text 1\n")
    assert (
        evaluate(TyDiGoldP(split="train"), tmp_path / "t", number_encoder).task
        == "tydi_goldp_t_train"
    )


def test_beir_by_language(tmp_path, number_encoder):
    for code in ("de", "fr"):
        write(tmp_path / "mine" / code / "corpus.jsonl", json_lines({"_id": "1", "text": "text 1"}))
        write(
            tmp_path / "mine" / code / "queries.jsonl", json_lines({"_id": "q", "text": "what 1?"})
        )
        write(tmp_path / "mine" / code / "qrels" / "test.tsv", "q\td\ts\nq\t1\t1\n")
    result = evaluate(Beir(languages=["German"]), tmp_path / "mine", number_encoder)
    assert [subset.name for subset in result.subsets] == ["de"]
    assert result.task == "beir_mine"


@pytest.mark.data
@pytest.mark.parametrize(
    ("task", "languages", "passages"),
    [
        (TyDiGoldP, ["ar", "bn", "en", "fi", "id", "ko", "ru", "sw", "te"], 4488),
        (XQuAD, ["el", "zh"], 480),
        (XQuADR, ["el", "th"], 2086),
    ],
)
def test_the_public_sets_are_recognized_and_a_naive_search_agrees(task, languages, passages):
    folder = public_data(task.folders[0])
    result = evaluate(task(languages=languages), DATA, Letters())
    assert result.task == task.name
    assert result.data_revision
    assert [subset.name for subset in result.subsets] == languages
    assert result.notes == ()
    # Korean or Greek by one matrix product over the passages of all languages
    name = "ko" if task is TyDiGoldP else "el"
    sets = {code: read() for code, read in task().files(folder).items() if code in languages}
    ids = [f"{code}/{p.id}" for code, one in sets.items() for p in one.passages()]
    assert len(ids) == passages
    texts = [p.text for one in sets.values() for p in one.passages()]
    rows, asked = (Letters().encode(side) for side in (texts, list(sets[name].queries.values())))
    rows, asked = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (rows, asked))
    best = {}
    for query, scores in zip(sets[name].queries, asked @ rows.T, strict=True):
        best[query] = {ids[i]: float(scores[i]) for i in np.argsort(-scores)[:100]}
    others = sets if task().parallel else {name: sets[name]}
    qrels = {
        q: {f"{code}/{p}": 1 for code, one in others.items() for p in one.qrels[q]}
        for q in sets[name].qrels
    }
    expected = {
        metric: np.mean([*values.values()])
        for metric, values in ranking_metrics(qrels, best).items()
    }
    (subset,) = [subset for subset in result.subsets if subset.name == name]
    found = {metric: subset.scores[f"{metric}_all_languages"] for metric in expected}
    assert found == {metric: pytest.approx(value, abs=2e-3) for metric, value in expected.items()}


def test_no_passages_is_one_line(tmp_path, number_encoder):
    (tmp_path / "qrels").mkdir()
    (tmp_path / "corpus.jsonl").write_text("")
    (tmp_path / "queries.jsonl").write_text('{"_id": "q1", "text": "one"}\n')
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\tp1\t1\n")
    with pytest.raises(DataError, match="file of deu_Latn"):
        evaluate(Beir(languages=["de"]), tmp_path, number_encoder)


def test_averages_with_and_without_parallel_text_are_the_papers():
    """Check tables 5 and 10 of Hu et al. 2022: two groups, together Mr. TyDi's languages."""
    scores = {"ar": 1.0, "ko": 3.0, "ru": 5.0, "th": 9.0}
    subsets = [
        SubsetScores(name=code, languages=(full_code(code),), pairs=1, scores={"mrr_at_100": score})
        for code, score in scores.items()
    ]
    members = MrTyDi().members(Findings(folder=Path(), subsets=subsets))
    assert [subset.name for subset in members["with_parallel_2of7"]] == ["ar", "ko"]
    assert [subset.name for subset in members["without_parallel_2of4"]] == ["ru", "th"]
    groups = MrTyDi.paper_groups
    assert sorted([*groups["with_parallel"], *groups["without_parallel"]]) == sorted(
        MrTyDi.paper_groups["mr_tydi"]
    )
