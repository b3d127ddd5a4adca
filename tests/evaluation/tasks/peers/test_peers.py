"""sentence-transformers' own evaluators on the same model and data give the same numbers."""

from __future__ import annotations

import importlib
import random

import numpy as np
import pytest

from interlingua.encoder.backends.load import load_encoder
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.retrieval.retrieval import TyDiGoldP
from interlingua.evaluation.tasks.similarity.sts import Sick
from tests.evaluation.encoders import tiny_encoder
from tests.evaluation.files import write_rows
from tests.evaluation.mteb_sets import sentences

sentence_transformers = pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="module")
def model(tmp_path_factory, word_vocabulary):
    folder = tmp_path_factory.mktemp("model")
    tiny_encoder(word_vocabulary).save(folder / "model")
    return str(folder / "model")


@pytest.fixture(scope="module")
def evaluators():
    for name in (
        "sentence_transformers.sentence_transformer.evaluation",
        "sentence_transformers.evaluation",
    ):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    pytest.skip("no evaluators in this version of sentence-transformers")


def test_similarity(model, evaluators, tmp_path):
    first, second = sentences(80, seed=1, language="de"), sentences(80, seed=2, language="en")
    gold = [random.Random(n).randrange(11) / 2 for n in range(80)]
    rows = "".join(f"{g}\t{a}\t{b}\tNEUTRAL\n" for g, a, b in zip(gold, first, second, strict=True))
    (tmp_path / "test.tsv").write_text(rows)
    encoder, info = load_encoder(model)
    (ours,) = evaluate_suite(encoder, [Sick(resamples=0)], tmp_path, model=info)
    theirs = evaluators.EmbeddingSimilarityEvaluator(
        first, second, gold, main_similarity="cosine", write_csv=False
    )(sentence_transformers.SentenceTransformer(model, device="cpu"))
    scores = ours.subsets[0].scores
    assert scores["spearman"] == pytest.approx(theirs["spearman_cosine"], abs=1e-4)
    assert scores["pearson"] == pytest.approx(theirs["pearson_cosine"], abs=1e-4)


def test_retrieval(model, evaluators, tmp_path):
    sets = {}
    for code, prefix in (("sw", "de"), ("en", "en")):
        passages, questions = (
            sentences(150, seed=code, language=prefix),
            sentences(40, seed=f"q{code}", language=prefix),
        )
        gold = [random.Random(f"{code}{n}").randrange(150) for n in range(40)]
        questions = [f"{q} {passages[g]}" for q, g in zip(questions, gold, strict=True)]
        sets[code] = passages, questions, gold
        write_rows(tmp_path / f"{code}.dev.passages.txt", passages)
        lines = (
            f"{code}{n}\t{g}\t{q}\tx\n"
            for n, (q, g) in enumerate(zip(questions, gold, strict=True))
        )
        (tmp_path / f"{code}.dev.questions.tsv").write_text("".join(lines))
    encoder, info = load_encoder(model)
    (ours,) = evaluate_suite(
        encoder,
        [TyDiGoldP()],
        tmp_path,
        model=info,
        role_prompts={"query": "en1 ", "passage": "de1 "},
    )
    corpus = {
        f"{code}/{n}": text
        for code, (passages, _, _) in sets.items()
        for n, text in enumerate(passages)
    }
    their_model = sentence_transformers.SentenceTransformer(model, device="cpu")
    for subset in ours.subsets:
        _, questions, gold = sets[subset.name]
        theirs = evaluators.InformationRetrievalEvaluator(
            {str(n): text for n, text in enumerate(questions)},
            corpus,
            {str(n): {f"{subset.name}/{g}"} for n, g in enumerate(gold)},
            mrr_at_k=[100],
            ndcg_at_k=[10],
            precision_recall_at_k=[100],
            query_prompt="en1 ",
            corpus_prompt="de1 ",
            write_csv=False,
        )(their_model)
        names = {"mrr_at_100": "mrr@100", "recall_at_100": "recall@100", "ndcg_at_10": "ndcg@10"}
        found = {name: subset.scores[f"{name}_all_languages"] for name in names}
        expected = {name: theirs[f"cosine_{their_name}"] for name, their_name in names.items()}
        assert found == pytest.approx(expected, abs=2e-3)
        assert 0.05 < np.mean([*found.values()]) < 1
