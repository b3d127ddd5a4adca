from __future__ import annotations

import dataclasses
import json

import pytest

from interlingua.errors import DataError
from interlingua.evaluation.results import read_result, read_results, result_path, write_result
from interlingua.evaluation.suite import evaluate


@pytest.fixture
def result(pair_folder, number_encoder):
    return evaluate(number_encoder, ["tatoeba"], pair_folder)[0]


def test_round_trip(result, tmp_path):
    path = write_result(result, tmp_path)
    assert path == tmp_path / "results/NumberEncoder/no_revision_available/tatoeba_tatoeba_laser.json"
    again = read_result(path)
    assert dataclasses.replace(again, provenance={}) == dataclasses.replace(result, provenance={})
    assert again.provenance == json.loads(json.dumps(result.provenance))


def test_mteb_reads_it(result, tmp_path):
    mteb_results = pytest.importorskip("mteb.results")
    theirs = mteb_results.TaskResult.from_disk(write_result(result, tmp_path))
    assert theirs.get_score() == pytest.approx(result.main_score)
    assert theirs.get_score(languages=["rus"]) == 1.0
    assert theirs.task_name == "tatoeba_tatoeba_laser"


def test_mtebs_own_files_are_read(tmp_path):
    path = tmp_path / "intfloat__e5" / "abc" / "Tatoeba.json"
    path.parent.mkdir(parents=True)
    entry = {"main_score": 0.5, "f1": 0.5, "hf_subset": "deu-eng", "languages": ["deu-Latn", "eng-Latn"]}
    scores = {"test": [entry]}
    path.write_text(
        json.dumps({"dataset_revision": "r", "task_name": "Tatoeba", "mteb_version": "2.0", "scores": scores})
    )
    result = read_result(path)
    assert (result.task, result.version, result.main_score) == ("Tatoeba", "mteb 2.0", 0.5)
    assert result.subsets[0].languages == ("deu_Latn", "eng_Latn")
    assert result.provenance["model"]["name"] == "intfloat__e5"
    assert result.groups == {"all_1": {"main_score": 0.5}}


@pytest.mark.parametrize("options", [{"prompt": "query: "}, {"languages": ["deu", "fra", "rus"]}, {"compare": "text"}])
def test_other_settings_never_overwrite(result, pair_folder, number_encoder, tmp_path, options):
    (other,) = evaluate(number_encoder, ["tatoeba"], pair_folder, **options)
    assert result_path(result, tmp_path) != result_path(other, tmp_path)
    assert result_path(other, tmp_path).parent.name.startswith("no_revision_available-")


def test_a_hub_ids_slash_is_no_folder(result, tmp_path):
    model = {**result.provenance["model"], "name": "intfloat/e5: small", "revision": "abc"}
    named = dataclasses.replace(result, provenance={**result.provenance, "model": model})
    assert result_path(named, tmp_path).parts[-3:] == ("intfloat__e5__small", "abc", "tatoeba_tatoeba_laser.json")


def test_folders_are_searched_and_errors_are_one_line(result, tmp_path):
    path = write_result(result, tmp_path)
    assert [found.task for found in read_results([tmp_path, path])] == [result.task] * 2
    with pytest.raises(DataError, match="can't be read"):
        read_result(tmp_path / "none.json")
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no result files below this folder"):
        read_results([tmp_path / "empty"])
    for content in ("{", "[]", "{}", '{"scores": {}}', '{"task_name": "t", "scores": {"test": []}}'):
        path.write_text(content)
        with pytest.raises(DataError, match="not a result file"):
            read_result(path)
