from __future__ import annotations

import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.results import result_path
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.classification.few_shot import FewShotFolder
from interlingua.evaluation.tasks.classification.zero_shot import ZeroShotFolder
from interlingua.evaluation.tasks.translation.bucc import BuccBestF1, BuccMTEB
from interlingua.evaluation.tasks.translation.flores import FloresP1
from interlingua.evaluation.tasks.translation.ntrex import NtrexF1
from interlingua.evaluation.tasks.translation.tatoeba import Tatoeba
from interlingua.evaluation.time_limit import Budget
from tests.evaluation.files import write_rows
from tests.evaluation.tasks.topics import write_topics
from tests.evaluation.tasks.translation.test_bucc import write_split


class Clock:
    """Time that passes only while texts are embedded, a second each."""

    def __init__(self, encoder):
        self.encoder = encoder

    def __call__(self):
        return float(len(self.encoder.texts))


def run(encoder, seconds, suite, data, **options):
    budget = Budget(seconds, clock=Clock(encoder))
    return evaluate_suite(encoder, suite, data, budget=budget, **options), budget


def test_what_was_embedded_in_time_is_scored_under_a_name_of_its_own(
    pair_folder, number_encoder, tmp_path
):
    # German and English are 20 texts; the clock shows 20 when French is to start
    (result,), budget = run(number_encoder, 15, ["tatoeba"], pair_folder, output=tmp_path / "out")
    assert [subset.name for subset in result.subsets] == ["deu-eng"]
    assert list(result.groups) == ["all_1", "latin_script_1"]
    assert result.settings["languages"] == ["deu"]
    assert result.changed == ("languages",)
    assert budget.left_out == {"tatoeba_tatoeba_laser": "2 of 3 (fra, rus)"}
    assert result.notes == ("the budget of 15s is used up: 1 of 3 were scored, skipped: fra, rus",)
    assert result.provenance["encoded_texts"] == 20
    assert result.provenance["texts"] == 20
    (whole,) = evaluate_suite(number_encoder, ["tatoeba"], pair_folder)
    assert whole.subsets[0] == result.subsets[0]
    assert result_path(whole, tmp_path) != result_path(result, tmp_path)
    (file,) = (tmp_path / "out").rglob("*.json")
    assert "skipped: fra, rus" in json.loads(file.read_text())["interlingua"]["notes"][0]


def test_a_budget_that_is_enough_changes_nothing(pair_folder, number_encoder):
    (result,), budget = run(number_encoder, 41, ["tatoeba"], pair_folder)
    assert (result.changed, result.notes, budget.report) == ((), (), None)


def test_tasks_after_the_budget_are_left_out(pair_folder, aligned_folder, number_encoder):
    results, budget = run(
        number_encoder, 40, ["tatoeba", "xsim", "flores_p_at_1"], pair_folder.parent
    )
    assert [result.task for result in results] == ["tatoeba_tatoeba_laser"]
    assert budget.left_out == {"xsim": "all", "flores_p_at_1": "all"}
    assert budget.report.endswith("skipped: xsim: all; flores_p_at_1: all")


def test_a_first_part_that_did_not_fit_leaves_nothing(pair_folder, number_encoder):
    results, budget = run(number_encoder, 5, ["tatoeba"], pair_folder)
    assert results == []
    assert budget.left_out == {"tatoeba": "all"}


def test_a_task_without_parts_is_all_or_nothing(pair_folder, number_encoder):
    class Whole:
        name = "whole"

        def evaluate(self, encoder, data, *, progress):
            for number in range(9):
                encoder.encode([f"text {number}"])

    results, budget = run(number_encoder, 4, [Whole(), "tatoeba"], pair_folder)
    assert results == []
    assert budget.left_out == {"whole": "all", "tatoeba": "all"}
    assert len(number_encoder.texts) == 4


SCORED, LINES, QUESTION = "1\ta 1\tb 2\n2\ta 3\tb 3\n", "a 1\nb 2\n", "q\t0\tw 1\tx\n"
FILES = {
    "sts17": {"track5.en-en.tsv": SCORED, "track2.ar-en.tsv": SCORED},
    "stsb": {"de.test.tsv": SCORED, "en.test.tsv": SCORED},
    "xsim": {"deu_Latn.txt": LINES, "rus_Cyrl.txt": LINES, "eng_Latn.txt": LINES},
    "tydi_goldp": {
        **{f"{code}.dev.questions.tsv": QUESTION for code in ("en", "sw")},
        **{f"{code}.dev.passages.txt": "1\n" for code in ("en", "sw")},
    },
}


@pytest.mark.parametrize(
    ("task", "parts"),
    [
        ("sts17", ["en-ar", "en-en"]),
        ("stsb", ["de", "en"]),
        ("xsim", ["deu_Latn", "rus_Cyrl"]),
        ("tydi_goldp", ["en", "sw"]),
    ],
)
def test_every_part_can_be_scored_alone(task, parts, tmp_path, number_encoder):
    for name, text in FILES[task].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (made,) = build_tasks([task])
    assert sorted(made.parts(tmp_path)) == parts
    for part in parts:
        (result,) = evaluate_suite(number_encoder, build_tasks([task], languages=[part]), tmp_path)
        assert len(result.subsets) == 1


def test_errors_of_the_data_are_still_told(tmp_path, number_encoder):
    with pytest.raises(DataError, match=r"no folder of <lang>-eng\.tsv"):
        run(number_encoder, 60, [Tatoeba()], tmp_path)


def test_pairs_of_the_languages_embedded_in_time(aligned_folder, number_encoder):
    # eight lines a language: English and Hindi are there when Italian is to start
    (result,), budget = run(number_encoder, 9, ["flores_p_at_1"], aligned_folder)
    assert [subset.name for subset in result.subsets] == ["eng_Latn-hin_Deva", "hin_Deva-eng_Latn"]
    left = "eng_Latn-ita_Latn, hin_Deva-ita_Latn"
    assert budget.left_out == {"flores_p_at_1_flores200_devtest": f"2 of 3 ({left})"}
    assert result.notes == (f"the budget of 9s is used up: 1 of 3 were scored, skipped: {left}",)
    assert result.settings["languages"] == ["eng_Latn-hin_Deva"]
    assert len(number_encoder.texts) == 16


def test_groups_of_pairs_stay_apart(tmp_path):
    for code in ("arb_Arab", "deu_Latn", "afr_Latn", "hin_Deva"):
        (tmp_path / f"{code}.txt").write_text(LINES)
    parts = FloresP1(languages=["muse", "low_resource"]).parts(tmp_path)
    assert parts == ["arb_Arab-deu_Latn", "afr_Latn-hin_Deva"]


@pytest.mark.parametrize(
    ("directions", "scored"),
    [
        ("english", ["deu_Latn-eng_Latn", "eng_Latn-deu_Latn"]),
        ("mteb", ["deu_Latn-eng_Latn", "eng_Latn-deu_Latn"]),
    ],
)
def test_ntrex_by_language(directions, scored, tmp_path, number_encoder):
    for name in ("src.eng", "ref.deu", "ref.fra", "ref.rus"):
        write_rows(tmp_path / f"newstest2019-{name}.txt", (f"{name} {n}" for n in range(8)))
    (result,), budget = run(number_encoder, 9, [NtrexF1(directions=directions)], tmp_path)
    assert [subset.name for subset in result.subsets] == scored
    total = 4 if directions == "mteb" else 3
    assert budget.left_out[result.task] == f"2 of {total} (fra_Latn, rus_Cyrl)"
    number_encoder.texts.clear()
    results, budget = run(number_encoder, 1, [NtrexF1(directions=directions)], tmp_path)
    assert (results, budget.left_out) == ([], {"ntrex_f1": "all"})  # one language makes no pair


@pytest.mark.parametrize("kind", [ZeroShotFolder, FewShotFolder, BuccBestF1, BuccMTEB])
def test_embedding_a_part_is_all_that_its_score_asks_for(
    kind, tmp_path, number_encoder, monkeypatch
):
    """Check that the parts within a budget are known without training or mining."""
    write_topics(tmp_path, ("de", "en"), train=12, dev=4, test=6)
    write_split(
        tmp_path / "bucc", "training", ["s 1", "s 2", "s 3"], ["t 2", "t 1", "t 9"], [(0, 1)]
    )
    task = kind()
    with CachedEncoder(number_encoder) as cached, monkeypatch.context() as patch:
        patch.setattr(kind, "score", None)
        task.embed(cached, tmp_path)
        embedded = cached.encoded_texts
        patch.undo()
        task.evaluate(cached, tmp_path)
        assert cached.encoded_texts == embedded > 0


def test_no_language_to_learn_from_leaves_nothing(tmp_path, number_encoder):
    for code in ("de", "en"):
        for split in ("train", "dev", "test"):
            write_rows(
                tmp_path / f"{code}.{split}.tsv", (f"{'ab'[n % 2]}\t{code} {n}" for n in range(4))
            )
    results, budget = run(number_encoder, 3, [ZeroShotFolder(sources=("en",))], tmp_path)
    assert (results, budget.left_out) == ([], {"zero_shot_folder": "all"})
