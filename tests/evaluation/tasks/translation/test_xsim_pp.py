from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from interlingua.errors import ConfigError, DataError, TaskError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.data.augmented_sets import altered_file, read_altered
from interlingua.evaluation.suite import evaluate_suite
from interlingua.evaluation.tasks.translation.xsim import XSim
from interlingua.evaluation.tasks.translation.xsim_pp import XSimPP, XSimPPGenerated
from tests.evaluation.files import DATA, public_data, write_rows


def lay(folder, languages, altered, *, target="eng_Latn"):
    """Write FLORES' layout and LASER's next to it; altered: text -> (original, kind)."""
    folder.mkdir(parents=True)
    for code, lines in languages.items():
        write_rows(folder / f"{code}.devtest", lines)
    beside = folder.with_name(f"{folder.name}_augmented")
    beside.mkdir()
    write_rows(beside / f"{target}_augmented.devtest", altered)
    table = {text: {"src": original, "errtype": kind} for text, (original, kind) in altered.items()}
    (beside / f"{target}_errtype.devtest.json").write_text(json.dumps(table))
    return folder


def naive(x, y, k):
    """Retrieve for each query by ratio margin with double loops.

    Candidates without end of the translations.
    """
    x, y = (np.array([row / np.linalg.norm(row) for row in side]) for side in (x, y))
    b = [np.mean(sorted((float(q @ c) for q in x), reverse=True)[:k]) for c in y]
    best = []
    for query in x:
        near = sorted(range(len(y)), key=lambda j: (-float(query @ y[j]), j))[:k]
        a = np.mean([float(query @ y[j]) for j in near])
        best.append(max(near, key=lambda j: float(query @ y[j]) / ((a + b[j]) / 2)))
    return best


def test_by_hand(tmp_path, table_encoder):
    """Use k = 1: x0 is nearest to its altered form, x1 to another's, x2 to its own, x3 to y2."""
    folder = lay(
        tmp_path / "devtest",
        {"eng_Latn": ["y0", "y1", "y2", "y3"], "deu_Latn": ["x0", "x1", "x2", "x3"]},
        {"n0": ("y0", "Number"), "e1": ("y0", "Named Entity"), "e2": ("y2", "Named Entity")},
    )
    angles = {"x0": 0, "x1": 90, "x2": 180, "x3": 270, "y0": 10, "y1": 100, "y2": 181, "y3": 300}
    angles |= {"n0": 1, "e1": 91, "e2": 200}
    turned = {
        text: [np.cos(np.radians(angle)), np.sin(np.radians(angle))]
        for text, angle in angles.items()
    }
    turned["x3"] = turned["y2"]
    result = XSimPP(k=1).evaluate(table_encoder(turned), folder)
    assert {
        name: value
        for name, value in result.subsets[0].scores.items()
        if not name.endswith(("tance", "lute"))
    } == {
        "xsim_pp": 0.75,
        "errors_named_entity": 0.0,
        "errors_number": 0.25,
        "errors_misaligned": 0.5,
    }
    assert result.task == "xsim_pp_devtest"
    assert result.data_revision is None
    assert result.notes == ("the candidates include altered sentences: 2 Named Entity, 1 Number",)
    assert result.items["deu_Latn-eng_Latn"].values.tolist() == [1, 1, 0, 1]
    assert {one.retrieved for one in result.examples["deu_Latn-eng_Latn"]} == {"n0", "e1", "y2"}


def test_lasers_own_numbers(tmp_path, table_encoder, request):
    cases = Path(__file__).parents[3] / "conformance" / "margin.json"
    inputs = json.loads(cases.read_text())["xsim"]["inputs"]
    rows = {"x": inputs["X"], "y": inputs["Y_with_synthetic"]}
    table = {f"{letter}{n}": row for letter in "xy" for n, row in enumerate(rows[letter])}
    altered = {f"y{n}": (f"y{n - 5}", "Entity") for n in range(6, 9)}
    languages = {"eng_Latn": [f"y{n}" for n in range(6)], "deu_Latn": [f"x{n}" for n in range(6)]}
    folder = lay(tmp_path / "devtest", languages, altered)
    scores = XSimPP().evaluate(table_encoder(table), folder).subsets[0].scores
    assert [round(6 * scores[f"xsim_pp{margin}"]) for margin in ("", "_distance", "_absolute")] == [
        2,
        3,
        4,
    ]
    # of the two errors query 1 retrieves 7, made of 2, and query 2 retrieves 4
    assert [round(6 * scores[f"errors_{kind}"]) for kind in ("entity", "misaligned")] == [0, 2]


def test_a_naive_double_loop_agrees(tmp_path, table_encoder):
    rng = np.random.default_rng(3)
    targets, sources = [f"y{n}" for n in range(40)], [f"x{n}" for n in range(40)]
    altered = {f"n{n}": (f"y{n // 3}", random.Random(n).choice(["a", "b"])) for n in range(120)}
    table = {text: rng.standard_normal(6) for text in targets}
    table |= {
        source: table[target] + 0.6 * rng.standard_normal(6)
        for source, target in zip(sources, targets, strict=True)
    }
    table |= {
        text: table[original] + 0.5 * rng.standard_normal(6)
        for text, (original, _) in altered.items()
    }
    folder = lay(tmp_path / "devtest", {"eng_Latn": targets, "deu_Latn": sources}, altered)
    scores = XSimPP().evaluate(table_encoder(table), folder).subsets[0].scores
    pool = [*targets, *altered]
    found = [pool[j] for j in naive([table[x] for x in sources], [table[y] for y in pool], k=4)]
    wrong = [(text, target) for text, target in zip(found, targets, strict=True) if text != target]
    kinds = [
        altered[text][1] if altered.get(text, ("",))[0] == target else "misaligned"
        for text, target in wrong
    ]
    assert 0.3 < len(wrong) / 40 < 1
    assert len(set(kinds)) == 3
    expected = {"xsim_pp": len(wrong) / 40} | {
        f"errors_{kind}": kinds.count(kind) / 40 for kind in set(kinds)
    }
    assert {name: scores[name] for name in expected} == pytest.approx(expected)
    plain = XSim().evaluate(table_encoder(table), folder).main_score
    assert plain < scores["xsim_pp"]


def test_altered_sentences_that_equal_an_original_are_forgiven_by_text(tmp_path, table_encoder):
    folder = lay(
        tmp_path / "devtest",
        {"eng_Latn": ["one", "two"], "deu_Latn": ["eins", "zwei"]},
        {"one": ("two", "Number")},
    )
    encoder = table_encoder({"one": [1, 0], "two": [0, 1], "eins": [1, 0], "zwei": [0, 1]})
    assert XSimPP(k=1, compare="text").evaluate(encoder, folder).main_score == 0


def test_wrong_layouts_are_one_line(tmp_path, aligned_folder, number_encoder):
    with pytest.raises(
        DataError, match=r"eng_Latn_augmented.devtest .*flores200_devtest_augmented"
    ):
        XSimPP().evaluate(number_encoder, aligned_folder.parent)
    folder = lay(
        tmp_path / "x", {"eng_Latn": ["a 1"], "deu_Latn": ["a 1"]}, {"b 2": ("c 3", "Number")}
    )
    with pytest.raises(DataError, match=r"augmented.devtest: .*of eng_Latn"):
        XSimPP().evaluate(number_encoder, folder)
    with pytest.raises(DataError, match=r"fra_Latn.txt.* not found"):
        XSimPP(target="fr").evaluate(number_encoder, folder)
    (folder / "deu_Latn.devtest").write_text("a 1\nb 2\n")
    with pytest.raises(
        DataError, match=r"deu_Latn.devtest: has 2 lines, but eng_Latn.devtest .* has 1"
    ):
        XSimPP().evaluate(number_encoder, folder)


def test_vectors_that_are_no_numbers(tmp_path, aligned_folder):
    class Broken:
        dim = 2

        def encode(self, texts, *, prompt=None, language=None, batch_tokens=0):
            return np.full((len(texts), 2), np.nan)

    with pytest.raises(TaskError, match="NaN or infinity"):
        evaluate_suite(Broken(), [XSimPPGenerated(kinds=("number",))], aligned_folder)


@pytest.fixture
def sentences(tmp_path):
    """English and German, six lines each with a number, a name and an adjective."""
    folder = tmp_path / "flores"
    folder.mkdir()
    names = ["Anna Berg", "Karl Lund", "Maria Holm", "Paul Dahl", "Nora Falk", "Otto Lind"]
    for code, form in (
        ("eng_Latn", "Then {} bought {} large houses."),
        ("deu_Latn", "Dann kaufte {} {} große Dinge."),
    ):
        lines = [form.format(name, 100 + n) for n, name in enumerate(names)]
        write_rows(folder / f"{code}.txt", lines)
    return folder


def test_generated_negatives_and_the_files_they_fill(sentences, number_encoder, tmp_path):
    into = sentences.with_name("flores_augmented")
    task = XSimPPGenerated(kinds=("number", "antonym", "negation"), into=into)
    result = task.evaluate(number_encoder, sentences)
    scores = result.subsets[0].scores
    # the encoder sees only numbers: an antonym equals the sentence itself, which is first
    assert scores["xsim_pp_generated"] == scores["errors_antonym"] == 0
    assert list(scores)[3:] == [
        f"errors_{kind}" for kind in ("number", "antonym", "negation", "misaligned")
    ]
    assert result.task == "xsim_pp_generated_flores"
    assert "30 number" in result.notes[0]
    assert "by interlingua" in result.notes[1]
    assert result.notes[2] == "no sentence could be altered by: negation"
    assert result.settings["kinds"] == ["number", "antonym", "negation"]
    assert set(result.changed) == {"kinds"}

    kept = read_altered(altered_file(sentences, "en"))
    assert {one.kind for one in kept} == {"generated_number", "generated_antonym"}
    again = XSimPP().evaluate(number_encoder, sentences)
    assert again.task == "xsim_pp_flores"
    assert again.subsets[0].scores["errors_generated_number"] == 0
    assert again.main_score == result.main_score


def test_any_language_and_pairs(sentences, number_encoder, tmp_path):
    german = XSimPPGenerated(target="German", kinds=("number",)).evaluate(number_encoder, sentences)
    assert [subset.name for subset in german.subsets] == ["eng_Latn-deu_Latn"]
    heldout = tmp_path / "heldout"
    heldout.mkdir()
    write_rows(heldout / "deu-eng.tsv", (f"Zahl {n}\tnumber {n}" for n in (40, 50)))
    write_rows(heldout / "fra-eng.tsv", (f"nombre {n}\tnumber {n}" for n in (60, 70)))
    result = XSimPPGenerated().evaluate(number_encoder, tmp_path / "heldout")
    assert result.task == "xsim_pp_generated_heldout"
    assert "20 number" in result.notes[0]
    assert result.groups["all_2"]["errors_number"] == 0


def test_options_from_the_command_line(tmp_path):
    (task,) = build_tasks(
        ["xsim_pp_generated"],
        settings=[
            'xsim_pp_generated.kinds=["number", "entity"]',
            "xsim_pp_generated.per_sentence=2",
        ],
    )
    assert (task.kinds, task.per_sentence) == (("number", "entity"), 2)
    with pytest.raises(ConfigError, match=r"kinds: .*of number"):
        build_tasks(["xsim_pp_generated"], settings=['xsim_pp_generated.kinds=["digits"]'])


def test_nothing_to_alter(tmp_path, number_encoder):
    (tmp_path / "eng_Latn.txt").write_text("one\n")
    (tmp_path / "deu_Latn.txt").write_text("eins\n")
    with pytest.raises(DataError, match=r"eng_Latn .*altered by number"):
        XSimPPGenerated(kinds=("number",)).evaluate(number_encoder, tmp_path)


@pytest.mark.data
def test_flores_stands_under_the_protocols_name(tmp_path):
    public_data("flores200_devtest")

    class Positions:
        """Every text has a point of its own, and translations don't meet."""

        def encode(self, texts, *, language=None):
            return np.random.default_rng(len(texts)).standard_normal((len(texts), 8))

    task = XSimPPGenerated(languages=["de"], per_sentence=1, into=tmp_path / "x_augmented")
    result = task.evaluate(Positions(), DATA)
    assert (result.task, result.data_revision) == ("xsim_pp_generated", None)
    assert result.groups["mexma_1of80"]["xsim_pp_generated"] > 0.99
    made = read_altered(altered_file(tmp_path / "x", "en"))
    assert len({one.original for one in made}) == 1012
