from __future__ import annotations

import pytest

from interlingua.errors import DataError, LanguageAbsentError
from interlingua.evaluation.build import build_tasks, narrowed
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.translation.flores import FloresP1


def languages_of(tasks):
    return {task.name: task.languages for task in tasks}


def built(wanted, folder, names=("tatoeba", "xsim")):
    return build_tasks(names, languages=wanted, data=folder)


def test_each_task_is_run_on_the_languages_that_it_has(
    pair_folder, aligned_folder, number_encoder, caplog
):
    """Give German and Russian only Tatoeba's pairs, Italian only lines of FLORES.

    English is the other side of both.
    """
    wanted = ["de", "it", "Russian", "en"]
    results = evaluate_suite(
        number_encoder, ["tatoeba", "xsim"], pair_folder.parent, languages=wanted
    )
    names = [[subset.name for subset in result.subsets] for result in results]
    assert names == [["deu-eng", "rus-eng"], ["ita_Latn-eng_Latn"]]
    assert caplog.messages == [
        "tatoeba: no data in it, skipped",
        "xsim: no data in de, Russian, skipped",
    ]


def test_a_task_without_any_is_left_out(pair_folder, aligned_folder, caplog):
    assert languages_of(built(["it"], pair_folder.parent)) == {"xsim": ["it"]}
    assert caplog.messages == ["tatoeba: no data in it, skipped with the whole task"]
    caplog.clear()
    tasks = built(
        ["fr", "it"], pair_folder.parent, ("tatoeba", "flores_p_at_1")
    )  # one language makes no pair
    assert languages_of(tasks) == {"tatoeba": ["fr"]}
    assert "flores_p_at_1: no data in fr" in caplog.text


def test_a_language_that_nobody_has_is_a_slip(pair_folder, aligned_folder):
    with pytest.raises(LanguageAbsentError, match=r"tatoeba_laser: no file .*'sw'") as error:
        built(["de", "sw", "it"], pair_folder.parent)
    assert error.value.item == "sw"
    (alone,) = built(["de", "it"], pair_folder.parent, ("tatoeba",))
    assert alone.languages == ["de", "it"]  # which the run refuses


def test_a_suite_of_which_nothing_is_left_is_no_success(aligned_folder):
    """Leave either task without a language, or with one language but no pair."""
    tasks = [FloresP1(languages=["fr", "it"]), FloresP1(languages=["sw", "hi"])]
    with pytest.raises(LanguageAbsentError, match=r"no file .*'fr'"):
        narrowed(tasks, aligned_folder.parent)


def test_other_faults_are_the_run_s_to_refuse(pair_folder, aligned_folder):
    tasks = built(["de", "Klingonese"], pair_folder.parent, ("tatoeba", "tatoeba"))
    assert [task.languages for task in tasks] == [["de", "Klingonese"]] * 2
    with pytest.raises(DataError, match="Klingonese"):
        tasks[0].parts(pair_folder.parent)
    assert narrowed([*tasks, object()], pair_folder.parent)[:2] == tasks
