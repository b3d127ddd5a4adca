from __future__ import annotations

import json

import pytest

from interlingua.errors import ConfigError
from interlingua.evaluation.results import read_result
from interlingua.evaluation.suite import evaluate
from interlingua.evaluation.tasks.xsim import XSim


def test_tasks_share_their_texts(pair_folder, aligned_folder, number_encoder):
    results = evaluate(number_encoder, ["tatoeba", "xsim", XSim(k=2)], pair_folder.parent)
    names = ["tatoeba_tatoeba_laser", "xsim_flores200_devtest", "xsim_flores200_devtest"]
    assert [result.task for result in results] == names
    # 3 x 10 sentences and 10 English ones; then 2 x 8, whose English is among the ten; then nothing new
    assert [result.provenance["encoded_texts"] for result in results] == [40, 16, 0]
    assert len(number_encoder.texts) == len(set(number_encoder.texts)) == 56
    assert results[1].provenance["reused_texts"] == 16


def test_results_are_written_as_soon_as_a_task_ends(pair_folder, number_encoder, tmp_path):
    class Broken:
        name = "broken"

        def evaluate(self, encoder, data, *, progress):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        evaluate(number_encoder, ["tatoeba", Broken()], pair_folder, output=tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.json")
    assert file.relative_to(tmp_path / "out").parts[0] == "results"
    assert read_result(file).main_score == pytest.approx(2.8 / 3)


def test_prompt_languages_and_compare_reach_the_tasks(pair_folder, number_encoder):
    (result,) = evaluate(
        number_encoder, ["tatoeba"], pair_folder, languages=["de"], compare="text", prompt="query: ", batch_tokens=7
    )
    assert [subset.name for subset in result.subsets] == ["deu-eng"]
    assert result.changed == ("languages", "compare")
    assert set(number_encoder.calls) == {("query: ", "deu_Latn", 7), ("query: ", "eng_Latn", 7)}
    assert result.provenance["prompt"] == "query: "
    assert result.provenance["model"]["overrides"] == ("prompt='query: '",)
    json.dumps(result.provenance)


def test_unknown_task_before_any_work(pair_folder, number_encoder):
    with pytest.raises(ConfigError, match=r"unknown name 'tatoebe'; did you mean 'tatoeba'\?"):
        evaluate(number_encoder, ["tatoeba", "tatoebe"], pair_folder)
    assert number_encoder.calls == []
