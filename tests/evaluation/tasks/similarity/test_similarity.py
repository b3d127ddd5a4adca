"""Common behavior of the similarity tasks; their data sets are in test_sts.py."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from interlingua.errors import DataError
from interlingua.evaluation.tasks.similarity.similarity import codes_of
from interlingua.evaluation.tasks.similarity.sts import STS17, Sick, STSBenchmark
from tests.evaluation.files import write_rows
from tests.evaluation.tasks.angles import COSINES, GOLD, Angles, protocol_sized, rows, write_sts17


@pytest.fixture
def sts17(tmp_path):
    return write_sts17(tmp_path / "sts17")


def test_a_case_worked_by_hand(sts17):
    result = STS17(resamples=0).evaluate(Angles(), sts17.parent)
    assert {subset.name: subset.pairs for subset in result.subsets} == {
        "ar-ar": 6,
        "en-ar": 6,
        "en-tr": 6,
    }
    for subset in result.subsets:
        assert dict(subset.scores) == {
            "spearman": pytest.approx(0.8970588235, abs=1e-10),
            "pearson": pytest.approx(stats.pearsonr(COSINES, GOLD).statistic, abs=1e-6),
        }


def test_other_sizes_are_another_set(sts17):
    result = STS17(resamples=0).evaluate(Angles(), sts17)
    assert result.task == "sts17_sts17"
    assert list(result.groups) == ["all_3"]
    assert result.data_revision is None


def test_intervals_belong_to_the_set_and_to_the_mean(tmp_path):
    folder = protocol_sized(tmp_path / "data", ["track1.ar-ar", "track5.en-en", "track3.es-es"])
    for path, seed in zip(sorted(folder.iterdir()), range(3), strict=True):
        noisy = (
            np.linspace(0, 0.9, 250) + 0.05 * np.random.default_rng(seed).standard_normal(250)
        ).clip(0, 1)
        path.write_text(rows(noisy, np.linspace(0, 5, 250).round(4)))
    result = STS17(resamples=200).evaluate(Angles(), folder)
    (alone,) = STS17(resamples=200, languages=["en"]).evaluate(Angles(), folder).subsets
    assert next(subset for subset in result.subsets if subset.name == "en-en") == alone
    assert alone.scores["spearman_low"] < alone.scores["spearman"] < alone.scores["spearman_high"]
    widths = [
        subset.scores["spearman_high"] - subset.scores["spearman_low"] for subset in result.subsets
    ]
    mean = result.groups["sts17_monolingual_3of3"]
    assert mean["spearman_low"] < mean["spearman"] < mean["spearman_high"]
    assert mean["spearman_high"] - mean["spearman_low"] < 0.75 * min(
        widths
    )  # a mean of three is surer than each
    (other,) = STS17(resamples=200, languages=["en"], seed=2).evaluate(Angles(), folder).subsets
    assert other.scores["spearman_low"] != alone.scores["spearman_low"]


def test_items_hold_what_was_correlated(sts17):
    items = STS17(resamples=0).evaluate(Angles(), sts17).items["en-ar"]
    assert items.gold.tolist() == GOLD
    assert items.values == pytest.approx(COSINES, abs=1e-6)


def test_equal_pairs_tie_whatever_their_vectors(tmp_path):
    class Twins:
        def encode(self, texts, *, language=None):
            return np.array(
                [np.random.default_rng(len(text)).standard_normal(300) for text in texts],
                np.float32,
            )

    folder = tmp_path / "sick"
    folder.mkdir()
    write_rows(
        folder / "test.tsv", (f"{1 + n / 10}\t{'a' * n}\t{'a' * n}\tNEUTRAL" for n in range(1, 30))
    )
    assert set(Sick(resamples=0).evaluate(Twins(), folder).items["test"].values) == {1.0}


def test_unjudged_pairs_are_reported(tmp_path):
    write_rows(tmp_path / "STS.input.track5.en-en.txt", (f"a x\tb {c}" for c in COSINES))
    (tmp_path / "STS.gs.track5.en-en.txt").write_text("0\n\n2.5\n2.5\n4\n5\n")
    result = STS17(resamples=0).evaluate(Angles(), tmp_path)
    assert result.notes == ("en-en: skipped: 1 pair without a judgment",)
    assert result.subsets[0].pairs == 5


def test_judgments_that_are_all_the_same_are_refused(tmp_path):
    write_rows(tmp_path / "STS.input.track5.en-en.txt", (f"a x\tb {c}" for c in COSINES))
    (tmp_path / "STS.gs.track5.en-en.txt").write_text("3\n" * len(COSINES))
    with pytest.raises(DataError, match=r"en-en: .* 3, "):
        STS17(resamples=0).evaluate(Angles(), tmp_path)


def test_pairs_of_languages_and_languages():
    assert codes_of("de-fra") == ("deu_Latn", "fra_Latn")
    assert codes_of("German") == ("deu_Latn",)
    assert codes_of("zh-Hans") == ("zho_Hans",)
    assert codes_of("pt-BR") == ("por_Latn",)


def test_a_pair_that_is_not_there_is_not_all_of_its_first_language(sts17):
    with pytest.raises(DataError, match=r"no set .*'en-de'.*ar-ar, en-ar, en-es_4b, en-tr"):
        STS17(resamples=0, languages=["en-de"]).evaluate(Angles(), sts17)
    (tr,) = STS17(resamples=0, languages=["tur-eng"]).evaluate(Angles(), sts17).subsets
    assert tr.name == "en-tr"


def test_translated_rows_are_resampled_together(tmp_path):
    """Check that three languages of equal content are as certain as one.

    Drawn each on its own they would seem surer.
    """
    rng = np.random.default_rng(0)
    text = rows(rng.random(80).round(3), (5 * rng.random(80)).round(3))
    for code in ("de", "en", "fr"):
        (tmp_path / f"{code}.test.tsv").write_text(text)
    result = STSBenchmark(resamples=200).evaluate(Angles(), tmp_path)
    bounds = {name: result.subsets[0].scores[name] for name in ("spearman_low", "spearman_high")}
    assert bounds["spearman_low"] < bounds["spearman_high"] - 0.1
    mean = result.groups["monolingual_3"]
    assert {name: mean[name] for name in bounds} == pytest.approx(bounds, abs=1e-12)
