from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interlingua.errors import DataError
from interlingua.evaluation.tasks.similarity.sts import STS17, Sick, STS12to16, STSBenchmark
from tests.evaluation.encoders import Hashes
from tests.evaluation.files import DATA, public_data
from tests.evaluation.tasks.angles import COSINES, GOLD, Angles, protocol_sized, rows, write_sts17


@pytest.fixture
def sts17(tmp_path):
    return write_sts17(tmp_path / "sts17")


def test_english_comes_first_whatever_the_file_is_called(sts17):
    encoder = Angles()
    result = STS17(resamples=0, languages=["en-ar", "tr", "en-es_4b"]).evaluate(encoder, sts17)
    assert [(subset.name, subset.languages) for subset in result.subsets] == [
        ("en-ar", ("eng_Latn", "arb_Arab")),
        ("en-es_4b", ("eng_Latn", "spa_Latn")),
        ("en-tr", ("eng_Latn", "tur_Latn")),
    ]
    assert encoder.languages == [
        "eng_Latn",
        "arb_Arab",
        "eng_Latn",
        "spa_Latn",
        "eng_Latn",
        "tur_Latn",
    ]


def test_an_average_of_fewer_sets_carries_its_count(tmp_path):
    folder = protocol_sized(
        tmp_path / "data", ["track1.ar-ar", "track5.en-en", "track2.ar-en", "track6.tr-en"]
    )
    result = STS17(resamples=0).evaluate(Angles(), folder)
    assert result.task == "sts17"
    assert list(result.groups) == ["all_4", "sts17_monolingual_2of3", "sts17_crosslingual_2of7"]
    assert result.members["sts17_crosslingual_2of7"] == ("en-ar", "en-tr")
    by_name = {subset.name: subset.scores["spearman"] for subset in result.subsets}
    assert (
        result.groups["sts17_crosslingual_2of7"]["spearman"]
        == (by_name["en-ar"] + by_name["en-tr"]) / 2
    )
    assert by_name["ar-ar"] > by_name["en-ar"]


def test_stsb_languages_and_pairs_of_them(tmp_path):
    folder = tmp_path / "stsb"
    folder.mkdir()
    for code in ("en", "de", "zh"):
        (folder / f"{code}.test.tsv").write_text(rows())
    result = STSBenchmark(resamples=0).evaluate(Angles(), tmp_path)
    assert [subset.name for subset in result.subsets] == ["de", "en", "zh"]
    assert list(result.groups) == ["all_3", "monolingual_3"]
    encoder = Angles()
    result = STSBenchmark(resamples=0, languages=["de-en", "eng-deu", "zh-Hans"]).evaluate(
        encoder, folder
    )
    assert encoder.languages == [
        "deu_Latn",
        "eng_Latn",
        "eng_Latn",
        "deu_Latn",
        "zho_Hans",
        "zho_Hans",
    ]
    assert [subset.name for subset in result.subsets] == ["de-en", "en-de", "zh"]
    assert list(result.groups) == ["all_3", "monolingual_1", "crosslingual_2"]
    assert result.groups["crosslingual_2"]["spearman"] == pytest.approx(0.8970588235)
    with pytest.raises(DataError, match=r"no file .*'fr'.*de, en, zh"):
        STSBenchmark(languages=["fr"]).evaluate(encoder, folder)


def test_rows_that_are_no_translations_are_refused(tmp_path):
    (tmp_path / "en.test.tsv").write_text(rows())
    (tmp_path / "de.test.tsv").write_text(rows(gold=GOLD[::-1]))
    with pytest.raises(DataError, match=r"en.test.tsv: .*de.test.tsv"):
        STSBenchmark(languages=["en-de"]).evaluate(Angles(), tmp_path)


def test_a_year_is_pooled_and_averaged(tmp_path, monkeypatch):
    monkeypatch.setattr(STS12to16, "sizes", dict.fromkeys(STS12to16.sizes, len(GOLD)))
    (tmp_path / "2013.FNWN.test.tsv").write_text(rows())
    (tmp_path / "2013.OnWN.test.tsv").write_text(rows(COSINES[::-1]))
    (tmp_path / "2016.headlines.test.tsv").write_text(rows())
    result = STS12to16(resamples=0).evaluate(Angles(), tmp_path)
    rho = 0.8970588235294118
    fnwn, onwn, headlines = (subset.scores["spearman"] for subset in result.subsets)
    assert (fnwn, headlines) == (pytest.approx(rho), pytest.approx(rho))
    pooled = stats.spearmanr(COSINES + COSINES[::-1], GOLD + GOLD).statistic
    group = result.groups["sts12_16_3of24"]
    assert group["spearman"] == pytest.approx(((fnwn + onwn) / 2 + headlines) / 2)
    assert group["spearman_pooled"] == pytest.approx((pooled + rho) / 2)
    assert result.groups["sts13_2of3"]["spearman_pooled"] == pytest.approx(pooled)
    assert result.groups["all_3"] == {
        "spearman": pytest.approx((fnwn + onwn + headlines) / 3),
        "pearson": pytest.approx(np.mean([subset.scores["pearson"] for subset in result.subsets])),
    }


def test_sick_pools_its_splits(tmp_path):
    (tmp_path / "test.tsv").write_text(rows())
    (tmp_path / "dev.tsv").write_text(rows(COSINES[::-1]))
    result = Sick(resamples=0, splits=("test", "dev")).evaluate(Angles(), tmp_path)
    assert [(subset.name, subset.pairs) for subset in result.subsets] == [("test+dev", 12)]
    assert result.main_score == pytest.approx(
        stats.spearmanr(COSINES + COSINES[::-1], GOLD + GOLD).statistic
    )
    with pytest.raises(DataError, match=r"split train .*dev, test"):
        Sick(splits=("test", "dev", "train")).evaluate(Angles(), tmp_path)


def test_wanted_and_missing(sts17, tmp_path):
    with pytest.raises(DataError, match=r"no set .*'fr'.*ar-ar, en-ar, en-es_4b, en-tr"):
        STS17(languages=["fr"]).evaluate(Angles(), sts17)
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match=r"STS12-16 .* sts12_16/ or STS/"):
        STS12to16().evaluate(Angles(), tmp_path / "empty")


@pytest.mark.data
@pytest.mark.parametrize("task", [STS17, STSBenchmark, STS12to16, Sick])
def test_the_public_sets_are_recognized_and_scipy_agrees(task):
    public_data(task.folders[0])
    result = task(resamples=0).evaluate(Hashes(), DATA)
    assert result.task == task.name
    assert result.data_revision
    for subset in result.subsets:
        items = result.items[subset.name]
        assert subset.scores["spearman"] == pytest.approx(
            stats.spearmanr(items.values, items.gold).statistic, abs=1e-9
        )
    groups = {
        "sts17": {"all_6", "sts17_monolingual_3of3", "sts17_crosslingual_3of7"},
        "stsb": {"all_15", "monolingual_15"},
        "sts12_16": {
            "all_23",
            "sts12_4of5",
            "sts13_3of3",
            "sts14_6of6",
            "sts15_5of5",
            "sts16_5of5",
            "sts12_16_23of24",
        },
        "sick": {"all_1"},
    }
    assert set(result.groups) == groups[task.name]
