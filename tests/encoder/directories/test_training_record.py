from __future__ import annotations

import json

import pytest

from interlingua.encoder.directories.training_record import training_record

CONFIG = """
[data]
corpus = "{corpus}"
[method]
name = "ems"
[run]
output = "{output}"
seed = {seed}
threads = {threads}
max_steps = 100
"""
FINAL = {
    "kind": "final", "step": 100, "seconds": 50.0, "pairs_per_second": 20.0,
    "tokens_per_second": 500.0, "peak_rss_bytes": 7, "exposure": {"deu_Latn-eng_Latn": 600,
    "fra_Latn-eng_Latn": 400},
}  # fmt: skip


def make_run(folder, *, seed=1, corpus="c", threads=1, final=FINAL):
    (folder / "best").mkdir(parents=True)
    (folder / "config.toml").write_text(
        CONFIG.format(output=folder, seed=seed, corpus=corpus, threads=threads)
    )
    records = [{"kind": "train", "step": 1}, *([final] if final else [])]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return folder / "best"


def test_cost_and_identity_of_the_run(tmp_path):
    record = training_record(make_run(tmp_path / "a", seed=3))
    arm = record.pop("arm")
    assert len(arm) == 12
    assert record == {
        "method": "ems",
        "seed": 3,
        "step": 100,
        "seconds": 50.0,
        "peak_rss_bytes": 7,
        "pairs": 1000,
        "tokens": 25000,
    }


def test_measured_counts_come_before_computed_ones(tmp_path):
    measured = {**FINAL, "pairs": 7, "tokens": 8, "cpu_seconds": 9.5}
    record = training_record(make_run(tmp_path / "a", final=measured))
    assert (record["pairs"], record["tokens"], record["cpu_seconds"]) == (7, 8, 9.5)


@pytest.mark.parametrize(
    ("changes", "same"), [({"seed": 2}, True), ({"threads": 8}, True), ({"corpus": "other"}, False)]
)
def test_runs_of_one_arm_differ_in_nothing_that_decides_a_number_but_the_seed(
    tmp_path, changes, same
):
    first = training_record(make_run(tmp_path / "a"))
    second = training_record(make_run(tmp_path / "b", **changes))
    assert (first["arm"] == second["arm"]) == same


def test_an_unfinished_run_has_no_cost(tmp_path):
    assert set(training_record(make_run(tmp_path / "a", final=None))) == {"method", "seed", "arm"}


def test_other_models_have_no_record(tmp_path):
    assert training_record(tmp_path / "no_such_model") is None
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "config.toml").write_text("broken = ")
    assert training_record(tmp_path / "run" / "model") is None
    assert training_record("intfloat/multilingual-e5-small") is None


@pytest.mark.parametrize(
    "last",
    [
        "[1]",
        "5",
        '{"kind": "final", "exposure": {"a": "b"}}',
        '{"kind": "final", "pairs": 1, "tokens_per_second": [1], "pairs_per_second": 1}',
    ],
)
def test_a_stranger_s_record_of_other_types_is_none(tmp_path, last):
    model = make_run(tmp_path / "a")
    (tmp_path / "a" / "metrics.jsonl").write_text(f"{last}\n")
    assert training_record(model) is None
