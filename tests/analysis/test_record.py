from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

from interlingua.analysis.record import (
    Analysis,
    Measure,
    analysis_table_text,
    analysis_to_json,
    bootstrap_mean,
    mean_measure,
    read_analyses,
    read_analysis,
    write_analysis,
)
from interlingua.errors import DataError
from interlingua.evaluation.results import read_results, write_result
from interlingua.evaluation.results import result_table_text as results_text
from tests.evaluation.results_made import make


def analysis(name="m", *, values=((0.0, 1.0, 1.0), (1.0, 1.0, 1.0)), task="agnosticism", **changes):
    """Build an analysis of two languages of three lines."""
    measures = (
        mean_measure(
            "found",
            np.array(values),
            ["deu_Latn", "eng_Latn"],
            unit="share",
            better="higher",
            definition="d",
        ),
        Measure(name="skew", value=1.5, unit="", definition="e", ideal=0.0, better="lower"),
    )
    model = {"name": name, "revision": "abc", "overrides": [], "library": "test", "pooling": "cls"}
    fields = {
        "task": task,
        "version": "1",
        "dataset": "texts",
        "data_sha256": "f" * 64,
        "data_revision": None,
        "settings": {"k": 10},
        "changed": (),
        "languages": ("deu_Latn", "eng_Latn"),
        "sentences": 3,
        "measures": measures,
        "tables": {"t": {"deu_Latn-eng_Latn": 0.5}},
        "examples": ({"text": "x"},),
        "notes": ("a note",),
        "seconds": 1.0,
        "provenance": {
            "model": model,
            "prompt": "",
            "date": "2026-01-02T03:04:05",
            "command": "interlingua analyse",
        },
    }
    return Analysis(**{**fields, **changes})


def test_there_and_back(tmp_path):
    made = analysis()
    path = write_analysis(made, tmp_path)
    assert path == tmp_path / "results" / "m" / "abc" / "agnosticism-ffffffff.analysis.json"
    again = read_analysis(path)
    assert again == made
    np.testing.assert_array_equal(again["found"].items, [0.5, 1.0, 1.0])
    assert again["skew"].items is None


def test_a_table_holds_results_and_analyses_without_items_and_examples(tmp_path):
    table = tmp_path / "all.jsonl"
    made = analysis()
    table.write_text(results_text([make()]) + analysis_table_text([made]), encoding="utf-8")
    [again] = read_analyses([table])
    assert again == dataclasses.replace(made, examples=())
    assert again["found"].items is None
    assert [result.task for result in read_results([table])] == ["tatoeba"]


def test_a_line_that_is_no_analysis_is_named(tmp_path):
    table = tmp_path / "all.jsonl"
    table.write_text(
        analysis_table_text([analysis()]) + '{"analysis": "agnosticism"}\n', encoding="utf-8"
    )
    with pytest.raises(DataError, match=r"all\.jsonl:2"):
        read_analyses([table])


def test_the_file(tmp_path):
    content = json.loads(write_analysis(analysis(), tmp_path).read_text())
    assert content["format"] == "interlingua-analysis-1"
    assert content["analysis"] == "agnosticism"
    found, skew = content["measures"]
    assert found["title"] == "found"
    assert found["value"] == pytest.approx(5 / 6)
    assert found["by_language"] == {"deu_Latn": pytest.approx(2 / 3), "eng_Latn": 1.0}
    assert (skew["ideal"], skew["better"], skew["low"]) == (0.0, "lower", None)
    assert list(content.pop("files")) == ["items.npz"]
    assert content == json.loads(json.dumps(analysis_to_json(analysis())))


def test_it_stands_beside_results_and_neither_takes_the_other(tmp_path):
    write_result(make("m", revision="abc"), tmp_path)
    write_analysis(analysis(), tmp_path)
    assert [result.task for result in read_results([tmp_path])] == ["tatoeba"]
    assert [one.task for one in read_analyses([tmp_path])] == ["agnosticism"]
    (tmp_path / "empty").mkdir()
    assert read_analyses([tmp_path / "empty"]) == []


def test_other_settings_are_another_folder(tmp_path):
    first = write_analysis(analysis(), tmp_path)
    second = write_analysis(analysis(settings={"k": 5}, changed=("k",)), tmp_path)
    assert first.parent != second.parent


def test_old_items_never_stay(tmp_path):
    path = write_analysis(analysis(), tmp_path)
    bare = analysis(measures=(Measure(name="skew", value=1.0, unit="", definition="e"),))
    assert write_analysis(bare, tmp_path) == path
    assert not path.with_suffix(".items.npz").exists()


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"format": "other"}', '{"format": "interlingua-analysis-1"}']
)
def test_no_analysis_is_one_line(tmp_path, text):
    path = tmp_path / "x.analysis.json"
    path.write_text(text)
    with pytest.raises(DataError, match="not an analysis file"):
        read_analysis(path)
    with pytest.raises(DataError, match="cannot be read"):
        read_analysis(tmp_path / "missing.analysis.json")


@pytest.mark.parametrize("distinct", [2, 5000])
def test_the_interval_is_the_normal_one(distinct):
    rng = np.random.default_rng(0)
    items = rng.integers(distinct, size=4000).astype(float)
    low, high = bootstrap_mean(items)
    half = 1.96 * items.std() / np.sqrt(len(items))
    assert (low, high) == (
        pytest.approx(items.mean() - half, abs=0.1 * half),
        pytest.approx(items.mean() + half, abs=0.1 * half),
    )
    assert bootstrap_mean(np.full(5, 0.25)) == (0.25, 0.25)
