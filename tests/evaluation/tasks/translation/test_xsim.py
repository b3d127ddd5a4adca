from __future__ import annotations

import shutil
import zlib

import numpy as np
import pytest

from interlingua.corpus.formats.evaluation_sets import aligned_files
from interlingua.errors import DataError
from interlingua.evaluation.tasks.translation.xsim import XSim
from tests.evaluation.encoders import Positions
from tests.evaluation.files import DATA, public_data, write_rows
from tests.evaluation.metrics.test_xsim import laser_xsim
from tests.progress_records import Recorded


def test_errors_of_three_margins(aligned_folder, number_encoder):
    result = XSim().evaluate(number_encoder, aligned_folder.parent)
    assert {subset.name: dict(subset.scores) for subset in result.subsets} == {
        "hin_Deva-eng_Latn": {"xsim": 0.25, "xsim_distance": 0.25, "xsim_absolute": 0.25},
        "ita_Latn-eng_Latn": {"xsim": 0.0, "xsim_distance": 0.0, "xsim_absolute": 0.0},
    }
    assert result.groups["all_2"]["xsim"] == result.groups["all_2"]["xsim_pooled"] == 0.125
    assert not result.higher_is_better
    assert result.settings == {"languages": None, "compare": "index", "k": 4}


def test_pooled_errors_weigh_sentences(tmp_path, number_encoder):
    folder = tmp_path / "heldout"
    folder.mkdir()
    write_rows(folder / "deu-eng.tsv", (f"Zahl {n}\tnumber {n}" for n in range(8)))
    (folder / "fra-eng.tsv").write_text("nombre 1\tnumber 2\nnombre 2\tnumber 1\n")
    result = XSim().evaluate(number_encoder, tmp_path)
    assert result.task == "xsim_heldout"
    assert result.groups["all_2"]["xsim"] == pytest.approx(0.5)
    assert result.groups["all_2"]["xsim_pooled"] == pytest.approx(0.2)


def test_margins_differ_where_there_are_hubs(tmp_path, table_encoder):
    x = [
        [1.15, 0.58, 1.11],
        [2.34, 2.54, 0.03],
        [0.57, 0.99, 0.21],
        [1.93, -0.7, 1.79],
        [1.46, 2.36, 0.49],
        [2.39, 1.1, -0.42],
    ]
    y = [
        [1.62, 0.32, 2.37],
        [3.13, 1.66, -0.66],
        [0.98, 0.54, 1.31],
        [2.53, -0.51, 1.09],
        [1.11, 2.32, 0.75],
        [2.57, 0.39, -1.23],
    ]
    for code, letter in (("eng_Latn", "y"), ("deu_Latn", "x")):
        write_rows(tmp_path / f"{code}.txt", (f"{letter}{n}" for n in range(6)))
    rows = {"x": x, "y": y}
    encoder = table_encoder(
        {f"{letter}{n}": row for letter in "xy" for n, row in enumerate(rows[letter])}
    )
    scores = (
        XSim().evaluate(encoder, tmp_path).subsets[0].scores
    )  # LASER's own code makes 1, 2 and 3 errors here
    assert [round(6 * scores[name]) for name in ("xsim", "xsim_distance", "xsim_absolute")] == [
        1,
        2,
        3,
    ]
    assert round(6 * XSim(k=2).evaluate(encoder, tmp_path).main_score) == 2


def test_text_comparison_forgives_duplicates(tmp_path, table_encoder):
    (tmp_path / "eng_Latn.txt").write_text("yes\nyes\n")
    (tmp_path / "deu_Latn.txt").write_text("ja\njawohl\n")
    encoder = table_encoder({"ja": [1, 0], "jawohl": [1, 0.1], "yes": [1, 0]})
    assert XSim().evaluate(encoder, tmp_path).main_score == 0.5
    assert XSim(compare="text").evaluate(encoder, tmp_path).main_score == 0.0


def test_languages_and_progress(aligned_folder, number_encoder):
    seen = Recorded()
    task = XSim(languages=["Italian"])
    result = task.evaluate(number_encoder, aligned_folder, progress=seen)
    assert [subset.name for subset in result.subsets] == ["ita_Latn-eng_Latn"]
    assert seen.states == [("ita_Latn-eng_Latn", 16, 16)]
    assert [language for _, language, _ in number_encoder.calls] == ["eng_Latn", "ita_Latn"]


def test_english_must_be_there_and_lines_must_match(aligned_folder, number_encoder):
    (aligned_folder / "ita_Latn.txt").write_text("numero 1\n")
    with pytest.raises(DataError, match=r"ita_Latn.txt: has 1 line, but eng_Latn.txt .* has 8"):
        XSim().evaluate(number_encoder, aligned_folder)
    (aligned_folder / "eng_Latn.txt").unlink()
    with pytest.raises(DataError, match=r"eng_Latn.txt.* not found"):
        XSim().evaluate(number_encoder, aligned_folder)


@pytest.mark.data
def test_flores_is_recognized(tmp_path, number_encoder):
    public_data("flores200_devtest")

    result = XSim(languages=["mexma"]).evaluate(Positions(), DATA)
    assert (result.task, result.data_revision) == ("xsim", "OPUS-MT-testsets@ac0f19c")
    assert (
        result.groups["mexma_80of80"]["xsim"] == result.groups["mexma_80of80"]["xsim_pooled"] == 0.0
    )
    for code in ("eng_Latn", "deu_Latn"):
        shutil.copy(DATA / "flores200_devtest" / f"{code}.txt", tmp_path / f"{code}.devtest")
    assert XSim().evaluate(Positions(), tmp_path).groups["mexma_1of80"]["xsim"] == 0.0


class Trigrams:
    """Counts of hashed letter trigrams: names and numbers find their translations, much else does
    not."""

    def encode(self, texts, *, language=None):
        counts = np.zeros((len(texts), 256), np.float32)
        for row, text in zip(counts, texts, strict=True):
            for at in range(len(text) - 2):
                row[zlib.crc32(text[at : at + 3].lower().encode()) % 256] += 1
        return counts


@pytest.mark.data
def test_laser_with_faiss_agrees_on_flores():
    faiss, folder = pytest.importorskip("faiss"), DATA / "flores200_devtest"
    if not aligned_files(folder):
        pytest.skip(f"{folder} is not there")
    x, y = (
        Trigrams().encode((folder / f"{code}.txt").read_text().splitlines())
        for code in ("deu_Latn", "eng_Latn")
    )
    (ours,) = XSim(languages=["deu_Latn"]).evaluate(Trigrams(), DATA).subsets
    for margin, name in (
        ("ratio", "xsim"),
        ("distance", "xsim_distance"),
        ("absolute", "xsim_absolute"),
    ):
        wrong = np.mean(np.array(laser_xsim(faiss, x, y, margin, 4)) != np.arange(len(x)))
        assert 0.05 < wrong < 0.95
        assert ours.scores[name] == pytest.approx(wrong)
