"""experiments/mini/gates.py: the table that the small model is judged by."""

from __future__ import annotations

import json

import pytest

from interlingua.config.registry import TASKS


@pytest.fixture(scope="module")
def gates(mini_script):
    """The script as a module."""
    return mini_script("gates")


def write(folder, model, name, **rows):
    """Write a result file like ``evaluate``."""
    path = folder / "results" / model / "revision" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    scores = [{"hf_subset": subset.replace("_", "-"), **row} for subset, row in rows.items()]
    path.write_text(json.dumps({"scores": {"test": scores}}), encoding="utf-8")


def row_of(table, title):
    """Return the cells of a row."""
    [line] = [line for line in table.splitlines() if line.startswith(f"| {title} |")]
    return [cell.strip() for cell in line.strip("|").split("|")][1:]


def test_every_gate_reads_results_of_a_task_that_there_is(gates):
    assert {gate.task for gate in gates.GATES} <= set(TASKS)


def test_the_last_model_is_judged(gates, tmp_path):
    for model, spearman in (("old", 0.90), ("new", 0.78)):
        rows = {
            name: {"spearman": spearman}
            for name in ("en_ar", "en_es", "en_tr", "ar_ar", "es_es", "en_en")
        }
        write(tmp_path, model, "sts17", **rows)
    write(tmp_path, "new", "bucc_best_f1_dev", zh_en={"best_f1": 0.95})
    table = gates.table(tmp_path, ["old", "new"], set())
    assert row_of(table, "STS17 ar-en") == ["90.0", "78.0", "75.0", "80.0", "met"]
    assert row_of(table, "BUCC zh-en, best F1") == ["", "95.0", "93.0", "94.5", "stretch"]
    assert row_of(table, "XQuAD, MRR@100")[-1] == ""


def test_an_error_must_be_low(gates, tmp_path):
    write(tmp_path, "mini", "xsim", deu_eng={"xsim": 0.001}, fra_eng={"xsim": 0.002})
    table = gates.table(tmp_path, ["mini"], set())
    assert row_of(table, "FLORES-200 xsim, languages trained, error") == [
        "0.150",
        "0.070",
        "0.050",
        "not met",
    ]


def test_only_some_forms_count(gates, tmp_path):
    rows = {"ell_capitals": 0.92, "rus_points": 1.0, "rus_typos": 0.1}
    write(tmp_path, "mini", "robustness", **{name: {"cosine": rows[name]} for name in rows})
    table = gates.table(tmp_path, ["mini"], set())
    row = row_of(table, "capitals, NFD, points, soft hyphens: loss of cosine")
    assert row == ["0.040", "0.050", "0.020", "met"]


def test_only_trained_languages_count_where_it_matters(gates, tmp_path):
    weak, good = ({"accuracy": value, "accuracy_forward": value} for value in (0.1, 0.9))
    write(tmp_path, "mini", "tatoeba", deu_eng=good, kab_eng=weak)
    table = gates.table(tmp_path, ["mini"], {"deu_Latn"})
    assert row_of(table, "Tatoeba, languages trained, x to English")[0] == "90.0"
    assert row_of(table, "Tatoeba-14, both directions")[0] == "90.0"
