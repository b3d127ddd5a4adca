"""mteb's numbers on our encoder are ours, on the same local data; what its files say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError, MissingExtraError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.results import read_results
from interlingua.evaluation.scores import mean_scores
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.mteb import MTEB
from interlingua.evaluation.tasks.similarity.sts import STS17, Sick, STS12to16, STSBenchmark
from tests.evaluation.encoders import tiny_encoder
from tests.evaluation.files import DATA, public_data
from tests.evaluation.mteb_sets import write_all

mteb = pytest.importorskip("mteb")


@pytest.fixture(scope="module")
def encoder(word_vocabulary):
    return tiny_encoder(word_vocabulary)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_all(tmp_path_factory.mktemp("data"))


def by_subset(result, metric):
    return {subset.name: subset.scores[metric] for subset in result.subsets}


def test_sts17_agrees(encoder, data):
    ours, theirs = evaluate_suite(encoder, [STS17(resamples=0), "mteb:STS17"], data)
    found, expected = by_subset(ours, "spearman"), by_subset(theirs, "cosine_spearman")
    assert expected.keys() == {"en-en", "en-ar", "es-en", "fr-en"}
    for name, value in expected.items():
        turned = "-".join(reversed(name.split("-")))
        assert found[name if name in found else turned] == pytest.approx(value, abs=1e-4)
    assert {subset.name: subset.languages for subset in theirs.subsets}["es-en"] == (
        "spa_Latn",
        "eng_Latn",
    )


def test_english_similarity_agrees(encoder, data):
    kinds = [
        Sick(resamples=0, splits=("train", "dev", "test")),
        STSBenchmark(resamples=0, languages=["en"]),
    ]
    ours = evaluate_suite(encoder, [*kinds, STS12to16(resamples=0, languages=None)], data)
    theirs = evaluate_suite(encoder, ["mteb:SICK-R", "mteb:STSBenchmark", "mteb:STS15"], data)
    assert ours[0].main_score == pytest.approx(theirs[0].main_score, abs=1e-4)
    assert ours[1].main_score == pytest.approx(theirs[1].main_score, abs=1e-4)
    assert by_subset(ours[2], "spearman")["2015.belief"] == pytest.approx(
        theirs[2].main_score, abs=1e-4
    )


def test_tatoeba_agrees(encoder, data):
    ours, theirs = evaluate_suite(encoder, ["tatoeba", "mteb:Tatoeba"], data)
    entries = theirs.mteb["result"]["scores"]["test"]
    found = {entry["hf_subset"]: entry["accuracy"] for entry in entries}
    assert found == pytest.approx(by_subset(ours, "accuracy_forward"))
    assert [subset.pairs for subset in theirs.subsets] == [50, 50]


def test_bucc_agrees(data):
    class Numbers:
        """A vector per word, which the languages share."""

        dim = 6

        def encode(self, texts, *, prompt=None, language=None, batch_tokens=0):
            words = [[int(number) for number in re.findall(r"\d+", text)] for text in texts]
            rows = [
                [np.random.default_rng(n).standard_normal(6) for n in numbers] for numbers in words
            ]
            return np.array([np.sum(row, axis=0) for row in rows], dtype=np.float32)

    ours, theirs = evaluate_suite(Numbers(), ["bucc_mteb", "mteb:BUCC"], data)
    (entry,) = theirs.mteb["result"]["scores"]["test"]
    found = dict(ours.subsets[0].scores)
    assert found == pytest.approx({name: entry[name] for name in ("f1", "precision", "accuracy")})
    assert ours.subsets[0].pairs == theirs.subsets[0].pairs == 6
    assert "mteb recommends BUCC.v2 instead" in theirs.notes


def test_the_files(encoder, data, tmp_path):
    (result,) = evaluate_suite(
        encoder, ["mteb:STS17"], data, languages=["es", "en-en"], output=tmp_path
    )
    assert {subset.name for subset in result.subsets} == {"es-en", "en-en"}
    assert result.task == "mteb_STS17"
    assert result.main_metric == "cosine_spearman"
    assert result.dataset == "sts17"
    assert (result.version, result.changed) == (f"mteb {mteb.__version__}", ("languages",))
    assert result.notes[:2] == (
        "data from the folder sts17",
        "only 2 of 11 subsets were scored, so the score is not comparable with mteb's leaderboard",
    )
    (read,) = read_results([tmp_path / "results"])
    assert mean_scores(read.subsets)[read.main_metric] == pytest.approx(result.main_score)
    assert read.groups == result.groups
    (kept,) = mteb.ResultCache(tmp_path / "mteb").load_results().model_results
    assert kept.model_name == "Encoder"
    (own,) = kept.task_results
    assert (own.task_name, own.mteb_version) == ("STS17", mteb.__version__)
    assert own.get_score() == pytest.approx(result.main_score, abs=1e-6)
    assert own.dataset_revision == result.data_sha256[:12]
    assert kept.model_revision == next((tmp_path / "results").rglob("*.json")).parent.name


def test_data_of_the_hub_keep_their_revision(encoder, data, monkeypatch):
    import datasets

    def load(self):
        columns = {
            "sentence1": ["de1", "de2"] * 3,
            "sentence2": ["en1", "en3"] * 3,
            "score": [0, 1, 2, 3, 4, 5],
        }
        self.dataset = {"test": datasets.Dataset.from_dict(columns)}
        self.data_loaded = True

    monkeypatch.setattr(mteb.get_task("BIOSSES").__class__, "load_data", load)
    (result,) = evaluate_suite(encoder, ["mteb:BIOSSES"], data)
    assert result.mteb["result"]["dataset_revision"] == mteb.get_task("BIOSSES").metadata.revision
    assert (result.dataset, result.notes) == ("mteb/biosses-sts", ())
    assert result.subsets[0].pairs == 6


def test_retrieval_with_roles(data, number_encoder, monkeypatch):
    import datasets

    def load(self):
        corpus = [{"id": f"d{n}", "title": "", "text": f"passage {n}"} for n in range(30)]
        queries = [{"id": f"q{n}", "text": f"question {n}"} for n in range(12)]
        self.dataset = {
            "default": {
                "test": {
                    "corpus": datasets.Dataset.from_list(corpus),
                    "queries": datasets.Dataset.from_list(queries),
                    "relevant_docs": {f"q{n}": {f"d{n}": 1} for n in range(12)},
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True

    monkeypatch.setattr(mteb.get_task("SciFact").__class__, "load_data", load)
    prompts = {"query": "Q: ", "passage": "P: "}
    (result,) = evaluate_suite(number_encoder, ["mteb:SciFact"], data, role_prompts=prompts)
    assert result.main_metric == "ndcg_at_10"
    assert result.main_score == 1.0
    assert result.subsets[0].pairs == 12
    assert {prompt for prompt, _, _ in number_encoder.calls} == {"Q: ", "P: "}


def test_splits(data, encoder, monkeypatch):
    monkeypatch.setattr(mteb.get_task("STS17").metadata, "eval_splits", ["dev", "test"])
    (result,) = evaluate_suite(encoder, [MTEB(task="STS17", split="dev")], data)
    assert any("the split dev of dev, test" in note for note in result.notes)
    with pytest.raises(ConfigError, match=r"STS17: .*'train'; .*dev, test"):
        evaluate_suite(encoder, [MTEB(task="STS17", split="train")], data)


def test_names():
    (task,) = build_tasks(["mteb:STS17"], languages=["de"], settings=["mteb:STS17.split=test"])
    assert task == MTEB(task="STS17", languages=["de"], split="test")
    assert task.name == "mteb:STS17"
    with pytest.raises(ConfigError, match=r"'STS171' \(.*'STS17"):
        build_tasks(["mteb:STS171"])
    with pytest.raises(ConfigError, match="mteb:STS17"):
        build_tasks(["mteb"])
    with pytest.raises(ConfigError, match="unknown task 'mtab'"):
        build_tasks(["mtab:STS17"])


def test_wanted_and_missing(data, encoder):
    with pytest.raises(DataError, match=r"STS17: .*'ko'; .*fr-en, en-ar, es-en, en-en"):
        evaluate_suite(encoder, ["mteb:STS17"], data, languages=["ko"])


def test_without_mteb(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mteb", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[mteb\]'"):
        MTEB(task="STS17")


@pytest.mark.data
@pytest.mark.parametrize(
    ("ours", "theirs", "metric", "theirs_metric", "folder"),
    [
        ("sts17", "STS17", "spearman", "cosine_spearman", "sts17"),
        ("tatoeba", "Tatoeba", "accuracy_forward", "accuracy", "tatoeba_laser"),
        ("bucc_mteb", "BUCC", "f1", "f1", "bucc2018_zh_en"),
    ],
)
def test_real_data_agree(ours, theirs, metric, theirs_metric, folder):
    public_data(folder)

    class Characters:
        """Counts of characters and pairs of them."""

        dim = 256

        def encode(self, texts, *, prompt=None, language=None, batch_tokens=0):
            rows = np.zeros((len(texts), 256), np.float32)
            for row, text in zip(rows, texts, strict=True):
                pairs = [
                    (31 * ord(a) + ord(b)) % 256 for a, b in zip(text, text[1:] + " ", strict=True)
                ]
                np.add.at(row, pairs, 1)
            return rows + 0.01

    wanted = {"tatoeba": ["deu", "cbk", "ina", "swe", "xho"]}.get(ours)
    mine, other = evaluate_suite(Characters(), [ours, f"mteb:{theirs}"], DATA, languages=wanted)
    found = {frozenset(name.split("-")): value for name, value in by_subset(mine, metric).items()}
    (entries,) = other.mteb["result"]["scores"].values()
    assert len(entries) == {"sts17": 6, "tatoeba": 5, "bucc_mteb": 1}[ours]
    for entry in entries:
        expected = found[frozenset(entry["hf_subset"].split("-"))]
        assert entry[theirs_metric] == pytest.approx(
            expected, abs=2e-3
        )  # equal counts: mteb's ties are by rounding


def test_a_table_of_mexma_is_of_the_tasks_that_have_data(data, monkeypatch, caplog):
    for module in ("huggingface_hub.constants", "datasets.config"):
        monkeypatch.setattr(f"{module}.HF_HUB_OFFLINE", True)
    tasks = build_tasks(
        ["mexma_table27"], data=data, languages=["en"], settings=["mexma_table27.split=test"]
    )
    assert {task.task for task in tasks} >= {"SICK-R", "STS15", "STS17", "STSBenchmark"}
    assert all(task.split == "test" and task.languages == ["en"] for task in tasks)
    assert "mexma_table27: skipped, because their data are missing: mteb:BIOSSES" in caplog.text
