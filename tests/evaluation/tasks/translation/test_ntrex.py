from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.build import build_tasks
from interlingua.evaluation.tasks.translation.ntrex import (
    _SENTENCES,
    NtrexF1,
    NtrexXSim,
    mteb_pairs,
    ntrex_files,
)
from tests.evaluation.files import write_rows


@pytest.fixture
def folder(tmp_path):
    """The published layout, eight lines a language.

    Two lines of German are swapped, all of French say the same.
    """
    folder = tmp_path / "NTREX-128"
    folder.mkdir()
    files = {
        "src.eng": "{} words",
        "ref.deu": "{} Worte",
        "ref.fra": "3 mots",
        "ref.fra-CA": "{} mots québécois",
        "ref.eng-GB": "{} words indeed",
        "ref.zho-TW": "{} 個字",
        "ref-2.spa": "{} palabras",
    }
    for name, form in files.items():
        order = [1, 0, *range(2, 8)] if name == "ref.deu" else range(8)
        write_rows(folder / f"newstest2019-{name}.txt", (f"{form.format(n)}" for n in order))
    (folder / "LANGUAGES.tsv").write_text("deu German\n")
    return folder


def test_xsim_protocol(folder, number_encoder):
    result = NtrexXSim().evaluate(number_encoder, folder.parent)
    scores = {subset.name: subset.scores["ntrex_xsim"] for subset in result.subsets}
    assert scores == {
        "deu_Latn-eng_Latn": 0.25,
        "fra_CA-eng_Latn": 0.0,
        "fra_Latn-eng_Latn": 0.875,
        "zho_Hant-eng_Latn": 0.0,
    }
    assert result.task == "ntrex_xsim_NTREX-128"  # not 1,997 sentences
    assert result.subsets[1].languages == ("fra_Latn", "eng_Latn")
    assert set(result.subsets[0].scores) == {
        "ntrex_xsim",
        "ntrex_xsim_distance",
        "ntrex_xsim_absolute",
    }
    british = NtrexXSim(languages=["eng_GB"]).evaluate(number_encoder, folder)
    assert [subset.name for subset in british.subsets] == ["eng_GB-eng_Latn"]
    both = NtrexXSim(languages=["French"]).evaluate(number_encoder, folder)
    assert [subset.name for subset in both.subsets] == ["fra_CA-eng_Latn", "fra_Latn-eng_Latn"]


def test_f1_by_hand(folder, number_encoder):
    """Make all eight French vectors that of 3: it is right once of 8, so F1 is 2 / (8 + 1)."""
    result = NtrexF1(languages=["fra_Latn", "deu"]).evaluate(number_encoder, folder)
    scores = {subset.name: dict(subset.scores) for subset in result.subsets}
    assert scores["fra_Latn-eng_Latn"] == {"f1": pytest.approx(2 / 9 / 8), "accuracy": 0.125}
    assert (
        scores["deu_Latn-eng_Latn"] == scores["eng_Latn-deu_Latn"] == {"f1": 0.75, "accuracy": 0.75}
    )
    assert result.items["fra_Latn-eng_Latn"].values.tolist() == [
        0,
        0,
        0,
        pytest.approx(2 / 9),
        0,
        0,
        0,
        0,
    ]
    assert set(result.groups) == {"all_4", "to_english_2", "from_english_2"}
    assert result.task == "ntrex_f1_NTREX-128"


def test_scikit_learn_and_mteb_agree(folder, table_encoder):
    metrics = pytest.importorskip("sklearn.metrics")
    rng = np.random.default_rng(5)
    numbers = {n: rng.standard_normal(4) for n in range(8)}
    texts = {
        text: numbers[int(text.split()[0])]
        for path in ntrex_files(folder).values()
        for text in path.read_text().splitlines()
    }
    table = {text: vector + rng.standard_normal(4) for text, vector in texts.items()}
    result = NtrexF1(languages=["fra_CA"]).evaluate(table_encoder(table), folder)
    unit = {text: row / np.linalg.norm(row) for text, row in table.items()}
    sides = {
        code: [unit[t] for t in ntrex_files(folder)[code].read_text().splitlines()]
        for code in ("fra_CA", "eng_Latn")
    }
    for source, target in (("fra_CA", "eng_Latn"), ("eng_Latn", "fra_CA")):
        nearest = np.argmax(np.array(sides[source]) @ np.array(sides[target]).T, axis=1)
        scores = next(
            subset.scores for subset in result.subsets if subset.name == f"{source}-{target}"
        )
        assert 0 < scores["f1"] < 1
        assert scores["f1"] == pytest.approx(
            metrics.f1_score(range(8), nearest, average="weighted", zero_division=0)
        )
        assert scores["accuracy"] == metrics.accuracy_score(range(8), nearest)


def test_mtebs_pairs():
    assert 2 * len(mteb_pairs()) == 1916
    assert len({code for pair in mteb_pairs() for code in pair}) == 121
    theirs = pytest.importorskip("mteb.tasks.bitext_mining.multilingual.ntrex_bitext_mining")
    from interlingua.evaluation.data.folders import full_code

    # mteb calls Mongolian Mong and Oromo Ethi, the files are in Cyrl and Latn
    spelled = {
        code: code if code[:3] in ("zho", "srp", "tgk") else full_code(code[:3])
        for code in theirs._LANGUAGES
    }
    ours = {frozenset(pair) for pair in mteb_pairs()}
    assert {
        frozenset(spelled[code] for code in name.split("-")) for name in theirs._EVAL_LANGS
    } == ours


def test_mtebs_directions(folder, number_encoder):
    result = NtrexF1(directions="mteb").evaluate(number_encoder, folder)
    assert (
        "mteb_12of1916" in result.groups
    )  # English and three bridge languages; Canadian French is in no pair there


def test_all_sentences_stand_under_the_protocols_name(tmp_path, number_encoder):
    for name in ("src.eng", "ref.deu"):
        write_rows(tmp_path / f"newstest2019-{name}.txt", range(_SENTENCES))
    result = NtrexF1().evaluate(number_encoder, tmp_path)
    assert (result.task, result.main_score) == ("ntrex_f1", 1.0)


def test_wrong_layouts_are_one_line(folder, number_encoder, tmp_path):
    (folder / "newstest2019-ref.deu.txt").write_text("1 Wort\n")
    for task, message in (
        (NtrexXSim(), "newstest2019-src.eng.txt .* has 8"),
        (NtrexF1(), "has 1;"),
    ):
        with pytest.raises(DataError, match=message):
            task.evaluate(number_encoder, folder)
    (folder / "newstest2019-src.eng.txt").unlink()
    for task in (NtrexXSim(), NtrexF1()):
        with pytest.raises(DataError, match=r"newstest2019-src\.eng\.txt not found"):
            task.evaluate(number_encoder, folder)
    empty = tmp_path / "empty"
    empty.mkdir()
    for task in (NtrexXSim(), NtrexF1()):
        with pytest.raises(DataError, match="no NTREX-128 files"):
            task.evaluate(number_encoder, empty)
    (empty / "newstest2019-src.eng.txt").write_text("1\n")
    with pytest.raises(DataError, match="two languages"):
        NtrexF1().evaluate(number_encoder, empty)


def test_the_name_for_both():
    assert [task.name for task in build_tasks(["ntrex"])] == ["ntrex_xsim", "ntrex_f1"]
