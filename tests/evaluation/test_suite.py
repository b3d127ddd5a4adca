from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from interlingua.encoder.directories.model_directory import EncodingSettings
from interlingua.encoder.model_info import describe_encoder
from interlingua.errors import ConfigError, DataError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.report.rendering import cut_texts
from interlingua.evaluation.results import read_result
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.translation.xsim import XSim
from tests.evaluation.encoders import tiny_encoder
from tests.progress_records import Recorded


def test_tasks_share_their_texts(pair_folder, aligned_folder, number_encoder):
    results = evaluate_suite(number_encoder, ["tatoeba", "xsim", XSim(k=2)], pair_folder.parent)
    names = ["tatoeba_tatoeba_laser", "xsim_flores200_devtest", "xsim_flores200_devtest"]
    assert [result.task for result in results] == names
    # 3 x 10 sentences and 10 English ones; then 2 x 8, with their English among the ten; then
    # nothing new
    assert [result.provenance["encoded_texts"] for result in results] == [40, 16, 0]
    assert len(number_encoder.texts) == len(set(number_encoder.texts)) == 56
    assert results[1].provenance["reused_texts"] == 16


def test_results_are_written_as_soon_as_a_task_ends(pair_folder, number_encoder, tmp_path):
    class Broken:
        name = "broken"

        def evaluate(self, encoder, data, *, progress):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        evaluate_suite(number_encoder, ["tatoeba", Broken()], pair_folder, output=tmp_path / "out")
    (file,) = (tmp_path / "out").rglob("*.json")
    assert file.relative_to(tmp_path / "out").parts[0] == "results"
    assert read_result(file).main_score == pytest.approx(2.8 / 3)


def test_prompt_languages_and_compare_reach_the_tasks(pair_folder, number_encoder):
    (result,) = evaluate_suite(
        number_encoder,
        ["tatoeba"],
        pair_folder,
        languages=["de"],
        compare="text",
        prompt="query: ",
        batch_tokens=7,
    )
    assert [subset.name for subset in result.subsets] == ["deu-eng"]
    assert result.changed == ("languages", "compare")
    assert set(number_encoder.calls) == {("query: ", "deu_Latn", 7), ("query: ", "eng_Latn", 7)}
    assert result.provenance["prompt"] == "query: "
    assert result.provenance["model"]["overrides"] == ("prompt='query: '",)
    json.dumps(result.provenance)


def test_a_prompt_by_its_name_is_the_same_column_as_its_text(pair_folder, number_encoder):
    number_encoder.settings = EncodingSettings(prompts={"query": "query: "})
    found = [
        evaluate_suite(number_encoder, ["tatoeba"], pair_folder, prompt=prompt)[0]
        for prompt in ("query", "query: ")
    ]
    assert [result.provenance["prompt"] for result in found] == ["query: ", "query: "]
    assert found[0].provenance["model"] == found[1].provenance["model"]


def test_unknown_task_before_any_work(pair_folder, number_encoder):
    with pytest.raises(ConfigError, match=r"task 'tatoebe'; .*'tatoeba'"):
        evaluate_suite(number_encoder, ["tatoeba", "tatoebe"], pair_folder)
    assert number_encoder.calls == []


def test_progress_is_that_of_the_whole_suite(pair_folder, aligned_folder, number_encoder):
    told = Recorded()
    evaluate_suite(
        number_encoder,
        ["tatoeba", "xsim"],
        pair_folder.parent,
        progress=told,
    )
    # 60 sentences in Tatoeba, so as many are expected of xsim; 32 once its data are read
    assert told.states == [
        ("tatoeba deu-eng", 20, 120),
        ("tatoeba fra-eng", 40, 120),
        ("tatoeba rus-eng", 60, 120),
        ("xsim hin_Deva-eng_Latn", 76, 92),
        ("xsim ita_Latn-eng_Latn", 92, 92),
    ]


class Stop:
    """A task during which the user stops the suite."""

    name = "stop"

    def evaluate(self, encoder, data, *, progress):
        encoder.encode(["de7"], language="deu_Latn")
        raise KeyboardInterrupt


def test_a_suite_that_is_stopped_goes_on_where_it_was(
    pair_folder, short_encoder, tmp_path, monkeypatch
):
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        evaluate_suite(short_encoder, ["tatoeba", Stop()], pair_folder, output=out)
    (kept,) = out.rglob("unfinished-*")
    assert kept.parent == out / "results" / "Encoder"
    (again,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, output=out)
    assert again.provenance["encoded_texts"] == 0
    assert again.provenance["texts"] == 40
    assert not kept.exists()
    (anew,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder)
    assert anew.provenance["encoded_texts"] == 40
    assert anew.subsets == again.subsets


def test_a_cache_serves_further_calls_and_says_what_it_holds(pair_folder, short_encoder, tmp_path):
    keeps = {"cache": tmp_path / "kept", "output": tmp_path / "out"}
    (first,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, **keeps)
    (again,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, **keeps)
    assert [result.provenance["encoded_texts"] for result in (first, again)] == [40, 0]
    assert again.subsets == first.subsets
    assert again.provenance["truncated_texts"] == first.provenance["truncated_texts"]
    (folder,) = (tmp_path / "kept").iterdir()
    assert sorted(path.name for path in folder.iterdir()) == ["0.vectors", "about.json"]
    about = json.loads((folder / "about.json").read_text())
    assert about["identity"] == short_encoder.digest()
    assert (about["prompt"], about["settings"]["max_tokens"], about["device"]) == ("", 3, "cpu")
    assert list((tmp_path / "out").rglob("unfinished*")) == []
    evaluate_suite(short_encoder, ["tatoeba"], pair_folder, prompt="de9 ", **keeps)
    short_encoder.settings = dataclasses.replace(short_encoder.settings, pooling="max")
    evaluate_suite(short_encoder, ["tatoeba"], pair_folder, **keeps)
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_a_suite_that_is_killed_goes_on_with_its_cache(pair_folder, short_encoder, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        evaluate_suite(short_encoder, ["tatoeba", Stop()], pair_folder, cache=tmp_path / "kept")
    (again,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, cache=tmp_path / "kept")
    assert (again.provenance["encoded_texts"], again.provenance["reused_texts"]) == (0, 60)


def test_vectors_of_an_unknown_model_are_not_kept(pair_folder, number_encoder, tmp_path):
    with pytest.raises(ConfigError, match="NumberEncoder cannot be cached"):
        evaluate_suite(number_encoder, ["tatoeba"], pair_folder, cache=tmp_path / "kept")
    named = dataclasses.replace(describe_encoder(number_encoder), kept_as="numbers 1")
    evaluate_suite(number_encoder, ["tatoeba"], pair_folder, cache=tmp_path / "kept", model=named)
    (again,) = evaluate_suite(
        number_encoder, ["tatoeba"], pair_folder, cache=tmp_path / "kept", model=named
    )
    assert again.provenance["encoded_texts"] == 0


def test_a_check_warns_and_is_in_the_results(pair_folder, short_encoder, caplog):
    (result,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder)
    assert result.provenance["sanity"] is None
    model = dataclasses.replace(describe_encoder(short_encoder), name="multilingual-e5-tiny")
    (result,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, check=True, model=model)
    sanity = result.provenance["sanity"]
    assert sanity["sentences"] == 204
    assert sanity["warnings"] == [record.message for record in caplog.records]
    assert "a mean cosine of" in sanity["warnings"][0]
    assert not any(
        "E5" in warning for warning in sanity["warnings"]
    )  # no advice by the model's name
    json.dumps(sanity)


def test_cut_texts_are_a_note_and_in_the_provenance(pair_folder, short_encoder, caplog):
    (pair_folder / "deu-eng.tsv").write_text(
        "de1 de2 de3 de4\ten1\nde5\ten1 en2\n", encoding="utf-8"
    )
    (result,) = evaluate_suite(short_encoder, ["tatoeba"], pair_folder, languages=["de"])
    assert (result.provenance["texts"], result.provenance["truncated_texts"]) == (4, 1)
    assert cut_texts([result]) == "1 of 4 texts of tatoeba_tatoeba_laser were cut to 3 tokens"
    assert result.notes == (
        "25 % of the texts were cut to 3 tokens; the scores are for the truncated texts",
    )
    assert not caplog.records


def test_a_name_for_several_runs_those_whose_data_are_here(tmp_path, caplog):
    (tmp_path / "sick").mkdir()
    (tmp_path / "sick" / "test.tsv").write_text("1\ta 1\tb 2\tNEUTRAL\n")
    tasks = build_tasks(["sts", "xsim"], languages=["en"], data=tmp_path)
    assert [task.name for task in tasks] == ["sick", "xsim"]
    assert [task.languages for task in tasks] == [["en"], ["en"]]
    assert "sts: skipped, because their data are missing: sts17, stsb, sts12_16" in caplog.text
    with pytest.raises(DataError, match=r"retrieval .*\(tydi_goldp, .*docs/data.md"):
        build_tasks(["retrieval"], data=tmp_path)
    assert [task.name for task in build_tasks(["sts"])] == ["sts17", "stsb", "sts12_16", "sick"]


def test_settings_reach_their_tasks():
    settings = [
        "stsb.split=dev",
        "sts.resamples=7",
        "sick.resamples=8",
        "retrieval.bm25=true",
        "beir.runs=out",
    ]
    tasks = {task.name: task for task in build_tasks(["sts", "retrieval"], settings=settings)}
    assert (tasks["stsb"].split, tasks["stsb"].resamples, tasks["sick"].resamples) == ("dev", 7, 8)
    assert all(tasks[name].bm25 for name in ("tydi_goldp", "miracl", "beir"))
    assert tasks["beir"].runs == Path("out")
    assert build_tasks(["sick"], settings=["sts.resamples=7"])[0].resamples == 7
    assert build_tasks(["sick"], settings=['sick.splits=["train", "dev"]'])[0].splits == (
        "train",
        "dev",
    )


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stsb.splt=dev", "--set stsb: unknown key 'splt'; did you mean 'split'?"),
        ("stsb.split=final", "--set stsb: split: expected train, dev or test"),
        ("sick.split=dev", "no task 'sick'"),
        ("split=dev", "--set 'split=dev': expected task.option=value"),
        ("stsb.split", "--set 'stsb.split': expected"),
        ("sts.bm25=true", "--set sts.bm25"),
        ("run.threads=1", "OMP_NUM_THREADS=1"),
        ("threads=4", "OMP_NUM_THREADS=4"),
        ("run.device='cpu'", "--device cpu"),
        ("data.batch_size=8", "interlingua train"),
    ],
)
def test_settings_that_mean_nothing(setting, message):
    suite = ["sts"] if setting.startswith("sts.") else ["stsb", "xsim"]
    with pytest.raises(ConfigError) as error:
        build_tasks(suite, settings=[setting])
    assert message in str(error.value)


def test_nothing_named():
    with pytest.raises(ConfigError, match="suite is empty"):
        build_tasks([])
    with pytest.raises(ConfigError, match="list of languages is empty"):
        build_tasks(["sick"], languages=[])


def test_prompts_by_role_are_in_the_results(tmp_path, number_encoder):
    (tmp_path / "sw.dev.questions.tsv").write_text("q\t0\twhat 1?\tx\n")
    (tmp_path / "sw.dev.passages.txt").write_text("text 1\n")
    (result,) = evaluate_suite(
        number_encoder, ["tydi_goldp"], tmp_path, role_prompts={"query": "ask: "}
    )
    assert result.provenance["model"]["overrides"] == ("query_prompt='ask: '",)
    assert result.provenance["role_prompts"] == {"query": "ask: ", "passage": ""}
    assert [call[0] for call in number_encoder.calls] == [None, "ask: "]


def test_a_model_may_be_a_folder_and_a_suite_a_name(
    pair_folder, word_vocabulary, tmp_path, monkeypatch
):
    encoder = tiny_encoder(word_vocabulary)
    encoder.save(tmp_path / "m")
    monkeypatch.setenv("INTERLINGUA_DATA", str(pair_folder))
    [named] = evaluate_suite(tmp_path / "m", "tatoeba", check=False)
    [given] = evaluate_suite(encoder, ["tatoeba"], pair_folder)
    assert named.main_score == given.main_score
    assert named.provenance["model"]["name"] == "m"
    monkeypatch.delenv("INTERLINGUA_DATA")
    with pytest.raises(DataError, match="INTERLINGUA_DATA"):
        evaluate_suite(encoder, "tatoeba")
    with pytest.raises(ConfigError, match=r"found list; .*\(encoder, suite, data\)"):
        evaluate_suite(["tatoeba"], encoder, pair_folder)
    with pytest.raises(ConfigError, match=r"found str; .*\(encoder, suite, data\)"):
        evaluate_suite("tatoeba", encoder)
