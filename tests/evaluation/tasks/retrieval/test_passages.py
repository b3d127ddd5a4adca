"""Common behavior of all retrieval tasks, on sets small enough to rank by hand."""

from __future__ import annotations

import functools
import math
import tracemalloc

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError
from interlingua.evaluation import key_index, streams
from interlingua.evaluation.baselines import postings
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.tasks.retrieval import passage_search, passages
from interlingua.evaluation.tasks.retrieval.retrieval import Beir, TyDiGoldP, XQuAD
from tests.evaluation.files import write_rows
from tests.progress_records import Recorded


class Degrees:
    """A text is a direction, the number in it: ``sw 15`` points to 15 degrees.

    ``sw 15 x3`` is three times as long.
    """

    def __init__(self):
        self.asked = []

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        self.asked.append((language, list(texts)))
        rows = []
        for text in texts:
            words = text.split()
            length = float(words[2][1:]) if len(words) > 2 else 1.0
            rows.append(
                [
                    length * math.cos(math.radians(float(words[1]))),
                    length * math.sin(math.radians(float(words[1]))),
                ]
            )
        return np.array(rows, dtype=np.float32)


def evaluate(task, folder, encoder=None):
    with CachedEncoder(encoder or Degrees()) as cached:
        return task.evaluate(cached, folder)


def write_language(folder, stem, questions, passages):
    folder.mkdir(exist_ok=True)
    lines = "".join(
        f"{stem}-{n}\t{passage}\t{text}\tanswer\n" for n, (text, passage) in enumerate(questions)
    )
    (folder / f"{stem}.questions.tsv").write_text(lines)
    write_rows(folder / f"{stem}.passages.txt", passages)


@pytest.fixture
def goldp(tmp_path):
    """Swahili passages at 0, 40 and 80 degrees, English ones at 10 and 55."""
    folder = tmp_path / "tydiqa_goldp"
    write_language(folder, "sw.dev", [("q 15", 0), ("q 30", 0)], ["sw 0", "sw 40", "sw 80"])
    write_language(folder, "en.dev", [("q 52", 1)], ["en 10", "en 55"])
    return folder


def test_two_pools_worked_by_hand(goldp):
    result = evaluate(TyDiGoldP(), goldp.parent)
    scores = {subset.name: subset.scores for subset in result.subsets}
    # 15: own 0 40 80, all en10 sw0; 30: own 40 0, all sw40 en10 en55 sw0
    assert scores["sw"]["mrr_at_100"] == pytest.approx((1 + 1 / 2) / 2)
    assert scores["sw"]["mrr_at_100_all_languages"] == pytest.approx((1 / 2 + 1 / 4) / 2)
    assert scores["sw"]["ndcg_at_10_all_languages"] == pytest.approx(
        (1 / math.log2(3) + 1 / math.log2(5)) / 2
    )
    assert scores["en"] == dict.fromkeys(scores["en"], 1.0)
    assert result.main_score == pytest.approx((3 / 8 + 1) / 2)
    assert result.groups["all_2"]["recall_at_100"] == 1.0
    assert result.items["sw"].values.tolist() == [0.5, 0.25]
    assert (result.task, result.notes) == ("tydi_goldp_tydiqa_goldp", ())


def test_each_text_is_embedded_once_in_its_language(goldp):
    encoder = Degrees()
    evaluate(TyDiGoldP(), goldp, encoder)
    texts = [text for _, asked in encoder.asked for text in asked]
    assert sorted(texts) == sorted(
        ["sw 0", "sw 40", "sw 80", "en 10", "en 55", "q 15", "q 30", "q 52"]
    )
    assert {language for language, _ in encoder.asked} == {"swh_Latn", "eng_Latn"}


def test_only_the_languages_asked_for_are_pooled(goldp):
    (subset,) = evaluate(TyDiGoldP(languages=["Swahili"]), goldp).subsets
    assert subset.scores["mrr_at_100_all_languages"] == subset.scores["mrr_at_100"] == 0.75


def test_in_parallel_sets_every_translation_is_right(tmp_path):
    folder = tmp_path / "xquad"
    for code, shift in (("sw", 0), ("en", 10)):
        questions = [(f"q {15 + shift}", 0), (f"q {85 + shift}", 1)]
        write_language(folder, code, questions, [f"{code} {shift}", f"{code} {80 - shift}"])
    for path in folder.glob("*.questions.tsv"):  # the same ids in all languages
        path.write_text(path.read_text().replace(f"{path.name[:2]}-", "same-"))
    scores = {subset.name: subset.scores for subset in evaluate(XQuAD(), folder).subsets}
    # sw 15 finds en 10 before sw 0, which is right here: both are the same paragraph
    assert scores["sw"]["mrr_at_100_all_languages"] == 1.0
    assert scores["sw"]["recall_at_100_all_languages"] == 1.0
    # en 95: sw 80 then en 70, both right; en 25: en 10 first
    assert scores["en"]["ndcg_at_10_all_languages"] == 1.0


def beir(folder, *, qrels, queries=("q0 15", "q1 30"), passages=("p0 0", "p1 40", "p2 80")):
    (folder / "qrels").mkdir(parents=True)
    for name, texts in (("queries", queries), ("corpus", passages)):
        lines = [f'{{"_id": "{text.split()[0]}", "text": "{text}"}}\n' for text in texts]
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "qrels" / "test.tsv").write_text(
        "query-id\tcorpus-id\tscore\n" + "".join(f"{row}\n" for row in qrels)
    )
    return folder


def test_missing_questions_count_as_0_and_all_oddities_are_said(tmp_path):
    qrels = ["q0\tp0\t1", "q7\tp1\t1", "q8\tp1\t0", "q1\tp0\t1", "q1\tp9\t1"]
    folder = beir(tmp_path / "mine", qrels=qrels, queries=("q0 15", "q1 30", "q8 1"))
    result = evaluate(Beir(languages=["sw"]), folder)
    (subset,) = result.subsets
    assert (subset.pairs, subset.languages) == (3, ("swh_Latn", "swh_Latn"))
    assert subset.scores["mrr_at_100"] == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert subset.scores["recall_at_100"] == pytest.approx((1 + 0 + 1 / 2) / 3)
    assert result.notes == (
        "swh_Latn: 1 questions with judgments have no text and count as 0",
        "swh_Latn: 1 questions without a relevant passage were skipped",
        "swh_Latn: 1 relevant passages are missing from the passages",
    )
    assert result.task == "beir_mine"


def test_cosine_and_inner_product_differ_where_lengths_do(tmp_path):
    folder = beir(tmp_path / "b", qrels=["q0\tp0\t1"], passages=("p0 0", "p1 40 x3"))
    by_cosine, by_product = (
        evaluate(Beir(languages=["en"], similarity=kind), folder).subsets[0].scores["mrr_at_100"]
        for kind in ("auto", "dot")
    )
    assert (by_cosine, by_product) == (1.0, 0.5)


def test_two_towers_are_searched_by_inner_product(tmp_path):
    class Towers(Degrees):
        def encode_queries(self, texts, **options):
            return self.encode(texts, **options)

        def encode_passages(self, texts, *, titles, **options):
            return self.encode(texts, **options)

    folder = beir(tmp_path / "b", qrels=["q0\tp0\t1"], passages=("p0 0", "p1 40 x3"))
    assert evaluate(Beir(languages=["en"]), folder, Towers()).subsets[0].scores["mrr_at_100"] == 0.5


def test_run_files_on_request(goldp, tmp_path):
    task = TyDiGoldP(runs=tmp_path / "runs")
    result = evaluate(task, goldp)
    assert "runs" not in result.settings
    assert result.changed == ()
    names = {path.name for path in (tmp_path / "runs").iterdir()}
    kinds = ("dense", "dense-all-languages")
    assert names == {f"tydi_goldp.{code}.{kind}.trec" for code in ("sw", "en") for kind in kinds}
    lines = (tmp_path / "runs" / "tydi_goldp.sw.dense-all-languages.trec").read_text().splitlines()
    assert [line.split()[2] for line in lines[5:]] == ["sw/1", "en/0", "en/1", "sw/0", "sw/2"]


def test_bm25_and_the_fusion_stand_beside_it(tmp_path):
    # words: the rare one of each question is in its passage; directions: q1 is misled to p0
    queries, passages = (
        ("q0 15 x1 kuku", "q1 5 x1 samaki"),
        ("p0 0 x1 kuku", "p1 40 x1 samaki", "p2 80 x1 paka"),
    )
    folder = beir(
        tmp_path / "b", qrels=["q0\tp0\t1", "q1\tp1\t1"], queries=queries, passages=passages
    )
    (subset,) = evaluate(Beir(languages=["sw"], bm25=True), folder).subsets
    assert subset.scores["mrr_at_100"] == 0.75
    assert subset.scores["bm25_mrr_at_100"] == 1.0
    assert subset.scores["hybrid_mrr_at_100"] >= subset.scores["mrr_at_100"]
    assert {f"{system}ndcg_at_10" for system in ("", "bm25_", "hybrid_")} <= set(subset.scores)


def test_bm25_has_the_parameters_it_is_given(tmp_path):
    # p0 says the word once, p1 thrice among many others: what length costs decides
    queries = ("q0 10 x1 kuku",)
    passages = ("p0 40 x1 kuku", "p1 0 x1 kuku kuku kuku a b c d e f g h", "p2 80 x1 paka")
    folder = beir(tmp_path / "b", qrels=["q0\tp0\t1"], queries=queries, passages=passages)
    found = [
        evaluate(Beir(languages=["sw"], bm25=True, bm25_k1=k1, bm25_b=b), folder)
        .subsets[0]
        .scores["bm25_mrr_at_100"]
        for k1, b in ((2.0, 0.0), (2.0, 1.0))
    ]
    assert found == [0.5, 1.0]
    with pytest.raises(ConfigError, match=r"bm25_k1.*bm25 = false"):
        Beir(bm25_k1=2.0)


def test_bm25_is_tuned_on_the_questions_of_another_split(tmp_path):
    # p1 says the word thrice among many others: with b = 1 p0, with b = 0 p1 comes first
    passages = ("p0 40 x1 kuku", "p1 0 x1 kuku kuku kuku a b c d e f g h", "p2 80 x1 paka")
    queries = ("q0 10 x1 kuku", "d0 10 x1 kuku")
    folder = beir(tmp_path / "b", qrels=["q0\tp0\t1"], queries=queries, passages=passages)
    for best, reached in (("p0", 1.0), ("p1", 0.5)):
        (folder / "qrels" / "dev.tsv").write_text(f"q\td\ts\nd0\t{best}\t1\n")
        task = Beir(languages=["sw"], bm25=True, bm25_tuned_on="dev")
        result = evaluate(task, folder)
        assert result.subsets[0].scores["bm25_mrr_at_100"] == reached
        (note,) = [note for note in result.notes if "k1 = " in note]
        assert "b = " in note
        assert "on dev, 1.000" in note


def test_what_bm25_cant_be_tuned_on_is_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"bm25_tuned_on.*bm25 = false"):
        Beir(bm25_tuned_on="dev")
    with pytest.raises(ConfigError, match=r"bm25_k1.*bm25_tuned_on"):
        Beir(bm25=True, bm25_tuned_on="dev", bm25_k1=2.0)
    with pytest.raises(ConfigError, match=r"bm25_tuned_on: .*'test'"):
        Beir(bm25=True, bm25_tuned_on="test")
    with pytest.raises(ConfigError, match=r"bm25_tuned_on .*xquad"):
        XQuAD(bm25=True, bm25_tuned_on="dev")
    write_language(tmp_path, "sw.dev", [("q 15", 0)], ["neno 1"])
    with pytest.raises(DataError, match="train"):
        evaluate(TyDiGoldP(bm25=True, bm25_tuned_on="train"), tmp_path)
    write_language(tmp_path, "en.train", [("q 15", 0)], ["neno 1"])
    with pytest.raises(DataError, match=r"train .* for sw"):
        evaluate(TyDiGoldP(bm25=True, bm25_tuned_on="train"), tmp_path)


def test_a_stopped_run_goes_on_from_its_one_file(goldp, tmp_path, monkeypatch):
    expected = evaluate(TyDiGoldP(), goldp)

    class Stops(Degrees):
        def encode(self, texts, **options):
            if len(self.asked) == 3:
                raise KeyboardInterrupt
            return super().encode(texts, **options)

    file = tmp_path / "unfinished.vectors"
    first, second = Stops(), Degrees()
    first.portion_texts = second.portion_texts = 1
    with pytest.raises(KeyboardInterrupt), CachedEncoder(first, unfinished=file) as cached:
        TyDiGoldP().evaluate(cached, goldp)
    with CachedEncoder(second, unfinished=file) as cached:
        assert TyDiGoldP().evaluate(cached, goldp).subsets == expected.subsets
    done = {text for _, texts in first.asked for text in texts}
    assert len(done) == 3
    assert not done & {text for _, texts in second.asked for text in texts}
    assert not file.exists()


def test_memory_grows_by_under_100_bytes_a_passage(tmp_path, monkeypatch):
    """Measure vectors, BM25 and ids of all passages. Bounded parts are full in both runs."""
    monkeypatch.setattr(key_index, "WAITING", 512)
    monkeypatch.setattr(postings, "BLOCK_PASSAGES", 512)
    monkeypatch.setattr(
        passages, "keep_vectors", functools.partial(streams.keep_vectors, portion=512)
    )
    by_blocks = functools.partial(passage_search.exact_topk, columns=512)
    monkeypatch.setattr(passage_search, "exact_topk", by_blocks)

    class Numbers:
        def encode(self, texts, **_):
            return np.array([[float(text.split()[1]), 1.0] for text in texts], dtype=np.float32)

    def peak(count):
        folder = tmp_path / str(count)
        write_language(
            folder, "sw.dev", [("q 15", 0)], [f"neno {row} " + "kuku " * 12 for row in range(count)]
        )
        tracemalloc.start()
        evaluate(TyDiGoldP(languages=["sw"], bm25=True), folder, Numbers())
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return used

    peak(1000)  # what is imported once
    grown = (peak(4500) - peak(1500)) / 3000
    assert grown < 100


def test_progress_counts_passages_and_questions(goldp):
    seen = Recorded()
    with CachedEncoder(Degrees()) as cached:
        TyDiGoldP().evaluate(cached, goldp, progress=seen)
    assert seen.states == [
        ("en passages", 2, 8),
        ("sw passages", 5, 8),
        ("en questions", 6, 8),
        ("sw questions", 8, 8),
    ]


def test_what_cant_be_used_is_one_line(tmp_path):
    twice = beir(tmp_path / "a", qrels=["q0\tp0\t1"], passages=("p0 0", "p0 1"))
    with pytest.raises(DataError, match="'p0' occurs twice"):
        evaluate(Beir(languages=["en"]), twice)
    with pytest.raises(DataError, match="a relevant passage"):
        evaluate(Beir(languages=["en"]), beir(tmp_path / "b", qrels=["q0\tp0\t0"]))
    with pytest.raises(DataError, match="--languages en"):
        evaluate(Beir(), tmp_path / "b")


def test_wrong_passages_are_kept_with_their_texts(goldp):
    result = evaluate(TyDiGoldP(), goldp)
    found = {one.query: one for one in result.examples["sw"]}
    assert set(result.examples) == {"sw"} or result.examples["en"] == ()
    first = found["q 15"]
    assert first[:4] == (0, "q 15", "sw 0", "en 10")
    assert first.expected_score == pytest.approx(math.cos(math.radians(15)), abs=1e-6)
    assert first.retrieved_score == pytest.approx(math.cos(math.radians(5)), abs=1e-6)
    assert (first.languages, first.measure) == (("swh_Latn", "eng_Latn"), "cosine")
    assert found["q 30"].retrieved == "sw 40"
    assert result.items["sw"].values[0] < 1
    assert not any(evaluate(TyDiGoldP(examples=0), goldp).examples.values())


def test_wrong_passages_of_a_set_with_one_pool(tmp_path):
    folder = beir(tmp_path / "own", qrels=["q\ta\t1"], queries=("q 40",), passages=("a 0", "b 50"))
    (one,) = evaluate(Beir(languages=["en"]), folder).examples["eng_Latn"]
    assert one[:4] == (0, "q 40", "a 0", "b 50")


class Wide:
    """Directions in the plane of the first two of many dimensions. Bits hardly separate them."""

    def encode(self, texts, *, prompt=None, language=None, batch_tokens=16_384):
        degrees = np.radians([float(text.split()[1]) for text in texts])
        angles = np.arange(16) * np.pi / 8 + degrees[:, None]
        return np.cos(angles).astype(np.float32) / np.sqrt(8, dtype=np.float32)


def test_passages_in_bits_are_ranked_by_signs_and_rescored_exactly(goldp):
    exact = evaluate(TyDiGoldP(), goldp, Wide())
    scores = {}
    for options in ({"precision": "binary"}, {"precision": "hamming"}, {"precision": "int8"}):
        rough = evaluate(TyDiGoldP(**options), goldp, Wide())
        again = evaluate(TyDiGoldP(**options, rescore=100), goldp, Wide())
        scores[options["precision"]] = rough.main_score
        assert [subset.scores for subset in again.subsets] == [
            subset.scores for subset in exact.subsets
        ]
        assert again.changed == ("precision", "rescore")
    assert scores["hamming"] < exact.main_score
    assert scores["int8"] == exact.main_score


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rescore": 200}, "rescore .*precision = float32"),
        ({"precision": "int8", "rescore": 99}, "rescore: .* 100, .*found 99"),
    ],
)
def test_senseless_precisions_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        TyDiGoldP(**options)
