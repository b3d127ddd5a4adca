from __future__ import annotations

import numpy as np
import pytest

from interlingua.errors import DataError
from interlingua.evaluation.cache import CachedEncoder
from interlingua.evaluation.tasks.translation.flores import LANGUAGE_GROUPS, FloresP1
from interlingua.evaluation.tasks.translation.xsim import XSim
from tests.evaluation.files import DATA, public_data, write_rows


def test_every_ordered_pair_worked_by_hand(tmp_path, table_encoder):
    # German nearly as English; both Italian vectors lie nearest to the first of the others
    table = {
        "one": [1, 0],
        "two": [0, 1],
        "eins": [1, 0.1],
        "zwei": [0.1, 1],
        "uno": [1, 0.3],
        "due": [1, 0.5],
    }
    for code, texts in (
        ("eng_Latn", "one two"),
        ("deu_Latn", "eins zwei"),
        ("ita_Latn", "uno due"),
    ):
        write_rows(tmp_path / f"{code}.txt", texts.split())
    result = FloresP1().evaluate(table_encoder(table), tmp_path)
    assert {subset.name: subset.scores["accuracy"] for subset in result.subsets} == {
        "deu_Latn-eng_Latn": 1.0,
        "eng_Latn-deu_Latn": 1.0,
        "deu_Latn-ita_Latn": 1.0,  # eins (6 degrees) meets uno (17), zwei (84) meets due (27)
        "ita_Latn-deu_Latn": 0.5,  # both Italian ones meet eins
        "eng_Latn-ita_Latn": 1.0,
        "ita_Latn-eng_Latn": 0.5,
    }
    assert result.main_score == result.groups["all_6"]["accuracy"] == 5 / 6
    assert result.items["ita_Latn-eng_Latn"].values.tolist() == [1.0, 0.0]
    assert (result.task, list(result.groups)) == (f"flores_p_at_1_{tmp_path.name}", ["all_6"])


def test_each_language_is_embedded_once(aligned_folder, number_encoder):
    with CachedEncoder(number_encoder) as cached:
        result = FloresP1().evaluate(cached, aligned_folder.parent)
    assert len(number_encoder.texts) == 24
    assert [call[1] for call in number_encoder.calls] == ["eng_Latn", "hin_Deva", "ita_Latn"]
    assert {subset.name: subset.scores["accuracy"] for subset in result.subsets}[
        "ita_Latn-hin_Deva"
    ] == 0.75


def test_languages_are_paired_with_each_other(aligned_folder, number_encoder):
    result = FloresP1(languages=["Italian", "hi"]).evaluate(number_encoder, aligned_folder)
    assert [subset.name for subset in result.subsets] == ["hin_Deva-ita_Latn", "ita_Latn-hin_Deva"]
    with pytest.raises(DataError, match="two languages"):
        FloresP1(languages=["Italian"]).evaluate(number_encoder, aligned_folder)
    pairs = FloresP1(languages=["hi-Italian", "en-it"]).evaluate(number_encoder, aligned_folder)
    assert [subset.name for subset in pairs.subsets] == [
        "hin_Deva-ita_Latn",
        "ita_Latn-hin_Deva",
        "eng_Latn-ita_Latn",
        "ita_Latn-eng_Latn",
    ]
    with pytest.raises(DataError, match=r"no file .*'deu_Latn'"):
        FloresP1(languages=["en-de"]).evaluate(number_encoder, aligned_folder)


def test_two_files_of_one_language(aligned_folder, number_encoder):
    (aligned_folder / "ita.txt").write_text("numero 1\n" * 8)
    for task in (FloresP1(), XSim()):
        with pytest.raises(DataError, match=r"ita_Latn\.txt: ita\.txt .*same language"):
            task.evaluate(number_encoder, aligned_folder)


def test_unequal_lengths(aligned_folder, number_encoder):
    (aligned_folder / "ita_Latn.txt").write_text("numero 1\n")
    with pytest.raises(DataError, match=r"ita_Latn.txt: has 1 line, but eng_Latn.txt .* has 8"):
        FloresP1().evaluate(number_encoder, aligned_folder)


def test_the_groups_of_the_paper():
    assert [len(codes) for codes in LANGUAGE_GROUPS.values()] == [14, 16]
    assert not set(LANGUAGE_GROUPS["muse"]) & set(LANGUAGE_GROUPS["low_resource"])


@pytest.mark.data
def test_the_papers_pairs_on_flores():
    public_data("flores200_devtest")

    class Positions:
        """Encoder that knows the answer, except for Yoruba."""

        def encode(self, texts, *, language=None):
            seed = 1 if language == "yor_Latn" else 0
            return np.random.default_rng(seed).standard_normal((len(texts), 16))

    result = FloresP1().evaluate(Positions(), DATA)
    assert (result.task, result.data_revision) == ("flores_p_at_1", "OPUS-MT-testsets@ac0f19c")
    assert len(result.subsets) == 182 + 240
    assert {subset.pairs for subset in result.subsets} == {1012}
    assert result.groups["muse_182of182"]["accuracy"] == 1.0
    assert result.groups["low_resource_240of240"]["accuracy"] == pytest.approx(210 / 240, abs=0.001)
    assert result.groups["hin-hye_2of2"]["accuracy"] == 1.0
    assert result.groups["urd-yor_2of2"]["accuracy"] < 0.01
    assert list(FloresP1(languages=["muse"]).evaluate(Positions(), DATA).groups) == [
        "all_182",
        "muse_182of182",
    ]
