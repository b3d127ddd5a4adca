from __future__ import annotations

import numpy as np
import pytest

from interlingua.analysis.agnosticism import Agnosticism
from interlingua.errors import DataError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.results import read_result, write_result
from interlingua.evaluation.suite import evaluate_within
from interlingua.evaluation.tasks.translation.flores import FloresP1
from interlingua.evaluation.tasks.translation.mixed_pool import MixedPool
from interlingua.evaluation.time_limit import Budget
from interlingua.runtime.progress import SILENT
from tests.analysis.conftest import fixed_subject
from tests.evaluation.encoders import Positions
from tests.evaluation.files import DATA, public_data
from tests.evaluation.parallel_made import LINES, Fixed, random_vectors, unit, write_lines
from tests.progress_records import Recorded


@pytest.fixture
def folder(tmp_path):
    return write_lines(tmp_path / "flores200_devtest")


def by_name(result):
    return {subset.name: subset.scores for subset in result.subsets}


def degrees(*languages):
    """Return unit vectors in the plane from angles, a row per language."""
    angles = np.radians(languages)
    return np.stack([np.cos(angles), np.sin(angles)], axis=2).astype(np.float32)


def test_two_languages_worked_by_hand(tmp_path):
    """Put German at 0 and 60 degrees, English at 20 and 90."""
    lines = {"deu_Latn": ["eins", "zwei"], "eng_Latn": ["one", "two"]}
    folder = write_lines(tmp_path / "own", lines)
    result = MixedPool().evaluate(Fixed(degrees([0, 60], [20, 90]), lines), folder)
    # 0: 20 is nearer than 60 and 90; 60: 90 (30 away) is nearer than 20 (40) and 0 (60)
    assert by_name(result)["deu_Latn"]["accuracy_mixed_pool"] == 1.0
    # 20: 0 is nearer than 60 (40) and 90 (70); 90: 60 (30 away) is nearer than 0 and 20
    assert by_name(result)["eng_Latn"]["accuracy_mixed_pool"] == 1.0
    closer = MixedPool().evaluate(Fixed(degrees([0, 15], [20, 90]), lines), folder)
    # 0: own pool 20 before 90, but German 15 is nearer; 15: 20 is nearest, which is the other line
    assert by_name(closer)["deu_Latn"] == {
        "accuracy_mixed_pool": 0.0,
        "accuracy_own_pool": 0.5,
        "mixed_pool_drop": 0.5,
        "same_language_bias": 0.5,
        "same_language_bias_without_translations": 0.5,
    }
    # 20: own pool 15 (5) before 0; 90: 15 is nearest in German, English 20 is nearer than German 0
    assert by_name(closer)["eng_Latn"]["accuracy_own_pool"] == 0.5
    assert closer.items["deu_Latn"].values.tolist() == [0.0, 0.0]
    first, second = sorted(closer.examples["deu_Latn"], key=lambda one: one.item)
    assert (first.query, first.expected, first.retrieved) == ("eins", "one", "zwei")
    assert first.languages == ("deu_Latn", "deu_Latn")
    assert first.retrieved_score == pytest.approx(np.cos(np.radians(15)))
    assert first.expected_score == pytest.approx(np.cos(np.radians(20)))
    assert (second.query, second.expected, second.retrieved) == ("zwei", "two", "one")
    assert closer.task == "mixed_pool_own"


def test_it_is_the_panel_of_the_analysis(folder):
    vectors = random_vectors(3, 4, 3, seed=5)
    result = MixedPool().evaluate(Fixed(vectors), folder)
    panel = Agnosticism().run(fixed_subject(vectors), folder)
    means = result.groups["all_3"]
    for metric in (*MixedPool.lower_is_better, "accuracy_own_pool", "accuracy_mixed_pool"):
        assert means[metric] == pytest.approx(panel[metric].value)
    assert result.tables == panel.tables


def test_its_own_pool_is_flores_p_at_1(folder):
    encoder = Fixed(random_vectors(3, 4, 3, seed=7))
    result = MixedPool().evaluate(encoder, folder)
    pairs = FloresP1().evaluate(encoder, folder)
    assert result.groups["all_3"]["accuracy_own_pool"] == pytest.approx(pairs.main_score)
    for subset in pairs.subsets:
        assert result.tables["accuracy_own_pool"][subset.name] == subset.scores["accuracy"]


def test_without_language_in_the_space_nothing_is_lost(folder):
    meaning = np.tile(np.eye(4, dtype=np.float32)[None], (3, 1, 1))
    result = MixedPool().evaluate(Fixed(meaning), folder)
    scores = result.groups["all_3"]
    assert scores["accuracy_mixed_pool"] == scores["accuracy_own_pool"] == 1.0
    assert scores["mixed_pool_drop"] == scores["same_language_bias"] == 0.0
    assert not any(result.examples.values())


def test_a_strong_language_axis_costs_the_mixed_pool_alone(folder):
    meaning = np.tile(np.eye(4)[None], (3, 1, 1))
    language = np.repeat(np.eye(3)[:, None], 4, axis=1) * 3
    vectors = unit(np.concatenate([meaning, language], axis=2))
    scores = MixedPool().evaluate(Fixed(vectors), folder).groups["all_3"]
    assert scores["accuracy_own_pool"] == 1.0
    assert scores["accuracy_mixed_pool"] == 0.0
    assert scores["same_language_bias"] == 1.0


def test_each_language_is_embedded_once_and_groups_are_by_script(aligned_folder, number_encoder):
    with CachedEncoder(number_encoder) as cached:
        result = MixedPool().evaluate(cached, aligned_folder.parent)
    assert [call[1] for call in number_encoder.calls] == ["eng_Latn", "hin_Deva", "ita_Latn"]
    assert list(result.groups) == ["all_3", "latin_script_2", "other_scripts_1"]
    assert result.members["other_scripts_1"] == ("hin_Deva",)


def test_a_language_alone_is_pooled_with_english(folder):
    encoder = Fixed(random_vectors(3, 4, 5))
    assert set(by_name(MixedPool(languages=["German"]).evaluate(encoder, folder))) == {
        "deu_Latn",
        "eng_Latn",
    }
    with pytest.raises(DataError, match=r"2 languages .*found 1"):
        MixedPool(languages=["en"]).evaluate(encoder, folder)


def test_a_suite_of_english_alone_goes_on_without_it(folder, pair_folder, caplog):
    tasks = build_tasks(["tatoeba", "mixed_pool"], languages=["de"], data=folder.parent)
    assert [task.name for task in tasks] == ["tatoeba", "mixed_pool"]
    tasks = build_tasks(["xquad_r", "mixed_pool"], languages=["en"], data=folder.parent)
    assert [task.name for task in tasks] == ["xquad_r"]
    assert "mixed_pool: no data in en" in caplog.text


def test_one_line_is_no_pool(tmp_path):
    lines = {code: texts[:1] for code, texts in LINES.items()}
    with pytest.raises(DataError, match="at least 2"):
        MixedPool().evaluate(
            Fixed(random_vectors(3, 1, 5), lines), write_lines(tmp_path / "single", lines)
        )


def test_ntrex_in_its_published_names(tmp_path, number_encoder):
    for name in ("src.eng", "ref.deu", "ref.fra", "ref.fra-CA"):
        path = tmp_path / "NTREX-128" / f"newstest2019-{name}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{name[4:]} {n}\n" for n in range(4)))
    result = MixedPool().evaluate(number_encoder, tmp_path / "NTREX-128")
    assert list(by_name(result)) == ["deu_Latn", "eng_Latn", "fra_CA", "fra_Latn"]
    assert result.task == "mixed_pool_NTREX-128"
    assert {call[1] for call in number_encoder.calls} == {"deu_Latn", "eng_Latn", "fra_Latn"}


def test_a_budget_leaves_languages_out(folder):
    times = [0.0]

    class Slow(Fixed):
        def encode(self, texts, *, language=None, **options):
            times[0] += 6
            return Fixed.encode(self, texts, language=language)

    budget = Budget(10, clock=lambda: times[0])
    with CachedEncoder(Slow(random_vectors(3, 4, 5)), budget=budget) as cached:
        result = evaluate_within(budget, MixedPool(), cached, folder, progress=SILENT)
    assert list(by_name(result)) == ["deu_Latn", "eng_Latn"]
    assert budget.left_out == {"mixed_pool_flores200_devtest": "1 of 3 (fra_Latn)"}


def test_written_and_read_it_is_the_same(folder, tmp_path):
    result = MixedPool().evaluate(Fixed(random_vectors(3, 4, 5)), folder)
    provenance = {"model": {"name": "m", "revision": "r", "overrides": []}}
    object.__setattr__(result, "provenance", provenance)
    found = read_result(write_result(result, tmp_path / "reports"), examples=True)
    assert found == result
    assert found.examples == {name: kept for name, kept in result.examples.items() if kept}
    assert not found.is_better_high("same_language_bias")
    assert found.is_better_high("accuracy_own_pool")


def test_progress_goes_to_the_end(folder):
    told = Recorded()
    MixedPool().evaluate(
        Fixed(random_vectors(3, 4, 5)),
        folder,
        progress=told,
    )
    assert told.counts[-1] == (24, 24)
    assert told.counts == sorted(told.counts)


@pytest.mark.data
def test_flores_is_recognized_and_the_panel_is_the_default():
    public_data("flores200_devtest")

    result = MixedPool().evaluate(Positions(), DATA)
    assert (result.task, result.data_revision) == ("mixed_pool", "OPUS-MT-testsets@ac0f19c")
    assert next(iter(result.groups)) == "all_15"
    assert result.main_score == 1.0
